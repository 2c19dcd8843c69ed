#include "post_ops.h"
#include "spatial.h"
#include "weights.h"

namespace dnnl_byoc {

void build_convolution(PlanBuilder& b, const Node& node) {
  const memory::dim groups = checked_groups(b, node);
  const int src = node.inputs[0], weights = node.inputs[1];
  const memory::dims src_shape = b.shape(src), weights_shape = b.shape(weights);
  const memory::dims kernel = spatial(weights_shape);
  const Window window(b, node, kernel);
  memory::dims dst_shape = window.output(b, node, kernel);
  dst_shape.insert(dst_shape.begin(), {src_shape[0], weights_shape[0]});

  const memory::dims grouped = grouped_shape(weights_shape, groups);
  const auto dtype = b.dtype(src);
  const auto bias = bias_md(b, node, weights_shape[0]);

  using Pd = dnnl::convolution_forward::primitive_desc;
  const auto make = [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
    const bool any = src_md == any_md(src_shape, dtype);
    const auto dst_md = any ? any_md(dst_shape, dtype) : same_layout(src_md, dst_shape);
    Pd pd(cpu_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
          src_md, any_md(grouped, b.dtype(weights)), bias, dst_md, window.strides, window.dilation,
          window.padding_l, window.padding_r, attr, /*allow_empty=*/true);
    // A layout that was not oneDNN's choice must not cost the direct implementation.
    return any || (pd && !is_reference(pd) && !is_gemm(pd)) ? pd : Pd();
  };
  std::vector<memory::desc> candidates = {any_md(src_shape, dtype)};
  if (const auto agreed = data_md(b.layout(), src_shape, dtype))
    candidates.insert(candidates.begin(), *agreed);
  const auto [pd, post_ops] = choose<Pd>(b, node, dst_shape, candidates, make);
  emit(b, node, pd, post_ops, pd.dst_desc(), weighted_args(b, node, pd));
}

}  // namespace dnnl_byoc
