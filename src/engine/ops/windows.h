/*!
 * \file windows.h
 * \brief Convolutions of floats by windows of any size.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_WINDOWS_H_
#define DNNL_BYOC_ENGINE_OPS_WINDOWS_H_

#include "op.h"

namespace dnnl_byoc {

/*!
 * \brief Compiles a DenseConvolution of f32; see kernels/windows.h.
 * \return Whether it was; if not, nothing has been done.
 */
bool build_windows(PlanBuilder& b, const Node& node);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_WINDOWS_H_
