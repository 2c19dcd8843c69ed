#include <algorithm>
#include <numeric>

#include "anchors.h"

namespace dnnl_byoc {
namespace adapter {

Anchor translate_reshape(const Source& s) {
  return {make_node("reshape", {s.id(0)}, {{"shape", s.result_shape()}}),
          ResultView(s.result_shape())};
}

Anchor translate_transpose(const Source& s) {
  const size_t rank = s.shape(0).size();
  Ints axes;
  if (has_attr(s.attrs, "axes")) {
    for (int64_t axis : get_ints(s.attrs, "axes")) axes.push_back(normalized_axis(s, axis, rank));
  } else {
    for (size_t i = rank; i-- > 0;) axes.push_back(static_cast<int64_t>(i));
  }
  return {make_node("transpose", {s.id(0)}, {{"axes", axes}}), ResultView(s.result_shape())};
}

Anchor translate_strided_slice(const Source& s) {
  const Ints src = s.shape(0), size = s.result_shape();
  for (int64_t stride : get_ints(s.attrs, "strides"))
    s.expect(stride == 1, "expected strides of 1, got ", stride);
  const Ints first = get_ints(s.attrs, "begin");
  Ints begin(src.size(), 0), axes(first.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (has_attr(s.attrs, "axes")) axes = get_ints(s.attrs, "axes");
  s.expect(first.size() == axes.size() && axes.size() <= src.size(),
           "expected one begin for each axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(normalized_axis(s, axes[i], src.size()));
    begin[axis] = std::clamp<int64_t>(first[i] < 0 ? first[i] + src[axis] : first[i], 0, src[axis]);
  }
  return {make_node("slice", {s.id(0)}, {{"begin", begin}, {"size", size}}), ResultView(size)};
}

Anchor translate_concatenate(const Source& s) {
  s.expect(s.args[0].is_tuple, "expected a tuple of tensors, got another expression");
  std::vector<int> inputs;
  for (const Value& field : s.args[0].fields) inputs.push_back(s.resolve(field));
  const Ints shape = s.result_shape();
  const int64_t axis = normalized_axis(s, get_int(s.attrs, "axis"), shape.size());
  return {make_node("concat", std::move(inputs), {{"axis", axis}}), ResultView(shape)};
}

}  // namespace adapter
}  // namespace dnnl_byoc
