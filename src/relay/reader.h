/*!
 * \file reader.h
 * \brief Reads Relay expressions as the plain calls of adapter/call.h.
 */
#ifndef DNNL_BYOC_RELAY_READER_H_
#define DNNL_BYOC_RELAY_READER_H_

#include <vector>

#include "adapter/region.h"
#include "reflection.h"

namespace dnnl_byoc {
namespace relay {

/*!
 * \brief Reads a chain of type-inferred expressions.
 * \throw adapter::Refusal if one is no call of an operator, or no tensor of static shape.
 */
adapter::Chain read_chain(const std::vector<ObjectRef>& chain);

/*! \brief Reads a type-inferred region; composite functions in it are chains. */
adapter::Region read_region(const ObjectRef& function);

}  // namespace relay
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAY_READER_H_
