/*!
 * \file region.h
 * \brief A region, a Relay function with Compiler="dnnl", as a graph of the engine.
 */
#ifndef DNNL_BYOC_RELAY_REGION_H_
#define DNNL_BYOC_RELAY_REGION_H_

#include <string>
#include <vector>

#include "reflection.h"

namespace dnnl_byoc {
namespace relay {

struct Region {
  std::string json;
  std::vector<NDArray> constants;  // in the order of the graph's
};

/*! \brief Translates a type-inferred region; composite functions in it are chains. */
Region translate_region(const ObjectRef& function);

/*! \brief The region prepared for this machine: its constants repacked, what is measured chosen. */
Region packed(const Region& region);

/*! \brief Why regions cannot compute in a precision on this processor; "" if they can. */
std::string refusal_of_precision(const std::string& precision);

/*! \brief Why a chain of type-inferred expressions cannot be offloaded; "" if it can. */
std::string refusal_of(const std::vector<ObjectRef>& chain);

}  // namespace relay
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAY_REGION_H_
