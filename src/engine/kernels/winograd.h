/*!
 * \file winograd.h
 * \brief Winograd's minimal filtering F(m × m', r × r').
 *
 * A convolution with an r × r' kernel is computed in tiles of m × m' results out of n × n' inputs,
 * n = m + r - 1: as \f$A^T [(G g G'^T) \odot (B^T d B')] A'\f$ (A. Lavin, S. Gray: Fast Algorithms
 * for Convolutional Neural Networks, 2015). Along a side of length 1 there is nothing to save, and
 * its matrices are those of m = n = 1; along the others m is the same, 2 or 4. Summed over the
 * channels, the products \f$\odot\f$ are n n' matrix products (tiles × channels) · (channels ×
 * output channels), which take n n' / (m m' r r') of the convolution's multiplications:
 *
 *   r × r'         m = 2   m = 4
 *   3 × 3          4/9     1/4
 *   5 × 5          9/25    4/25
 *   1 × 3, 3 × 1   2/3     1/2
 *   1 × 7, 7 × 1   4/7     5/14
 *
 * The matrices are Toom's and Cook's for the points kPoints. Measured with AVX2 and 16 to 448
 * channels, oneDNN's direct convolution, which adds up one product after the other, is wrong by
 * 3e-7 to 3e-6 of the largest result. m = 2 has 0.2 to 1 times its error, with 7 taps 0.7 to 2
 * times; m = 4 has 0.3 to 2 times, with 5 × 5 or 7 taps 1 to 5 times. Images smaller than the
 * kernel leave the convolution less to add up: there 5 × 5 comes to 13 times its error, but nowhere
 * to more than 8e-6 of the largest result. The usual points, whole numbers, are worse than those
 * here: 0, ±1, ±2, ∞ by 4 times, 0, ±1, ±2, ±4, ∞ by 12 times. An infinity, or what is not a
 * number, spoils the tiles that it is in.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_H_
#define DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_H_

#include "dense.h"
#include "image.h"

namespace dnnl_byoc {
namespace winograd {

using kernels::Image;

/*! \brief The matrices, one for each of the n n' elements of a tile: a row for each tile. */
struct Matrices {
  int64_t matrix_stride, row_stride;
};

/*! \brief Rows of tiles, counted through all images of a batch. */
struct Tiling {
  int64_t first_row, rows;  // what is to be done
  int64_t rows_per_image, columns;
  int64_t channel_vectors;
};

/*! \brief d → B^T d B' of all tiles. */
struct SrcTransform {
  Tiling tiling;
  Image src;
  int64_t padding_top, padding_left;
  Matrices matrices;
};

/*! \brief Products → A^T products A', and what ends a convolution. */
struct DstTransform {
  Tiling tiling;
  Matrices matrices;
  Image dst;
  kernels::Activation activation;
};

/*! \brief The matrix products of a few tiles. */
struct Product {
  int64_t elements, tiles, in_channels, out_channels;
  Matrices src, dst;

  int64_t blocks() const { return kernels::parts_of_at_most(dense::kBlock, out_channels).count; }
  int64_t weights_of_element() const { return blocks() * in_channels * dense::kBlock; }
};

/*! \brief r × r'. */
struct KernelSize {
  int64_t height, width;
};

/*! \brief What the images are stored in; all is computed in float. */
enum class DataType { f32, bf16 };
struct DataTypes {
  DataType src, dst;
};

/*!
 * \brief The positive ones of the points, for n = 4, 6, 8, 10.
 *
 * All of them are 0, p, -p, …, ∞, in the order of the matrices' rows.
 */
constexpr double kPoints[][4] = {{1}, {0.75, 1.5}, {0.5, 1, 2}, {0.5, 0.875, 1.25, 2}};

/*! \brief The transforms for one instruction set, m and kernel; null where it cannot be used. */
struct Functions {
  void (*src)(const SrcTransform&, const void* src, float* matrices);
  /*! \param bias By output channel, or null.
   *  \param addend An image like dst, perhaps dst itself, or null. */
  void (*dst)(const DstTransform&, const float* matrices, const float* bias, const void* addend,
              void* dst);
};

/*! \param tile m along the sides of the kernel that are longer than 1: 2 or 4. */
Functions avx2_functions(int tile, const KernelSize& kernel, const DataTypes& dtypes);
Functions avx512_functions(int tile, const KernelSize& kernel, const DataTypes& dtypes);

/*!
 * \brief The products by a kernel of our own; elsewhere oneDNN multiplies.
 *
 * \param weights (n n', blocks, I, dense::kBlock).
 * \param starts Zeros for dense::kBlock channels of each block.
 */
using Multiply = void (*)(const Product&, const float* src, const float* weights,
                          const float* starts, float* dst);
Multiply avx512_product();

/*! \brief m along a side of a kernel, of this length. */
int tile_along(int tile, int64_t side);

/*!
 * \brief g → G g G'^T of all weights.
 *
 * \param weights (O, I, r, r'), row-major.
 * \param matrices (n n', I, O), row-major.
 */
void transform_weights(int tile, const KernelSize& kernel, int64_t out_channels,
                       int64_t in_channels, const float* weights, float* matrices);

}  // namespace winograd
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_H_
