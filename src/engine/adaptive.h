/*!
 * \file adaptive.h
 * \brief An executable that uses one thread less while the machine is crowded.
 */
#ifndef DNNL_BYOC_ENGINE_ADAPTIVE_H_
#define DNNL_BYOC_ENGINE_ADAPTIVE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "constant_pool.h"
#include "executable.h"
#include "thread_policy.h"

namespace dnnl_byoc {

/*! \brief What Engine runs: an Executable for all threads, and perhaps one for one less. */
class Adaptive {
 public:
  /*! \brief \param graph Must outlive this. \param data The graph's constants, likewise. */
  Adaptive(const Graph& graph, const std::vector<const void*>& data);

  /*! \brief Any number of calls may run at the same time. */
  void run(const std::vector<void*>& inputs, const std::vector<void*>& outputs);

  /*! \brief The executable for all threads. */
  Executable& all() { return all_; }

  /*! \brief How many threads the last run could use. */
  int threads() const { return last_used_; }

  /*! \brief Whether runs may use one thread less, as far as is known. */
  bool adapts() const { return adapts_ && !policy_.has_given_up(); }

 private:
  bool prepare_fewer();
  bool makes_no_difference(Executable* fewer);

  const Graph& graph_;
  const std::vector<const void*> data_;
  ConstantPool constants_;
  Executable all_;
  const int threads_;
  const bool adapts_;
  ThreadPolicy policy_;
  std::atomic<double> all_seconds_{0};  // of the last run with all threads
  std::atomic<int> last_used_;
  std::mutex mutex_;                   // guards the making of fewer_
  std::unique_ptr<Executable> fewer_;  // made once, when it is wanted
  std::atomic<bool> fewer_ready_{false};
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_ADAPTIVE_H_
