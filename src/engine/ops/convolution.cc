#include <algorithm>
#include <cstring>

#include "../isa.h"
#include "depthwise.h"
#include "grouped.h"
#include "normalized_source.h"
#include "pointwise.h"
#include "post_ops.h"
#include "spatial.h"
#include "tiles.h"
#include "weights.h"
#include "windows.h"
#include "winograd.h"
#include "winograd_of_numbers.h"

namespace dnnl_byoc {
namespace {

/*!
 * \brief How many groups to put together so that one has channels enough for a vector; 1 for none.
 *
 * oneDNN has fast grouped convolutions for whole vectors of channels. It leaves a ResNeXt's groups
 * of four to a matrix product each, with AVX2 ten times slower than twice the multiplications, half
 * of them with zero. That is for what build_grouped() does not do, such as lower precisions.
 */
memory::dim groups_to_merge(const memory::dims& grouped) {
  constexpr memory::dim kMost = 4;  // with more, the zeros cost what the vectors save
  const memory::dim channels = std::max<memory::dim>(std::min(grouped[1], grouped[2]), 1);
  const memory::dim count = channel_block() / channels;
  return count > 1 && count <= kMost && grouped[0] % count == 0 ? count : 1;
}

/*! \brief (G, O, I, …) → (G / count, O · count, I · count, …), zero between groups. */
memory::dims merged_shape(memory::dims grouped, memory::dim count) {
  grouped[0] /= count;
  grouped[1] *= count;
  grouped[2] *= count;
  return grouped;
}

memory merged_weights(const memory& plain, const memory::dims& grouped, memory::dim count) {
  const auto dtype = plain.get_desc().get_data_type();
  const auto bytes = static_cast<memory::dim>(memory::data_type_size(dtype));
  memory result(plain_md(merged_shape(grouped, count), dtype), cpu_engine());
  const auto* from = static_cast<const char*>(plain.get_data_handle());
  auto* to = static_cast<char*>(result.get_data_handle());
  std::memset(to, 0, result.get_desc().get_size());
  const memory::dim rows = grouped[0] * grouped[1];  // output channels
  const memory::dim row = dnnl_byoc::count(grouped) / rows * bytes;
  for (memory::dim i = 0; i < rows; ++i) {
    const memory::dim place = i / grouped[1] % count;  // of its group among those put together
    std::memcpy(to + (i * count + place) * row, from + i * row, static_cast<size_t>(row));
  }
  return result;
}

}  // namespace

void build_convolution(PlanBuilder& b, const Node& node) {
  const memory::dim groups = checked_groups(b, node);
  if (build_pointwise(b, node)) return;
  normalize_what_is_left(b, node.inputs[0]);  // only build_pointwise() does it on the way
  if (const int tile = b.winograd_tile();
      tile && (build_winograd(b, node, tile) || build_winograd_of_numbers(b, node, tile)))
    return;
  if (build_grouped(b, node) || build_depthwise(b, node) || build_tiles(b, node) ||
      build_windows(b, node))
    return;
  const int src = node.inputs[0], weights = node.inputs[1];
  const memory::dims src_shape = b.shape(src), weights_shape = b.shape(weights);
  const memory::dims kernel = spatial(weights_shape);
  const Window window(b, node, kernel);
  memory::dims dst_shape = window.output(b, node, kernel);
  dst_shape.insert(dst_shape.begin(), {src_shape[0], weights_shape[0]});

  const memory::dims grouped = grouped_shape(weights_shape, groups);
  const memory::dim merge =
      groups > 1 && b.is_constant(weights) ? groups_to_merge(grouped) : memory::dim{1};
  const auto bias = bias_md(b, node, weights_shape[0]);

  using Pd = dnnl::convolution_forward::primitive_desc;
  const auto make = [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
    const auto dtype = src_md.get_data_type(), dst_dtype = b.result_dtype(node, dtype);
    const bool any = src_md == any_md(src_shape, dtype);
    const auto dst_md =
        any ? any_md(dst_shape, dst_dtype) : with_dtype(same_layout(src_md, dst_shape), dst_dtype);
    const auto make_with = [&](const memory::dims& weights_dims) {
      return Pd(cpu_engine(), dnnl::prop_kind::forward_inference,
                dnnl::algorithm::convolution_direct, src_md,
                any_weights(b, node, weights_dims, src_md), bias, dst_md, window.strides,
                window.dilation, window.padding_l, window.padding_r, attr, /*allow_empty=*/true);
    };
    const auto is_direct = [](const Pd& pd) { return pd && !is_reference(pd) && !is_gemm(pd); };
    const Pd pd = make_with(grouped);
    if (is_direct(pd)) return pd;
    if (merge > 1)
      if (const Pd merged = make_with(merged_shape(grouped, merge)); is_direct(merged))
        return merged;
    // A layout that was not oneDNN's choice must not cost the direct implementation.
    return any ? pd : Pd();
  };
  std::vector<memory::desc> candidates;
  for (const auto dtype : b.dtypes_for(node, src)) {
    if (const auto agreed = data_md(b.layout(), src_shape, dtype)) candidates.push_back(*agreed);
    candidates.push_back(any_md(src_shape, dtype));
  }
  const auto [pd, post_ops] = choose<Pd>(b, node, dst_shape, candidates, make);
  Plan::Transform transform;
  if (groups > 1 && pd.weights_desc().get_dims() != grouped)
    transform = {text("merged ", merge), [grouped, merge](const memory& plain) {
                   return merged_weights(plain, grouped, merge);
                 }};
  emit(b, node, pd, post_ops, pd.dst_desc(), weighted_args(b, node, pd, std::move(transform)));
}

}  // namespace dnnl_byoc
