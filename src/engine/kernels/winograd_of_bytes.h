/*!
 * \file winograd_of_bytes.h
 * \brief Winograd's F(4 × 4, 3 × 3), see winograd.h, of bytes: whole numbers that stand for others.
 *
 * It is exact. The points 0, ±1, ±2, ∞ make whole numbers of 16 bits of src and weights, products
 * of which are added up in 32 bits, modulo 2³². What comes out of A^T is 24² = 9 · 64 times the
 * result: 9 has an inverse modulo 2³², and a division by 64 is exact of what stays below 2³¹, which
 * kMostBlocks sees to. An instruction multiplies half as many numbers of 16 bits as bytes, of which
 * there are a quarter: half of the time of a direct convolution is left, besides the transforms.
 *
 * Numbers of src are counted from the middle of their range, -128 … 127. B^T makes at most 100
 * times as much of them, G at most 144 times of weights; the sums do not have to fit.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_OF_BYTES_H_
#define DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_OF_BYTES_H_

#include "chunks.h"
#include "image.h"

namespace dnnl_byoc {
namespace winograd_of_bytes {

using kernels::Image;

constexpr int kTile = 4, kKernel = 3, kSide = kTile + kKernel - 1, kElements = kSide * kSide;
constexpr int kBlock = 32;   // channels of src that lie side by side in the matrices
constexpr int kVector = 16;  // channels of dst that are computed at once
constexpr int kPair = 2;     // channels that an instruction multiplies and adds up
constexpr int kLine = 64;    // bytes of a vector
// Tiles whose products are added up in registers, and between whose loads weights stay in the first
// cache.
constexpr int kMostAtOnce = 14, kMostInChunk = 2 * kMostAtOnce;

// Of channels that are added up before A^T: 7 · 32 · 3 · 3 · 128 · 128 · 64 < 2³¹.
constexpr int kMostBlocks = 7;

/*! \brief How a convolution's channels are added up: in groups of a few blocks. */
struct Channels {
  int64_t in, out;

  int64_t blocks() const { return (in + kBlock - 1) / kBlock; }
  int64_t groups() const { return (blocks() + kMostBlocks - 1) / kMostBlocks; }
  /*! \brief The first block of a group, or of the one after the last. */
  int64_t first_block(int64_t group) const { return group * blocks() / groups(); }
  /*! \brief Of channels, in the blocks before that one. */
  int64_t pairs_before(int64_t block) const {
    return block < blocks() ? block * (kBlock / kPair) : (in + kPair - 1) / kPair;
  }
  int64_t vectors() const { return (out + kVector - 1) / kVector; }
  /*! \brief Of the weights' matrices, in numbers, for one vector. */
  int64_t weights_of_vector() const { return kElements * pairs_before(blocks()) * kPair * kVector; }
};

/*! \brief What is convolved, and how. */
struct Convolution {
  Image src, dst;  // channels lie side by side
  int64_t batch;
  Channels channels;
  int64_t padding_top, padding_left;
  bool is_src_signed;
  uint8_t padding;  // what stands for zero, of a signed src 128 more
  bool adds, is_addend_signed;
  float addend_factor;
  int32_t least, most;  // of a result
  int64_t threads;      // at most

  int64_t rows() const { return (dst.height + kTile - 1) / kTile; }
  int64_t columns() const { return (dst.width + kTile - 1) / kTile; }
  kernels::Parts chunks() const {
    return kernels::chunks(batch * rows() * columns(), kMostInChunk, threads);
  }
  /*! \brief The memory that each thread works in. */
  int64_t workspace_bytes() const {
    const int64_t lines = kElements * (channels.blocks() + 1) + kTile * kTile;
    return chunks().most() * lines * kLine;
  }
};

/*! \brief By channel of dst, in whole vectors. */
struct Constants {
  const int16_t* weights;        // see arrange_weights()
  const int32_t* starts;         // see arrange_starts()
  const float *factors, *terms;  // a result is sum · factor + term
};

/*!
 * \brief Rounds to the nearest, of two to the even one, and saturates; NaN becomes the least.
 * \param addend An image like dst, perhaps dst itself, or null.
 * \param workspace workspace_bytes() for each thread.
 */
using Function = void (*)(const Convolution&, const Constants&, const void* src, const void* addend,
                          void* workspace, void* dst);

Function avx512_vnni_function();

/*!
 * \brief g → G g G^T: by vector, group, element of the tile, pair of channels, channel of dst.
 * \param weights Row-major (O, I, 3, 3).
 */
void arrange_weights(const Channels& channels, const int8_t* weights, int16_t* arranged);

/*!
 * \brief What makes up for zero not being in the middle of src's numbers.
 * \param padding As Convolution's.
 */
void arrange_starts(const Channels& channels, uint8_t padding, const int8_t* weights,
                    int32_t* starts);

}  // namespace winograd_of_bytes
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_OF_BYTES_H_
