#include "plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "constant_loader.h"
#include "constant_pool.h"
#include "isa.h"
#include "plan_builder.h"
#include "threads.h"

namespace dnnl_byoc {

const dnnl::engine& cpu_engine() {
  // Leaked: modules may be destroyed after the static destructors have run.
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

const Choices* measured_choices(const Graph& graph) {
  return graph.tuned && graph.tuned->isa == isa_name() ? &graph.tuned->choices : nullptr;
}

Plan Plan::compile(const Graph& graph, Mode mode, int threads) {
  const ThreadScope scope(threads);
  Plan plan = compile(graph, mode, measured_choices(graph));
  plan.threads_ = threads;
  return plan;
}

Plan Plan::compile(const Graph& graph, Mode mode, const Choices* choices) {
  if (choices) return PlanBuilder(graph, mode, *choices).build();
  Plan best = PlanBuilder(graph, mode, {}).build();
  if (mode == Mode::support) return best;
  // oneDNN chooses for each convolution alone. The first one, with its three channels, often
  // differs from all others, and the caller's data may be channels-last: ask all to follow one of
  // these.
  std::set<DataLayout> layouts = {best.common_layout(), DataLayout::channels_last};
  layouts.erase(DataLayout::any);
  for (const DataLayout layout : layouts) {
    Plan uniform = PlanBuilder(graph, mode, {layout}).build();
    if (uniform.reordered_bytes() < best.reordered_bytes()) best = std::move(uniform);
  }
  return best;
}

DataLayout Plan::common_layout() const {
  std::map<DataLayout, size_t> bytes;
  for (const Step& step : steps_) {
    if (step.kind != "convolution") continue;
    const auto dst_arg =
        std::find_if(step.args.begin(), step.args.end(),
                     [](const std::pair<int, int>& arg) { return arg.first == DNNL_ARG_DST; });
    const memory::desc& dst = values_[dst_arg->second].md;
    bytes[data_layout_of(dst)] += dst.get_size();
  }
  if (bytes.empty()) return DataLayout::any;
  return std::max_element(bytes.begin(), bytes.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

std::pair<int, int> Plan::turn_of(int step) const {
  for (const Cascade& cascade : cascades_)
    if (cascade.first <= step && step < cascade.end) return {cascade.first, cascade.end - 1};
  return {step, step};
}

size_t Plan::reordered_bytes() const {
  size_t bytes = 0;
  for (const Step& step : steps_)
    if (step.kind == "reorder") bytes += values_[step.args.back().second].md.get_size();  // TO
  return bytes;
}

void Plan::load(const std::vector<ExternalTensor>& constants, const std::vector<const void*>& data,
                ConstantPool* pool) {
  ConstantLoader loader(constants, data);
  constants_.reserve(repacks_.size());
  const auto load = [&](const Repack& repack) {
    if (repack.literal) return repack.literal;
    memory constant = loader.in_place(repack);
    if (constant) return constant;
    repacked_bytes_ += repack.md.get_size();
    return pool ? pool->get(repack, [&] { return loader.repacked(repack); })
                : loader.repacked(repack);
  };
  {
    const ThreadScope all(0);
    for (const Repack& repack : repacks_) constants_.push_back(load(repack));
  }
  const ThreadScope scope(threads_);
  for (Step& step : steps_)
    if (!step.kernel) step.primitive = dnnl::primitive(step.pd.get());
}

size_t Plan::constant_bytes() const {
  size_t bytes = 0;
  for (const memory& constant : constants_) bytes += constant.get_desc().get_size();
  return bytes;
}

}  // namespace dnnl_byoc
