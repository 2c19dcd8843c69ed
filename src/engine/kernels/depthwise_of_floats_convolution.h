/*!
 * \file depthwise_of_floats_convolution.h
 * \brief The convolution, for the files that are compiled for one instruction set; see vectors.h.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_DEPTHWISE_OF_FLOATS_CONVOLUTION_H_
#define DNNL_BYOC_ENGINE_KERNELS_DEPTHWISE_OF_FLOATS_CONVOLUTION_H_

#include "chunks.h"
#include "depthwise_of_floats.h"
#include "shares.h"
#include "vectors.h"

namespace dnnl_byoc {
namespace depthwise_of_floats {
namespace {

/*! \brief Rows of dst that lie one below the other, of one vector of channels. */
template <int V, int kStride, int kRows>
class Band {
 public:
  static constexpr int kSrcRows = (kRows - 1) * kStride + kKernel;

  /*! \param src, weights, bias, dst The first channel; of the image's first pixel, in dst its row.
   */
  Band(const Convolution& c, int64_t row, const float* src, const float* weights, const float* bias,
       float* dst)
      : c_(c), bias_(Vectors::load(bias)), dst_(dst) {
    for (int64_t i = 0; i < kKernel * kKernel; ++i)
      weights_[i] = Vectors::load(weights + i * c.channel_vectors * V);
    for (int64_t i = 0; i < kSrcRows; ++i) {
      const int64_t y = row * kStride - c.rows.padding + i;
      is_whole_ &= is_inside_[i] = y >= 0 && y < c.src.height;
      rows_[i] = src + y * c.src.row_stride;
    }
  }

  /*! \brief Columns of dst from first to last - 1. */
  void convolve(int64_t first, int64_t last) const {
    is_whole_ ? convolve<true>(first, last) : convolve<false>(first, last);
  }

 private:
  using Vectors = kernels::VectorOf<V>;
  using Vector = typename Vectors::Type;

  /*! \brief Of each row, the sums for a pixel. */
  struct Sums {
    Vector of[kRows];
  };

  Sums start() const {
    Sums sums;
    for (int r = 0; r < kRows; ++r) sums.of[r] = bias_;
    return sums;
  }

  /*! \brief Adds the products of a column of src with the given ones of the kernel. */
  template <bool kWhole, class... Added>
  void add(int64_t column, Added... added) const {
    if (column < 0 || column >= c_.src.width) return;
    const int64_t offset = column * c_.src.column_stride;
#pragma GCC unroll 5
    for (int i = 0; i < kSrcRows; ++i) {
      if (!kWhole && !is_inside_[i]) continue;
      const Vector x = Vectors::load(rows_[i] + offset);
      (add_row(i, x, added), ...);
    }
  }

  /*! \brief A column of the kernel, and the sums to which it adds. */
  struct Column {
    int column;
    Sums* sums;
  };

  void add_row(int i, Vector x, const Column& to) const {
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r)
      if (const int k = i - r * kStride; k >= 0 && k < kKernel)
        to.sums->of[r] += x * weights_[k * kKernel + to.column];
  }

  template <bool kWhole>
  void convolve(int64_t first, int64_t last) const {
    int64_t column = first * kStride - c_.columns.padding;  // of src, the first that is needed
    Sums sums = start(), next = start();
    if constexpr (kStride == 1) {
      add<kWhole>(column++, Column{0, &sums});
      add<kWhole>(column++, Column{1, &sums}, Column{0, &next});
    } else {
      add<kWhole>(column++, Column{0, &sums});
    }
    for (int64_t x = first; x < last; ++x) {
      if constexpr (kStride == 1) {
        Sums after = start();
        add<kWhole>(column++, Column{2, &sums}, Column{1, &next}, Column{0, &after});
        store(x, sums);
        sums = next;
        next = after;
      } else {
        next = start();
        add<kWhole>(column++, Column{1, &sums});
        add<kWhole>(column++, Column{2, &sums}, Column{0, &next});
        store(x, sums);
        sums = next;
      }
    }
  }

  void store(int64_t column, const Sums& sums) const {
    for (int r = 0; r < kRows; ++r) {
      Vector y = sums.of[r];
      // In this order, what is no number stays none.
      y = y < c_.least ? Vector{} + c_.least : y;
      y = y > c_.most ? Vector{} + c_.most : y;
      Vectors::store(dst_ + r * c_.dst.row_stride + column * c_.dst.column_stride, y);
    }
  }

  const Convolution& c_;
  const float* rows_[kSrcRows];
  bool is_inside_[kSrcRows], is_whole_ = true;
  Vector weights_[kKernel * kKernel];
  const Vector bias_;
  float* const dst_;
};

template <int V, int kStride>
void convolve(const Convolution& c, const float* src, const float* weights, const float* bias,
              float* dst) {
  constexpr int kRows = 2;
  constexpr int64_t kMostVectors = 16;  // that a thread does at once
  // Where a pixel's channels lie side by side, so few columns that all vectors of a cache line's
  // neighbourhood are soon done: with images behind the second cache, whole rows take 1.05 to 1.3
  // times as long.
  constexpr int64_t kMostColumns = 16 / kStride;
  const kernels::Parts parts = kernels::parts_of_at_most(kMostVectors, c.channel_vectors);
  const kernels::Parts columns =
      kernels::parts_of_at_most(c.dst.column_stride == V ? c.dst.width : kMostColumns, c.dst.width);
  const int64_t bands = kernels::parts_of_at_most(kRows, c.dst.height).count;
  kernels::share(c.batch * bands * parts.count, [&](int64_t item) {
    const int64_t part = item % parts.count, band = item / parts.count;
    const int64_t image = band / bands, row = band % bands * kRows;
    for (int64_t j = 0; j < columns.count; ++j)
      for (int64_t i = parts.first(part); i < parts.first(part + 1); ++i) {
        const float* from = src + image * c.src.batch_stride + i * c.src.vector_stride;
        float* to =
            dst + image * c.dst.batch_stride + i * c.dst.vector_stride + row * c.dst.row_stride;
        const float *w = weights + i * V, *b = bias + i * V;
        const int64_t first = columns.first(j), last = columns.first(j + 1);
        if (row + kRows <= c.dst.height)
          Band<V, kStride, kRows>(c, row, from, w, b, to).convolve(first, last);
        else
          Band<V, kStride, 1>(c, row, from, w, b, to).convolve(first, last);
      }
  });
}

template <int V>
Function function_of(int64_t stride) {
  if (stride == 1) return convolve<V, 1>;
  return stride == 2 ? convolve<V, 2> : nullptr;
}

}  // namespace
}  // namespace depthwise_of_floats
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_DEPTHWISE_OF_FLOATS_CONVOLUTION_H_
