/*!
 * \file grouped_convolution.h
 * \brief The convolution, for the files that are compiled for one instruction set.
 *
 * Isa has V, how many results of a row are computed at once (for strides of 1 and 2), and
 * spread<g, i>(x), in which all channels of a group are its i-th one in x.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_GROUPED_CONVOLUTION_H_
#define DNNL_BYOC_ENGINE_KERNELS_GROUPED_CONVOLUTION_H_

#include "grouped.h"
#include "shares.h"
#include "vectors.h"

namespace dnnl_byoc {
namespace grouped {
namespace {

using kernels::clip;
using kernels::Extent;
using kernels::Finish;
using kernels::VectorOf;

template <class Isa, int kGroup, int kStride>
struct Tile {
  static constexpr int V = Isa::V;
  using Vectors = VectorOf<V>;
  using Vector = typename Vectors::Type;
  static constexpr int kResults = Isa::results(kStride);
  static constexpr int kColumns = (kResults - 1) * kStride + kKernel;  // of src

  /*!
   * \brief Computes the results that lie in the image.
   *
   * \param pixel The first element that the first result depends on; it may lie outside of src.
   * \param inside Of what they depend on: the rows of the kernel, and the columns.
   */
  template <bool kWhole>
  static void compute(const Convolution& c, const float* pixel, const Extent& inside,
                      const float* weights, const Finish<V>& finish, const float* addend,
                      float* dst, int64_t results) {
    Vector sums[kResults] = {};
    for (int row = inside.first_row; row < inside.last_row; ++row)
      add_row<kWhole, 0>(pixel + row * c.src.row_stride, c.src.column_stride, inside,
                         weights + row * kGroup * kKernel * V, sums);
    for (int i = 0; i < kResults; ++i) {
      if (!kWhole && i >= results) break;
      const int64_t offset = i * c.dst.column_stride;
      Vectors::store(dst + offset, finish(sums[i], addend + (finish.add ? offset : 0)));
    }
  }

 private:
  /*! \brief Adds the products with a row of the kernel, of channel `in` of each group and on. */
  template <bool kWhole, int in>
  static void add_row(const float* pixels, int64_t column_stride, const Extent& inside,
                      const float* weights, Vector (&sums)[kResults]) {
    Vector x[kColumns];
    for (int j = 0; j < kColumns; ++j)
      x[j] = kWhole || (j >= inside.first_column && j < inside.last_column)
                 ? Isa::template spread<kGroup, in>(Vectors::load(pixels + j * column_stride))
                 : Vector{};
    for (int j = 0; j < kKernel; ++j) {
      const Vector w = Vectors::load(weights + j * V);
      for (int i = 0; i < kResults; ++i) sums[i] += x[i * kStride + j] * w;
    }
    if constexpr (in + 1 < kGroup)
      add_row<kWhole, in + 1>(pixels, column_stride, inside, weights + kKernel * V, sums);
  }
};

template <class Isa, int kGroup, int kStride>
void convolve(const Convolution& c, const float* src, const float* weights, const float* bias,
              const float* addend, float* dst) {
  using T = Tile<Isa, kGroup, kStride>;
  constexpr int V = Isa::V;
  kernels::share(c.batch * c.channel_vectors * c.dst.height, [&](int64_t item) {
    const int64_t row = item % c.dst.height, channels = item / c.dst.height % c.channel_vectors;
    const int64_t image = item / c.dst.height / c.channel_vectors;
    const Finish<V> finish(c.activation, bias ? bias + channels * V : nullptr, addend != nullptr);
    const float* w = weights + channels * kKernel * kGroup * kKernel * V;
    Extent inside;
    const int64_t y = row * c.row_step - c.padding_top;
    clip(y, c.src.height, kKernel, &inside.first_row, &inside.last_row);
    const float* pixels =
        src + image * c.src.batch_stride + channels * c.src.vector_stride + y * c.src.row_stride;
    const int64_t offset_of_row =
        image * c.dst.batch_stride + channels * c.dst.vector_stride + row * c.dst.row_stride;
    for (int64_t column = 0; column < c.dst.width; column += T::kResults) {
      const int64_t x = column * kStride - c.padding_left;
      clip(x, c.src.width, T::kColumns, &inside.first_column, &inside.last_column);
      const int64_t results = c.dst.width - column;
      const bool whole =
          inside.first_column == 0 && inside.last_column == T::kColumns && results >= T::kResults;
      const float* pixel = pixels + x * c.src.column_stride;
      const int64_t offset = offset_of_row + column * c.dst.column_stride;
      const float* added = addend ? addend + offset : nullptr;
      if (whole)
        T::template compute<true>(c, pixel, inside, w, finish, added, dst + offset, results);
      else
        T::template compute<false>(c, pixel, inside, w, finish, added, dst + offset, results);
    }
  });
}

template <class Isa, int kGroup>
Function function_of(int64_t stride) {
  if (stride == 1) return convolve<Isa, kGroup, 1>;
  return stride == 2 ? convolve<Isa, kGroup, 2> : nullptr;
}

}  // namespace
}  // namespace grouped
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_GROUPED_CONVOLUTION_H_
