/*!
 * \file normalization_to_numbers.h
 * \brief Batch normalization whose results are quantized at once.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_NORMALIZATION_TO_NUMBERS_H_
#define DNNL_BYOC_ENGINE_OPS_NORMALIZATION_TO_NUMBERS_H_

#include "op.h"

namespace dnnl_byoc {

/*! \brief Whether a node is one that a quantize with one scale alone reads, and the kernel can do.
 */
bool leaves_numbers(const PlanBuilder& b, const Node& node);

/*!
 * \brief Compiles a batch normalization, perhaps with a ReLU, whose results are quantized; src may
 * be in parts.
 * \return Whether it was; if not, nothing has been done.
 */
bool build_normalization_to_numbers(PlanBuilder& b, const Node& node);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_NORMALIZATION_TO_NUMBERS_H_
