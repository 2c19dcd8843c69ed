#include <set>

#include "../error.h"
#include "op.h"

namespace dnnl_byoc {
namespace {

/*! \brief What both have in common: one src, of these data types, and no post-ops. */
void build(PlanBuilder& b, const Node& node, const std::set<memory::data_type>& dtypes,
           const char* what) {
  expect(node.inputs.size() == 1, b, node, "one input");
  if (!node.post_ops.empty()) throw Unsupported(node.kind + ": expected no post-ops");
  expect(dtypes.count(b.dtype(node.inputs[0])) > 0, b, node, what);
  b.defer(node);
}

using Type = memory::data_type;

}  // namespace

void build_quantize(PlanBuilder& b, const Node& node) {
  build(b, node, {Type::f32, Type::bf16, Type::f16}, "a floating-point src");
  // An input stays as it is; it is quantized right into the layout that is asked for.
  if (!b.is_input(node.inputs[0])) b.first_value(node.output);
}

void build_dequantize(PlanBuilder& b, const Node& node) {
  build(b, node, {Type::u8, Type::s8, Type::s32}, "src in u8, s8 or s32");
}

}  // namespace dnnl_byoc
