#include "post_ops.h"

namespace dnnl_byoc {
namespace {

/*! \brief A normalization that computes its statistics itself: src, scale (C), shift (C). */
template <typename Forward>
void build_normalization(PlanBuilder& b, const Node& node, const memory::dims& channels) {
  const int src = node.inputs[0];
  expect(b.shape(node.inputs[1]) == channels && b.shape(node.inputs[2]) == channels, b, node,
         "scale and shift (C)");
  const auto epsilon = node.attr<float>("epsilon");

  using dnnl::normalization_flags;
  using Pd = typename Forward::primitive_desc;
  const auto [pd, post_ops] = choose<Pd>(
      b, node, b.shape(src), src_candidates(b, node, src),
      [&](const memory::desc& src_md, const dnnl::primitive_attr& attr) {
        return Pd(cpu_engine(), dnnl::prop_kind::forward_inference, src_md, src_md, epsilon,
                  normalization_flags::use_scale | normalization_flags::use_shift, attr,
                  /*allow_empty=*/true);
      });
  const auto per_channel = plain_md(channels, memory::data_type::f32);
  const int value = b.require(src, pd.src_desc());
  emit(b, node, pd, post_ops, pd.dst_desc(),
       {{DNNL_ARG_SRC, value},
        {DNNL_ARG_SCALE, b.require(node.inputs[1], per_channel)},
        {DNNL_ARG_SHIFT, b.require(node.inputs[2], per_channel)}});
}

}  // namespace

void build_layer_normalization(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 3 && b.shape(node.inputs[0]).size() >= 2, b, node,
         "src (…, C) of rank >= 2, scale, shift");
  build_normalization<dnnl::layer_normalization_forward>(b, node, {b.shape(node.inputs[0]).back()});
}

void build_instance_normalization(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 3 && b.shape(node.inputs[0]).size() >= 3 &&
             b.shape(node.inputs[0])[0] == 1,
         b, node, "src (1, C, …), scale, shift");
  // Over one instance, a batch's statistics are the instance's.
  build_normalization<dnnl::batch_normalization_forward>(b, node, {b.shape(node.inputs[0])[1]});
}

}  // namespace dnnl_byoc
