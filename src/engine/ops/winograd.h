/*!
 * \file winograd.h
 * \brief Convolution by Winograd's algorithm: two transforms, and matrix products between them.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_WINOGRAD_H_
#define DNNL_BYOC_ENGINE_OPS_WINOGRAD_H_

#include "op.h"

namespace dnnl_byoc {

/*!
 * \brief Compiles a dense convolution without strides, of float32 or bf16, if its kernel is 3 × 3,
 * 5 × 5, 1 × 3, 3 × 1, 1 × 7 or 7 × 1.
 *
 * Its post-ops may be an addition of a whole tensor, a ReLU, or both in this order; src has to be
 * channels-last, or in blocks of channel_block() channels.
 * \param tile m, see kernels/winograd.h: 2 or 4.
 * \return Whether it was; if not, nothing has been done.
 */
bool build_winograd(PlanBuilder& b, const Node& node, int tile);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_WINOGRAD_H_
