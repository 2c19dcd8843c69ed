#include "post_ops.h"
#include "spatial.h"
#include "weights.h"

namespace dnnl_byoc {

void build_deconvolution(PlanBuilder& b, const Node& node) {
  const memory::dim groups = checked_groups(b, node);
  const int src = node.inputs[0], weights = node.inputs[1];
  const memory::dims src_shape = b.shape(src), weights_shape = b.shape(weights);
  const memory::dims kernel = spatial(weights_shape);
  const Window window(b, node, kernel);
  memory::dims dst_shape = {src_shape[0], weights_shape[0]};
  for (size_t i = 0; i < kernel.size(); ++i) {
    const auto extent = (window.dilation[i] + 1) * (kernel[i] - 1) + 1;
    dst_shape.push_back((src_shape[i + 2] - 1) * window.strides[i] + extent - window.padding_l[i] -
                        window.padding_r[i]);
    expect(dst_shape.back() > 0, b, node, "padding that leaves a result");
  }

  const memory::dims grouped = grouped_shape(weights_shape, groups);
  const auto bias = bias_md(b, node, dst_shape[1]);

  using Pd = dnnl::deconvolution_forward::primitive_desc;
  const auto [pd, post_ops] = choose<Pd>(
      b, node, dst_shape, any_candidates(b, node, src),
      [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
        return Pd(cpu_engine(), dnnl::prop_kind::forward_inference,
                  dnnl::algorithm::deconvolution_direct, src_md,
                  any_weights(b, node, grouped, src_md), bias,
                  any_md(dst_shape, b.result_dtype(node, src_md.get_data_type())), window.strides,
                  window.dilation, window.padding_l, window.padding_r, attr,
                  /*allow_empty=*/true);
      });
  emit(b, node, pd, post_ops, pd.dst_desc(), weighted_args(b, node, pd));
}

}  // namespace dnnl_byoc
