/*!
 * \file spatial.h
 * \brief Windows that slide over the spatial dimensions: convolution, deconvolution, pooling.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_SPATIAL_H_
#define DNNL_BYOC_ENGINE_OPS_SPATIAL_H_

#include "op.h"

namespace dnnl_byoc {

/*! \brief A node's window attributes, one number per spatial dimension. */
struct Window {
  memory::dims strides, padding_l, padding_r;
  memory::dims dilation;  // as oneDNN counts: the elements skipped, 0 for a dense window

  /*! \brief Reads and checks them; InvalidArgument if they do not fit src and kernel. */
  Window(const PlanBuilder& b, const Node& node, const memory::dims& kernel);

  /*! \brief The spatial part of a convolution's or pooling's result. */
  memory::dims output(const PlanBuilder& b, const Node& node, const memory::dims& kernel) const;
};

/*! \brief The spatial part of a shape. */
inline memory::dims spatial(const memory::dims& shape) { return {shape.begin() + 2, shape.end()}; }

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_SPATIAL_H_
