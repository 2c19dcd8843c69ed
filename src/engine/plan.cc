#include "plan.h"

#include <algorithm>

#include "plan_builder.h"

namespace dnnl_byoc {

const dnnl::engine& cpu_engine() {
  // Leaked: modules may be destroyed after the static destructors have run.
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

Plan Plan::compile(const Graph& graph, Mode mode) {
  Plan plan = PlanBuilder(graph, mode).build();
  // oneDNN chooses for each convolution alone, and the first one, with its three channels, often
  // differs from all others. Where most agree, the rest is asked to follow.
  const std::map<std::string, size_t> bytes = plan.convolution_layouts();
  if (mode == Mode::support || bytes.size() < 2) return plan;
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  Plan uniform = PlanBuilder(graph, mode, most->first).build();
  return uniform.reordered_bytes() < plan.reordered_bytes() ? std::move(uniform) : std::move(plan);
}

std::map<std::string, size_t> Plan::convolution_layouts() const {
  std::map<std::string, size_t> bytes;
  for (const Step& step : steps_) {
    if (step.kind != "convolution") continue;
    const memory::desc dst = step.pd.query_md(dnnl::query::dst_md);
    bytes[layout_name(dst)] += dst.get_size();
  }
  return bytes;
}

size_t Plan::reordered_bytes() const {
  size_t bytes = 0;
  for (const Step& step : steps_)
    if (step.kind == "reorder") bytes += step.pd.query_md(dnnl::query::dst_md).get_size();
  return bytes;
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
