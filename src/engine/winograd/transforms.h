/*!
 * \file transforms.h
 * \brief The transforms of src and dst, for the files that are compiled for one instruction set.
 *
 * V is the number of floats in a vector, that is of channels that are computed at once. All is in
 * an unnamed namespace: what two files compile for two instruction sets must not be merged.
 */
#ifndef DNNL_BYOC_ENGINE_WINOGRAD_TRANSFORMS_H_
#define DNNL_BYOC_ENGINE_WINOGRAD_TRANSFORMS_H_

#include "winograd.h"

namespace dnnl_byoc {
namespace winograd {
namespace {

template <int V>
struct VectorOf {
  typedef float Type __attribute__((vector_size(V * sizeof(float))));
  typedef float Unaligned __attribute__((vector_size(V * sizeof(float)), aligned(4), may_alias));

  static Type load(const float* p) { return *reinterpret_cast<const Unaligned*>(p); }
  static void store(float* p, Type v) { *reinterpret_cast<Unaligned*>(p) = v; }
};

/*! \brief One-dimensional transforms: B^T x, of n elements, and A^T x, of m. */
template <int V, int M>
struct OneDimension;

template <int V>
struct OneDimension<V, 2> {
  using Vector = typename VectorOf<V>::Type;

  static void src(const Vector (&x)[4], Vector (&t)[4]) {
    t[0] = x[2] - x[0];
    t[1] = x[2] + x[1];
    t[2] = x[2] - x[1];
    t[3] = x[3] - x[1];
  }

  static void dst(const Vector (&x)[4], Vector (&y)[2]) {
    y[0] = x[0] + x[1] + x[2];
    y[1] = x[1] - x[2] + x[3];
  }
};

template <int V>
struct OneDimension<V, 4> {
  using Vector = typename VectorOf<V>::Type;
  static constexpr float a = 0.75f, b = 1.5f;  // the points ±a, ±b
  static constexpr float aa = a * a, bb = b * b;

  static void src(const Vector (&x)[6], Vector (&t)[6]) {
    const Vector even_a = x[4] - bb * x[2], odd_a = a * (x[3] - bb * x[1]);
    const Vector even_b = x[4] - aa * x[2], odd_b = b * (x[3] - aa * x[1]);
    t[0] = aa * bb * x[0] - (aa + bb) * x[2] + x[4];
    t[1] = even_a + odd_a;
    t[2] = even_a - odd_a;
    t[3] = even_b + odd_b;
    t[4] = even_b - odd_b;
    t[5] = aa * bb * x[1] - (aa + bb) * x[3] + x[5];
  }

  static void dst(const Vector (&x)[6], Vector (&y)[4]) {
    const Vector even_a = x[1] + x[2], odd_a = x[1] - x[2];
    const Vector even_b = x[3] + x[4], odd_b = x[3] - x[4];
    y[0] = x[0] + even_a + even_b;
    y[1] = a * odd_a + b * odd_b;
    y[2] = aa * even_a + bb * even_b;
    y[3] = a * aa * odd_a + b * bb * odd_b + x[5];
  }
};

/*! \brief The part of a tile that lies in the image: rows and columns from first to last - 1. */
struct Extent {
  int first_row, last_row, first_column, last_column;

  bool holds(int row, int column) const {
    return row >= first_row && row < last_row && column >= first_column && column < last_column;
  }
};

/*! \brief Which of a tile's `edge` elements from `start` on lie in 0 … size - 1. */
void clip(int64_t start, int64_t size, int edge, int* first, int* last) {
  const auto within = [edge](int64_t i) {
    return static_cast<int>(i < 0 ? 0 : i > edge ? edge : i);
  };
  *first = within(-start);
  *last = within(size - start);
}

/*! \param pixel The tile's first element, which may lie outside of the image. */
template <int V, int M, bool kWhole>
void transform_src_tile(const float* pixel, const Image& image, const Extent& inside, float* matrix,
                        int64_t matrix_stride) {
  using Vectors = VectorOf<V>;
  using Vector = typename Vectors::Type;
  constexpr int n = M + 2;
  Vector half[n][n];
  for (int j = 0; j < n; ++j) {
    Vector x[n], t[n];
    for (int i = 0; i < n; ++i)
      x[i] = kWhole || inside.holds(i, j)
                 ? Vectors::load(pixel + i * image.row_stride + j * image.column_stride)
                 : Vector{};
    OneDimension<V, M>::src(x, t);
    for (int i = 0; i < n; ++i) half[i][j] = t[i];
  }
  for (int i = 0; i < n; ++i) {
    Vector t[n];
    OneDimension<V, M>::src(half[i], t);
    for (int j = 0; j < n; ++j) Vectors::store(matrix + (i * n + j) * matrix_stride, t[j]);
  }
}

template <int V, int M>
void transform_src(const SrcTransform& s, const float* src, float* matrices) {
  constexpr int n = M + 2;
  const Tiling& tiling = s.tiling;
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t line = 0; line < tiling.rows; ++line)
    for (int64_t channels = 0; channels < tiling.channel_vectors; ++channels) {
      const int64_t image = (tiling.first_row + line) / tiling.rows_per_image;
      const int64_t row = (tiling.first_row + line) % tiling.rows_per_image;
      Extent inside;
      const int64_t y = row * M - s.padding_top;
      clip(y, s.src.height, n, &inside.first_row, &inside.last_row);
      const float* pixels =
          src + image * s.src.batch_stride + channels * s.src.vector_stride + y * s.src.row_stride;
      float* out = matrices + line * tiling.columns * s.matrices.row_stride + channels * V;
      for (int64_t column = 0; column < tiling.columns; ++column) {
        const int64_t x = column * M - s.padding_left;
        clip(x, s.src.width, n, &inside.first_column, &inside.last_column);
        const bool whole = inside.first_row == 0 && inside.last_row == n &&
                           inside.first_column == 0 && inside.last_column == n;
        const float* pixel = pixels + x * s.src.column_stride;
        float* matrix = out + column * s.matrices.row_stride;
        if (whole)
          transform_src_tile<V, M, true>(pixel, s.src, inside, matrix, s.matrices.matrix_stride);
        else
          transform_src_tile<V, M, false>(pixel, s.src, inside, matrix, s.matrices.matrix_stride);
      }
    }
}

/*! \brief What is added to each element, and what becomes of the sum. */
template <int V>
struct Finish {
  using Vector = typename VectorOf<V>::Type;
  Vector bias;
  bool add, relu;
  float negative_slope;

