/*!
 * \file tiles.h
 * \brief Convolutions by AMX.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_TILES_H_
#define DNNL_BYOC_ENGINE_OPS_TILES_H_

#include "op.h"

namespace dnnl_byoc {

/*!
 * \brief Compiles a DenseConvolution whose channels of src fill tiles; see kernels/tiles.h.
 * \return Whether it was; if not, nothing has been done.
 */
bool build_tiles(PlanBuilder& b, const Node& node);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_TILES_H_
