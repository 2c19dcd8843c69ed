#include "windows.h"

namespace dnnl_byoc {
namespace adapter {

std::string logical_layout(const char* channels, size_t spatial_dims) {
  static const std::string kSpatial = "DHW";
  return channels + kSpatial.substr(kSpatial.size() - spatial_dims);
}

LogicalTensor logical_data(const Source& s, size_t arg, const char* attr) {
  const Ints shape = s.shape(arg);
  s.expect(shape.size() >= 3 && shape.size() <= 5, "expected data of rank 3 to 5, got ",
           shape.size());
  const std::string layout = get_string(s.attrs, attr);
  const std::string out_layout =
      has_attr(s.attrs, "out_layout") ? get_string(s.attrs, "out_layout") : "";
  s.expect(out_layout.empty() || out_layout == layout, "expected out_layout ", layout, ", got ",
           out_layout);
  LogicalTensor tensor{0, {}, axes_between(layout, logical_layout("NC", shape.size() - 2))};
  for (int64_t axis : tensor.axes) tensor.shape.push_back(shape[static_cast<size_t>(axis)]);
  tensor.id = transposed(s.graph, s.id(arg), tensor.axes);
  return tensor;
}

std::pair<Ints, Ints> split_padding(const Source& s, size_t dims) {
  Ints padding = get_ints(s.attrs, "padding");
  if (padding.size() == 1) padding.resize(dims, padding[0]);
  if (padding.size() == dims) padding.insert(padding.end(), padding.begin(), padding.end());
  s.expect(padding.size() == 2 * dims, "expected 1, ", dims, " or ", 2 * dims,
           " padding sizes, got ", padding.size());
  const auto middle = padding.begin() + static_cast<std::ptrdiff_t>(dims);
  return {Ints(padding.begin(), middle), Ints(middle, padding.end())};
}

Ints result_spatial(const Source& s, const LogicalTensor& data) {
  const Ints shape = s.result_shape();
  Ints sizes;
  for (size_t i = 2; i < shape.size(); ++i)
    sizes.push_back(shape[static_cast<size_t>(data.axes[i])]);
  return sizes;
}

ResultView like_data(const Source& s, const LogicalTensor& data) {
  return ResultView::permuted(s.result_shape(), data.axes);
}

}  // namespace adapter
}  // namespace dnnl_byoc
