/*!
 * \file loaded_regions.h
 * \brief The regions that a process has loaded, by name.
 */
#ifndef DNNL_BYOC_RELAY_LOADED_REGIONS_H_
#define DNNL_BYOC_RELAY_LOADED_REGIONS_H_

#include <tvm/runtime/logging.h>

#include <memory>
#include <string>

#include "adapter/runner.h"

namespace dnnl_byoc {
namespace relay {

/*! \brief Calls, and raises an error of the runner's in Python, as the class that it asks for. */
template <typename F>
auto checked(F&& f) {
  try {
    return f();
  } catch (const adapter::RunError& e) {
    throw tvm::runtime::Error(std::string(e.kind()) + ": " + e.what());
  }
}

/*! \brief A new runner, which is found by its name as long as somebody keeps it. */
std::shared_ptr<adapter::Runner> load_region(std::string symbol, adapter::EngineGraph graph);

/*!
 * \brief A region of that name.
 *
 * A shape function has no other way to the region that it belongs to: TVM does not link the two.
 * The names of such regions tell apart what they compute; if there are several, it is the same.
 */
std::shared_ptr<adapter::Runner> loaded_region(const std::string& symbol);

}  // namespace relay
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAY_LOADED_REGIONS_H_
