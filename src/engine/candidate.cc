#include "candidate.h"

#include <algorithm>
#include <set>

#include "isa.h"
#include "ops/post_ops.h"

namespace dnnl_byoc {
namespace {

using Clock = std::chrono::steady_clock;

// The fastest of a few turns is nearly as good as of many: spells of a busy machine last longer
// than both. There are no less than two: the first finds cold caches.
constexpr int kTurns = 4, kMostTurns = 8;
constexpr Seconds kEnough{0.5};  // to go on beyond kTurns
constexpr int kRunsOfTurn = 3;
constexpr Seconds kTurn{0.02};   // for more than one run, which finds warm caches
constexpr Seconds kBudget{3.0};  // for one choice; a large batch gets fewer turns

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

Graph with(Graph graph, const Choices& choices) {
  graph.tuned = {choices, isa_name()};
  return graph;
}

}  // namespace

Candidate::Candidate(const Graph& graph, const Choices& choices, CandidatePool* pool)
    : choices_(choices),
      pool_(pool),
      executable_(with(graph, choices), 0, &pool->workspaces),
      steps_(steps_by_node(executable_.plan())),
      tensors_(graph.inputs, executable_.output_mds()) {}

void Candidate::load() { executable_.load(pool_->data, &pool_->constants); }

void Candidate::measure() {
  const auto start = Clock::now();
  executable_.run(tensors_.inputs(), tensors_.outputs());
  fastest_ = std::min<Seconds>(fastest_, Clock::now() - start);
}

void Candidate::measure_nodes() {
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

std::list<Candidate> candidates_for(const std::vector<Choices>& ways, const Graph& graph,
                                    CandidatePool* pool) {
  std::list<Candidate> candidates;
  std::set<std::map<int, std::string>> seen;
  for (const Choices& choices : ways) {
    candidates.emplace_back(graph, choices, pool);
    if (!seen.insert(candidates.back().steps()).second) candidates.pop_back();
  }
  return candidates;
}

void measure(std::list<Candidate>* candidates, void (Candidate::*measure)()) {
  for (Candidate& candidate : *candidates) candidate.load();
  const auto begin = Clock::now();
  const auto within = [](Clock::time_point begin, Seconds time) {
    return Clock::now() - begin < time;
  };
  for (int i = 0; i < 2 || (i < kTurns && within(begin, kBudget)) ||
                  (i < kMostTurns && within(begin, kEnough));
       ++i)
    for (Candidate& candidate : *candidates) {
      const auto turn = Clock::now();
      for (int run = 0; run == 0 || (run < kRunsOfTurn && within(turn, kTurn)); ++run)
        (candidate.*measure)();
    }
}

}  // namespace dnnl_byoc
