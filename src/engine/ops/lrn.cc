#include "post_ops.h"

namespace dnnl_byoc {

void build_lrn(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 1, b, node, "one input");
  const int src = node.inputs[0];
  const auto size = node.attr<memory::dim>("size");
  const auto alpha = node.attr<float>("alpha"), beta = node.attr<float>("beta"),
             k = node.attr<float>("k");
  expect(size > 0 && b.shape(src).size() >= 2, b, node, "src (N, C, …) and size > 0");

  using Pd = dnnl::lrn_forward::primitive_desc;
  const auto [pd, post_ops] =
      choose<Pd>(b, node, b.shape(src), src_candidates(b, node, src),
                 [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
                   return Pd(cpu_engine(), dnnl::prop_kind::forward_inference,
                             dnnl::algorithm::lrn_across_channels, src_md, src_md, size, alpha,
                             beta, k, attr, /*allow_empty=*/true);
                 });
  emit(b, node, pd, post_ops, pd.dst_desc(), {{DNNL_ARG_SRC, b.require(src, pd.src_desc())}});
}

}  // namespace dnnl_byoc
