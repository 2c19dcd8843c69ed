#include "pixels.h"

#include <cmath>

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

}  // namespace

std::shared_ptr<const Kernel> pixels_kernel(const memory::desc& from, const memory::desc& to,
                                            const Quantization* how) {
  const memory::dims shape = from.get_dims();
  const memory::data_type dtype = to.get_data_type();
  if (!has_avx512_vnni() || shape.size() < 3 || shape[1] != pixels::kChannels || shape[0] == 0 ||
      !is_countable(shape) || from != plain_md(shape, memory::data_type::f32) ||
      data_layout_of(to) != DataLayout::channels_last ||
      (how ? !how->is_per_tensor() : dtype != memory::data_type::bf16))
    return nullptr;
  pixels::Images images = {shape[0], count(shape) / (shape[0] * pixels::kChannels), 1.f, 0.f};
  auto type = pixels::Type::bf16;
  if (how) {
    images.factor = 1 / how->scales[0];
    images.point = static_cast<float>(how->zero_points[0]);
    type = dtype == memory::data_type::s8 ? pixels::Type::s8 : pixels::Type::u8;
  }
  if (images.size < kernels::kAvx512Vector || !std::isfinite(images.factor)) return nullptr;
  return std::make_shared<PixelsKernel>(pixels::avx512_function(type), images);
}

}  // namespace dnnl_byoc
