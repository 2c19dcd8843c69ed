#include "../error.h"
#include "op.h"

namespace dnnl_byoc {
namespace {

void expect_one(const PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 1, b, node, "one input");
  if (!node.post_ops.empty()) throw Unsupported(node.kind + ": expected no post-ops");
}

}  // namespace

void build_quantize(PlanBuilder& b, const Node& node) {
  expect_one(b, node);
  const int src = node.inputs[0];
  const Quantization how = quantization_of(node, b.shape(src));
  using Type = memory::data_type;
  const auto dtype = b.dtype(src);
  expect(dtype == Type::f32 || dtype == Type::bf16 || dtype == Type::f16, b, node,
         "a floating-point src");
  const int from = b.is_constant(src) ? b.require(src, b.md(src)) : b.first_value(src);
  const int to = b.define(node.output, with_dtype(b.md_of(from), how.dtype));
  b.emit_reorder(from, to, DNNL_ARG_DST, how);
}

void build_dequantize(PlanBuilder& b, const Node& node) {
  expect_one(b, node);
  using Type = memory::data_type;
  const auto dtype = b.dtype(node.inputs[0]);
  expect(dtype == Type::u8 || dtype == Type::s8 || dtype == Type::s32, b, node,
         "src in u8, s8 or s32");
  b.defer(node);
}

}  // namespace dnnl_byoc
