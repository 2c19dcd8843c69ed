/*!
 * \file quantize_pixels.h
 * \brief Planes to pixels, for the files that are compiled for one instruction set.
 *
 * Isa has V, what bytes.h says, and store_three_lowest(), which stores three bytes of each of V
 * numbers of 32 bits.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_QUANTIZE_PIXELS_H_
#define DNNL_BYOC_ENGINE_KERNELS_QUANTIZE_PIXELS_H_

#include "bytes.h"
#include "pixels.h"

namespace dnnl_byoc {
namespace pixels {
namespace {

template <class Isa, class Byte>
void quantize(const Images& images, const float* src, void* dst) {
  using N = kernels::Numbers<Isa, Byte>;
  constexpr int64_t V = Isa::V, kTogether = 64 * V;  // pixels, for a thread
  const int64_t parts = (images.size + kTogether - 1) / kTogether;
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t image = 0; image < images.batch; ++image)
    for (int64_t part = 0; part < parts; ++part) {
      const float* planes = src + image * kChannels * images.size;
      Byte* to = static_cast<Byte*>(dst) + image * kChannels * images.size;
      const int64_t end =
          (part + 1) * kTogether < images.size ? (part + 1) * kTogether : images.size;
      for (int64_t i = part * kTogether; i < end; i += V) {
        // The last vector may have some pixels in common with the one before.
        const int64_t first = i + V > images.size ? images.size - V : i;
        typename N::Bits pixels{};
        for (int channel = 0; channel < kChannels; ++channel) {
          const auto x = kernels::VectorOf<Isa::V>::load(planes + channel * images.size + first);
          pixels |= N::bits(x * images.factor + images.point) << (8 * channel);
        }
        Isa::store_three_lowest(to + kChannels * first, (typename Isa::Ints)pixels);
      }
    }
}

template <class Isa>
Function quantize_function(bool is_signed) {
  return is_signed ? quantize<Isa, int8_t> : quantize<Isa, uint8_t>;
}

}  // namespace
}  // namespace pixels
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_QUANTIZE_PIXELS_H_
