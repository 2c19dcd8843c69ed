/*!
 * \file region_runner.h
 * \brief A region with its engine, called with TVM's arguments.
 */
#ifndef DNNL_BYOC_RELAY_REGION_RUNNER_H_
#define DNNL_BYOC_RELAY_REGION_RUNNER_H_

#include <tvm/runtime/packed_func.h>

#include <atomic>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "region.h"

namespace dnnl_byoc {
namespace relay {

/*! \brief Raises the engine's errors in Python, as the classes that their status asks for. */
class RegionRunner {
 public:
  static std::shared_ptr<RegionRunner> make(std::string symbol, Region region);

  /*!
   * \brief A region of that name in this process.
   *
   * A shape function has no other way to the region that it belongs to: TVM does not link the two.
   * The names of such regions tell apart what they compute; if there are several, it is the same.
   */
  static std::shared_ptr<RegionRunner> find(const std::string& symbol);

  const std::string& symbol() const { return symbol_; }
  const Region& region() const { return region_; }

  /*! \brief At the first use: a library that is only exported, or loaded, does without. */
  void compile();

  /*! \brief Inputs first, then outputs: the engine knows how many of each. */
  void run(const tvm::runtime::TVMArgs& args);

  /*! \brief The name; the shapes of the inputs as tensors; then those of the outputs. */
  void infer_shapes(const tvm::runtime::TVMArgs& args);

  std::string profile(int runs);

 private:
  RegionRunner(std::string symbol, Region region);
  void call(decltype(dnnl_byoc_run) function, const tvm::runtime::TVMArgs& args, int first);

  struct Destroy {
    void operator()(dnnl_byoc_engine_t engine) const { dnnl_byoc_destroy(engine); }
  };

  const std::string symbol_;
  const Region region_;  // the engine uses its constants where they are: before the engine
  std::unique_ptr<dnnl_byoc_engine, Destroy> engine_;
  std::atomic<bool> compiled_{false};
};

}  // namespace relay
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAY_REGION_RUNNER_H_
