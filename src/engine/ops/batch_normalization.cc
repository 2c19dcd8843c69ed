#include "normalization_to_numbers.h"
#include "normalized_source.h"
#include "post_ops.h"

namespace dnnl_byoc {

void build_batch_normalization(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 5, b, node, "src, scale, shift, mean, variance");
  const int src = node.inputs[0];
  const memory::dims src_shape = b.shape(src);
  expect(src_shape.size() >= 2, b, node, "src (N, C, …)");
  for (size_t i = 1; i < 5; ++i)
    expect(b.shape(node.inputs[i]) == memory::dims{src_shape[1]}, b, node,
           "scale, shift, mean and variance (C)");
  if (build_normalization_to_numbers(b, node) || build_normalization_of_floats(b, node)) return;
  const auto epsilon = node.attr<float>("epsilon");

  using dnnl::normalization_flags;
  using Pd = dnnl::batch_normalization_forward::primitive_desc;
  const auto [pd, post_ops] = choose<Pd>(
      b, node, src_shape, src_candidates(b, node, src),
      [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
        return Pd(cpu_engine(), dnnl::prop_kind::forward_inference, src_md, src_md, epsilon,
                  normalization_flags::use_global_stats | normalization_flags::use_scale |
                      normalization_flags::use_shift,
                  attr, /*allow_empty=*/true);
      });

  const auto statistics = plain_md({src_shape[1]}, memory::data_type::f32);
  const int value = b.require(src, pd.src_desc());
  emit(b, node, pd, post_ops, pd.dst_desc(),
       {{DNNL_ARG_SRC, value},
        {DNNL_ARG_SCALE, b.require(node.inputs[1], statistics)},
        {DNNL_ARG_SHIFT, b.require(node.inputs[2], statistics)},
        {DNNL_ARG_MEAN, b.require(node.inputs[3], statistics)},
        {DNNL_ARG_VARIANCE, b.require(node.inputs[4], statistics)}},
       b.may_overwrite(src) ? value : -1);
}

}  // namespace dnnl_byoc
