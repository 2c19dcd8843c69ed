#include "windows.h"

namespace dnnl_byoc {
namespace adapter {
namespace {

/*! \brief Convolution weights as (O, I / groups, …). */
int logical_weights(const Source& s, const LogicalTensor& data, int64_t outputs, int64_t groups) {
  const Ints shape = s.known_shape(1);
  s.expect(shape.size() == data.shape.size(), "expected weights of rank ", data.shape.size(),
           ", got ", shape.size());
  const Ints axes =
      axes_between(get_string(s.attrs, "kernel_layout"), logical_layout("OI", shape.size() - 2));
  Ints oriented;
  for (int64_t axis : axes) oriented.push_back(shape[static_cast<size_t>(axis)]);
  Ints expected = oriented;
  expected[0] = outputs;
  s.expect(groups > 0, "expected groups, got ", groups);
  expected[1] = data.shape[1] / groups;
  // TVM writes depthwise weights with a multiplier as (C, multiplier, …): the same order.
  const bool depthwise = groups == data.shape[1] && oriented[0] == groups;
  s.expect(oriented == expected || depthwise, "expected weights ", shape_text(expected), ", got ",
           shape_text(oriented));
  return reshaped(s.graph, transposed(s.graph, s.id(1), axes), oriented, expected);
}

int64_t channel_axis(const LogicalTensor& data) { return data.axes[1]; }

}  // namespace

Anchor translate_convolution(const Source& s) {
  const LogicalTensor data = logical_data(s, 0, "data_layout");
  const size_t dims = data.shape.size() - 2;
  const int64_t groups = get_int(s.attrs, "groups");
  const int64_t outputs = s.result_shape()[static_cast<size_t>(channel_axis(data))];
  s.expect(outputs >= 0 && data.shape[1] >= 0, "expected known numbers of channels, got data ",
           shape_text(s.shape(0)), " and a result ", shape_text(s.result_shape()));
  const auto [padding_l, padding_r] = split_padding(s, dims);
  return {make_node("convolution", {data.id, logical_weights(s, data, outputs, groups)},
                    {{"strides", get_ints(s.attrs, "strides")},
                     {"dilation", get_ints(s.attrs, "dilation")},
                     {"padding_l", padding_l},
                     {"padding_r", padding_r},
                     {"groups", groups}}),
          like_data(s, data).with_bias_along(channel_axis(data))};
}

Anchor translate_transposed_convolution(const Source& s) {
  const LogicalTensor data = logical_data(s, 0, "data_layout");
  const size_t dims = data.shape.size() - 2;
  const int64_t groups = get_int(s.attrs, "groups");
  // TVM's own kernels take (I, O / groups, …) whatever the layout says, which for some front ends
  // is "OI…" all the same.
  const Ints weights = s.known_shape(1);
  s.expect(groups > 0, "expected groups, got ", groups);
  s.expect(weights.size() == data.shape.size() && weights[0] == data.shape[1] && data.axes[1] == 1,
           "expected channels-first data and weights (I, O / groups, …), got ",
           shape_text(weights));
  Ints swap = {1, 0};
  for (size_t i = 2; i < weights.size(); ++i) swap.push_back(static_cast<int64_t>(i));
  int id = s.id(1);
  if (groups == 1) {
    id = transposed(s.graph, id, swap);
  } else {
    // (groups, I / groups, O / groups, …) → (groups, O / groups, I / groups, …) → (O, I / groups,
    // …)
    Ints split = weights, merged = weights, axes = {0, 2, 1};
    split[0] /= groups;
    split.insert(split.begin(), groups);
    for (size_t i = 3; i < split.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    merged[0] = weights[1] * groups;
    merged[1] = weights[0] / groups;
    id = transposed(s.graph, reshaped(s.graph, id, weights, split), axes);
    id = s.graph->add_node("reshape", {id}, {{"shape", merged}});
  }
  auto [padding_l, padding_r] = split_padding(s, dims);
  const Ints extra = get_ints(s.attrs, "output_padding");
  for (size_t i = 0; i < dims; ++i) padding_r[i] -= extra[i];
  return {make_node("deconvolution", {data.id, id},
                    {{"strides", get_ints(s.attrs, "strides")},
                     {"dilation", get_ints(s.attrs, "dilation")},
                     {"padding_l", padding_l},
                     {"padding_r", padding_r},
                     {"groups", groups}}),
          like_data(s, data).with_bias_along(channel_axis(data))};
}

}  // namespace adapter
}  // namespace dnnl_byoc
