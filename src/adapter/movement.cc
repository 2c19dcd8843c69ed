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
    // 0 keeps a dimension and a number replaces it; -2 keeps all that are left, -3 merges two, -4
    // divides one into the two that follow.
    size_t i = 0;
    int64_t axis = 0;
    for (size_t code = 0; code < codes.size(); ++code) {
      if (codes[code] == -2) {
        for (; i < result.size(); ++i) axes[i] = axis++;
        break;
      }
      if (codes[code] == -1 && result[i] == kUnknown) break;
      if (codes[code] == 0) axes[i] = axis;
      axis += codes[code] == -3 ? 2 : 1;
      i += codes[code] == -4 ? 2 : 1;
      code += codes[code] == -4 ? 2 : 0;
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

Anchor translate_reshape_like(const Source& s) {
  const Ints src = s.shape(0), like = s.shape(1), result = s.result_shape();
  const auto place = [&](const char* name, const Ints& shape) {
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t axis = has_attr(s.attrs, name) ? get_int(s.attrs, name) : rank;
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  // What replaces [lhs_begin, lhs_end) of the data is [rhs_begin, rhs_end) of the other tensor.
  const int64_t lhs_begin = place("lhs_begin", src), lhs_end = place("lhs_end", src),
                rhs_begin = place("rhs_begin", like), rhs_end = place("rhs_end", like);
  auto sizes = json::array();
  for (int64_t axis = 0; axis < lhs_begin; ++axis) sizes.push_back({s.id(0), axis});
  for (int64_t axis = rhs_begin; axis < rhs_end; ++axis) sizes.push_back({s.id(1), axis});
  for (int64_t axis = lhs_end; axis < static_cast<int64_t>(src.size()); ++axis)
    sizes.push_back({s.id(0), axis});
  for (size_t i = 0; i < result.size(); ++i)
    if (result[i] != kUnknown) sizes.at(i) = result[i];
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

Anchor translate_take(const Source& s) {
  const std::string mode = get_string(s.attrs, "mode");
  s.expect(mode != "wrap", "expected indices that are clipped, got mode wrap");
  s.expect(get_int(s.attrs, "batch_dims") == 0, "expected no batch dimensions");
  s.expect(has_attr(s.attrs, "axis"), "expected an axis");
  s.expect(s.args[1].type.dtype == "int32", "expected indices in int32, got ",
           s.args[1].type.dtype);
  s.expect(!s.shape(1).empty(), "expected indices of rank >= 1, got a scalar");
  const int64_t axis = normalized_axis(s, get_int(s.attrs, "axis"), s.shape(0).size());
  return {make_node("gather", {s.id(0), s.id(1)}, {{"axis", axis}}), ResultView(s.result_shape())};
}

}  // namespace adapter
}  // namespace dnnl_byoc
