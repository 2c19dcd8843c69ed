/*!
 * \file normalization.h
 * \brief Batch normalization of pixels, perhaps to bytes: whole numbers that stand for others.
 *
 * For bytes, oneDNN normalizes, writes floats, and reads them again to round them. Besides, here
 * src may be what a concat would put together: in a DenseNet in int8, both took half of the time.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_NORMALIZATION_H_
#define DNNL_BYOC_ENGINE_KERNELS_NORMALIZATION_H_

#include "image.h"

namespace dnnl_byoc {
namespace normalization {

/*! \brief By channel. */
struct Statistics {
  const float *scale, *shift, *mean, *variance;
};

/*! \brief Some of the channels: those of a pixel lie side by side. */
struct Part {
  const void* src;
  int64_t channels;
};

struct Normalization {
  int64_t pixels;
  int64_t channels;  // of all parts
  float epsilon;
  kernels::Activation activation;
  float number_scale = 1.f, zero_point = 0.f;  // what bytes stand for
};

/*! \brief What is normalized, and with what. */
struct Source {
  const Part* parts;  // in the order of their channels; each has channels for one vector
  int64_t count;      // of parts
  Statistics statistics;
  float* factors;  // for what is computed from the statistics: two floats for each channel
};

/*! \brief Rounds bytes to the nearest, of two to the even one, and saturates. */
using Function = void (*)(const Normalization&, const Source&, void* dst);

/*! \name For one instruction set: of f32 or bf16, to u8 or s8; of f32 to the same. */
///@{
Function avx2_function(bool is_bf16, bool is_signed);
Function avx512_function(bool is_bf16, bool is_signed);
Function avx512_function_of_floats();
///@}

}  // namespace normalization
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_NORMALIZATION_H_
