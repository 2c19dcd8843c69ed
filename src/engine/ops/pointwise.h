/*!
 * \file pointwise.h
 * \brief 1 × 1 convolutions.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_POINTWISE_H_
#define DNNL_BYOC_ENGINE_OPS_POINTWISE_H_

#include "op.h"

namespace dnnl_byoc {

/*!
 * \brief Compiles a dense 1 × 1 convolution without strides and padding, channels-last: of bf16,
 * or of unsigned numbers that stand for others, that a quantize alone reads, or with a result in
 * f32.
 *
 * Its post-ops may be an addition of a whole tensor, of bf16 or numbers, and a ReLU or a clip.
 * \return Whether it was; if not, nothing has been done.
 */
bool build_pointwise(PlanBuilder& b, const Node& node);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_POINTWISE_H_
