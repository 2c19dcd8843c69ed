#include <algorithm>

#include "post_ops.h"

namespace dnnl_byoc {
namespace {

/*! \brief NumPy's broadcasting; an empty result if the shapes do not fit. */
memory::dims broadcast(memory::dims a, memory::dims b) {
  if (a.size() < b.size()) std::swap(a, b);
  b.insert(b.begin(), a.size() - b.size(), 1);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) return {};
    if (a[i] == 1) a[i] = b[i];
  }
  return a;
}

bool is_commutative(dnnl::algorithm alg) {
  return alg == dnnl::algorithm::binary_add || alg == dnnl::algorithm::binary_mul ||
         alg == dnnl::algorithm::binary_max || alg == dnnl::algorithm::binary_min;
}

}  // namespace

void build_binary(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 2, b, node, "two inputs");
  int src0 = node.inputs[0], src1 = node.inputs[1];
  const auto alg = binary_algorithm(node.attr<std::string>("alg"));
  expect(b.have_one_dtype(node.inputs), b, node, "operands of one dtype");
  const memory::dims dst_shape = broadcast(b.shape(src0), b.shape(src1));
  expect(!dst_shape.empty(), b, node, "shapes that broadcast");

  // Where the spatial dimensions are 1, oneDNN 3.2 reads a post-op's operand per channel as one
  // number.
  if (dst_shape.size() > 2 && std::all_of(dst_shape.begin() + 2, dst_shape.end(),
                                          [](memory::dim size) { return size == 1; }))
    refuse_operands(node);

  // The first operand sets the layout, and its memory can take the result: it had better be whole,
  // free to be overwritten, and not in the caller's row-major layout, in this order.
  const auto rank = [&](int tensor) {
    return (b.shape(tensor) == dst_shape) * 4 + b.may_overwrite(tensor) * 2 + !b.is_plain(tensor);
  };
  if (is_commutative(alg) && rank(src1) > rank(src0)) std::swap(src0, src1);

  const auto operand = [&](int tensor, const memory::desc& like, bool plain) {
    memory::dims shape = b.shape(tensor);
    if (shape == dst_shape) return like;
    shape.insert(shape.begin(), dst_shape.size() - shape.size(), 1);
    return plain ? plain_md(shape, b.dtype(tensor)) : same_layout(like, shape);
  };
  const auto base = b.shape(src0) == dst_shape ? b.md(src0) : plain_md(dst_shape, b.dtype(src0));

  using Pd = dnnl::binary::primitive_desc;
  const auto [pd, post_ops] =
      choose<Pd>(b, node, dst_shape, layout_candidates(base),
                 [&](const memory::desc& dst_md, const dnnl::primitive_attr& attr) {
                   const auto make = [&](bool plain) {
                     return Pd(cpu_engine(), alg, operand(src0, dst_md, plain),
                               operand(src1, dst_md, plain), dst_md, attr, /*allow_empty=*/true);
                   };
                   const Pd pd = make(true);
                   if (pd && !is_reference(pd)) return pd;
                   // What is broadcast to blocks of channels may have to be in such blocks as well.
                   const Pd blocked = make(false);
                   return blocked && !is_reference(blocked) ? blocked : pd;
                 });
  const int value0 = b.require(src0, pd.src0_desc());
  const int value1 = b.require(src1, pd.src1_desc());
  emit(b, node, pd, post_ops, pd.dst_desc(), {{DNNL_ARG_SRC_0, value0}, {DNNL_ARG_SRC_1, value1}},
       b.may_overwrite(src0) ? value0 : -1);
}

}  // namespace dnnl_byoc
