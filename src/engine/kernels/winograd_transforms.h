/*!
 * \file winograd_transforms.h
 * \brief The transforms of src and dst, for the files that are compiled for one instruction set.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_TRANSFORMS_H_
#define DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_TRANSFORMS_H_

#include "shares.h"
#include "vectors.h"
#include "winograd.h"

namespace dnnl_byoc {
namespace winograd {
namespace {

using kernels::Bf16;
using kernels::clip;
using kernels::Extent;
using kernels::Finish;
using kernels::VectorOf;

/*! \brief m results out of n inputs along one side of a tile. */
template <int M, int N>
struct Side {
  static constexpr int m = M, n = N;
};

/*! \brief What A^T and B^T consist of. */
template <int M, int N>
struct Coefficients {
  static constexpr int pairs = (N - 2) / 2;  // of points, ±p

  float points[pairs]{};
  float powers[pairs][M]{};
  // Of the products of all x² - p² and of all but one: what is multiplied with 1, x², x⁴ …
  float all[pairs]{};
  float others[pairs][pairs]{};

  constexpr Coefficients() {
    for (int i = 0; i < pairs; ++i) {
      const double point = kPoints[pairs - 1][i];
      points[i] = static_cast<float>(point);
      double power = 1;
      for (int k = 0; k < M; ++k, power *= point) powers[i][k] = static_cast<float>(power);
      multiply_out(i, others[i]);
    }
    multiply_out(pairs, all);
  }

 private:
  static constexpr void multiply_out(int without, float (&product)[pairs]) {
    double c[pairs + 1] = {1};
    for (int i = 0; i < pairs; ++i) {
      if (i == without) continue;
      const double square = kPoints[pairs - 1][i] * kPoints[pairs - 1][i];
      for (int k = pairs; k > 0; --k) c[k] = c[k - 1] - square * c[k];
      c[0] *= -square;
    }
    for (int k = 0; k < pairs; ++k) product[k] = static_cast<float>(c[k]);
  }
};

/*!
 * \brief One-dimensional transforms: B^T x, of n elements, and A^T x, of m.
 *
 * All loops have constant bounds: the compiler unrolls them and multiplies by constants.
 */
template <int V, class S>
struct OneDimension {
  using Vector = typename VectorOf<V>::Type;
  static constexpr Coefficients<S::m, S::n> c{};
  static constexpr int pairs = c.pairs;

  static void src(const Vector (&x)[S::n], Vector (&t)[S::n]) {
    t[0] = evaluate(x, c.all, pairs);
    for (int i = 0; i < pairs; ++i) {
      const Vector even = evaluate(x + 2, c.others[i], pairs - 1);
      const Vector odd = c.points[i] * evaluate(x + 1, c.others[i], pairs - 1);
      t[1 + 2 * i] = even + odd;
      t[2 + 2 * i] = even - odd;
    }
    t[S::n - 1] = evaluate(x + 1, c.all, pairs);
  }

  static void dst(const Vector (&x)[S::n], Vector (&y)[S::m]) {
    for (int k = 0; k < S::m; ++k) {
      y[k] = k % 2 ? c.powers[0][k] * (x[1] - x[2]) : c.powers[0][k] * (x[1] + x[2]);
      for (int i = 1; i < pairs; ++i) {
        const Vector &plus = x[1 + 2 * i], &minus = x[2 + 2 * i];
        y[k] += k % 2 ? c.powers[i][k] * (plus - minus) : c.powers[i][k] * (plus + minus);
      }
    }
    y[0] += x[0];
    y[S::m - 1] += x[S::n - 1];
  }

 private:
  /*! \brief Every other element times a polynomial's coefficients, the highest of which is 1. */
  static Vector evaluate(const Vector* x, const float (&coefficients)[pairs], int degree) {
    Vector sum = x[2 * degree];
    for (int k = degree - 1; k >= 0; --k) sum += coefficients[k] * x[2 * k];
    return sum;
  }
};

/*! \brief A side of length 1 of the kernel. */
template <int V>
struct OneDimension<V, Side<1, 1>> {
  using Vector = typename VectorOf<V>::Type;

