/*!
 * \file reader.h
 * \brief Reads what tvm_dnnl_byoc/ir/encode.py writes as the plain calls of adapter/call.h.
 *
 * Relax expressions are read by Python, as their classes and attributes differ from release to
 * release. A value is {"key", "dtype", "shape"[, "constant": index]} or a tuple {"fields"}, a call
 * {"op", "attrs", "args", "result"}, a chain a list of calls, and a region {"inputs", "chains",
 * "outputs", "precision"}: each field is that of the struct of the same name. A size that only a
 * run knows is kUnknown.
 */
#ifndef DNNL_BYOC_RELAX_READER_H_
#define DNNL_BYOC_RELAX_READER_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>

#include <string>

#include "adapter/region.h"

namespace dnnl_byoc {
namespace relax {

using Constants = tvm::ffi::Array<tvm::ffi::Tensor>;

/*! \param constants What "constant" is an index into; compact and on the CPU. */
adapter::Chain read_chain(const std::string& text, const Constants& constants);
adapter::Region read_region(const std::string& text, const Constants& constants);

}  // namespace relax
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAX_READER_H_
