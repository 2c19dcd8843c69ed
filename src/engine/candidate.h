/*!
 * \file candidate.h
 * \brief The ways in which a graph can be run, and how long each takes.
 */
#ifndef DNNL_BYOC_ENGINE_CANDIDATE_H_
#define DNNL_BYOC_ENGINE_CANDIDATE_H_

#include <chrono>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "constant_pool.h"
#include "executable.h"
#include "graph.h"
#include "made_up_tensors.h"
#include "workspace.h"

namespace dnnl_byoc {

using Seconds = std::chrono::duration<double>;

/*! \brief What all candidates for a graph have in common. */
struct CandidatePool {
  const std::vector<const void*>& data;  // of the graph's constants
  ConstantPool constants = {};
  WorkspacePool workspaces = {};
};

/*! \brief A way to run a graph. */
class Candidate {
 public:
  Candidate(const Graph& graph, const Choices& choices, CandidatePool* pool);

  /*! \brief Makes it ready to be measured. */
  void load();

  /*! \brief Runs it once, in one of the turns. */
  void measure(size_t turn);

  /*! \brief Runs it once, step by step. */
  void measure_nodes(size_t turn);

  const Plan& plan() const { return executable_.plan(); }
  memory::dim chunks() const { return executable_.chunks(); }
  const Choices& choices() const { return choices_; }

  /*! \brief What distinguishes it from others for the same graph: for each node, its steps. */
  const std::map<int, std::string>& steps() const { return steps_; }

  /*! \brief The least time that a run has taken. What else a machine does only makes it longer. */
  Seconds fastest() const;

  /*!
   * \brief Its time as a part of another's that was measured beside it: the median of the turns
   * but for the first.
   *
   * The least times would not tell where a machine has spells at another speed, of which one
   * candidate may have had more than the other; a turn is short enough to lie in one spell.
   */
  double relative_to(const Candidate& other) const;

  /*!
   * \brief The same of a node. Each node is one more measurement of it for which both do the same,
   * as far as steps() tell.
   */
  double relative_to(const Candidate& other, int node) const;

 private:
  const Choices choices_;
  CandidatePool* const pool_;
  Executable executable_;
  const std::map<int, std::string> steps_;
  const MadeUpTensors tensors_;
  std::vector<Seconds> times_;  // by turn, the least of a few runs
  std::map<int, std::vector<Seconds>> times_by_node_;
};

/*! \brief The graph in each of these ways, without those that come to the same as another. */
std::list<Candidate> candidates_for(const std::vector<Choices>& ways, const Graph& graph,
                                    CandidatePool* pool);

/*! \brief Measures them in turns, so that a slow spell of the machine hits all alike. */
void measure(std::list<Candidate>* candidates, void (Candidate::*measure)(size_t turn));

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_CANDIDATE_H_
