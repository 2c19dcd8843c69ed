/*!
 * \file op.h
 * \brief The operations: each turns a node into steps of a plan.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_OP_H_
#define DNNL_BYOC_ENGINE_OPS_OP_H_

#include <string>

#include "../plan_builder.h"

namespace dnnl_byoc {

/*! \brief Compiles one node; InvalidArgument for an unknown kind or inconsistent shapes. */
void build_op(PlanBuilder& b, const Node& node);

/*! \brief Whether a node has weights, and with them oneDNN's most complete post-ops. */
bool has_weights(const Node& node);

/*! \brief Whether an implementation is one of oneDNN's slow ones, for reference. */
inline bool is_reference(const dnnl::primitive_desc_base& pd) {
  return std::string(pd.impl_info_str()).rfind("ref", 0) == 0;
}

// One file each; the kinds are documented in graph.h.
void build_convolution(PlanBuilder& b, const Node& node);
void build_deconvolution(PlanBuilder& b, const Node& node);
void build_inner_product(PlanBuilder& b, const Node& node);
void build_matmul(PlanBuilder& b, const Node& node);
void build_pooling(PlanBuilder& b, const Node& node);
void build_eltwise(PlanBuilder& b, const Node& node);
void build_binary(PlanBuilder& b, const Node& node);
void build_batch_normalization(PlanBuilder& b, const Node& node);
void build_layer_normalization(PlanBuilder& b, const Node& node);
void build_instance_normalization(PlanBuilder& b, const Node& node);
void build_softmax(PlanBuilder& b, const Node& node);
void build_lrn(PlanBuilder& b, const Node& node);
void build_reduction(PlanBuilder& b, const Node& node);
void build_prelu(PlanBuilder& b, const Node& node);
void build_resampling(PlanBuilder& b, const Node& node);
void build_quantize(PlanBuilder& b, const Node& node);
void build_dequantize(PlanBuilder& b, const Node& node);
void build_concat(PlanBuilder& b, const Node& node);
void build_gather(PlanBuilder& b, const Node& node);
void build_reshape(PlanBuilder& b, const Node& node);
void build_transpose(PlanBuilder& b, const Node& node);
void build_slice(PlanBuilder& b, const Node& node);

/*! \brief InvalidArgument "<kind>: expected <what>, got <shapes of the inputs>" unless `holds`. */
void expect(bool holds, const PlanBuilder& b, const Node& node, const char* what);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_OP_H_
