#include "tuning.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <map>
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
constexpr Seconds kBudget{3.0};  // for all of a choice; a large batch gets fewer runs
// Winograd's algorithm takes memory for its weights: it has to win by more than a little.
constexpr double kWorthIt = 0.95;

/*! \brief What distinguishes two plans of a graph. */
std::string signature(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps()) {
    text += step.kind + " " + step.impl();
    for (const auto& [arg, value] : step.args) {
      const memory::desc& md = plan.values()[value].md;
      text += " " + shape_name(md.get_dims()) + layout_name(md);
    }
    text += ";";
  }
  return text;
}

/*! \brief A way to run the graph; its address is kept. */
class Candidate {
 public:
  Candidate(Choices choices, Plan plan) : choices_(std::move(choices)), plan_(std::move(plan)) {}
  Candidate(const Candidate&) = delete;

  /*! \brief Makes it ready to be measured; graph and data must outlive it. */
  void load(const Graph& graph, const std::vector<const void*>& data) {
    plan_.load(graph.constants, data);
    tensors_.emplace(plan_, graph);
    context_.emplace(plan_);
    context_->bind(tensors_->inputs(), tensors_->outputs());
    context_->run();
  }

  void measure() {
    const auto start = Clock::now();
    context_->run();
    fastest_ = std::min<Seconds>(fastest_, Clock::now() - start);
  }

  void measure_nodes() {
    std::map<int, Seconds> times;
    for (size_t i = 0; i < plan_.steps().size(); ++i) {
      const auto start = Clock::now();
      context_->run_step(i);
      times[plan_.steps()[i].node] += Clock::now() - start;
    }
    for (const auto& [node, time] : times) {
      const auto it = fastest_by_node_.emplace(node, time).first;
      it->second = std::min(it->second, time);
    }
  }

  /*! \brief The nodes that run kernels of our own. */
  std::set<int> nodes_with_kernels() const {
    std::set<int> nodes;
    for (const Step& step : plan_.steps())
      if (step.kernel) nodes.insert(step.node);
    return nodes;
  }

  const Choices& choices() const { return choices_; }
  Seconds fastest() const { return fastest_; }
  Seconds fastest(int node) const { return fastest_by_node_.at(node); }

 private:
  const Choices choices_;
  Plan plan_;
  std::optional<MadeUpTensors> tensors_;
  std::optional<ExecutionContext> context_;
  Seconds fastest_ = Seconds::max();
  std::map<int, Seconds> fastest_by_node_;
};

/*! \brief The graph in each of these ways, without those that come to the same as another. */
std::list<Candidate> candidates_for(const std::vector<Choices>& ways, Graph* graph) {
  std::list<Candidate> candidates;
  std::set<std::string> seen;
  for (const Choices& choices : ways) {
    graph->tuned = {choices, isa_name()};
    Plan plan = Plan::compile(*graph, Plan::Mode::full);
    if (seen.insert(signature(plan)).second) candidates.emplace_back(choices, std::move(plan));
  }
  return candidates;
}

/*! \brief Measures them in turns, so that a slow spell of the machine hits all alike. */
void measure(std::list<Candidate>* candidates, const Graph& graph,
             const std::vector<const void*>& data, void (Candidate::*measure)()) {
  for (Candidate& candidate : *candidates) candidate.load(graph, data);
  const auto begin = Clock::now();
  for (int i = 0; i == 0 || (i < kRuns && Clock::now() - begin < kBudget); ++i)
    for (Candidate& candidate : *candidates) (candidate.*measure)();
}

/*! \brief None if all come to the same. */
std::optional<DataLayout> fastest_layout(Graph* graph, const std::vector<const void*>& data) {
  auto candidates = candidates_for(
      {{DataLayout::any, {}}, {DataLayout::channels_last, {}}, {DataLayout::blocked, {}}}, graph);
  if (candidates.size() == 1) return std::nullopt;
  measure(&candidates, *graph, data, &Candidate::measure);
  return std::min_element(
             candidates.begin(), candidates.end(),
             [](const Candidate& a, const Candidate& b) { return a.fastest() < b.fastest(); })
      ->choices()
      .layout;
}

/*! \brief For each convolution that is faster by Winograd's algorithm, the tile. */
std::map<int, int> fastest_tiles(DataLayout layout, Graph* graph,
                                 const std::vector<const void*>& data) {
  std::vector<Choices> ways = {{layout, {}}};
  for (const int tile : {2, 4}) {
    ways.push_back({layout, {}});
    for (size_t i = 0; i < graph->nodes.size(); ++i)
      if (graph->nodes[i].kind == "convolution") ways.back().winograd[static_cast<int>(i)] = tile;
  }
  auto candidates = candidates_for(ways, graph);
  if (candidates.size() == 1) return {};
  measure(&candidates, *graph, data, &Candidate::measure_nodes);
  std::map<int, int> tiles;
  std::map<int, Seconds> to_beat;
  for (const Candidate& candidate : candidates)
    for (const int node : candidate.nodes_with_kernels()) {
      const auto best = to_beat.emplace(node, kWorthIt * candidates.front().fastest(node)).first;
      if (candidate.fastest(node) >= best->second) continue;
      best->second = candidate.fastest(node);
      tiles[node] = candidate.choices().winograd.at(node);
    }
  return tiles;
}

}  // namespace

std::optional<Choices> fastest(Graph graph, const std::vector<const void*>& data,
                               dnnl_byoc_tune_t tune) {
  if (tune == dnnl_byoc_tune_nothing) return std::nullopt;
  const auto layout = fastest_layout(&graph, data);
  Choices choices = {layout.value_or(DataLayout::any), {}};
  if (tune == dnnl_byoc_tune_all) choices.winograd = fastest_tiles(choices.layout, &graph, data);
  if (!layout && choices.winograd.empty()) return std::nullopt;
  return choices;
}

}  // namespace dnnl_byoc
