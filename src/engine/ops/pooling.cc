#include <map>

#include "post_ops.h"
#include "spatial.h"

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
  const Window window(b, node, kernel);
  memory::dims dst_shape = window.output(b, node, kernel);
  dst_shape.insert(dst_shape.begin(), {src_shape[0], src_shape[1]});

  using Pd = dnnl::pooling_forward::primitive_desc;
  const auto [pd, post_ops] = choose<Pd>(
      b, node, dst_shape, src_candidates(b, node, src),
      [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
        return Pd(cpu_engine(), dnnl::prop_kind::forward_inference, alg->second, src_md,
                  any_md(dst_shape, src_md.get_data_type()), window.strides, kernel,
                  window.dilation, window.padding_l, window.padding_r, attr, /*allow_empty=*/true);
      });
  emit(b, node, pd, post_ops, pd.dst_desc(), {{DNNL_ARG_SRC, b.require(src, pd.src_desc())}});
}

}  // namespace dnnl_byoc
