/*!
 * \file executable.h
 * \brief A compiled graph, and who runs how much of its batch at once.
 */
#ifndef DNNL_BYOC_ENGINE_EXECUTABLE_H_
#define DNNL_BYOC_ENGINE_EXECUTABLE_H_

#include <memory>
#include <mutex>
#include <vector>

#include "execution_context.h"
#include "graph.h"
#include "plan.h"
#include "workspace.h"

namespace dnnl_byoc {

/*!
 * \brief A graph as its `tuned` says that it is run.
 *
 * All threads compute one batch, step by step; or each thread computes chunks of the batch on its
 * own. Then what a step leaves to the next stays in the thread's cache, no thread waits for
 * another before the end, and one that shares its core with another process just takes fewer.
 */
class Executable {
 public:
  /*! \brief What one of the concurrent runs works with. */
  struct Context {
    std::unique_ptr<ExecutionContext> execution;
    Workspace workspace;
    ExecutionContext* operator->() const { return execution.get(); }
  };

  /*!
   * \param threads That compute a step of what is not computed in chunks; 0 for all.
   * \param workspaces Where runs find memory that other executables use, too; or null.
   */
  explicit Executable(const Graph& graph, int threads = 0, WorkspacePool* workspaces = nullptr);

  /*!
   * \brief Must precede all runs.
   * \param data The graph's constants; they must outlive this.
   * \param constants With which other executables of the same graph are loaded, too; or null.
   */
  void load(const std::vector<const void*>& data, ConstantPool* constants = nullptr);

  /*! \brief Any number of calls may run at the same time. */
  void run(const std::vector<void*>& inputs, const std::vector<void*>& outputs);

  /*! \name Of the whole graph. */
  ///@{
  const std::vector<memory::desc>& output_mds() const { return output_mds_; }
  ///@}

  /*! \name Of a chunk; of the whole graph if there are no chunks. */
  ///@{
  const Graph& graph() const { return graph_; }
  const Plan& plan() const { return plan_; }
  memory::dim chunks() const { return chunks_; }
  Context take_context();
  void give_back(Context context);
  ///@}

 private:
  void run_chunks(const std::vector<void*>& inputs, const std::vector<void*>& outputs);

  memory::dim chunks_ = 1;
  Graph graph_;
  Plan plan_;
  std::vector<memory::desc> output_mds_;
  std::vector<size_t> input_steps_, output_steps_;  // bytes from one chunk to the next
  std::mutex mutex_;                                // guards idle_
  std::vector<Context> idle_;
  WorkspacePool* const workspaces_;
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_EXECUTABLE_H_
