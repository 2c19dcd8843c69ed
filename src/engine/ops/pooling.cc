#include <cmath>
#include <map>
#include <optional>

#include "pooling_of_numbers.h"
#include "post_ops.h"
#include "spatial.h"

namespace dnnl_byoc {
namespace {

const std::map<std::string, dnnl::algorithm> kAlgorithms = {
    {"max", dnnl::algorithm::pooling_max},
    {"avg_include_padding", dnnl::algorithm::pooling_avg_include_padding},
    {"avg_exclude_padding", dnnl::algorithm::pooling_avg_exclude_padding},
};

/*!
 * \brief An average of what numbers stand for, that a quantize alone reads, as that of the numbers.
 *
 * An average of s · (q - z) is s · (average(q) - z): an affine function of the numbers' own, which
 * is had from their exact sum before it is rounded. Zeros of the padding stand for 0 only if z is
 * 0.
 */
std::optional<NumbersAverage> average_of_numbers(const PlanBuilder& b, const Node& node,
                                                 bool counts_padding) {
  const int src = node.inputs[0], numbers = b.numbers_of(src);
  const Node* quantizer = b.quantizer_of(node);
  if (numbers < 0 || !quantizer || !node.post_ops.empty()) return std::nullopt;
  const Quantization& from = b.quantization(src);
  const Quantization to = quantization_of(*quantizer, {});
  if (!from.is_per_tensor() || b.dtype(numbers) != to.dtype ||
      (counts_padding && from.has_zero_points()))
    return std::nullopt;
  const float scale = from.scales[0] / to.scales[0];
  const float shift =
      static_cast<float>(to.zero_points[0]) - static_cast<float>(from.zero_points[0]) * scale;
  if (!std::isfinite(scale) || !std::isfinite(shift)) return std::nullopt;
  return NumbersAverage{numbers, quantizer->output, counts_padding, scale, shift};
}

/*! \brief The same as a node, for oneDNN. */
Node as_node(const Node& node, const NumbersAverage& average) {
  Node result = node;
  result.inputs = {average.src};
  result.output = average.dst;
  result.post_ops = {
      {PostOp::Kind::eltwise, dnnl::algorithm::eltwise_linear, average.scale, average.shift}};
  return result;
}

}  // namespace

void build_pooling(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 1, b, node, "one input");
  const memory::dims src_shape = b.shape(node.inputs[0]);
  auto alg = kAlgorithms.find(node.attr<std::string>("alg"));
  expect(alg != kAlgorithms.end(), b, node, "alg max, avg_include_padding or avg_exclude_padding");
  const auto kernel = node.attr<memory::dims>("kernel");
  const Window window(b, node, kernel);
  memory::dims dst_shape = window.output(b, node, kernel);
  dst_shape.insert(dst_shape.begin(), {src_shape[0], src_shape[1]});

  using Pd = dnnl::pooling_forward::primitive_desc;
  const auto make = [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
    return Pd(cpu_engine(), dnnl::prop_kind::forward_inference, alg->second, src_md,
              any_md(dst_shape, src_md.get_data_type()), window.strides, kernel, window.dilation,
              window.padding_l, window.padding_r, attr, /*allow_empty=*/true);
  };
  const auto run = [&b](const Node& pooling, const Choice<Pd>& choice) {
    const Pd& pd = choice.pd;
    emit(b, pooling, pd, choice.post_ops, pd.dst_desc(),
         {{DNNL_ARG_SRC, b.require(pooling.inputs[0], pd.src_desc())}});
  };
  if (alg->second == dnnl::algorithm::pooling_max) {
    if (build_maximum(b, node)) return;
  } else {
    const bool counts_padding = alg->second == dnnl::algorithm::pooling_avg_include_padding;
    if (const auto average = average_of_numbers(b, node, counts_padding)) {
      if (build_average(b, node, *average)) return;
      const Node numbers = as_node(node, *average);
      const auto choice =
          try_choose<Pd>(b, numbers, dst_shape, src_candidates(b, numbers, average->src), make);
      if (choice.pd && !is_reference(choice.pd)) return run(numbers, choice);
    }
  }
  run(node, choose<Pd>(b, node, dst_shape, src_candidates(b, node, node.inputs[0]), make));
}

}  // namespace dnnl_byoc
