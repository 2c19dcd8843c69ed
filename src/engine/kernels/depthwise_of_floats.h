/*!
 * \file depthwise_of_floats.h
 * \brief Depthwise 3 × 3 convolution of floats.
 *
 * A thread goes along two rows of dst at once, and multiplies each pixel of src for all that it is
 * needed for there, so that it is read twice and not three times. Where images are large and
 * channels lie in blocks, that takes two thirds of the time that oneDNN's kernels do: 37 and 56 µs
 * for 32 channels of 112 × 112 pixels on two cores. Where they are small, both take as long.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_DEPTHWISE_OF_FLOATS_H_
#define DNNL_BYOC_ENGINE_KERNELS_DEPTHWISE_OF_FLOATS_H_

#include "image.h"

namespace dnnl_byoc {
namespace depthwise_of_floats {

constexpr int64_t kKernel = 3;  // along both sides

/*! \brief What is convolved: images of whole vectors of channels. */
struct Convolution {
  kernels::Image src, dst;
  int64_t batch, channel_vectors;
  kernels::WindowSide rows, columns;
  float least, most;  // of a result
};

/*!
 * \param weights (kKernel, kKernel, channels).
 * \param bias By channel.
 */
using Function = void (*)(const Convolution&, const float* src, const float* weights,
                          const float* bias, float* dst);

/*! \brief For strides of 1 or 2, alike along both sides; null for others. */
Function avx512_function(int64_t stride);

}  // namespace depthwise_of_floats
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_DEPTHWISE_OF_FLOATS_H_
