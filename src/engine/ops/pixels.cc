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
                                            const Quantization& how) {
  using Type = memory::data_type;
  const memory::dims shape = from.get_dims();
  const float factor = 1 / how.scales[0];
  if (!has_avx512_vnni() || shape.size() < 3 || shape[1] != pixels::kChannels ||
      !is_countable(shape) || from != plain_md(shape, Type::f32) ||
      data_layout_of(to) != DataLayout::channels_last || !how.is_per_tensor() ||
      !std::isfinite(factor))
    return nullptr;
  const memory::dim size = shape[0] == 0 ? 0 : count(shape) / (shape[0] * pixels::kChannels);
  if (size < kernels::kAvx512Vector) return nullptr;
  const pixels::Images images = {shape[0], size, factor, static_cast<float>(how.zero_points[0])};
  return std::make_shared<PixelsKernel>(pixels::avx512_function(how.dtype == Type::s8), images);
}

}  // namespace dnnl_byoc
