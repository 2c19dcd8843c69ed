#include "pixels.h"

#include <cmath>
#include <optional>

#include "../isa.h"
#include "../kernels/image.h"
#include "../kernels/pixels.h"
#include "../plan.h"

namespace dnnl_byoc {
namespace {

class PixelsKernel final : public Kernel {
 public:
  PixelsKernel(pixels::Function function, const pixels::Images& images)
      : function_(function), images_(images) {}
  const char* impl() const override { return "pixels"; }
  void run(void* const* data) const override {
    function_(images_, static_cast<const float*>(data[0]), data[1]);
  }

 private:
  const pixels::Function function_;
  const pixels::Images images_;
};

std::optional<pixels::Type> type_of(memory::data_type dtype) {
  switch (dtype) {
    case memory::data_type::u8:
      return pixels::Type::u8;
    case memory::data_type::s8:
      return pixels::Type::s8;
    case memory::data_type::bf16:
      return pixels::Type::bf16;
    case memory::data_type::f32:
      return pixels::Type::f32;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::shared_ptr<const Kernel> pixels_kernel(const memory::desc& from, const memory::desc& to,
                                            const Quantization* how) {
  const memory::dims shape = from.get_dims();
  const auto type = type_of(to.get_data_type());
  const bool is_number = type == pixels::Type::u8 || type == pixels::Type::s8;
  if (channel_block() != kernels::kAvx512Vector || !type || is_number != (how != nullptr) ||
      (how && !how->is_per_tensor()) || shape.size() < 3 || shape[1] != pixels::kChannels ||
      shape[0] == 0 || !is_countable(shape) || from != plain_md(shape, memory::data_type::f32) ||
      data_layout_of(to) != DataLayout::channels_last)
    return nullptr;
  pixels::Images images = {shape[0], count(shape) / (shape[0] * pixels::kChannels), 1.f, 0.f};
  if (how) {
    images.factor = 1 / how->scales[0];
    images.point = static_cast<float>(how->zero_points[0]);
  }
  if (images.size < kernels::kAvx512Vector || !std::isfinite(images.factor)) return nullptr;
  return std::make_shared<PixelsKernel>(pixels::avx512_function(*type), images);
}

}  // namespace dnnl_byoc
