#include "post_ops.h"

namespace dnnl_byoc {

void build_prelu(PlanBuilder& b, const Node& node) {
  expect(
      node.inputs.size() == 2 && b.shape(node.inputs[0]).size() == b.shape(node.inputs[1]).size(),
      b, node, "src and weights of one rank");
  const int src = node.inputs[0], weights = node.inputs[1];

  using Pd = dnnl::prelu_forward::primitive_desc;
  const auto [pd, post_ops] =
      choose<Pd>(b, node, b.shape(src), src_candidates(b, node, src),
                 [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
                   return Pd(cpu_engine(), dnnl::prop_kind::forward_inference, src_md,
                             any_md(b.shape(weights), b.dtype(weights)), src_md, attr,
                             /*allow_empty=*/true);
                 });
  const int value = b.require(src, pd.src_desc());
  emit(b, node, pd, post_ops, pd.dst_desc(),
       {{DNNL_ARG_SRC, value}, {DNNL_ARG_WEIGHTS, b.require(weights, pd.weights_desc())}},
       b.may_overwrite(src) ? value : -1);
}

}  // namespace dnnl_byoc
