/*!
 * \file average_pooling.h
 * \brief Average pooling, for the files that are compiled for one instruction set.
 *
 * Isa has V, and what bytes.h says.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_AVERAGE_POOLING_H_
#define DNNL_BYOC_ENGINE_KERNELS_AVERAGE_POOLING_H_

#include "average.h"
#include "bytes.h"

namespace dnnl_byoc {
namespace average {
namespace {

using kernels::clip;
using kernels::Extent;
using kernels::Numbers;

/*! \brief The pixels of a window that lie in the image. */
struct Pixels {
  int64_t offsets[kMostPixels];
  int count = 0;

  Pixels(const kernels::Image& image, const Extent& inside) {
    for (int i = inside.first_row; i < inside.last_row; ++i)
      for (int j = inside.first_column; j < inside.last_column; ++j)
        offsets[count++] = i * image.row_stride + j * image.column_stride;
  }
};

template <class Isa, class Byte>
struct Window {
  using N = Numbers<Isa, Byte>;
  static constexpr int V = Isa::V;

  /*! \brief The averages of all channels. \param window Its first pixel, in the image or not. */
  static void pool(const Pixels& pixels, int64_t channels, float factor, float shift,
                   const Byte* window, Byte* dst) {
    constexpr int kVectors = 4;
    int64_t channel = 0;
    for (; channel + kVectors * V <= channels; channel += kVectors * V)
      pool<kVectors>(pixels, factor, shift, window + channel, dst + channel);
    for (; channel < channels; channel += V) {
      // The last vector may have some channels in common with the one before.
      const int64_t start = channel + V > channels ? channels - V : channel;
      pool<1>(pixels, factor, shift, window + start, dst + start);
    }
  }

 private:
  template <int kVectors>
  static void pool(const Pixels& pixels, float factor, float shift, const Byte* window, Byte* dst) {
    typename N::Shorts sums[kVectors]{};
    for (int i = 0; i < pixels.count; ++i)
      for (int k = 0; k < kVectors; ++k) sums[k] += N::load(window + pixels.offsets[i] + k * V);
    for (int k = 0; k < kVectors; ++k) N::store(dst + k * V, N::floats(sums[k]) * factor + shift);
  }
};

template <class Isa, class Byte>
void pool(const Pooling& p, const void* from, void* to) {
  const auto* src = static_cast<const Byte*>(from);
  auto* dst = static_cast<Byte*>(to);
  const auto height = static_cast<int>(p.rows.kernel), width = static_cast<int>(p.columns.kernel);
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t image = 0; image < p.batch; ++image)
    for (int64_t row = 0; row < p.dst.height; ++row) {
      Extent inside;
      const int64_t y = row * p.rows.stride - p.rows.padding;
      clip(y, p.src.height, height, &inside.first_row, &inside.last_row);
      const Byte* pixels = src + image * p.src.batch_stride + y * p.src.row_stride;
      Byte* results = dst + image * p.dst.batch_stride + row * p.dst.row_stride;
      for (int64_t column = 0; column < p.dst.width; ++column) {
        const int64_t x = column * p.columns.stride - p.columns.padding;
        clip(x, p.src.width, width, &inside.first_column, &inside.last_column);
        const Pixels window(p.src, inside);
        const int counted = p.counts_padding ? height * width : window.count;
        Window<Isa, Byte>::pool(window, p.channels, p.scale / static_cast<float>(counted), p.shift,
                                pixels + x * p.src.column_stride,
                                results + column * p.dst.column_stride);
      }
    }
}

template <class Isa>
Function function_of(bool is_signed) {
  return is_signed ? pool<Isa, int8_t> : pool<Isa, uint8_t>;
}

}  // namespace
}  // namespace average
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_AVERAGE_POOLING_H_
