#include "quantization.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>

#include "error.h"
#include "layout.h"
#include "plan.h"

namespace dnnl_byoc {
namespace {

template <typename T>
memory vector_memory(const std::vector<T>& values, memory::data_type dtype) {
  memory result(plain_md({static_cast<memory::dim>(values.size())}, dtype), cpu_engine());
  std::copy(values.begin(), values.end(), static_cast<T*>(result.get_data_handle()));
  return result;
}

template <typename T>
void dequantize(const T* numbers, const memory::dims& shape, const Quantization& quantization,
                float* result) {
  const auto axis = static_cast<std::ptrdiff_t>(quantization.axis);
  const memory::dim size = count(shape);
  const memory::dim inner = quantization.is_per_tensor()
                                ? size
                                : std::accumulate(shape.begin() + axis + 1, shape.end(),
                                                  memory::dim{1}, std::multiplies<>());
  for (memory::dim i = 0; i < size; ++i) {
    const auto channel = static_cast<size_t>(i / inner) % quantization.scales.size();
    result[i] =
        static_cast<float>(quantization.scales[channel] *
                           (static_cast<double>(numbers[i]) - quantization.zero_points[channel]));
  }
}

}  // namespace

bool Quantization::has_zero_points() const {
  return std::any_of(zero_points.begin(), zero_points.end(), [](int32_t p) { return p != 0; });
}

Quantization quantization_of(const Node& node, const memory::dims& shape) {
  Quantization result;
  const auto fail = [&](const char* expected) {
    throw InvalidArgument(text(node.kind, ": expected ", expected, " for ", shape_name(shape)));
  };
  result.scales = node.attr<std::vector<float>>("scales");
  for (const memory::dim point : node.attr<memory::dims>("zero_points"))
    result.zero_points.push_back(static_cast<int32_t>(point));
  if (result.scales.empty() || result.zero_points.size() != result.scales.size())
    fail("scales, and as many zero points,");
  for (const float scale : result.scales)
    if (!std::isfinite(scale) || scale <= 0) fail("scales > 0");
  if (!result.is_per_tensor()) {
    result.axis = node.attr<int>("axis");
    if (result.axis < 0 || result.axis >= static_cast<int>(shape.size()) ||
        shape[result.axis] != static_cast<memory::dim>(result.scales.size()))
      fail("one scale, or one for each index along the axis");
  }
  if (node.kind == "quantize") {
    result.dtype =
        node.attr<std::string>("dtype") == "u8" ? memory::data_type::u8 : memory::data_type::s8;
    if (dtype_name(result.dtype) != node.attr<std::string>("dtype")) fail("dtype u8 or s8");
  }
  return result;
}

memory dequantized(const memory& numbers, const Quantization& quantization,
                   const memory::dims& result_shape) {
  const memory::dims shape = numbers.get_desc().get_dims();
  memory result(plain_md(result_shape, memory::data_type::f32), cpu_engine());
  auto* to = static_cast<float*>(result.get_data_handle());
  const void* from = numbers.get_data_handle();
  switch (numbers.get_desc().get_data_type()) {
    case memory::data_type::u8:
      dequantize(static_cast<const uint8_t*>(from), shape, quantization, to);
      break;
    case memory::data_type::s8:
      dequantize(static_cast<const int8_t*>(from), shape, quantization, to);
      break;
    case memory::data_type::s32:
      dequantize(static_cast<const int32_t*>(from), shape, quantization, to);
      break;
    default:
      throw InvalidArgument("dequantize: expected s8, u8 or s32, got another dtype");
  }
  return result;
}

std::vector<std::pair<int, memory>> quantize_args(int arg, const Quantization& quantization,
                                                  int mask, dnnl::primitive_attr* attr) {
  std::vector<std::pair<int, memory>> args;
  attr->set_scales_mask(arg, mask);
  args.emplace_back(DNNL_ARG_ATTR_SCALES | arg,
                    vector_memory(quantization.scales, memory::data_type::f32));
  if (quantization.has_zero_points()) {
    attr->set_zero_points_mask(arg, mask);
    args.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | arg,
                      vector_memory(quantization.zero_points, memory::data_type::s32));
  }
  return args;
}

}  // namespace dnnl_byoc
