#include "post_ops.h"
#include "weights.h"

namespace dnnl_byoc {

void build_convolution(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 2 || node.inputs.size() == 3, b, node, "src, weights[, bias]");
  const int src = node.inputs[0], weights = node.inputs[1];
  const memory::dims src_shape = b.shape(src), weights_shape = b.shape(weights);
  const auto strides = node.attr<memory::dims>("strides");
  const auto padding_l = node.attr<memory::dims>("padding_l");
  const auto padding_r = node.attr<memory::dims>("padding_r");
  auto dilation = node.attr<memory::dims>("dilation");
  const auto groups = node.attr<memory::dim>("groups");

  const size_t rank = src_shape.size();
  expect(rank >= 3 && rank <= 5 && weights_shape.size() == rank, b, node,
         "src and weights of one rank from 3 to 5");
  expect(strides.size() == rank - 2 && dilation.size() == rank - 2 &&
             padding_l.size() == rank - 2 && padding_r.size() == rank - 2,
         b, node, "strides, dilation and padding for each spatial dimension");
  expect(groups > 0 && weights_shape[0] % groups == 0 && weights_shape[1] * groups == src_shape[1],
         b, node, "weights (O, I / groups, …) for src (N, I, …)");

  memory::dims dst_shape = {src_shape[0], weights_shape[0]};
  for (size_t i = 0; i < rank - 2; ++i) {
    expect(strides[i] > 0 && dilation[i] > 0, b, node, "strides and dilation > 0");
    const auto window = dilation[i] * (weights_shape[i + 2] - 1) + 1;
    const auto room = src_shape[i + 2] + padding_l[i] + padding_r[i] - window;
    expect(room >= 0, b, node, "a kernel that fits into the padded src");
    dst_shape.push_back(room / strides[i] + 1);
    dilation[i] -= 1;  // oneDNN counts the skipped elements
  }

  memory::dims grouped = weights_shape;
  if (groups > 1) {
    grouped[0] /= groups;
    grouped.insert(grouped.begin(), groups);
  }
  const auto dtype = b.dtype(src);
  const auto bias = bias_md(b, node, weights_shape[0]);

  using Pd = dnnl::convolution_forward::primitive_desc;
  const auto make = [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
    const bool any = src_md == any_md(src_shape, dtype);
    const auto dst_md = any ? any_md(dst_shape, dtype) : same_layout(src_md, dst_shape);
    Pd pd(cpu_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
          src_md, any_md(grouped, b.dtype(weights)), bias, dst_md, strides, dilation, padding_l,
          padding_r, attr, /*allow_empty=*/true);
    // A layout that was not oneDNN's choice must not cost the direct implementation.
    return any || (pd && !is_reference(pd) && !is_gemm(pd)) ? pd : Pd();
  };
  auto candidates = layouts_named(b.preferred_layout(), src_shape, dtype);
  candidates.push_back(any_md(src_shape, dtype));
  const auto [pd, post_ops] = choose<Pd>(b, node, dst_shape, candidates, make);

  emit(b, node, pd, post_ops, pd.dst_desc(), weighted_args(b, node, pd));
}

}  // namespace dnnl_byoc
