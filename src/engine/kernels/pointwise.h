/*!
 * \file pointwise.h
 * \brief 1 × 1 convolution of bytes: whole numbers that stand for others, see quantization.h.
 *
 * For each pixel a product of its channels with a matrix. Where the channels of src are few, what
 * becomes of a sum takes as long as the sum: here that is done for 64 channels of dst at once,
 * which are made bytes before they are cut off, and another image is added on the way.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_POINTWISE_H_
#define DNNL_BYOC_ENGINE_KERNELS_POINTWISE_H_

#include "chunks.h"

namespace dnnl_byoc {
namespace pointwise {

constexpr int kBlock = 64;    // channels of dst that are computed at once
constexpr int kTogether = 4;  // channels of src that an instruction multiplies and adds up

/*! \brief What is added to the result before it is rounded. */
enum class Addend { none, u8, s8 };

/*! \brief What is convolved: bytes, unsigned ones in src, whose pixels lie in lines. */
struct Convolution {
  int64_t pixels, in_channels, out_channels;
  int64_t src_stride, dst_stride, addend_stride;  // from pixel to pixel
  Addend addend;
  float addend_factor;
  bool is_dst_signed;
  uint8_t least, most;  // of a result, as its bits
  int64_t threads;      // at most

  int64_t blocks() const { return (out_channels + kBlock - 1) / kBlock; }
  /*! \brief Of a block's weights, in bytes. */
  int64_t block_bytes() const { return in_channels * kBlock; }
  kernels::Chunks chunks() const { return {pixels, kMostInChunk, blocks(), threads}; }

 private:
  // So many leave src in the second cache, and read weights from behind it seldom enough.
  static constexpr int64_t kMostInChunk = 48;
};

/*! \brief The constants of a convolution, for its blocks one after the other. */
struct Constants {
  const int8_t* weights;         // see arrange_weights()
  const int32_t* starts;         // by channel: what the sum of the products starts with
  const float *factors, *terms;  // by channel: a result is sum · factor + term
};

/*!
 * \brief Rounds to the nearest, of two to the even one, and saturates.
 *
 * The results have to be less than 2³¹ before that.
 */
using Function = void (*)(const Convolution&, const Constants&, const void* src, const void* addend,
                          void* dst);

Function avx512_vnni_function();

/*! \name Constants in the order in which the kernel meets them; without a channel, zero. */
///@{
/*! \param weights Row-major (out_channels, in_channels). */
void arrange_weights(const Convolution& c, const int8_t* weights, int8_t* arranged);

/*! \brief What makes up for zero being `zero` in src. */
void arrange_starts(const Convolution& c, uint8_t zero, const int8_t* weights, int32_t* starts);

void arrange(const Convolution& c, const float* by_channel, float* arranged);
///@}

}  // namespace pointwise
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_POINTWISE_H_
