#include <map>

#include "post_ops.h"

namespace dnnl_byoc {
namespace {

const std::map<std::string, dnnl::algorithm> kAlgorithms = {
    {"mean", dnnl::algorithm::reduction_mean},
    {"sum", dnnl::algorithm::reduction_sum},
    {"max", dnnl::algorithm::reduction_max},
    {"min", dnnl::algorithm::reduction_min},
};

}  // namespace

void build_reduction(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 1, b, node, "one input");
  const int src = node.inputs[0];
  const auto alg = kAlgorithms.find(node.attr<std::string>("alg"));
  expect(alg != kAlgorithms.end(), b, node, "alg mean, sum, max or min");
  memory::dims dst_shape = b.shape(src);
  for (auto axis : node.attr<memory::dims>("axes")) {
    expect(axis >= 0 && axis < static_cast<memory::dim>(dst_shape.size()), b, node,
           "axes from 0 to the rank of src");
    dst_shape[axis] = 1;
  }
  if (dst_shape == b.shape(src)) {  // of one element each: a copy
    const nlohmann::json copy = {{"alg", "linear"}, {"alpha", 1}, {"beta", 0}};
    return build_eltwise(b, {"eltwise", {src}, node.output, copy, node.post_ops});
  }

  using Pd = dnnl::reduction::primitive_desc;
  const auto [pd, post_ops] =
      choose<Pd>(b, node, dst_shape, src_candidates(b, node, src),
                 [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
                   return Pd(cpu_engine(), alg->second, src_md, same_layout(src_md, dst_shape), 0.f,
                             0.f, attr, /*allow_empty=*/true);
                 });
  emit(b, node, pd, post_ops, pd.dst_desc(), {{DNNL_ARG_SRC, b.require(src, pd.src_desc())}});
}

}  // namespace dnnl_byoc
