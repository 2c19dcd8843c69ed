/*!
 * \file adaptive.h
 * \brief An executable that uses one thread less while the machine is crowded.
 */
#ifndef DNNL_BYOC_ENGINE_ADAPTIVE_H_
#define DNNL_BYOC_ENGINE_ADAPTIVE_H_

#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "executable.h"
#include "thread_policy.h"

namespace dnnl_byoc {

class Adaptive {
 public:
  /*! \brief \param graph Must outlive this. \param data The graph's constants, likewise. */
  Adaptive(const Graph& graph, const std::vector<const void*>& data);

  /*! \brief Any number of calls may run at the same time. */
  void run(const std::vector<void*>& inputs, const std::vector<void*>& outputs);

  /*! \brief The executable for all threads. */
  Executable& all() { return all_; }

  /*! \brief How many threads the last run used; in chunks, each on its own. */
  int threads() const { return last_used_; }

 private:
  bool prepare_fewer(const std::vector<void*>& inputs, const std::vector<void*>& outputs);
  bool makes_no_difference(const std::vector<void*>& inputs, const std::vector<void*>& outputs);

  const Graph& graph_;
  Executable all_;
  const int threads_;
  const bool adapts_;
  ThreadPolicy policy_;
  std::atomic<double> last_seconds_{0};
  std::atomic<int> last_used_;
  std::mutex mutex_;  // guards the making of fewer_
  std::optional<Executable> fewer_;
  std::atomic<bool> fewer_ready_{false};
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_ADAPTIVE_H_
