/*!
 * \file pixels.h
 * \brief Images of three channels, each in a plane of floats, as pixels of whole numbers, bf16, or
 * floats.
 *
 * That is what an image becomes before the first convolution: oneDNN's reorder takes 0.05 ms for
 * 224 × 224 pixels on two cores, this 0.01.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_PIXELS_H_
#define DNNL_BYOC_ENGINE_KERNELS_PIXELS_H_

#include <cstdint>

namespace dnnl_byoc {
namespace pixels {

constexpr int kChannels = 3;

/*! \brief A number is x · factor + point, rounded; bf16 and floats are x. */
struct Images {
  int64_t batch, size;  // pixels of one
  float factor, point;
};

/*! \brief Rounds to the nearest, of two to the even one, and saturates; NaN becomes the least. */
using Function = void (*)(const Images&, const float* src, void* dst);

/*! \brief What pixels are of. */
enum class Type { u8, s8, bf16, f32 };

/*! \brief There have to be pixels for one vector. */
Function avx512_function(Type type);

}  // namespace pixels
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_PIXELS_H_
