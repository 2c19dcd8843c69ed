#include <algorithm>

#include "post_ops.h"
#include "weights.h"

namespace dnnl_byoc {

void build_matmul(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 2 || node.inputs.size() == 3, b, node, "src, weights[, bias]");
  const int src = node.inputs[0], weights = node.inputs[1];
  const memory::dims src_shape = b.shape(src);
  memory::dims weights_shape = b.shape(weights);
  const size_t rank = src_shape.size();
  if (weights_shape.size() == 2 && rank > 2)
    weights_shape.insert(weights_shape.begin(), rank - 2, 1);
  expect(
      rank >= 2 && weights_shape.size() == rank && src_shape[rank - 1] == weights_shape[rank - 2],
      b, node, "src (batch…, M, K) and weights (batch…, K, N)");
  memory::dims dst_shape = src_shape;
  dst_shape[rank - 1] = weights_shape[rank - 1];
  for (size_t i = 0; i + 2 < rank; ++i) {
    expect(src_shape[i] == weights_shape[i] || src_shape[i] == 1 || weights_shape[i] == 1, b, node,
           "batch dimensions that broadcast");
    if (src_shape[i] == 1) dst_shape[i] = weights_shape[i];
  }
  memory::desc bias;
  if (node.inputs.size() == 3) {
    memory::dims bias_shape(rank, 1);
    bias_shape[rank - 1] = dst_shape[rank - 1];
    expect(count(b.shape(node.inputs[2])) == dst_shape[rank - 1], b, node, "a bias (N)");
    bias = plain_md(bias_shape, bias_dtype(b, node));
  }

  // A strided operand, such as a transposed view, is taken as it lies where oneDNN can.
  std::vector<memory::desc> candidates;
  for (const auto dtype : b.dtypes_for(node, src)) {
    if (b.dtype(src) == dtype) candidates.push_back(b.md(src));
    candidates.push_back(any_md(src_shape, dtype));
  }
  const bool whole = b.shape(weights) == weights_shape;
  const auto own_weights_md = whole ? b.md(weights) : b.md(weights).reshape(weights_shape);
  using Pd = dnnl::matmul::primitive_desc;
  const auto [pd, post_ops] = choose<Pd>(
      b, node, dst_shape, candidates,
      [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
        const auto dtype = src_md.get_data_type();
        const auto any_md_of_weights = any_weights(b, node, weights_shape, src_md);
        const bool any = b.is_constant(weights) || src_md == any_md(src_shape, dtype) ||
                         b.dtype(weights) != any_md_of_weights.get_data_type();
        const auto weights_md = any ? any_md_of_weights : own_weights_md;
        const auto make = [&](const memory::desc& dst_md) {
          const Pd pd(cpu_engine(), src_md, weights_md, bias, dst_md, attr, /*allow_empty=*/true);
          return pd && b.can_require(weights_tensor(b, node, dtype), pd.weights_desc()) ? pd : Pd();
        };
        const auto dst_dtype = b.result_dtype(node, dtype);
        const Pd pd = make(b.wanted_md(node, dst_shape, dst_dtype));
        return pd && !is_reference(pd) ? pd : make(plain_md(dst_shape, dst_dtype));
      });
  emit(b, node, pd, post_ops, pd.dst_desc(), weighted_args(b, node, pd));
}

}  // namespace dnnl_byoc
