/*!
 * \file pooling_of_bytes.h
 * \brief Pooling, for the files that are compiled for one instruction set.
 *
 * Isa has V, and what bytes.h says.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_POOLING_OF_BYTES_H_
#define DNNL_BYOC_ENGINE_KERNELS_POOLING_OF_BYTES_H_

#include "bytes.h"
#include "pooling.h"

namespace dnnl_byoc {
namespace pooling {
namespace {

using kernels::clip;
using kernels::Extent;
using kernels::Numbers;

/*! \brief The pixels of a window that lie in the image. */
class Pixels {
 public:
  int64_t offsets[kMostPixels];
  int count = 0;

  /*! \brief Takes another window of the same rows; most have the same columns, too. */
  void set(const kernels::Image& image, const Extent& inside) {
    if (inside.first_column == first_ && inside.last_column == last_) return;
    first_ = inside.first_column;
    last_ = inside.last_column;
    count = 0;
    for (int i = inside.first_row; i < inside.last_row; ++i)
      for (int j = first_; j < last_; ++j)
        offsets[count++] = i * image.row_stride + j * image.column_stride;
  }

 private:
  int first_ = 0, last_ = 0;
};

/*! \brief Calls f(channel) for every vector; the last may have some in common with the one before.
 */
template <class F>
void for_vectors(int64_t first, int64_t channels, int64_t width, F f) {
  for (int64_t i = first; i < channels; i += width) f(i + width > channels ? channels - width : i);
}

template <class Isa, class T>
struct Average {
  using Byte = T;
  using N = Numbers<Isa, Byte>;
  static constexpr int V = Isa::V;

  /*! \brief Of all channels. \param window Its first pixel, in the image or not. */
  static void pool(const Pooling& p, const Pixels& pixels, const Byte* window, Byte* dst) {
    constexpr int kVectors = 4;
    const int64_t area = p.rows.kernel * p.columns.kernel;
    const float factor = p.scale / static_cast<float>(p.counts_padding ? area : pixels.count);
    const int64_t whole = p.channels / (kVectors * V) * (kVectors * V);
    for (int64_t channel = 0; channel < whole; channel += kVectors * V)
      pool<kVectors>(pixels, factor, p.shift, window + channel, dst + channel);
    for_vectors(whole, p.channels, V, [&](int64_t channel) {
      pool<1>(pixels, factor, p.shift, window + channel, dst + channel);
    });
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

template <class Isa, class T>
struct Maximum {
  using Byte = T;

  static void pool(const Pooling& p, const Pixels& pixels, const Byte* window, Byte* dst) {
    constexpr int kWhole = 4 * Isa::V;  // bytes
    const auto pool_all = [&](auto width) {
      for_vectors(0, p.channels, width.value, [&](int64_t channel) {
        pool_vector<width.value>(pixels, window + channel, dst + channel);
      });
    };
    if (p.channels < kWhole)
      pool_all(Width<Isa::V>{});
    else
      pool_all(Width<kWhole>{});
  }

 private:
  template <int n>
  struct Width {
    static constexpr int value = n;
  };

  template <int kWidth>
  static void pool_vector(const Pixels& pixels, const Byte* window, Byte* dst) {
    typedef Byte Bytes __attribute__((vector_size(kWidth), aligned(1), may_alias));
    const auto at = [&](int i) {
      return *reinterpret_cast<const Bytes*>(window + pixels.offsets[i]);
    };
    Bytes most = at(0);
    for (int i = 1; i < pixels.count; ++i) {
      const Bytes x = at(i);
      most = x > most ? x : most;
    }
    *reinterpret_cast<Bytes*>(dst) = most;
  }
};

template <class Kind>
void pool(const Pooling& p, const void* from, void* to) {
  using Byte = typename Kind::Byte;
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
      Pixels window;
      Byte* results = dst + image * p.dst.batch_stride + row * p.dst.row_stride;
      for (int64_t column = 0; column < p.dst.width; ++column) {
        const int64_t x = column * p.columns.stride - p.columns.padding;
        clip(x, p.src.width, width, &inside.first_column, &inside.last_column);
        window.set(p.src, inside);
        Kind::pool(p, window, pixels + x * p.src.column_stride,
                   results + column * p.dst.column_stride);
      }
    }
}

template <class Isa>
Function function_of(bool is_maximum, bool is_signed) {
  if (is_maximum) return is_signed ? pool<Maximum<Isa, int8_t>> : pool<Maximum<Isa, uint8_t>>;
  return is_signed ? pool<Average<Isa, int8_t>> : pool<Average<Isa, uint8_t>>;
}

}  // namespace
}  // namespace pooling
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_POOLING_OF_BYTES_H_
