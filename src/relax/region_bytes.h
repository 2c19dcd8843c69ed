/*!
 * \file region_bytes.h
 * \brief A region as bytes, in an exported library.
 */
#ifndef DNNL_BYOC_RELAX_REGION_BYTES_H_
#define DNNL_BYOC_RELAX_REGION_BYTES_H_

#include <tvm/ffi/string.h>

#include <string>
#include <utility>

#include "adapter/region.h"

namespace dnnl_byoc {
namespace relax {

tvm::ffi::Bytes to_bytes(const std::string& symbol, const adapter::EngineGraph& graph);

/*! \brief The symbol and the graph; ValueError if the bytes are damaged, or of another release. */
std::pair<std::string, adapter::EngineGraph> from_bytes(const tvm::ffi::Bytes& bytes);

}  // namespace relax
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAX_REGION_BYTES_H_
