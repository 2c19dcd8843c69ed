#include "convolution_of_floats.h"

#include "../isa.h"
#include "../kernels/image.h"
#include "ending.h"

namespace dnnl_byoc {
namespace {

using Type = memory::data_type;

/*! \brief Whether it reads floats with constant weights, in a data type that vectors multiply. */
bool fits(const PlanBuilder& b, const Node& node, Type dtype) {
  const int src = node.inputs[0], weights = node.inputs[1];
  const auto is_float = [&](int tensor) {
    return b.dtype(tensor) == Type::f32 || b.dtype(tensor) == dtype;
  };
  return b.has_own_kernels() && channel_block() == kernels::kAvx512Vector &&
         (dtype == Type::f32 || dtype == Type::bf16) && computes_in(dtype) &&
         b.result_dtype(node, dtype) == dtype && is_float(src) && is_float(weights) &&
         b.is_constant(weights) && b.numbers_of(weights) < 0;
}

}  // namespace

std::optional<ConvolutionOfFloats> convolution_of_floats(const PlanBuilder& b, const Node& node) {
  const int src = node.inputs[0];
  const memory::dims src_shape = b.shape(src), shape = b.shape(node.inputs[1]);
  const Type dtype = b.dtypes_for(node, src).front();
  if (shape.size() != 4 || !fits(b, node, dtype)) return std::nullopt;
  const Window window(b, node, spatial(shape));
  memory::dims dst_shape = window.output(b, node, spatial(shape));
  dst_shape.insert(dst_shape.begin(), {src_shape[0], shape[0]});
  auto op = node.post_ops.begin();
  const bool adds = op != node.post_ops.end() && op->alg == dnnl::algorithm::binary_add;
  if (adds && (b.shape(op->src1) != dst_shape || b.dtype(op->src1) != dtype)) return std::nullopt;
  const int addend = adds ? op++->src1 : -1;
  const auto range = range_of({op, node.post_ops.end()});
  const memory::desc src_md =
      data_md(b.layout(), src_shape, dtype).value_or(with_dtype(b.md(src), dtype));
  if (!range || window.dilation != memory::dims{0, 0} ||
      data_layout_of(src_md) == DataLayout::any || count(src_shape) == 0 || count(dst_shape) == 0 ||
      !is_countable(dst_shape) || !has_usual_bias(b, node, shape[0]))
    return std::nullopt;
  return ConvolutionOfFloats{window, src_md, same_layout(src_md, dst_shape), addend, *range};
}

}  // namespace dnnl_byoc
