#include "post_ops.h"

namespace dnnl_byoc {

void build_softmax(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 1, b, node, "one input");
  const int src = node.inputs[0];
  const int axis = node.attr<int>("axis");
  expect(axis >= 0 && axis < static_cast<int>(b.shape(src).size()), b, node,
         "axis from 0 to the rank of src");
  refuse_operands(node);  // oneDNN 3.2 accepts one that is broadcast, but reads it wrongly
  const auto alg =
      node.attr<int>("log") ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate;

  using Pd = dnnl::softmax_forward::primitive_desc;
  const auto [pd, post_ops] = choose<Pd>(
      b, node, b.shape(src), src_candidates(b, node, src),
      [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
        const auto make = [&](const memory::desc& dst_md) {
          return Pd(cpu_engine(), dnnl::prop_kind::forward_inference, alg, src_md, dst_md, axis,
                    attr, /*allow_empty=*/true);
        };
        const auto dtype = b.result_dtype(node, b.precision());
        const Pd pd =
            b.precision() == memory::data_type::f32 ? Pd() : make(with_dtype(src_md, dtype));
        return pd && !is_reference(pd) ? pd : make(src_md);
      });
  const int value = b.require(src, pd.src_desc());
  emit(b, node, pd, post_ops, pd.dst_desc(), {{DNNL_ARG_SRC, value}},
       b.may_overwrite(src) ? value : -1);
}

}  // namespace dnnl_byoc
