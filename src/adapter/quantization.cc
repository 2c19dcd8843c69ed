#include <algorithm>

#include "anchors.h"

namespace dnnl_byoc {
namespace adapter {
namespace {

/*! \brief The numbers of a constant argument. */
template <typename T>
std::vector<T> numbers(const Source& s, size_t arg, const char* dtype) {
  const auto& [key, type, constant, fields, is_tuple] = s.args[arg];
  s.expect(constant != nullptr, "expected constant scales and zero points");
  s.expect(type.dtype == dtype, "expected scales in float32 and zero points in int32, got ",
           type.dtype);
  const auto* begin = static_cast<const T*>(data_of(*constant));
  return {begin, begin + byte_size(*constant) / sizeof(T)};
}

/*! \brief scales, zero_points and axis as the engine wants them: as many of each. */
json attrs_of(const Source& s) {
  auto scales = numbers<float>(s, 1, "float32");
  auto zero_points = numbers<int32_t>(s, 2, "int32");
  const size_t count = std::max(scales.size(), zero_points.size());
  const auto fill = [count](auto* values) {
    if (values->size() == 1) values->resize(count, values->front());
  };
  fill(&scales);
  fill(&zero_points);
  s.expect(scales.size() == count && zero_points.size() == count,
           "expected as many zero points as scales, got ", zero_points.size(), " and ",
           scales.size());
  const int64_t axis =
      count == 1 ? 0 : normalized_axis(s, get_int(s.attrs, "axis"), s.shape(0).size());
  return {{"scales", scales}, {"zero_points", zero_points}, {"axis", axis}};
}

}  // namespace

Anchor translate_quantize(const Source& s) {
  const std::string dtype = get_string(s.attrs, "out_dtype");
  s.expect(dtype == "uint8" || dtype == "int8", "expected uint8 or int8, got ", dtype);
  json attrs = attrs_of(s);
  attrs["dtype"] = dtype == "uint8" ? "u8" : "s8";
  return {make_node("quantize", {s.id(0)}, std::move(attrs)), ResultView(s.result_shape())};
}

Anchor translate_dequantize(const Source& s) {
  return {make_node("dequantize", {s.id(0)}, attrs_of(s)), ResultView(s.result_shape())};
}

}  // namespace adapter
}  // namespace dnnl_byoc
