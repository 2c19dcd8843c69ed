#include "tuning.h"

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "candidate.h"
#include "chunk.h"
#include "threads.h"

namespace dnnl_byoc {
namespace {

// Winograd's algorithm takes memory for its weights: it has to win by more than a little.
constexpr double kWorthIt = 0.95;
// So has another implementation than the first, by more than a measurement is wrong by.
constexpr double kFaster = 0.97;
constexpr Seconds kTooShort{1e-4};  // for the time of its nodes to be told from that of threads
// How many implementations of a node are tried. For what takes no longer than that there is time
// for more, and for those in other layouts than the one in which the first are fastest.
constexpr Seconds kQuick{2e-2};
constexpr int kImplementations = 3, kImplementationsIfQuick = 5;
// How many images a thread computes at once. One leaves most in its cache; more read the weights of
// dense layers less often.
constexpr memory::dim kChunks[] = {1, 4};

const Candidate& fastest_of(const std::list<Candidate>& candidates) {
  const Candidate& first = candidates.front();
  return *std::min_element(candidates.begin(), candidates.end(),
                           [&first](const Candidate& a, const Candidate& b) {
                             return a.relative_to(first) < b.relative_to(first);
                           });
}

/*! \brief The graph for as much of its batch as keeps all threads busy with a chunk each. */
std::optional<Graph> trial_of(const Graph& graph, memory::dim chunk) {
  return chunk_of(graph, std::min(batch_of(graph), chunk * omp_get_max_threads()));
}

/*! \brief A graph, or a chunk of it, in each layout. */
std::vector<Choices> in_all_layouts(memory::dim chunk) {
  std::vector<Choices> ways;
  for (const DataLayout layout :
       {DataLayout::any, DataLayout::channels_last, DataLayout::blocked}) {
    ways.emplace_back();
    ways.back().layout = layout;
    ways.back().chunk = chunk;
  }
  return ways;
}

/*! \brief What was fastest. */
struct Fastest {
  Choices choices;
  Seconds time;   // of a run of what it is measured on
  bool is_alone;  // there is nothing to choose
};

/*! \brief For each number of images that a thread may compute at once, the fastest layout. */
std::vector<Choices> fastest_layouts(const Graph& graph, CandidatePool* pool) {
  const memory::dim batch = batch_of(graph);
  std::vector<Choices> fastest;
  for (const memory::dim chunk : kChunks) {
    if (!on_openmp() || chunk >= batch || batch % chunk) continue;
    const auto trial = trial_of(graph, chunk);
    if (!trial) continue;
    auto candidates = candidates_for(in_all_layouts(chunk), *trial, pool);
    if (batch_of(*trial) > chunk && candidates.front().chunks() == 1) continue;
    measure(&candidates, &Candidate::measure);
    fastest.push_back(fastest_of(candidates).choices());
  }
  return fastest;
}

/*! \brief The layout and the chunk with which oneDNN's first implementations are fastest. */
Fastest fastest_chunk(const Graph& graph, CandidatePool* pool) {
  std::vector<Choices> ways = fastest_layouts(graph, pool);
  if (ways.empty()) {
    auto candidates = candidates_for(in_all_layouts(0), graph, pool);
    measure(&candidates, &Candidate::measure);
    const Candidate& fastest = fastest_of(candidates);
    return {fastest.choices(), fastest.fastest(), candidates.size() == 1};
  }
  // Now the whole batch, of which faster threads compute more chunks than others: a chunk for each
  // would not tell. All images at once take long: only in the layout that is best for the fewest.
  Choices all = ways.front();
  all.chunk = 0;
  ways.insert(ways.begin(), all);
  auto candidates = candidates_for(ways, graph, pool);
  measure(&candidates, &Candidate::measure);
  const Candidate& whole = candidates.front();
  // The whole takes the most memory: it has to win by more than a measurement is wrong by.
  double least = 1 / kFaster;
  const Candidate* fastest = &whole;
  for (const Candidate& candidate : candidates) {
    if (&candidate == &whole || candidate.relative_to(whole) >= least) continue;
    least = candidate.relative_to(whole);
    fastest = &candidate;
  }
  const memory::dim chunk = fastest->choices().chunk;
  const memory::dim images = chunk ? batch_of(*trial_of(graph, chunk)) : batch_of(graph);
  const auto rounds = static_cast<double>((batch_of(graph) + images - 1) / images);
  return {fastest->choices(), fastest->fastest() / rounds, false};
}

/*! \brief What a choice is measured on: as much of the graph as threads compute at once. */
Graph measured_graph(const Choices& choices, const Graph& graph) {
  return choices.chunk ? *trial_of(graph, choices.chunk) : graph;
}

/*! \brief The name of a node's implementation; empty if it is run by Winograd's algorithm. */
std::string implementation_of(int node, const Graph& graph, const Plan& plan) {
  for (const Step& step : plan.steps())
    if (step.node == node && step.kind == graph.nodes[node].kind) return step.impl();
  return "";
}

/*! \brief Whether what two candidates do for a node differs, and not for what others leave to it.
 */
bool differs(int node, const Candidate& a, const Candidate& b) {
  const auto in_a = a.steps().find(node), in_b = b.steps().find(node);
  return in_a != a.steps().end() && in_b != b.steps().end() && in_a->second != in_b->second;
}

/*! \brief The ways to run a graph that are tried in a layout. */
std::vector<Choices> ways_in(const Choices& layout, const Graph& graph, int implementations,
                             bool with_winograd) {
  std::vector<Choices> ways;
  for (int i = 0; i < implementations; ++i) {
    ways.push_back(layout);
    ways.back().implementation = i;
  }
  for (const int tile : {2, 4}) {
    if (!with_winograd) break;
    ways.push_back(layout);
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].kind == "convolution") ways.back().winograd[static_cast<int>(i)] = tile;
  }
  return ways;
}

