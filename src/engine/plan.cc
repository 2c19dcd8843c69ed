#include "plan.h"

#include "plan_builder.h"

namespace dnnl_byoc {

const dnnl::engine& cpu_engine() {
  // Leaked: modules may be destroyed after the static destructors have run.
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

Plan Plan::compile(const Graph& graph, Mode mode) {
  return PlanBuilder(graph, mode).build();
}

void Plan::load_constants(const std::vector<const void*>& data) {
  dnnl::stream stream(cpu_engine());
  constants_.reserve(repacks_.size());
  for (const Repack& repack : repacks_) {
    // oneDNN's reorder does not write to its source.
    memory source(repack.view, cpu_engine(), const_cast<void*>(data[repack.source]));
    constants_.emplace_back(repack.md, cpu_engine());
    dnnl::reorder(source, constants_.back()).execute(stream, source, constants_.back());
  }
  stream.wait();
  for (Step& step : steps_) step.primitive = dnnl::primitive(step.pd.get());
}

size_t Plan::constant_bytes() const {
  size_t bytes = 0;
  for (const memory& constant : constants_) bytes += constant.get_desc().get_size();
  return bytes;
}

}  // namespace dnnl_byoc
