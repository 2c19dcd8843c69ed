#include "plan.h"

#include <algorithm>
#include <map>

#include "constant_loader.h"
#include "plan_builder.h"

namespace dnnl_byoc {

const dnnl::engine& cpu_engine() {
  // Leaked: modules may be destroyed after the static destructors have run.
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

Plan Plan::compile(const Graph& graph, Mode mode) {
  Plan best = PlanBuilder(graph, mode).build();
  if (mode == Mode::support) return best;
  // oneDNN chooses for each convolution alone. The first one, with its three channels, often
  // differs from all others, and the caller's data may be channels-last: ask all to follow one of
  // these.
  for (const std::string& layout : best.common_layouts()) {
    Plan uniform = PlanBuilder(graph, mode, layout).build();
    if (uniform.reordered_bytes() < best.reordered_bytes()) best = std::move(uniform);
  }
  return best;
}

std::vector<std::string> Plan::common_layouts() const {
  std::map<std::string, size_t> bytes;
  std::string channels_last;
  for (const Step& step : steps_) {
    if (step.kind != "convolution") continue;
    const memory::desc dst = step.pd.query_md(dnnl::query::dst_md);
    bytes[layout_name(dst)] += dst.get_size();
    channels_last = layout_name(channels_last_md(dst));
  }
  if (bytes.empty()) return {};
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return {most->first, channels_last};
}

size_t Plan::reordered_bytes() const {
  size_t bytes = 0;
  for (const Step& step : steps_)
    if (step.kind == "reorder") bytes += step.pd.query_md(dnnl::query::dst_md).get_size();
  return bytes;
}

void Plan::load(const std::vector<ExternalTensor>& constants,
                const std::vector<const void*>& data) {
  ConstantLoader loader(constants, data);
  constants_.reserve(repacks_.size());
  for (const Repack& repack : repacks_) {
    constants_.push_back(loader.in_place(repack));
    if (constants_.back()) continue;
    constants_.back() = loader.repacked(repack);
    repacked_bytes_ += repack.md.get_size();
  }
  for (Step& step : steps_) step.primitive = dnnl::primitive(step.pd.get());
}

size_t Plan::constant_bytes() const {
  size_t bytes = 0;
  for (const memory& constant : constants_) bytes += constant.get_desc().get_size();
  return bytes;
}

}  // namespace dnnl_byoc
