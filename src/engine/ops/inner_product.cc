#include "one_row.h"
#include "post_ops.h"
#include "weights.h"

namespace dnnl_byoc {

void build_inner_product(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 2 || node.inputs.size() == 3, b, node, "src, weights[, bias]");
  const int src = node.inputs[0], weights = node.inputs[1];
  const memory::dims src_shape = b.shape(src), weights_shape = b.shape(weights);
  expect(src_shape.size() == 2 && weights_shape.size() == 2 && src_shape[1] == weights_shape[1], b,
         node, "src (M, K) and weights (N, K)");
  if (build_one_row(b, node)) return;
  const memory::dims dst_shape = {src_shape[0], weights_shape[0]};
  const auto bias = bias_md(b, node, weights_shape[0]);

  using Pd = dnnl::inner_product_forward::primitive_desc;
  const auto [pd, post_ops] =
      choose<Pd>(b, node, dst_shape, any_candidates(b, node, src),
                 [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
                   const auto dtype = src_md.get_data_type();
                   return Pd(cpu_engine(), dnnl::prop_kind::forward_inference, src_md,
                             any_weights(b, node, weights_shape, src_md), bias,
                             any_md(dst_shape, b.result_dtype(node, dtype)), attr,
                             /*allow_empty=*/true);
                 });

  emit(b, node, pd, post_ops, pd.dst_desc(), weighted_args(b, node, pd));
}

}  // namespace dnnl_byoc
