/*!
 * \file engine_impl.h
 * \brief The C++ class behind the C ABI of engine.h.
 */
#ifndef DNNL_BYOC_ENGINE_ENGINE_IMPL_H_
#define DNNL_BYOC_ENGINE_ENGINE_IMPL_H_

#include <dlpack/dlpack.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "execution_context.h"
#include "graph.h"
#include "plan.h"

namespace dnnl_byoc {

class Engine {
 public:
  explicit Engine(const char* json);

  void set_constants(const DLTensor* const* constants, size_t count);
  void run(const DLTensor* const* inputs, size_t num_inputs, DLTensor* const* outputs,
           size_t num_outputs);
  std::string profile(int runs);
  const Graph& graph() const { return graph_; }

 private:
  std::unique_ptr<ExecutionContext> take_context();
  void give_back(std::unique_ptr<ExecutionContext> context);
  void require_ready() const;

  const Graph graph_;
  Plan plan_;
  std::atomic<bool> ready_{false};  // plan_ is complete and does not change any more
  std::mutex mutex_;                // guards the loading of constants, and idle_
  std::vector<std::unique_ptr<ExecutionContext>> idle_;
};

/*! \brief The plan's steps, layouts and sizes, and the median times of `runs` runs, as JSON. */
std::string profile_plan(const Plan& plan, const Graph& graph, ExecutionContext* context, int runs);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_ENGINE_IMPL_H_
