#include "tuning.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "execution_context.h"
#include "isa.h"
#include "made_up_tensors.h"
#include "plan.h"

namespace dnnl_byoc {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// The fastest of a few runs: what else happens on the machine only makes a run slower.
constexpr int kRuns = 5;
constexpr Seconds kBudget{2.0};  // for one layout; a large batch gets fewer runs

/*! \brief What distinguishes two plans of a graph. */
std::string signature(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps()) {
    text += step.kind + " " + step.pd.impl_info_str();
    for (const auto& [arg, value] : step.args) text += " " + layout_name(plan.values()[value].md);
    text += ";";
  }
  return text;
}

Seconds fastest_run(const Graph& graph, Plan plan, const std::vector<const void*>& data) {
  plan.load(graph.constants, data);
  ExecutionContext context(plan);
  const MadeUpTensors tensors(plan, graph);
  context.bind(tensors.inputs(), tensors.outputs());
  context.run();
  Seconds fastest = Seconds::max();
  const auto begin = Clock::now();
  for (int i = 0; i < kRuns && Clock::now() - begin < kBudget; ++i) {
    const auto start = Clock::now();
    context.run();
    fastest = std::min<Seconds>(fastest, Clock::now() - start);
  }
  return fastest;
}

}  // namespace

std::optional<DataLayout> fastest_layout(Graph graph, const std::vector<const void*>& data) {
  std::vector<std::pair<DataLayout, Plan>> candidates;
  std::set<std::string> seen;
  for (const auto layout : {DataLayout::any, DataLayout::channels_last, DataLayout::blocked}) {
    graph.tuned = {layout, isa_name()};
    Plan plan = Plan::compile(graph, Plan::Mode::full);
    if (seen.insert(signature(plan)).second) candidates.emplace_back(layout, std::move(plan));
  }
  if (candidates.size() == 1) return std::nullopt;
  std::optional<DataLayout> best;
  Seconds fastest = Seconds::max();
  for (auto& [layout, plan] : candidates) {
    const Seconds seconds = fastest_run(graph, std::move(plan), data);
    if (seconds >= fastest) continue;
    fastest = seconds;
    best = layout;
  }
  return best;
}

}  // namespace dnnl_byoc
