/*!
 * \file weights.h
 * \brief What convolutions and matrix products have in common: src, weights[, bias].
 */
#ifndef DNNL_BYOC_ENGINE_OPS_WEIGHTS_H_
#define DNNL_BYOC_ENGINE_OPS_WEIGHTS_H_

#include <utility>
#include <vector>

#include "op.h"

namespace dnnl_byoc {

/*! \brief The descriptor of a node's bias, one number per output channel; empty if it has none. */
inline memory::desc bias_md(const PlanBuilder& b, const Node& node, memory::dim channels) {
  if (node.inputs.size() < 3) return {};
  expect(b.shape(node.inputs[2]) == memory::dims{channels}, b, node,
         "a bias of one number per output channel");
  return plain_md({channels}, b.dtype(node.inputs[2]));
}

/*! \brief A convolution's weights (O, I / groups, …) as oneDNN wants them if there are groups. */
inline memory::dims grouped_shape(memory::dims weights, memory::dim groups) {
  if (groups > 1) {
    weights[0] /= groups;
    weights.insert(weights.begin(), groups);
  }
  return weights;
}

/*! \brief The node's inputs in the layouts of a primitive descriptor, as arguments. */
template <typename PrimitiveDesc>
std::vector<std::pair<int, int>> weighted_args(PlanBuilder& b, const Node& node,
                                               const PrimitiveDesc& pd) {
  std::vector<std::pair<int, int>> args = {
      {DNNL_ARG_SRC, b.require(node.inputs[0], pd.src_desc())},
      {DNNL_ARG_WEIGHTS, b.require(node.inputs[1], pd.weights_desc())}};
  if (node.inputs.size() == 3)
    args.emplace_back(DNNL_ARG_BIAS, b.require(node.inputs[2], pd.bias_desc()));
  return args;
}

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_WEIGHTS_H_
