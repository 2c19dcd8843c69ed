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
constexpr Seconds kTooShort{1e-4};   // for the time of its nodes to be told from that of threads
constexpr int kImplementations = 3;  // of a node, that are tried
// How many images a thread computes at once. One leaves most in its cache; more read the weights of
// dense layers less often.
constexpr memory::dim kChunks[] = {1, 4};

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
std::optional<Choices> fastest_chunk(const Graph& graph, CandidatePool* pool) {
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
  const auto time_of_all = [batch](const Candidate& candidate, const Graph& trial) {
    const memory::dim images = batch_of(trial), rounds = (batch + images - 1) / images;
    return candidate.fastest() * rounds;
  };
  std::optional<Choices> best;
  Seconds to_beat = Seconds::max();
  for (const memory::dim chunk : kChunks) {
    if (!on_openmp() || chunk >= batch || batch % chunk) continue;
    const auto trial = trial_of(graph, chunk);
    if (!trial) continue;
    auto candidates = candidates_for(ways(chunk), *trial, pool);
    if (batch_of(*trial) > chunk && candidates.front().chunks() == 1) continue;
    measure(&candidates, &Candidate::measure);
    const Candidate& fastest = fastest_of(candidates);
    const Seconds time = time_of_all(fastest, *trial);
    if (time >= to_beat) continue;
    to_beat = time;
    best = fastest.choices();
  }
  if (!best) {
    auto candidates = candidates_for(ways(0), graph, pool);
    if (candidates.size() == 1) return std::nullopt;
    measure(&candidates, &Candidate::measure);
    return fastest_of(candidates).choices();
  }
  // A run of the whole takes long: only in the layout that is best for chunks, beside these.
  layouts = {best->layout};
  const Graph trial = *trial_of(graph, best->chunk);
  auto candidates = candidates_for(ways(0), graph, pool);
  candidates.emplace_back(trial, *best, pool);
  measure(&candidates, &Candidate::measure);
  const Candidate &whole = candidates.front(), &chunks = candidates.back();
  return whole.fastest() < time_of_all(chunks, trial) ? whole.choices() : *best;
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

/*! \brief Chooses the convolutions that Winograd's algorithm runs, and implementations. */
void choose_for_nodes(const Graph& graph, bool with_winograd, CandidatePool* pool,
                      Choices* choices) {
  std::vector<Choices> ways(1, *choices);
  for (int i = 1; i < kImplementations; ++i) {
    ways.push_back(*choices);
    ways.back().implementation = i;
  }
  for (const int tile : {2, 4}) {
    if (!with_winograd) break;
    ways.push_back(*choices);
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].kind == "convolution") ways.back().winograd[static_cast<int>(i)] = tile;
  }
  auto candidates = candidates_for(ways, measured_graph(*choices, graph), pool);
  if (candidates.size() == 1) return;
  measure(&candidates, &Candidate::measure_nodes);
  const Candidate& first = candidates.front();
  Seconds total{0};
  for (const auto& [node, steps] : first.steps()) total += first.fastest(node);
  if (total < kTooShort) return;
  std::map<int, Seconds> to_beat;  // by node for which a choice was made
  for (const Candidate& other : candidates) {
    const auto& tiles = other.choices().winograd;
    for (const auto& [node, steps] : other.steps()) {
      const auto before = first.steps().find(node);
      if (before == first.steps().end() || before->second == steps) continue;
      const auto tile = tiles.find(node);
      const std::string name = implementation_of(node, graph, other.plan());
      // Otherwise it is what was chosen for another node that makes the difference.
      const bool chosen = tiles.empty() ? !name.empty() : tile != tiles.end() && name.empty();
      const Seconds time = other.fastest(node);
      const Seconds limit = (tiles.empty() ? kFaster : kWorthIt) * first.fastest(node);
      const auto best = to_beat.find(node);
      if (!chosen || time >= (best == to_beat.end() ? limit : std::min(limit, best->second)))
        continue;
      to_beat[node] = time;
      choices->winograd.erase(node);
      choices->implementations.erase(node);
      if (tiles.empty())
        choices->implementations[node] = name;
      else
        choices->winograd[node] = tile->second;
    }
  }
}

}  // namespace

std::optional<Choices> fastest(const Graph& graph, const std::vector<const void*>& data,
                               dnnl_byoc_tune_t tune) {
  if (tune == dnnl_byoc_tune_nothing) return std::nullopt;
  CandidatePool pool{data};
  const auto found = fastest_chunk(graph, &pool);
  Choices choices = found.value_or(Choices{});
  choose_for_nodes(graph, tune == dnnl_byoc_tune_all, &pool, &choices);
  if (!found && choices.winograd.empty() && choices.implementations.empty()) return std::nullopt;
  return choices;
}

}  // namespace dnnl_byoc