  Vector operator()(Vector y, const float* addend) const {
    y += bias;
    if (add) y += VectorOf<V>::load(addend);
    if (relu) y = y > 0 ? y : negative_slope != 0 ? negative_slope * y : Vector{};
    return y;
  }
};

/*! \param addend, pixel The tile's first element. */
template <int V, int M, bool kWhole>
void transform_dst_tile(const float* matrix, int64_t matrix_stride, const Finish<V>& finish,
                        const float* addend, const Image& image, const Extent& inside,
                        float* pixel) {
  using Vectors = VectorOf<V>;
  using Vector = typename Vectors::Type;
  constexpr int n = M + 2;
  Vector half[M][n];
  for (int j = 0; j < n; ++j) {
    Vector x[n], y[M];
    for (int i = 0; i < n; ++i) x[i] = Vectors::load(matrix + (i * n + j) * matrix_stride);
    OneDimension<V, M>::dst(x, y);
    for (int i = 0; i < M; ++i) half[i][j] = y[i];
  }
  for (int i = 0; i < M; ++i) {
    Vector y[M];
    OneDimension<V, M>::dst(half[i], y);
    for (int j = 0; j < M; ++j) {
      if (!kWhole && !inside.holds(i, j)) continue;
      const int64_t offset = i * image.row_stride + j * image.column_stride;
      Vectors::store(pixel + offset, finish(y[j], addend + (finish.add ? offset : 0)));
    }
  }
}

template <int V, int M>
void transform_dst(const DstTransform& d, const float* matrices, const float* bias,
                   const float* addend, float* dst) {
  const Tiling& tiling = d.tiling;
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t line = 0; line < tiling.rows; ++line)
    for (int64_t channels = 0; channels < tiling.channel_vectors; ++channels) {
      const int64_t image = (tiling.first_row + line) / tiling.rows_per_image;
      const int64_t row = (tiling.first_row + line) % tiling.rows_per_image;
      Finish<V> finish{{}, addend != nullptr, d.relu, d.negative_slope};
      if (bias) finish.bias = VectorOf<V>::load(bias + channels * V);
      Extent inside;
      clip(row * M, d.dst.height, M, &inside.first_row, &inside.last_row);
      const int64_t offset_of_row =
          image * d.dst.batch_stride + channels * d.dst.vector_stride + row * M * d.dst.row_stride;
      const float* in = matrices + line * tiling.columns * d.matrices.row_stride + channels * V;
      for (int64_t column = 0; column < tiling.columns; ++column) {
        clip(column * M, d.dst.width, M, &inside.first_column, &inside.last_column);
        const bool whole = inside.last_row == M && inside.last_column == M;
        const int64_t offset = offset_of_row + column * M * d.dst.column_stride;
        const float* matrix = in + column * d.matrices.row_stride;
        const float* added = addend ? addend + offset : nullptr;
        if (whole)
          transform_dst_tile<V, M, true>(matrix, d.matrices.matrix_stride, finish, added, d.dst,
                                         inside, dst + offset);
        else
          transform_dst_tile<V, M, false>(matrix, d.matrices.matrix_stride, finish, added, d.dst,
                                          inside, dst + offset);
      }
    }
}

template <int V>
Functions functions(int tile) {
  if (tile == 2) return {transform_src<V, 2>, transform_dst<V, 2>};
  return {transform_src<V, 4>, transform_dst<V, 4>};
}

}  // namespace
}  // namespace winograd
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_WINOGRAD_TRANSFORMS_H_
