#include "tuning.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "chunk.h"
#include "executable.h"
#include "isa.h"
#include "made_up_tensors.h"
#include "ops/post_ops.h"
#include "threads.h"

namespace dnnl_byoc {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// The fastest of a few runs: what else happens on the machine only makes a run slower.
// A small network, of which a few runs last no longer than a busy spell, gets more of them.
constexpr int kRuns = 8, kMostRuns = 24;
constexpr Seconds kEnough{1.0};  // to go on beyond kRuns
constexpr Seconds kBudget{3.0};  // for one choice; a large batch gets fewer runs
// Winograd's algorithm takes memory for its weights: it has to win by more than a little.
constexpr double kWorthIt = 0.95;
// So has another implementation than oneDNN's first, by more than a measurement is wrong by.
constexpr double kFaster = 0.97;
constexpr int kImplementations = 3;  // of a node, that are tried
// How many images a thread computes at once. One leaves most in its cache; more read the weights of
// dense layers less often.
constexpr memory::dim kChunks[] = {1, 4};

/*! \brief What distinguishes two plans of a graph: for each node, its steps. */
std::map<int, std::string> steps_by_node(const Plan& plan) {
  std::map<int, std::string> texts;
  for (const Step& step : plan.steps()) {
    std::string& text = texts[step.node];
    text += step.kind + " " + step.impl();
    for (const auto& [arg, value] : step.args) {
      const memory::desc& md = plan.values()[value].md;
      text += " " + shape_name(md.get_dims()) + layout_name(md);
    }
    text += ";";
  }
  return texts;
}

/*! \brief A way to run the graph. */
class Candidate {
 public:
  Candidate(const Graph& graph, const Choices& choices)
      : choices_(choices),
        executable_(with(graph, choices)),
        steps_(steps_by_node(executable_.plan())),
        tensors_(graph.inputs, executable_.output_mds()) {}

  /*! \brief Makes it ready to be measured. */
  void load(const std::vector<const void*>& data) {
    executable_.load(data);
    executable_.run(tensors_.inputs(), tensors_.outputs());
  }

  void measure() {
    const auto start = Clock::now();
    executable_.run(tensors_.inputs(), tensors_.outputs());
    fastest_ = std::min<Seconds>(fastest_, Clock::now() - start);
  }

  void measure_nodes() {
    auto context = executable_.take_context();
    context->bind(tensors_.inputs(), tensors_.outputs());
    std::map<int, Seconds> times;
    const auto& steps = executable_.plan().steps();
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto start = Clock::now();
      context->run_step(i);
      times[steps[i].node] += Clock::now() - start;
    }
    executable_.give_back(std::move(context));
    for (const auto& [node, time] : times) {
      const auto it = fastest_by_node_.emplace(node, time).first;
      it->second = std::min(it->second, time);
    }
  }

  const Plan& plan() const { return executable_.plan(); }
  const std::map<int, std::string>& steps() const { return steps_; }
  memory::dim chunks() const { return executable_.chunks(); }
  const Choices& choices() const { return choices_; }
  Seconds fastest() const { return fastest_; }
  Seconds fastest(int node) const { return fastest_by_node_.at(node); }

 private:
  static Graph with(Graph graph, const Choices& choices) {
    graph.tuned = {choices, isa_name()};
    return graph;
  }

  const Choices choices_;
  Executable executable_;
  const std::map<int, std::string> steps_;
  const MadeUpTensors tensors_;
  Seconds fastest_ = Seconds::max();
  std::map<int, Seconds> fastest_by_node_;
};

/*! \brief The graph in each of these ways, without those that come to the same as another. */
std::list<Candidate> candidates_for(const std::vector<Choices>& ways, const Graph& graph) {
  std::list<Candidate> candidates;
  std::set<std::map<int, std::string>> seen;
  for (const Choices& choices : ways) {
    candidates.emplace_back(graph, choices);
    if (!seen.insert(candidates.back().steps()).second) candidates.pop_back();
  }
  return candidates;
}

/*! \brief Measures them in turns, so that a slow spell of the machine hits all alike. */
void measure(std::list<Candidate>* candidates, const std::vector<const void*>& data,
             void (Candidate::*measure)()) {
  for (Candidate& candidate : *candidates) candidate.load(data);
  const auto begin = Clock::now();
  const auto within = [begin](Seconds time) { return Clock::now() - begin < time; };
  for (int i = 0; i == 0 || (i < kRuns && within(kBudget)) || (i < kMostRuns && within(kEnough));
       ++i)
    for (Candidate& candidate : *candidates) (candidate.*measure)();
}

const Candidate& fastest_of(const std::list<Candidate>& candidates) {
  return *std::min_element(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.fastest() < b.fastest(); });
}

/*! \brief The graph for as much of its batch as keeps all threads busy with a chunk each. */
std::optional<Graph> trial_of(const Graph& graph, memory::dim chunk) {
  return chunk_of(graph, std::min(batch_of(graph), chunk * omp_get_max_threads()));
}

