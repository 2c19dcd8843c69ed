/*!
 * \file depthwise.h
 * \brief Depthwise convolutions.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_DEPTHWISE_H_
#define DNNL_BYOC_ENGINE_OPS_DEPTHWISE_H_

#include "op.h"

namespace dnnl_byoc {

/*!
 * \brief Compiles a convolution of each channel for itself: of numbers that stand for others, by
 * 3 × 3, 5 × 5 or 7 × 7, that a quantize alone reads; or of f32, by 3 × 3 with strides of 1 or 2.
 *
 * Its post-op may be a ReLU or a clip.
 * \return Whether it was; if not, nothing has been done.
 */
bool build_depthwise(PlanBuilder& b, const Node& node);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_DEPTHWISE_H_
