#include "tuning.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <optional>
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
constexpr int kRuns = 8;
constexpr Seconds kBudget{3.0};  // for all; a large batch gets fewer runs

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

/*! \brief A plan that can run; its address is kept. */
class Candidate {
 public:
  Candidate(DataLayout layout, Plan plan) : layout_(layout), plan_(std::move(plan)) {}
  Candidate(const Candidate&) = delete;

  void load(const Graph& graph, const std::vector<const void*>& data) {
    plan_.load(graph.constants, data);
    context_.emplace(plan_);
    tensors_.emplace(plan_, graph);
    context_->bind(tensors_->inputs(), tensors_->outputs());
    context_->run();
  }

  void measure() {
    const auto start = Clock::now();
    context_->run();
    fastest_ = std::min<Seconds>(fastest_, Clock::now() - start);
  }

  DataLayout layout() const { return layout_; }
  Seconds fastest() const { return fastest_; }

 private:
  const DataLayout layout_;
  Plan plan_;
  std::optional<MadeUpTensors> tensors_;
  std::optional<ExecutionContext> context_;
  Seconds fastest_ = Seconds::max();
};

}  // namespace

std::optional<DataLayout> fastest_layout(Graph graph, const std::vector<const void*>& data) {
  std::list<Candidate> candidates;
  std::set<std::string> seen;
  for (const auto layout : {DataLayout::any, DataLayout::channels_last, DataLayout::blocked}) {
    graph.tuned = {layout, isa_name()};
    Plan plan = Plan::compile(graph, Plan::Mode::full);
    if (seen.insert(signature(plan)).second) candidates.emplace_back(layout, std::move(plan));
  }
  if (candidates.size() == 1) return std::nullopt;
  for (Candidate& candidate : candidates) candidate.load(graph, data);
  // In turns, so that a slow spell of the machine hits all alike.
  const auto begin = Clock::now();
  for (int i = 0; i == 0 || (i < kRuns && Clock::now() - begin < kBudget); ++i)
    for (Candidate& candidate : candidates) candidate.measure();
  return std::min_element(
             candidates.begin(), candidates.end(),
             [](const Candidate& a, const Candidate& b) { return a.fastest() < b.fastest(); })
      ->layout();
}

}  // namespace dnnl_byoc