/*! \brief The layout and the chunk; none if there is nothing to choose. */
std::optional<Choices> fastest_chunk(const Graph& graph, const std::vector<const void*>& data) {
  std::vector<DataLayout> layouts = {DataLayout::any, DataLayout::channels_last,
                                     DataLayout::blocked};
  const auto ways = [&layouts](memory::dim chunk) {
    std::vector<Choices> ways;
    for (const DataLayout layout : layouts) {
      ways.emplace_back();
      ways.back().layout = layout;
      ways.back().chunk = chunk;
    }
    return ways;
  };
  const memory::dim batch = batch_of(graph);
  std::optional<Choices> best;
  Seconds to_beat = Seconds::max();
  for (const memory::dim chunk : kChunks) {
    if (!on_openmp() || chunk >= batch || batch % chunk) continue;
    const auto trial = trial_of(graph, chunk);
    if (!trial) continue;
    auto candidates = candidates_for(ways(chunk), *trial);
    if (batch_of(*trial) > chunk && candidates.front().chunks() == 1) continue;
    measure(&candidates, data, &Candidate::measure);
    const Candidate& fastest = fastest_of(candidates);
    const memory::dim images = batch_of(*trial), rounds = (batch + images - 1) / images;
    const Seconds time = fastest.fastest() * rounds;
    if (time >= to_beat) continue;
    to_beat = time;
    best = fastest.choices();
  }
  // A run of the whole takes long: only in the layout that is best for chunks, if there are any.
  if (best) layouts = {best->layout};
  auto candidates = candidates_for(ways(0), graph);
  if (!best && candidates.size() == 1) return std::nullopt;
  measure(&candidates, data, &Candidate::measure);
  const Candidate& fastest = fastest_of(candidates);
  return fastest.fastest() < to_beat ? fastest.choices() : *best;
}

/*! \brief What a choice is measured on: as much of the graph as threads compute at once. */
Graph measured_graph(const Choices& choices, const Graph& graph) {
  return choices.chunk ? *trial_of(graph, choices.chunk) : graph;
}

/*!
 * \brief What is said of the fastest candidate, for each node that is faster in it than in the
 * first.
 *
 * \param worth What part of the first one's time the others may take.
 * \param say (candidate, node) → optional; nothing if another node's doing makes the difference.
 */
template <typename Say>
auto fastest_by_node(std::list<Candidate> candidates, const std::vector<const void*>& data,
                     double worth, Say say) {
  std::map<int, typename std::invoke_result_t<Say, const Candidate&, int>::value_type> said;
  if (candidates.size() == 1) return said;
  measure(&candidates, data, &Candidate::measure_nodes);
  const Candidate& first = candidates.front();
  std::map<int, Seconds> to_beat;
  for (const Candidate& candidate : candidates)
    for (const auto& [node, steps] : candidate.steps()) {
      const auto before = first.steps().find(node);
      if (before == first.steps().end() || before->second == steps) continue;
      const auto what = say(candidate, node);
      if (!what) continue;
      const auto best = to_beat.emplace(node, worth * first.fastest(node)).first;
      if (candidate.fastest(node) >= best->second) continue;
      best->second = candidate.fastest(node);
      said[node] = *what;
    }
  return said;
}

/*! \brief For each convolution that is faster by Winograd's algorithm, the tile. */
std::map<int, int> fastest_tiles(const Choices& choices, const Graph& graph,
                                 const std::vector<const void*>& data) {
  std::vector<Choices> ways = {choices};
  for (const int tile : {2, 4}) {
    ways.push_back(choices);
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].kind == "convolution") ways.back().winograd[static_cast<int>(i)] = tile;
  }
  return fastest_by_node(candidates_for(ways, measured_graph(choices, graph)), data, kWorthIt,
                         [](const Candidate& candidate, int node) -> std::optional<int> {
                           const auto& tiles = candidate.choices().winograd;
                           const auto it = tiles.find(node);
                           return it == tiles.end() ? std::nullopt : std::optional(it->second);
                         });
}

/*! \brief For each node whose fastest implementation is not oneDNN's first, its name. */
std::map<int, std::string> fastest_implementations(const Choices& choices, const Graph& graph,
                                                   const std::vector<const void*>& data) {
  std::vector<Choices> ways;
  for (int i = 0; i < kImplementations; ++i) {
    ways.push_back(choices);
    ways.back().implementation = i;
  }
  return fastest_by_node(
      candidates_for(ways, measured_graph(choices, graph)), data, kFaster,
      [&graph](const Candidate& candidate, int node) -> std::optional<std::string> {
        for (const Step& step : candidate.plan().steps())
          if (step.node == node && step.kind == graph.nodes[node].kind) return step.impl();
        return std::nullopt;
      });
}

}  // namespace

std::optional<Choices> fastest(const Graph& graph, const std::vector<const void*>& data,
                               dnnl_byoc_tune_t tune) {
  if (tune == dnnl_byoc_tune_nothing) return std::nullopt;
  const auto found = fastest_chunk(graph, data);
  Choices choices = found.value_or(Choices{});
  if (tune == dnnl_byoc_tune_all) choices.winograd = fastest_tiles(choices, graph, data);
  choices.implementations = fastest_implementations(choices, graph, data);
  if (!found && choices.winograd.empty() && choices.implementations.empty()) return std::nullopt;
  return choices;
}

}  // namespace dnnl_byoc
