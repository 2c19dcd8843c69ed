/*!
 * \file pointwise.h
 * \brief 1 × 1 convolution: for each pixel a product of its channels with a matrix.
 *
 * What oneDNN's lacks is in the ends: where the channels of src are few, what becomes of a sum
 * takes as long as the sum. Here it is done for 64 channels of dst at once, of which bytes are made
 * before they are cut off, and another image is added on the way.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_POINTWISE_H_
#define DNNL_BYOC_ENGINE_KERNELS_POINTWISE_H_

#include "chunks.h"

namespace dnnl_byoc {
namespace pointwise {

constexpr int kBlock = 64;  // channels of dst that are computed at once
constexpr int kWord = 4;    // bytes of a pixel that an instruction multiplies
constexpr int kLanes = 16;  // channels in a vector

/*! \brief Bytes, u8 in src, stand for other numbers, see quantization.h; dst may be in f32 then. */
enum class DataType { u8, s8, bf16, f32 };

/*! \brief What is convolved, pixels that lie in lines, and what becomes of the sums. */
struct Convolution {
  int64_t pixels, words;  // of src, in each pixel
  int64_t out_channels;
  int64_t src_stride, dst_stride, addend_stride;  // from pixel to pixel, in bytes
  DataType dst, addend;                           // of bf16, the same
  bool adds;
  float addend_factor;  // of bytes
  float least, most;    // of a result
  int64_t threads;      // at most

  int64_t blocks() const { return kernels::parts_of_at_most(kBlock, out_channels).count; }
  kernels::Chunks chunks() const { return {pixels, kMostInChunk, blocks(), threads}; }

 private:
  // So many leave src in the second cache, and read weights from behind it seldom enough.
  static constexpr int64_t kMostInChunk = 48;
};

/*! \brief The constants of a convolution, by channel, in whole blocks. */
struct Constants {
  const void* weights;           // (blocks, words, kBlock, word)
  const void* starts;            // what a sum starts with: whole numbers of 32 bits, of bf16 floats
  const float *factors, *terms;  // of bytes: a result is sum · factor + term
};

/*!
 * \param addend An image like dst, perhaps dst itself, or null.
 *
 * Results in bytes are rounded to the nearest, of two to the even one, and saturate; they have to
 * be less than 2³¹ before that.
 */
using Function = void (*)(const Convolution&, const Constants&, const void* src, const void* addend,
                          void* dst);

/*! \name For src in bf16 and bytes; in bf16, for out_channels in whole vectors of kLanes. */
///@{
Function avx512_bf16_function();
Function avx512_vnni_function();
///@}

}  // namespace pointwise
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_POINTWISE_H_
