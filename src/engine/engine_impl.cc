#include "engine_impl.h"

#include <algorithm>

#include "error.h"

namespace dnnl_byoc {
namespace {

bool same_dtype(const DLDataType& dl, memory::data_type dtype) {
  const auto is = [&](int code, int bits) {
    return dl.code == code && dl.bits == bits && dl.lanes == 1;
  };
  switch (dtype) {
    case memory::data_type::f32:
      return is(kDLFloat, 32);
    case memory::data_type::f16:
      return is(kDLFloat, 16);
    case memory::data_type::bf16:
      return is(kDLBfloat, 16);
    case memory::data_type::s32:
      return is(kDLInt, 32);
    case memory::data_type::s8:
      return is(kDLInt, 8);
    case memory::data_type::u8:
      return is(kDLUInt, 8);
    default:
      return false;
  }
}

memory::dims shape_of(const DLTensor& tensor) {
  return memory::dims(tensor.shape, tensor.shape + tensor.ndim);
}

bool is_compact(const DLTensor& tensor) {
  if (!tensor.strides) return true;
  int64_t stride = 1;
  for (int i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != stride) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

/*! \brief The tensor's data, after checking that it is what the graph says. */
void* checked_data(const DLTensor* tensor, memory::data_type dtype, const memory::dims& shape,
                   const char* what, size_t index) {
  const auto fail = [&](const auto&... message) {
    throw InvalidArgument(text(what, " ", index, ": ", message...));
  };
  if (!tensor) fail("expected a tensor, got NULL");
  if (tensor->device.device_type != kDLCPU)
    fail("expected a tensor on the CPU, got DLPack device type ", tensor->device.device_type);
  const memory::dims got = shape_of(*tensor);
  const bool scalar = got.empty() && shape == memory::dims{1};
  if (got != shape && !scalar)
    fail("expected shape ", shape_name(shape), ", got ", shape_name(got));
  if (!same_dtype(tensor->dtype, dtype))
    fail("expected dtype ", dtype_name(dtype), ", got DLPack code ", int{tensor->dtype.code},
         " with ", int{tensor->dtype.bits}, " bits × ", int{tensor->dtype.lanes});
  if (!is_compact(*tensor)) fail("expected compact row-major data, got strides");
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (!tensor->data && !empty) fail("expected data, got NULL");
  return static_cast<char*>(tensor->data) + tensor->byte_offset;
}

void expect_count(const void* tensors, size_t got, size_t expected, const char* what) {
  if (got != expected) throw InvalidArgument(text("expected ", expected, " ", what, ", got ", got));
  if (got > 0 && !tensors) throw InvalidArgument(text("expected ", got, " ", what, ", got NULL"));
}

}  // namespace

Engine::Engine(const char* json) : graph_(Graph::parse(json)) {
  if (graph_.constants.empty()) set_constants(nullptr, 0);
}

void Engine::set_constants(const DLTensor* const* constants, size_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (ready_) return;
  expect_count(constants, count, graph_.constants.size(), "constants");
  std::vector<const void*> data;
  for (size_t i = 0; i < count; ++i) {
    const ExternalTensor& tensor = graph_.constants[i];
    data.push_back(checked_data(constants[i], tensor.dtype, tensor.shape, "constant", i));
  }
  Plan plan = Plan::compile(graph_, Plan::Mode::full);
  plan.load_constants(data);
  plan_ = std::move(plan);
  ready_ = true;
}

void Engine::require_ready() const {
  if (!ready_)
    throw InvalidArgument(text("expected the graph's ", graph_.constants.size(),
                               " constants to be set before a run"));
}

void Engine::run(const DLTensor* const* inputs, size_t num_inputs, DLTensor* const* outputs,
                 size_t num_outputs) {
  require_ready();
  expect_count(inputs, num_inputs, graph_.inputs.size(), "inputs");
  expect_count(outputs, num_outputs, graph_.outputs.size(), "outputs");
  // Small, and kept between calls: nothing is allocated per call once they have grown.
  thread_local std::vector<void*> input_data, output_data;
  input_data.clear();
  output_data.clear();
  for (size_t i = 0; i < num_inputs; ++i) {
    const ExternalTensor& tensor = graph_.inputs[i];
    input_data.push_back(checked_data(inputs[i], tensor.dtype, tensor.shape, "input", i));
  }
  for (size_t i = 0; i < num_outputs; ++i) {
    const memory::desc& md = plan_.output_mds()[i];
    output_data.push_back(checked_data(outputs[i], md.get_data_type(), md.get_dims(), "output", i));
  }
  auto context = take_context();
  context->bind(input_data, output_data);
  context->run();
  give_back(std::move(context));
}

std::string Engine::profile(int runs) {
  require_ready();
  auto context = take_context();
  std::string json = profile_plan(plan_, graph_, context.get(), runs);
  give_back(std::move(context));
  return json;
}

std::unique_ptr<ExecutionContext> Engine::take_context() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      auto context = std::move(idle_.back());
      idle_.pop_back();
      return context;
    }
  }
  return std::make_unique<ExecutionContext>(plan_);
}

void Engine::give_back(std::unique_ptr<ExecutionContext> context) {
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(context));
}

}  // namespace dnnl_byoc
