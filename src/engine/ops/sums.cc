#include "sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dnnl_byoc {

using Type = memory::data_type;

std::optional<Range> range_of(const std::vector<PostOp>& post_ops) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (post_ops.empty()) return Range{-kInfinity, kInfinity};
  const PostOp& op = post_ops[0];
  if (post_ops.size() > 1) return std::nullopt;
  if (op.alg == dnnl::algorithm::eltwise_clip && op.alpha <= op.beta)
    return Range{op.alpha, op.beta};
  if (op.alg != dnnl::algorithm::eltwise_relu || op.alpha != 0) return std::nullopt;
  return Range{0.f, kInfinity};
}

Range in_numbers(const Range& range, const Quantization& how) {
  const float least = how.dtype == Type::s8 ? -128.f : 0.f;
  const auto number = [&](float x) {
    const float y = std::nearbyint(x / how.scales[0] + static_cast<float>(how.zero_points[0]));
    return std::clamp(y, least, least + 255);
  };
  return {number(range.least), number(range.most)};
}

std::optional<uint8_t> zero_of(const Quantization& src, memory::data_type dtype) {
  const int64_t point = int64_t{src.zero_points[0]} + (dtype == Type::s8 ? 128 : 0);
  if (point < 0 || point > 255) return std::nullopt;
  return static_cast<uint8_t>(point);
}

std::vector<float> factors_of(const Quantization& src, const Quantization& weights, float unit,
                              memory::dim channels) {
  std::vector<float> factors;
  for (memory::dim i = 0; i < channels; ++i) {
    factors.push_back(src.scales[0] * weights.scales[weights.is_per_tensor() ? 0 : i] / unit);
    if (!std::isfinite(factors.back())) return {};
  }
  return factors;
}

}  // namespace dnnl_byoc
