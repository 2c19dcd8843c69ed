#include "runner.h"

#include <utility>

namespace dnnl_byoc {
namespace adapter {

Runner::Runner(std::string symbol, EngineGraph graph)
    : symbol_(std::move(symbol)), graph_(std::move(graph)) {
  dnnl_byoc_engine_t engine = nullptr;
  check(dnnl_byoc_create(graph_.json.c_str(), &engine));
  engine_.reset(engine);
}

void Runner::compile() {
  if (compiled_) return;
  std::vector<const DLTensor*> constants;
  for (const Constant& constant : graph_.constants) constants.push_back(constant.get());
  check(dnnl_byoc_set_constants(engine_.get(), constants.data(), constants.size()));
  compiled_ = true;
}

void Runner::run(const std::vector<DLTensor*>& tensors) { call(dnnl_byoc_run, tensors); }

void Runner::infer_shapes(const std::vector<DLTensor*>& shapes) {
  compile();
  call(dnnl_byoc_infer_shapes, shapes);
}

void Runner::call(decltype(dnnl_byoc_run) function, const std::vector<DLTensor*>& tensors) {
  size_t num_inputs = 0, num_outputs = 0;
  dnnl_byoc_arity(engine_.get(), &num_inputs, &num_outputs);
  if (tensors.size() != num_inputs + num_outputs)
    throw RunError(true, symbol_ + ": expected " + std::to_string(num_inputs) + " inputs and " +
                             std::to_string(num_outputs) + " outputs, got " +
                             std::to_string(tensors.size()) + " tensors");
  check(function(engine_.get(), tensors.data(), num_inputs, tensors.data() + num_inputs,
                 num_outputs));
}

std::string Runner::profile(int runs) {
  compile();
  const char* profile = nullptr;
  check(dnnl_byoc_profile(engine_.get(), runs, &profile));
  return profile;
}

void Runner::check(dnnl_byoc_status_t status) const {
  if (status != dnnl_byoc_success)
    throw RunError(status == dnnl_byoc_invalid_argument, symbol_ + ": " + dnnl_byoc_last_error());
}

}  // namespace adapter
}  // namespace dnnl_byoc
