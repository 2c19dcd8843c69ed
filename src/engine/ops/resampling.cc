#include "post_ops.h"

namespace dnnl_byoc {

void build_resampling(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 1, b, node, "one input");
  const int src = node.inputs[0];
  const auto alg = node.attr<std::string>("alg");
  expect(alg == "nearest" || alg == "linear", b, node, "alg nearest or linear");
  memory::dims dst_shape = node.attr<memory::dims>("size");
  expect(b.shape(src).size() >= 3 && dst_shape.size() + 2 == b.shape(src).size(), b, node,
         "a size for each spatial dimension of src");
  dst_shape.insert(dst_shape.begin(), {b.shape(src)[0], b.shape(src)[1]});
  refuse_operands(node);  // oneDNN 3.2's simple:any accepts one, but reads it in the wrong places

  using Pd = dnnl::resampling_forward::primitive_desc;
  const auto [pd, post_ops] = choose<Pd>(
      b, node, dst_shape, src_candidates(b, node, src),
      [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
        return Pd(cpu_engine(), dnnl::prop_kind::forward_inference,
                  alg == "nearest" ? dnnl::algorithm::resampling_nearest
                                   : dnnl::algorithm::resampling_linear,
                  src_md, any_md(dst_shape, src_md.get_data_type()), attr, /*allow_empty=*/true);
      });
  emit(b, node, pd, post_ops, pd.dst_desc(), {{DNNL_ARG_SRC, b.require(src, pd.src_desc())}});
}

}  // namespace dnnl_byoc
