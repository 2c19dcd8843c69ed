/*!
 * \file grouped.h
 * \brief Convolutions of groups for which oneDNN has no vectors.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_GROUPED_H_
#define DNNL_BYOC_ENGINE_OPS_GROUPED_H_

#include "op.h"

namespace dnnl_byoc {

/*!
 * \brief Compiles a 3 × 3 convolution in float32 of groups of 4 or 8 channels, as many of src as of
 * dst, that are narrower than a vector; with a ResNeXt's strides, 1 and 2.
 *
 * Its post-ops may be those of an Ending; src has to be channels-last, or in blocks of
 * channel_block() channels.
 * \return Whether it was; if not, nothing has been done.
 */
bool build_grouped(PlanBuilder& b, const Node& node);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_GROUPED_H_
