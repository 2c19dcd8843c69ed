#include "engine_impl.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dltensor.h"
#include "error.h"

namespace dnnl_byoc {

namespace {

/*! \brief Appends those of a shape's sizes that the graph does not say. */
void append_unknown_sizes(const memory::dims& shape, const int64_t* got, memory::dims* sizes) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == kUnknown) sizes->push_back(got[i]);
}

}  // namespace

Engine::Engine(const char* json) : graph_(Graph::parse(json)), dynamic_(graph_.is_dynamic()) {
  if (graph_.constants.empty()) set_constants(nullptr, 0);
}

void Engine::set_constants(const DLTensor* const* constants, size_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (ready_) return;
  const auto data = constant_data(graph_, constants, count);
  if (dynamic_)
    executables_.emplace(graph_, data);
  else
    executable_.emplace(graph_, data);
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
  // Small, and kept between calls: nothing is allocated here once they have grown.
  thread_local std::vector<void*> input_data, output_data;
  thread_local memory::dims sizes;
  input_data.clear();
  output_data.clear();
  sizes.clear();
  for (size_t i = 0; i < num_inputs; ++i) {
    const ExternalTensor& tensor = graph_.inputs[i];
    input_data.push_back(checked_data(inputs[i], tensor.dtype, tensor.shape, "input", i));
    if (dynamic_) append_unknown_sizes(tensor.shape, inputs[i]->shape, &sizes);
  }
  const auto found = dynamic_ ? executables_->get(sizes) : nullptr;
  const Executable& whole = dynamic_ ? *found : executable_->all();
  for (size_t i = 0; i < num_outputs; ++i) {
    const memory::desc& md = whole.output_mds()[i];
    output_data.push_back(checked_data(outputs[i], md.get_data_type(), md.get_dims(), "output", i));
  }
  if (dynamic_)
    found->run(input_data, output_data);
  else
    executable_->run(input_data, output_data);
}

void Engine::infer_shapes(const DLTensor* const* input_shapes, size_t num_inputs,
                          DLTensor* const* output_shapes, size_t num_outputs) {
  require_ready();
  expect_count(input_shapes, num_inputs, graph_.inputs.size(), "input shapes");
  expect_count(output_shapes, num_outputs, graph_.outputs.size(), "output shapes");
  memory::dims sizes;
  for (size_t i = 0; i < num_inputs; ++i) {
    const memory::dims& shape = graph_.inputs[i].shape;
    const auto* got = checked_shape(input_shapes[i], shape.size(), "input shape", i);
    expect_shape(memory::dims(got, got + shape.size()), shape, "input", i);
    append_unknown_sizes(shape, got, &sizes);
  }
  const auto found = dynamic_ ? executables_->get(sizes) : nullptr;
  const auto& mds = (dynamic_ ? *found : executable_->all()).output_mds();
  for (size_t i = 0; i < num_outputs; ++i) {
    const memory::dims shape = mds[i].get_dims();
    auto* result = checked_shape(output_shapes[i], shape.size(), "output shape", i);
    std::copy(shape.begin(), shape.end(), result);
  }
}

std::string Engine::profile(int runs) {
  require_ready();
  nlohmann::json result;
  if (dynamic_) {
    if (const auto last = executables_->last()) result = describe_plan(last.get(), runs);
    result["repacked_bytes"] = executables_->repacked_bytes();
    result["plans"] = executables_->size();
    result["compiled"] = executables_->compiled();
  } else {
    result = describe_plan(&executable_->all(), runs);
    result["threads"] = executable_->threads();
    result["adapts"] = executable_->adapts();
  }
  return result.dump();
}

}  // namespace dnnl_byoc
