#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "anchors.h"

namespace dnnl_byoc {
namespace adapter {

namespace {

/*! \brief For each dimension of a reshape's result the axis of its data that it is, or -1. */
Ints axes_of_reshape(const Source& s) {
  const Ints result = s.result_shape();
  const auto rank = static_cast<int64_t>(s.shape(0).size());
  if (has_attr(s.attrs, "axes")) return get_ints(s.attrs, "axes");  // of Relax, which knows them
  Ints axes(result.size(), -1);
  if (s.op == "reshape") {
    const Ints codes = get_ints(s.attrs, "newshape");
    // 0 keeps a dimension and a number replaces it; -2 keeps all that are left.
    for (size_t i = 0; i < codes.size() && codes[i] >= -2; ++i) {
      if (codes[i] == 0) axes[i] = static_cast<int64_t>(i);
      if (codes[i] == -1 && result[i] == kUnknown) break;
      if (codes[i] != -2) continue;
      for (size_t j = i; j < result.size(); ++j) axes[j] = static_cast<int64_t>(j);
      break;
    }
  } else if (s.op == "expand_dims") {
    const int64_t begin = normalized_axis(s, get_int(s.attrs, "axis"), result.size());
    const int64_t end = begin + get_int(s.attrs, "num_newaxis");
    int64_t axis = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(result.size()); ++i)
      if (i < begin || i >= end) axes[static_cast<size_t>(i)] = axis++;
  } else if (s.op == "nn.batch_flatten") {
    axes[0] = 0;
  } else if (s.op == "squeeze" && has_attr(s.attrs, "axis")) {
    std::set<int64_t> gone;
    for (int64_t axis : get_ints(s.attrs, "axis"))
      gone.insert(normalized_axis(s, axis, static_cast<size_t>(rank)));
    size_t i = 0;
    for (int64_t axis = 0; axis < rank; ++axis)
      if (!gone.count(axis)) axes.at(i++) = axis;
  }
  return axes;
}

}  // namespace

Anchor translate_reshape(const Source& s) {
  const Ints result = s.result_shape();
  if (count_unknown(result) < 2)  // the engine's -1, too, is what is left
    return {make_node("reshape", {s.id(0)}, {{"shape", result}}), ResultView(result)};
  const Ints axes = axes_of_reshape(s);
  auto sizes = json(result);
  bool is_left = false;
  for (size_t i = 0; i < result.size(); ++i) {
    if (result[i] != kUnknown) continue;
    if (axes[i] >= 0) {
      sizes[i] = {s.id(0), axes[i]};
      continue;
    }
    s.expect(!is_left, "expected at most one unknown size that is not one of the data's, got ",
             shape_text(s.shape(0)), " to ", shape_text(result));
    is_left = true;
  }
  return {make_node("reshape", {s.id(0)}, {{"shape", sizes}}), ResultView(result)};
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

/*! \brief Whether a slice ends behind all that a tensor can have along its axis number `i`. */
static bool takes_all(const Source& s, size_t i) {
  const Ints end = get_ints(s.attrs, "end");
  const bool to_the_end = get_string(s.attrs, "slice_mode") == "end";
  return i >= end.size() ||
         (to_the_end ? end[i] >= std::numeric_limits<int32_t>::max() : end[i] == -1);
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
  auto sizes = json(size);
  for (size_t i = 0; i < src.size(); ++i)
    if (src[i] == kUnknown) sizes[i] = {s.id(0), i};
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(normalized_axis(s, axes[i], src.size()));
    if (src[axis] == kUnknown) {
      // An end cannot be told from one that is beyond the data.
      s.expect(first[i] == 0 && takes_all(s, i), "expected to cut along known sizes, got ",
               shape_text(src));
      continue;
    }
    begin[axis] = std::clamp<int64_t>(first[i] < 0 ? first[i] + src[axis] : first[i], 0, src[axis]);
  }
  return {make_node("slice", {s.id(0)}, {{"begin", begin}, {"size", sizes}}), ResultView(size)};
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
