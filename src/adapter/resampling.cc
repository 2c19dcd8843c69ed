#include <algorithm>

#include "windows.h"

namespace dnnl_byoc {
namespace adapter {
namespace {

/*! \brief Data and sizes in logical order; `layout` is an attribute of the call. */
Anchor resampling(const Source& s, const char* alg) {
  const LogicalTensor data = logical_data(s, 0, "layout");
  const Ints size = result_spatial(s, data);
  s.expect(is_known(size), "expected a known size, got ", shape_text(s.result_shape()));
  return {make_node("resampling", {data.id}, {{"alg", alg}, {"size", size}}), like_data(s, data)};
}

/*! \brief Nearest neighbours are the same for all rules of rounding where a pixel is repeated. */
void expect_repeated_pixels(const Source& s) {
  const Ints src = s.shape(0), dst = s.result_shape();
  for (size_t i = 0; i < src.size(); ++i)
    s.expect(src[i] == dst[i] || (src[i] > 0 && dst[i] % src[i] == 0),
             "expected an enlargement by whole numbers, got ", shape_text(src), " to ",
             shape_text(dst));
}

Anchor nearest(const Source& s, const std::string& coordinates, const std::string& rounding) {
  // Output pixel q · scale + r reads input pixel q, for 0 <= r < scale: what oneDNN does.
  const bool floors = rounding.empty() || rounding == "floor";
  const bool rounds = rounding.rfind("round", 0) == 0;
  s.expect((coordinates == "asymmetric" && floors) || (coordinates == "half_pixel" && rounds),
           "expected coordinates asymmetric, rounded down, or half_pixel, rounded, got ",
           coordinates, " with rounding_method \"", rounding, "\"");
  expect_repeated_pixels(s);
  return resampling(s, "nearest");
}

}  // namespace

Anchor translate_resize(const Source& s) {
  const std::string method = get_string(s.attrs, "method");
  const std::string coordinates = get_string(s.attrs, "coordinate_transformation_mode");
  if (method == "nearest_neighbor") {
    const bool has_rounding = has_attr(s.attrs, "rounding_method");
    return nearest(s, coordinates, has_rounding ? get_string(s.attrs, "rounding_method") : "");
  }
  s.expect(method == "linear" || method == "trilinear",
           "expected method nearest_neighbor or linear, got ", method);
  s.expect(coordinates == "half_pixel", "expected coordinates half_pixel, got ", coordinates);
  return resampling(s, "linear");
}

Anchor translate_upsampling(const Source& s) {
  const std::string method = get_string(s.attrs, "method");
  // Relay's linear upsampling has its corners or its left edges aligned, oneDNN's has neither.
  s.expect(method == "nearest_neighbor", "expected method nearest_neighbor, got ", method);
  s.expect(!get_int(s.attrs, "align_corners"), "expected align_corners off");
  return nearest(s, "asymmetric", "");
}

Anchor translate_repeat(const Source& s) {
  const Ints shape = s.shape(0);
  s.expect(shape.size() >= 3 && shape.size() <= 5, "expected data of rank 3 to 5, got ",
           shape.size());
  const int64_t axis = normalized_axis(s, get_int(s.attrs, "axis"), shape.size());
  s.expect(axis >= 2, "expected a spatial axis, got ", axis);
  const Ints result = s.result_shape();
  s.expect(is_known({result.begin() + 2, result.end()}), "expected a known size, got ",
           shape_text(result));
  return {make_node("resampling", {s.id(0)},
                    {{"alg", "nearest"}, {"size", Ints(result.begin() + 2, result.end())}}),
          ResultView(result)};
}

}  // namespace adapter
}  // namespace dnnl_byoc
