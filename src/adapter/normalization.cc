#include "anchors.h"

namespace dnnl_byoc {
namespace adapter {
namespace {

void expect_scale_and_shift(const Source& s) {
  // A switched-off gamma or beta is an argument all the same, but has no effect.
  s.expect(get_int(s.attrs, "center") && get_int(s.attrs, "scale"),
           "expected center and scale to be applied");
}

void expect_axis(const Source& s, int64_t expected) {
  const int64_t axis = normalized_axis(s, get_int(s.attrs, "axis"), s.shape(0).size());
  s.expect(axis == expected, "expected axis ", expected, ", got ", axis);
}

Anchor softmax(const Source& s, int log) {
  const int64_t axis = normalized_axis(s, get_int(s.attrs, "axis"), s.shape(0).size());
  return {make_node("softmax", {s.id(0)}, {{"axis", axis}, {"log", log}}),
          ResultView(s.result_shape())};
}

}  // namespace

Anchor translate_batch_norm(const Source& s) {
  expect_scale_and_shift(s);
  expect_axis(s, 1);
  return {make_node("batch_normalization", {s.id(0), s.id(1), s.id(2), s.id(3), s.id(4)},
                    {{"epsilon", get_float(s.attrs, "epsilon")}}),
          ResultView(s.result_shape())};
}

Anchor translate_layer_norm(const Source& s) {
  expect_scale_and_shift(s);
  expect_axis(s, static_cast<int64_t>(s.shape(0).size()) - 1);
  return {make_node("layer_normalization", {s.id(0), s.id(1), s.id(2)},
                    {{"epsilon", get_float(s.attrs, "epsilon")}}),
          ResultView(s.result_shape())};
}

Anchor translate_instance_norm(const Source& s) {
  expect_scale_and_shift(s);
  expect_axis(s, 1);
  s.expect(s.shape(0)[0] == 1, "expected a batch of 1, got ", s.shape(0)[0]);
  return {make_node("instance_normalization", {s.id(0), s.id(1), s.id(2)},
                    {{"epsilon", get_float(s.attrs, "epsilon")}}),
          ResultView(s.result_shape())};
}

Anchor translate_lrn(const Source& s) {
  expect_axis(s, 1);
  // TVM: x / (bias + alpha / size · Σ x²)^beta
  return {make_node("lrn", {s.id(0)},
                    {{"size", get_int(s.attrs, "size")},
                     {"alpha", get_float(s.attrs, "alpha")},
                     {"beta", get_float(s.attrs, "beta")},
                     {"k", get_float(s.attrs, "bias")}}),
          ResultView(s.result_shape())};
}

Anchor translate_softmax(const Source& s) { return softmax(s, 0); }
Anchor translate_log_softmax(const Source& s) { return softmax(s, 1); }

Anchor translate_reduction(const Source& s) {
  const Ints src = s.shape(0);
  Ints axes, kept = src, left;
  std::vector<bool> named(src.size(), !has_attr(s.attrs, "axis"));
  if (has_attr(s.attrs, "axis"))
    for (int64_t axis : get_ints(s.attrs, "axis"))
      named[static_cast<size_t>(normalized_axis(s, axis, src.size()))] = true;
  const bool exclude = get_int(s.attrs, "exclude");
  for (size_t i = 0; i < src.size(); ++i) {
    if (named[i] == exclude) {
      left.push_back(static_cast<int64_t>(i));
      continue;
    }
    axes.push_back(static_cast<int64_t>(i));
    kept[i] = 1;
  }
  const Ints result = s.result_shape();
  // Over one element, each of them is that element.
  if (kept == src && is_known(src))
    return {make_node("reshape", {s.id(0)}, {{"shape", result}}), ResultView(result)};
  auto node = make_node("reduction", {s.id(0)}, {{"alg", s.op}, {"axes", axes}});
  if (result == kept) return {std::move(node), ResultView(result)};
  return {std::move(node), ResultView::of_shape(result, kept, sizes_of(result, s.id(0), left))};
}

}  // namespace adapter
}  // namespace dnnl_byoc
