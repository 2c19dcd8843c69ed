/*!
 * \file winograd_of_numbers.h
 * \brief Convolutions of whole numbers by Winograd's algorithm.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_WINOGRAD_OF_NUMBERS_H_
#define DNNL_BYOC_ENGINE_OPS_WINOGRAD_OF_NUMBERS_H_

#include "op.h"

namespace dnnl_byoc {

/*!
 * \brief Compiles a dense 3 × 3 convolution without strides, of numbers that stand for others, that
 * a quantize alone reads; see kernels/winograd_of_bytes.h.
 *
 * Its post-ops may be an addition of numbers that stand for others, and a ReLU or a clip.
 * \param tile m: 4; there is nothing to win from smaller ones.
 * \return Whether it was; if not, nothing has been done.
 */
bool build_winograd_of_numbers(PlanBuilder& b, const Node& node, int tile);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_WINOGRAD_OF_NUMBERS_H_
