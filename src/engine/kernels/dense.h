/*!
 * \file dense.h
 * \brief What our own convolutions without groups have in common that multiply pixels of src, of
 * floats or bytes, with matrices of weights as they are.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_DENSE_H_
#define DNNL_BYOC_ENGINE_KERNELS_DENSE_H_

#include "chunks.h"

namespace dnnl_byoc {
namespace dense {

constexpr int kBlock = 64;                 // channels of dst that results are made of at once
constexpr int kLanes = 16;                 // channels in a vector of sums
constexpr int kVectors = kBlock / kLanes;  // of sums
constexpr int kWord = 4;                   // bytes of a pixel that an instruction adds to one sum
// Pixels that are multiplied with one block after the other: so many leave src in the second cache,
// and read weights from behind it seldom enough.
constexpr int64_t kMostInChunk = 64;

/*! \brief Bytes, u8 or s8, stand for other numbers, see quantization.h; dst may be in f32 then. */
enum class DataType { u8, s8, bf16, f32 };

/*! \brief What becomes of the sums; strides are from pixel to pixel, in bytes. */
struct Results {
  int64_t channels;
  DataType dtype;
  int64_t stride;
  bool adds;              // another image like dst
  DataType addend_dtype;  // of floats, the same as dst's
  int64_t addend_stride;
  float addend_factor;  // of bytes
  float least, most;    // of a result

  int64_t blocks() const { return kernels::parts_of_at_most(kBlock, channels).count; }
  /*! \brief How many a block has channels for: all, or fewer in the last one. */
  int64_t vectors(int64_t block) const {
    const int64_t left = kernels::parts_of_at_most(kLanes, channels - block * kBlock).count;
    return left < kVectors ? left : kVectors;
  }
};

/*! \brief The constants of a convolution, by channel of dst, in whole blocks. */
struct Constants {
  const void* weights;           // (blocks, row of the window, column, words, kBlock, word)
  const void* starts;            // what a sum starts with: of bytes whole numbers, else floats
  const float *factors, *terms;  // of bytes: a result is sum · factor + term
};

}  // namespace dense
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_DENSE_H_
