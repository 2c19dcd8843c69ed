#include "engine_impl.h"

#include "dltensor.h"
#include "error.h"

namespace dnnl_byoc {

Engine::Engine(const char* json) : graph_(Graph::parse(json)) {
  if (graph_.constants.empty()) set_constants(nullptr, 0);
}

void Engine::set_constants(const DLTensor* const* constants, size_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (ready_) return;
  const auto data = constant_data(graph_, constants, count);
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
  input_data.clear();
  output_data.clear();
  for (size_t i = 0; i < num_inputs; ++i) {
    const ExternalTensor& tensor = graph_.inputs[i];
    input_data.push_back(checked_data(inputs[i], tensor.dtype, tensor.shape, "input", i));
  }
  for (size_t i = 0; i < num_outputs; ++i) {
    const memory::desc& md = executable_->all().output_mds()[i];
    output_data.push_back(checked_data(outputs[i], md.get_data_type(), md.get_dims(), "output", i));
  }
  executable_->run(input_data, output_data);
}

std::string Engine::profile(int runs) {
  require_ready();
  return profile_plan(&*executable_, runs);
}

}  // namespace dnnl_byoc
