#include <map>

#include "post_ops.h"

namespace dnnl_byoc {
namespace {

const std::map<std::string, dnnl::algorithm> kAlgorithms = {
    {"max", dnnl::algorithm::pooling_max},
    {"avg_include_padding", dnnl::algorithm::pooling_avg_include_padding},
    {"avg_exclude_padding", dnnl::algorithm::pooling_avg_exclude_padding},
};

}  // namespace

void build_pooling(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 1, b, node, "one input");
  const int src = node.inputs[0];
  const memory::dims src_shape = b.shape(src);
  auto alg = kAlgorithms.find(node.attr<std::string>("alg"));
  expect(alg != kAlgorithms.end(), b, node, "alg max, avg_include_padding or avg_exclude_padding");
  const auto kernel = node.attr<memory::dims>("kernel");
  const auto strides = node.attr<memory::dims>("strides");
  const auto padding_l = node.attr<memory::dims>("padding_l");
  const auto padding_r = node.attr<memory::dims>("padding_r");
  auto dilation = node.attr<memory::dims>("dilation");

  const size_t rank = src_shape.size();
  expect(rank >= 3 && rank <= 5, b, node, "src of rank 3 to 5");
  expect(kernel.size() == rank - 2 && strides.size() == rank - 2 && dilation.size() == rank - 2 &&
             padding_l.size() == rank - 2 && padding_r.size() == rank - 2,
         b, node, "kernel, strides, dilation and padding for each spatial dimension");
  memory::dims dst_shape = {src_shape[0], src_shape[1]};
  for (size_t i = 0; i < rank - 2; ++i) {
    expect(kernel[i] > 0 && strides[i] > 0 && dilation[i] > 0, b, node,
           "kernel, strides and dilation > 0");
    const auto room =
        src_shape[i + 2] + padding_l[i] + padding_r[i] - (dilation[i] * (kernel[i] - 1) + 1);
    expect(room >= 0, b, node, "a kernel that fits into the padded src");
    dst_shape.push_back(room / strides[i] + 1);
    dilation[i] -= 1;  // oneDNN counts the skipped elements
  }

  using Pd = dnnl::pooling_forward::primitive_desc;
  const auto [pd, post_ops] =
      choose<Pd>(b, node, dst_shape, layout_candidates(b.md(src)),
                 [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
                   return Pd(cpu_engine(), dnnl::prop_kind::forward_inference, alg->second, src_md,
                             any_md(dst_shape, b.dtype(src)), strides, kernel, dilation, padding_l,
                             padding_r, attr, /*allow_empty=*/true);
                 });
  emit(b, node, pd, post_ops, pd.dst_desc(), {{DNNL_ARG_SRC, b.require(src, pd.src_desc())}});
}

}  // namespace dnnl_byoc
