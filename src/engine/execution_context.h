/*!
 * \file execution_context.h
 * \brief What one run of a plan needs for itself: memory, argument arrays, a stream.
 */
#ifndef DNNL_BYOC_ENGINE_EXECUTION_CONTEXT_H_
#define DNNL_BYOC_ENGINE_EXECUTION_CONTEXT_H_

#include <chrono>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

#include "plan.h"

namespace dnnl_byoc {

/*! \brief Runs one plan, one call at a time; concurrent calls take a context each. */
class ExecutionContext {
 public:
  /*! \param plan With loaded constants; must outlive the context. */
  explicit ExecutionContext(const Plan& plan);

  /*! \brief Must precede a run. \param workspace Of plan.workspace_bytes() or more. */
  void work_in(char* workspace);

  /*! \brief Points the plan's external values at the caller's memory. */
  void bind(const std::vector<void*>& inputs, const std::vector<void*>& outputs);

  /*! \brief Executes all steps on what was bound last. */
  void run();

  /*! \brief The same, and returns how long each step has taken; for the profile. */
  std::vector<std::chrono::duration<double>> run_timed();

 private:
  struct Call {
    const Step* step;
    const Kernel* kernel;  // or null
    const_dnnl_primitive_t primitive;
    int num_args;
    const dnnl_exec_arg_t* args;
  };

  /*! \brief A value in the memory of the caller's tensor number `index`. */
  struct External {
    dnnl_memory_t handle;
    int index;
    size_t offset;
  };

  /*! \brief A value in the workspace, or the scratchpad of a step. */
  struct Internal {
    dnnl_memory_t handle;
    size_t offset;
  };

  static void bind(const std::vector<External>& values, const std::vector<void*>& tensors);
  static void read_addresses(const Call& call, std::vector<void*>* data);
  template <class Timed>
  void run(const Timed& timed);
  template <class Timed>
  void run(const Cascade& cascade, const Timed& timed);
  void execute(const Call& call);
  void execute(const Cascade::Slice& slice, const std::vector<void*>& data);

  const Plan& plan_;
  char* workspace_ = nullptr;
  dnnl::stream stream_;
  std::vector<memory> memories_;  // owns what args_ refers to
  std::vector<dnnl_exec_arg_t> args_;
  std::vector<Call> calls_;
  std::vector<void*> data_;                    // of a kernel's arguments
  std::vector<std::vector<void*>> addresses_;  // by step of a cascade, of its arguments
  std::vector<Internal> internals_;
  std::vector<External> inputs_;
  std::vector<External> outputs_;
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_EXECUTION_CONTEXT_H_
