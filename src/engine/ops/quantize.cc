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
  using Type = memory::data_type;
  const auto dtype = b.dtype(node.inputs[0]);
  expect(dtype == Type::f32 || dtype == Type::bf16 || dtype == Type::f16, b, node,
         "a floating-point src");
  b.defer(node);
  // An input stays as it is; it is quantized right into the layout that is asked for.
  if (!b.is_input(node.inputs[0])) b.first_value(node.output);
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
