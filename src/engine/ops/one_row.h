/*!
 * \file one_row.h
 * \brief Inner products of one row.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_ONE_ROW_H_
#define DNNL_BYOC_ENGINE_OPS_ONE_ROW_H_

#include "op.h"

namespace dnnl_byoc {

/*!
 * \brief Compiles an inner product of one row, in float32, bf16, or numbers that stand for others,
 * with constant weights, which it leaves row-major.
 *
 * Its post-op may be a ReLU or a clip.
 * \return Whether it was; if not, nothing has been done.
 */
bool build_one_row(PlanBuilder& b, const Node& node);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_ONE_ROW_H_
