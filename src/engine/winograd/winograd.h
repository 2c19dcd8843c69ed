/*!
 * \file winograd.h
 * \brief Winograd's minimal filtering F(m × m, 3 × 3), what surrounds its matrix products.
 *
 * A 3 × 3 convolution is computed in tiles of m × m results out of n × n inputs, n = m + 2: as
 * \f$A^T [(G g G^T) \odot (B^T d B)] A\f$ (A. Lavin, S. Gray: Fast Algorithms for Convolutional
 * Neural Networks, 2015). Summed over the channels, the products \f$\odot\f$ are n² matrix
 * products (tiles × channels) · (channels × output channels), which take n² / (9 m²) of the
 * convolution's multiplications: 4/9 for m = 2, 1/4 for m = 4. The matrices are Toom's and Cook's
 * for the points 0, ±1, ∞ (m = 2) and 0, ±3/4, ±3/2, ∞ (m = 4). With 64 channels, m = 2 rounds no
 * worse than the convolution itself (5e-7 of the largest result), and m = 4 has 2 to 3 times its
 * error; the usual points 0, ±1, ±2, ∞ have 10 times. An infinity, or what is not a number, spoils
 * the tiles that it is in.
 *
 * The files that are compiled for one instruction set use no function of the standard library: if
 * one is inline, the linker could take what was compiled for AVX-512 for all.
 */
#ifndef DNNL_BYOC_ENGINE_WINOGRAD_WINOGRAD_H_
#define DNNL_BYOC_ENGINE_WINOGRAD_WINOGRAD_H_

#include <cstdint>

namespace dnnl_byoc {
namespace winograd {

/*! \brief An image (N, C, H, W) whose channels come in vectors; strides in elements. */
struct Image {
  int64_t height, width;
  int64_t batch_stride, vector_stride, row_stride, column_stride;
};

/*! \brief The matrices, one for each of the n² elements of a tile: a row for each tile. */
struct Matrices {
  int64_t matrix_stride, row_stride;
};

/*! \brief Rows of tiles, counted through all images of a batch. */
struct Tiling {
  int64_t first_row, rows;  // what is to be done
  int64_t rows_per_image, columns;
  int64_t channel_vectors;
};

/*! \brief d → B^T d B of all tiles. */
struct SrcTransform {
  Tiling tiling;
  Image src;
  int64_t padding_top, padding_left;
  Matrices matrices;
};

/*! \brief Products → A^T products A, then + bias, + addend, and a (leaky) ReLU if asked for. */
struct DstTransform {
  Tiling tiling;
  Matrices matrices;
  Image dst;
  bool relu;
  float negative_slope;
};

/*! \brief The transforms for one instruction set and one m. */
struct Functions {
  void (*src)(const SrcTransform&, const float* src, float* matrices);
  /*! \param bias By output channel, or null.
   *  \param addend An image like dst, perhaps dst itself, or null. */
  void (*dst)(const DstTransform&, const float* matrices, const float* bias, const float* addend,
              float* dst);
};

/*! \brief The widths of vectors that there are functions for, in floats. */
constexpr int kAvx2Vector = 8, kAvx512Vector = 16;

/*! \param tile m: 2 or 4. */
Functions avx2_functions(int tile);
Functions avx512_functions(int tile);

/*!
 * \brief g → G g G^T of all weights.
 *
 * \param weights (O, I, 3, 3), row-major.
 * \param matrices (n², I, O), row-major.
 */
void transform_weights(int tile, int64_t out_channels, int64_t in_channels, const float* weights,
                       float* matrices);

}  // namespace winograd
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_WINOGRAD_WINOGRAD_H_