/*! \brief Chooses for a node what was fastest of the ways in a layout. */
void choose_for_node(int node, const Graph& graph, const Candidate& first,
                     const std::list<Candidate>& candidates, Choices* choices) {
  double least = 1;
  for (const Candidate& other : candidates) {
    if (other.choices().layout != choices->layout || !differs(node, first, other)) continue;
    const auto& tiles = other.choices().winograd;
    const auto tile = tiles.find(node);
    const std::string name = implementation_of(node, graph, other.plan());
    // Otherwise it is what was chosen for another node that makes the difference.
    const bool chosen = tiles.empty() ? !name.empty() : tile != tiles.end() && name.empty();
    const double limit = tiles.empty() ? kFaster : kWorthIt;
    const double time = other.relative_to(first, node);
    if (!chosen || time >= std::min(limit, least)) continue;
    least = time;
    choices->winograd.erase(node);
    choices->implementations.erase(node);
    if (tiles.empty())
      choices->implementations[node] = name;
    else
      choices->winograd[node] = tile->second;
  }
}

/*! \brief In each layout, what is fastest for each node; empty if there is nothing to choose. */
std::vector<Choices> choose_for_nodes(const Graph& graph, const std::vector<Choices>& layouts,
                                      int implementations, bool with_winograd,
                                      CandidatePool* pool) {
  std::vector<Choices> ways;
  for (const Choices& layout : layouts)
    for (Choices& way : ways_in(layout, graph, implementations, with_winograd))
      ways.push_back(std::move(way));
  auto candidates = candidates_for(ways, graph, pool);
  if (candidates.size() == 1) return {};
  measure(&candidates, &Candidate::measure_nodes);
  std::vector<Choices> chosen;
  for (const Candidate& first : candidates) {
    if (first.choices().implementation != 0 || !first.choices().winograd.empty()) continue;
    chosen.push_back(first.choices());
    for (const auto& [node, steps] : first.steps())
      choose_for_node(node, graph, first, candidates, &chosen.back());
  }
  return chosen;
}

/*!
 * \brief The same with cascades; none if there are none.
 *
 * Their steps get kernels of our own, whatever was faster for each alone.
 */
std::optional<Choices> with_cascades(Choices choices, const Graph& graph, CandidatePool* pool) {
  choices.cascades = true;
  Choices own = choices;
  own.implementations.clear();
  const Candidate candidate(graph, own, pool);
  const Plan& plan = candidate.plan();
  if (plan.cascades().empty()) return std::nullopt;
  for (const Cascade& cascade : plan.cascades())
    for (int step = cascade.first; step < cascade.end; ++step)
      choices.implementations.erase(plan.steps()[step].node);
  return choices;
}

/*!
 * \brief The fastest way.
 *
 * The sum of the times of its nodes would not tell: it is less of the layout with more
 * implementations, of each of which one measurement or the other comes out too short.
 */
Choices fastest_of(const std::vector<Choices>& ways, const Graph& graph, CandidatePool* pool) {
  if (ways.size() == 1) return ways.front();
  auto candidates = candidates_for(ways, graph, pool);
  measure(&candidates, &Candidate::measure);
  return fastest_of(candidates).choices();
}

}  // namespace

std::optional<Choices> fastest(const Graph& graph, const std::vector<const void*>& data,
                               dnnl_byoc_tune_t tune) {
  if (tune == dnnl_byoc_tune_nothing) return std::nullopt;
  CandidatePool pool{data};
  const Fastest first = fastest_chunk(graph, &pool);
  if (first.time >= kTooShort) {
    const bool quick = first.time < kQuick;
    const Graph measured = measured_graph(first.choices, graph);
    auto chosen = choose_for_nodes(
        measured, quick ? in_all_layouts(first.choices.chunk) : std::vector<Choices>{first.choices},
        quick ? kImplementationsIfQuick : kImplementations, tune == dnnl_byoc_tune_all, &pool);
    for (size_t i = 0, count = chosen.size(); i < count; ++i)
      if (auto cascades = with_cascades(chosen[i], measured, &pool))
        chosen.push_back(std::move(*cascades));
    if (!chosen.empty()) return fastest_of(chosen, measured, &pool);
  }
  if (first.is_alone) return std::nullopt;
  return first.choices;
}

}  // namespace dnnl_byoc
