#include "candidate.h"

#include <algorithm>
#include <set>

#include "isa.h"
#include "ops/post_ops.h"

namespace dnnl_byoc {
namespace {

using Clock = std::chrono::steady_clock;

// There are no less than two: the first finds cold caches.
constexpr size_t kTurns = 5, kMostTurns = 25;
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
  for (const Cascade& cascade : plan.cascades())
    for (int step = cascade.first; step < cascade.end; ++step)
      texts[plan.steps()[step].node] += " in cascade";
  return texts;
}

Graph with(Graph graph, const Choices& choices) {
  graph.tuned = {choices, isa_name()};
  return graph;
}

void keep_least(std::vector<Seconds>* times, size_t turn, Seconds time) {
  if (times->size() <= turn) times->resize(turn + 1, Seconds::max());
  times->at(turn) = std::min(times->at(turn), time);
}

/*! \brief Turn by turn but for the first, which finds cold caches. */
void add_ratios(const std::vector<Seconds>& times, const std::vector<Seconds>& others,
                std::vector<double>* ratios) {
  for (size_t turn = 1; turn < times.size(); ++turn)
    ratios->push_back(times[turn] / std::max(others[turn], Seconds{1e-9}));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t count = values.size();
  return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

}  // namespace

Candidate::Candidate(const Graph& graph, const Choices& choices, CandidatePool* pool)
    : choices_(choices),
      pool_(pool),
      executable_(with(graph, choices), 0, &pool->workspaces),
      steps_(steps_by_node(executable_.plan())),
      tensors_(graph.inputs, executable_.output_mds()) {}

void Candidate::load() { executable_.load(pool_->data, &pool_->constants); }

void Candidate::measure(size_t turn) {
  const auto start = Clock::now();
  executable_.run(tensors_.inputs(), tensors_.outputs());
  keep_least(&times_, turn, Clock::now() - start);
}

void Candidate::measure_nodes(size_t turn) {
  auto context = executable_.take_context();
  context->bind(tensors_.inputs(), tensors_.outputs());
  const auto times = context->run_timed();
  executable_.give_back(std::move(context));
  const auto& steps = executable_.plan().steps();
  std::map<int, Seconds> by_node;
  for (size_t i = 0; i < steps.size(); ++i) by_node[steps[i].node] += times[i];
  for (const auto& [node, time] : by_node) keep_least(&times_by_node_[node], turn, time);
}

Seconds Candidate::fastest() const { return *std::min_element(times_.begin(), times_.end()); }

double Candidate::relative_to(const Candidate& other) const {
  std::vector<double> ratios;
  add_ratios(times_, other.times_, &ratios);
  return median(std::move(ratios));
}

double Candidate::relative_to(const Candidate& other, int node) const {
  const std::string &steps = steps_.at(node), &others = other.steps_.at(node);
  std::vector<double> ratios;
  for (const auto& [alike, times] : times_by_node_) {
    const auto it = other.steps_.find(alike);
    if (steps_.at(alike) == steps && it != other.steps_.end() && it->second == others)
      add_ratios(times, other.times_by_node_.at(alike), &ratios);
  }
  return median(std::move(ratios));
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

void measure(std::list<Candidate>* candidates, void (Candidate::*measure)(size_t turn)) {
  for (Candidate& candidate : *candidates) candidate.load();
  const auto begin = Clock::now();
  const auto within = [](Clock::time_point begin, Seconds time) {
    return Clock::now() - begin < time;
  };
  for (size_t i = 0; i < 2 || (i < kTurns && within(begin, kBudget)) ||
                     (i < kMostTurns && within(begin, kEnough));
       ++i)
    for (Candidate& candidate : *candidates) {
      const auto turn = Clock::now();
      for (int run = 0; run == 0 || (run < kRunsOfTurn && within(turn, kTurn)); ++run)
        (candidate.*measure)(i);
    }
}

}  // namespace dnnl_byoc
