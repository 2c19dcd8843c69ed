/*!
 * \file runner.h
 * \brief One region with its engine: what the runtime modules of both TVMs wrap.
 */
#ifndef DNNL_BYOC_ADAPTER_RUNNER_H_
#define DNNL_BYOC_ADAPTER_RUNNER_H_

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "region.h"

namespace dnnl_byoc {
namespace adapter {

/*! \brief A call that failed, and whether the caller is at fault. */
struct RunError : std::runtime_error {
  RunError(bool invalid_argument, const std::string& what)
      : std::runtime_error(what), invalid_argument(invalid_argument) {}
  bool invalid_argument;

  /*! \brief The exception class of Python that fits. */
  const char* kind() const { return invalid_argument ? "ValueError" : "RuntimeError"; }
};

/*! \brief Safe to run from many threads at once. All functions throw RunError. */
class Runner {
 public:
  /*!
   * \param symbol The region's name: the function that the module serves.
   * \param graph What it runs; the runner keeps the constants.
   */
  Runner(std::string symbol, EngineGraph graph);

  const std::string& symbol() const { return symbol_; }
  const EngineGraph& graph() const { return graph_; }

  /*! \brief At the first use: a library that is only exported, or loaded, does without. */
  void compile();

  /*! \brief Inputs first, then outputs: the engine knows how many of each. */
  void run(const std::vector<DLTensor*>& tensors);

  /*! \brief The shapes of the inputs as tensors, then tensors for those of the outputs. */
  void infer_shapes(const std::vector<DLTensor*>& shapes);

  /*! \brief See dnnl_byoc_profile(). */
  std::string profile(int runs);

 private:
  void call(decltype(dnnl_byoc_run) function, const std::vector<DLTensor*>& tensors);
  void check(dnnl_byoc_status_t status) const;

  struct Destroy {
    void operator()(dnnl_byoc_engine_t engine) const { dnnl_byoc_destroy(engine); }
  };

  const std::string symbol_;
  const EngineGraph graph_;  // the engine uses its constants where they are: before the engine
  std::unique_ptr<dnnl_byoc_engine, Destroy> engine_;
  std::atomic<bool> compiled_{false};
};

}  // namespace adapter
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ADAPTER_RUNNER_H_
