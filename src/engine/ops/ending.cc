#include "ending.h"

#include "../isa.h"
#include "weights.h"

namespace dnnl_byoc {

kernels::Image image_of(const memory::desc& md) {
  const auto shape = md.get_dims(), strides = md.get_strides();
  const bool blocked = md.get_inner_nblks() > 0;
  return {shape[2],   shape[3],  strides[0], blocked ? strides[1] : channel_block(),
          strides[2], strides[3]};
}

bool has_usual_bias(const PlanBuilder& b, const Node& node, memory::dim channels) {
  if (node.inputs.size() < 3) return true;
  const int bias = node.inputs[2];
  return b.is_constant(bias) && b.dtype(bias) == memory::data_type::f32 &&
         b.shape(bias) == memory::dims{channels};
}

std::optional<Ending> ending_of(const PlanBuilder& b, const Node& node,
                                const memory::dims& dst_shape) {
  Ending found;
  for (const PostOp& op : node.post_ops) {
    if (found.activation.relu) return std::nullopt;
    if (op.alg == dnnl::algorithm::eltwise_relu) {
      found.activation = {true, op.alpha};
    } else if (op.alg == dnnl::algorithm::binary_add && found.addend < 0 &&
               b.shape(op.src1) == dst_shape) {
      found.addend = op.src1;
    } else {
      return std::nullopt;
    }
  }
  return found;
}

BoundSum bind_sum(PlanBuilder& b, int dst, const memory::desc& dst_md, int addend,
                  memory::data_type addend_dtype) {
  if (addend < 0) return {b.define(dst, dst_md), -1, false};
  const bool in_place =
      b.may_overwrite(addend) &&
      memory::data_type_size(addend_dtype) == memory::data_type_size(dst_md.get_data_type());
  const int value = b.require(addend, with_dtype(dst_md, addend_dtype));
  return {in_place ? b.define_in(dst, dst_md, value) : b.define(dst, dst_md), value, in_place};
}

BoundEnding bind_ending(PlanBuilder& b, const Node& node, const Ending& ending,
                        const memory::desc& dst_md) {
  BoundEnding bound = {-1, {}, ""};
  if (node.inputs.size() == 3)
    bound.operands.emplace_back(DNNL_ARG_BIAS,
                                b.require(node.inputs[2], bias_md(b, node, dst_md.get_dims()[1])));
  const BoundSum sum = bind_sum(b, node.output, dst_md, ending.addend, dst_md.get_data_type());
  bound.dst = sum.dst;
  if (ending.addend >= 0) {
    bound.operands.emplace_back(DNNL_ARG_SRC_1, sum.addend);
    bound.post_ops = sum.in_place ? "sum" : "binary_add";
  }
  if (ending.activation.relu)
    bound.post_ops += bound.post_ops.empty() ? "eltwise_relu" : "+eltwise_relu";
  return bound;
}

}  // namespace dnnl_byoc