  static void src(const Vector (&x)[1], Vector (&t)[1]) { t[0] = x[0]; }
  static void dst(const Vector (&x)[1], Vector (&y)[1]) { y[0] = x[0]; }
};

/*! \param pixel The tile's first element, which may lie outside of the image. */
template <int V, class H, class W, bool kWhole, class T>
void transform_src_tile(const T* pixel, const Image& image, const Extent& inside, float* matrix,
                        int64_t matrix_stride) {
  using Vectors = VectorOf<V>;
  using Vector = typename Vectors::Type;
  Vector half[H::n][W::n];
  for (int j = 0; j < W::n; ++j) {
    Vector x[H::n], t[H::n];
    for (int i = 0; i < H::n; ++i)
      x[i] = kWhole || inside.holds(i, j)
                 ? Vectors::load(pixel + i * image.row_stride + j * image.column_stride)
                 : Vector{};
    OneDimension<V, H>::src(x, t);
    for (int i = 0; i < H::n; ++i) half[i][j] = t[i];
  }
  for (int i = 0; i < H::n; ++i) {
    Vector t[W::n];
    OneDimension<V, W>::src(half[i], t);
    for (int j = 0; j < W::n; ++j) Vectors::store(matrix + (i * W::n + j) * matrix_stride, t[j]);
  }
}

template <int V, class H, class W, class T>
void transform_src(const SrcTransform& s, const void* src, float* matrices) {
  const Tiling& tiling = s.tiling;
  kernels::share(tiling.rows * tiling.channel_vectors, [&](int64_t item) {
    const int64_t line = item / tiling.channel_vectors, channels = item % tiling.channel_vectors;
    const int64_t image = (tiling.first_row + line) / tiling.rows_per_image;
    const int64_t row = (tiling.first_row + line) % tiling.rows_per_image;
    Extent inside;
    const int64_t y = row * H::m - s.padding_top;
    clip(y, s.src.height, H::n, &inside.first_row, &inside.last_row);
    const T* pixels = static_cast<const T*>(src) + image * s.src.batch_stride +
                      channels * s.src.vector_stride + y * s.src.row_stride;
    float* out = matrices + line * tiling.columns * s.matrices.row_stride + channels * V;
    for (int64_t column = 0; column < tiling.columns; ++column) {
      const int64_t x = column * W::m - s.padding_left;
      clip(x, s.src.width, W::n, &inside.first_column, &inside.last_column);
      const bool whole = inside.first_row == 0 && inside.last_row == H::n &&
                         inside.first_column == 0 && inside.last_column == W::n;
      const T* pixel = pixels + x * s.src.column_stride;
      float* matrix = out + column * s.matrices.row_stride;
      if (whole)
        transform_src_tile<V, H, W, true>(pixel, s.src, inside, matrix, s.matrices.matrix_stride);
      else
        transform_src_tile<V, H, W, false>(pixel, s.src, inside, matrix, s.matrices.matrix_stride);
    }
  });
}

/*! \param addend, pixel The tile's first element. */
template <int V, class H, class W, bool kWhole, class T>
void transform_dst_tile(const float* matrix, int64_t matrix_stride, const Finish<V>& finish,
                        const T* addend, const Image& image, const Extent& inside, T* pixel) {
  using Vectors = VectorOf<V>;
  using Vector = typename Vectors::Type;
  Vector half[H::m][W::n];
  for (int j = 0; j < W::n; ++j) {
    Vector x[H::n], y[H::m];
    for (int i = 0; i < H::n; ++i) x[i] = Vectors::load(matrix + (i * W::n + j) * matrix_stride);
    OneDimension<V, H>::dst(x, y);
    for (int i = 0; i < H::m; ++i) half[i][j] = y[i];
  }
  for (int i = 0; i < H::m; ++i) {
    Vector y[W::m];
    OneDimension<V, W>::dst(half[i], y);
    for (int j = 0; j < W::m; ++j) {
      if (!kWhole && !inside.holds(i, j)) continue;
      const int64_t offset = i * image.row_stride + j * image.column_stride;
      Vectors::store(pixel + offset, finish(y[j], addend + (finish.add ? offset : 0)));
    }
  }
}

