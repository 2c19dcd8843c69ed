/*!
 * \file engine_impl.h
 * \brief The C++ class behind the C ABI of engine.h.
 */
#ifndef DNNL_BYOC_ENGINE_ENGINE_IMPL_H_
#define DNNL_BYOC_ENGINE_ENGINE_IMPL_H_

#include <dlpack/dlpack.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "adaptive.h"
#include "executable_cache.h"
#include "graph.h"

namespace dnnl_byoc {

class Engine {
 public:
  explicit Engine(const char* json);

  void set_constants(const DLTensor* const* constants, size_t count);
  void run(const DLTensor* const* inputs, size_t num_inputs, DLTensor* const* outputs,
           size_t num_outputs);
  void infer_shapes(const DLTensor* const* input_shapes, size_t num_inputs,
                    DLTensor* const* output_shapes, size_t num_outputs);
  std::string profile(int runs);
  const Graph& graph() const { return graph_; }

 private:
  void require_ready() const;

  const Graph graph_;
  const bool dynamic_;
  std::optional<Adaptive> executable_;          // of a graph that is not dynamic
  std::optional<ExecutableCache> executables_;  // of one that is
  std::atomic<bool> ready_{false};              // one of them is there
  std::mutex mutex_;                            // guards the loading
};

/*! \brief A plan's steps, layouts and sizes, and the median times of `runs` runs. */
nlohmann::json describe_plan(Executable* executable, int runs);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_ENGINE_IMPL_H_
