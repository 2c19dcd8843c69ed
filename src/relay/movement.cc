#include <algorithm>

#include "anchors.h"

namespace dnnl_byoc {
namespace relay {

Anchor translate_reshape(const Source& s) {
  return {make_node("reshape", {s.id(0)}, {{"shape", s.result_shape()}}),
          ResultView(s.result_shape())};
}

Anchor translate_transpose(const Source& s) {
  const size_t rank = s.shape(0).size();
  Ints axes;
  if (get_object(s.attrs, "axes").defined()) {
    for (int64_t axis : get_ints(s.attrs, "axes")) axes.push_back(normalized_axis(s, axis, rank));
  } else {
    for (size_t i = rank; i-- > 0;) axes.push_back(static_cast<int64_t>(i));
  }
  return {make_node("transpose", {s.id(0)}, {{"axes", axes}}), ResultView(s.result_shape())};
}

Anchor translate_strided_slice(const Source& s) {
  const Ints src = s.shape(0), size = s.result_shape();
  s.expect(!get_object(s.attrs, "axes").defined(), "expected no axes");
  for (int64_t stride : get_ints(s.attrs, "strides"))
    s.expect(stride == 1, "expected strides of 1, got ", stride);
  Ints begin = get_ints(s.attrs, "begin");
  s.expect(begin.size() <= src.size(), "expected at most one begin for each dimension");
  begin.resize(src.size(), 0);
  for (size_t i = 0; i < begin.size(); ++i) {
    if (begin[i] < 0) begin[i] += src[i];
    begin[i] = std::clamp<int64_t>(begin[i], 0, src[i]);
  }
  return {make_node("slice", {s.id(0)}, {{"begin", begin}, {"size", size}}), ResultView(size)};
}

Anchor translate_concatenate(const Source& s) {
  s.expect(is(s.args[0], "relay.Tuple"), "expected a tuple of tensors, got ",
           s.args[0]->GetTypeKey());
  std::vector<int> inputs;
  for (const ObjectRef& field : get_array(s.args[0], "fields")) inputs.push_back(s.resolve(field));
  const Ints shape = s.result_shape();
  const int64_t axis = normalized_axis(s, get_int(s.attrs, "axis"), shape.size());
  return {make_node("concat", std::move(inputs), {{"axis", axis}}), ResultView(shape)};
}

}  // namespace relay
}  // namespace dnnl_byoc
