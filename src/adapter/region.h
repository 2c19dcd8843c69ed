/*!
 * \file region.h
 * \brief A region as a graph of the engine; and whether something can be one.
 */
#ifndef DNNL_BYOC_ADAPTER_REGION_H_
#define DNNL_BYOC_ADAPTER_REGION_H_

#include <string>
#include <vector>

#include "call.h"

namespace dnnl_byoc {
namespace adapter {

/*! \brief Calls that run as one primitive: an anchor and its post-ops, see chain.h. */
using Chain = std::vector<Call>;

struct Region {
  std::vector<Value> inputs;
  std::vector<Chain> chains;  // each after those whose results it reads
  std::vector<Value> outputs;
  std::string precision;  // the engine's name of it; "": f32
};

/*! \brief The engine's JSON with the data of its constants, in their order. */
struct EngineGraph {
  std::string json;
  std::vector<Constant> constants;
};

/*! \throw Refusal if a chain has no counterpart in the engine. */
EngineGraph translate_region(const Region& region);

/*! \brief The graph prepared for this machine: its constants repacked, what is measured chosen. */
EngineGraph packed(const EngineGraph& graph);

/*! \brief In which layout result number `output` would lie that need not be row-major: its tag. */
std::string layout_of_result(const EngineGraph& graph, size_t output);

/*! \brief Why regions cannot compute in a precision on this processor; "" if they can. */
std::string refusal_of_precision(const std::string& precision);

/*! \brief Why a chain cannot be offloaded; "" if it can. */
std::string refusal_of(const Chain& chain);

}  // namespace adapter
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ADAPTER_REGION_H_