template <int V, class H, class W, class T>
void transform_dst(const DstTransform& d, const float* matrices, const float* bias,
                   const void* addend, void* dst) {
  const Tiling& tiling = d.tiling;
  kernels::share(tiling.rows * tiling.channel_vectors, [&](int64_t item) {
    const int64_t line = item / tiling.channel_vectors, channels = item % tiling.channel_vectors;
    const int64_t image = (tiling.first_row + line) / tiling.rows_per_image;
    const int64_t row = (tiling.first_row + line) % tiling.rows_per_image;
    const Finish<V> finish(d.activation, bias ? bias + channels * V : nullptr, addend != nullptr);
    Extent inside;
    clip(row * H::m, d.dst.height, H::m, &inside.first_row, &inside.last_row);
    const int64_t offset_of_row =
        image * d.dst.batch_stride + channels * d.dst.vector_stride + row * H::m * d.dst.row_stride;
    const float* in = matrices + line * tiling.columns * d.matrices.row_stride + channels * V;
    for (int64_t column = 0; column < tiling.columns; ++column) {
      clip(column * W::m, d.dst.width, W::m, &inside.first_column, &inside.last_column);
      const bool whole = inside.last_row == H::m && inside.last_column == W::m;
      const int64_t offset = offset_of_row + column * W::m * d.dst.column_stride;
      const float* matrix = in + column * d.matrices.row_stride;
      const T* added = addend ? static_cast<const T*>(addend) + offset : nullptr;
      T* pixel = static_cast<T*>(dst) + offset;
      if (whole)
        transform_dst_tile<V, H, W, true>(matrix, d.matrices.matrix_stride, finish, added, d.dst,
                                          inside, pixel);
      else
        transform_dst_tile<V, H, W, false>(matrix, d.matrices.matrix_stride, finish, added, d.dst,
                                           inside, pixel);
    }
  });
}

template <int V, class H, class W>
Functions functions_of(const DataTypes& dtypes) {
  const bool narrow_src = dtypes.src == DataType::bf16, narrow_dst = dtypes.dst == DataType::bf16;
  return {narrow_src ? transform_src<V, H, W, Bf16> : transform_src<V, H, W, float>,
          narrow_dst ? transform_dst<V, H, W, Bf16> : transform_dst<V, H, W, float>};
}

/*! \brief For a kernel with one side of length 1. */
template <int V, int M, int N>
Functions one_sided(const KernelSize& kernel, const DataTypes& dtypes) {
  return kernel.height == 1 ? functions_of<V, Side<1, 1>, Side<M, N>>(dtypes)
                            : functions_of<V, Side<M, N>, Side<1, 1>>(dtypes);
}

template <int V>
Functions functions(int tile, const KernelSize& kernel, const DataTypes& dtypes) {
  if (kernel.height == kernel.width) {
    if (tile == 2 && kernel.height == 3) return functions_of<V, Side<2, 4>, Side<2, 4>>(dtypes);
    if (tile == 4 && kernel.height == 3) return functions_of<V, Side<4, 6>, Side<4, 6>>(dtypes);
    if (tile == 2 && kernel.height == 5) return functions_of<V, Side<2, 6>, Side<2, 6>>(dtypes);
    if (tile == 4 && kernel.height == 5) return functions_of<V, Side<4, 8>, Side<4, 8>>(dtypes);
  } else if (kernel.height == 1 || kernel.width == 1) {
    const int64_t taps = kernel.height * kernel.width;
    if (tile == 2 && taps == 3) return one_sided<V, 2, 4>(kernel, dtypes);
    if (tile == 4 && taps == 3) return one_sided<V, 4, 6>(kernel, dtypes);
    if (tile == 2 && taps == 7) return one_sided<V, 2, 8>(kernel, dtypes);
    if (tile == 4 && taps == 7) return one_sided<V, 4, 10>(kernel, dtypes);
  }
  return {};
}

}  // namespace
}  // namespace winograd
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_TRANSFORMS_H_
