#include "post_ops.h"

namespace dnnl_byoc {

void build_eltwise(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 1, b, node, "one input");
  const int src = node.inputs[0];
  const auto alg = eltwise_algorithm(node.attr<std::string>("alg"));
  const auto alpha = node.attr<float>("alpha"), beta = node.attr<float>("beta");

  using Pd = dnnl::eltwise_forward::primitive_desc;
  const auto [pd, post_ops] =
      choose<Pd>(b, node, b.shape(src), src_candidates(b, node, src),
                 [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
                   return Pd(cpu_engine(), dnnl::prop_kind::forward_inference, alg, src_md, src_md,
                             alpha, beta, attr, /*allow_empty=*/true);
                 });
  const int value = b.require(src, pd.src_desc());
  emit(b, node, pd, post_ops, pd.dst_desc(), {{DNNL_ARG_SRC, value}},
       b.may_overwrite(src) ? value : -1);
}

}  // namespace dnnl_byoc
