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

/*! \brief src in the layout of oneDNN's choice, in each data type to try. */
inline std::vector<memory::desc> any_candidates(const PlanBuilder& b, const Node& node, int src) {
  std::vector<memory::desc> candidates;
  for (const auto dtype : b.dtypes_for(node, src))
    candidates.push_back(any_md(b.shape(src), dtype));
  return candidates;
}

/*! \brief Weights in oneDNN's layout; in their own data type, or in src's under a precision. */
inline memory::desc any_weights(const PlanBuilder& b, const Node& node, const memory::dims& shape,
                                const memory::desc& src_md) {
  const auto dtype = src_md.get_data_type();
  if (b.is_numbers(dtype, node.inputs[0])) return any_md(shape, memory::data_type::s8);
  const bool converted = b.precision() != memory::data_type::f32;
  return any_md(shape, converted ? dtype : b.dtype(node.inputs[1]));
}

/*! \brief A bias is not rounded to a precision. */
inline memory::data_type bias_dtype(const PlanBuilder& b, const Node& node) {
  const auto dtype = b.dtype(node.inputs[2]);
  return dtype == b.precision() ? memory::data_type::f32 : dtype;
}

/*! \brief The descriptor of a node's bias, one number per output channel; empty if it has none. */
inline memory::desc bias_md(const PlanBuilder& b, const Node& node, memory::dim channels) {
  if (node.inputs.size() < 3) return {};
  expect(b.shape(node.inputs[2]) == memory::dims{channels}, b, node,
         "a bias of one number per output channel");
  return plain_md({channels}, bias_dtype(b, node));
}

/*!
 * \brief The groups of a convolution or its transpose.
 * \throw InvalidArgument if its inputs are not src (N, I, …), weights (O, I / groups, …)[, bias].
 */
inline memory::dim checked_groups(const PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 2 || node.inputs.size() == 3, b, node, "src, weights[, bias]");
  const memory::dims src = b.shape(node.inputs[0]), weights = b.shape(node.inputs[1]);
  const auto groups = node.attr<memory::dim>("groups");
  expect(weights.size() == src.size() && src.size() >= 3, b, node,
         "src and weights of one rank from 3 to 5");
  expect(groups > 0 && weights[0] % groups == 0 && weights[1] * groups == src[1], b, node,
         "weights (O, I / groups, …) for src (N, I, …)");
  return groups;
}

/*! \brief A convolution's weights (O, I / groups, …) as oneDNN wants them if there are groups. */
inline memory::dims grouped_shape(memory::dims weights, memory::dim groups) {
  if (groups > 1) {
    weights[0] /= groups;
    weights.insert(weights.begin(), groups);
  }
  return weights;
}

/*! \brief The tensor that is read as the weights: in whole numbers, what stands for them. */
inline int weights_tensor(const PlanBuilder& b, const Node& node, memory::data_type src_dtype) {
  const int weights = node.inputs[1];
  return b.is_numbers(src_dtype, node.inputs[0]) ? b.numbers_of(weights) : weights;
}

/*!
 * \brief The node's inputs in the layouts of a primitive descriptor, as arguments.
 *
 * \param transform What has to be made of the weights, which are constant then; empty for nothing.
 */
template <typename PrimitiveDesc>
std::vector<std::pair<int, int>> weighted_args(PlanBuilder& b, const Node& node,
                                               const PrimitiveDesc& pd,
                                               Plan::Transform transform = {}) {
  // In whole numbers, these are read, and not what they stand for.
  const bool numbers = b.is_numbers(pd.src_desc().get_data_type(), node.inputs[0]);
  const auto tensor = [&](int id) { return numbers ? b.numbers_of(id) : id; };
  const int src = tensor(node.inputs[0]), weights = tensor(node.inputs[1]);
  std::vector<std::pair<int, int>> args = {
      {DNNL_ARG_SRC, b.require(src, pd.src_desc())},
      {DNNL_ARG_WEIGHTS, transform.make
                             ? b.transformed(weights, pd.weights_desc(), std::move(transform))
                             : b.require(weights, pd.weights_desc())}};
  if (node.inputs.size() == 3)
    args.emplace_back(DNNL_ARG_BIAS, b.require(node.inputs[2], pd.bias_desc()));
  return args;
}

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_WEIGHTS_H_
