/*!
 * \file pooling.h
 * \brief Pooling of bytes: whole numbers that stand for others, see quantization.h.
 *
 * oneDNN's takes more than twice as long: 0.72 ms for Inception's nine averages on two cores, these
 * 0.32.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_POOLING_H_
#define DNNL_BYOC_ENGINE_KERNELS_POOLING_H_

#include "image.h"

namespace dnnl_byoc {
namespace pooling {

constexpr int64_t kMostPixels = 256;  // of a window: their sum has 16 bits

/*! \brief What is pooled: images whose channels lie side by side. */
struct Pooling {
  kernels::Image src, dst;
  int64_t batch, channels;
  kernels::WindowSide rows, columns;
  // Of averages:
  bool counts_padding = false;     // as zeros
  float scale = 1.f, shift = 0.f;  // before it is rounded
};

/*! \brief Averages are rounded to the nearest, of two to the even one, and saturate. */
using Function = void (*)(const Pooling&, const void* src, void* dst);

/*! \brief For one instruction set, and s8 or u8. There have to be channels for one vector. */
Function avx2_function(bool is_maximum, bool is_signed);
Function avx512_function(bool is_maximum, bool is_signed);

}  // namespace pooling
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_POOLING_H_
