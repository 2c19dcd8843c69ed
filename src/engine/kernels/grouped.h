/*!
 * \file grouped.h
 * \brief 3 × 3 convolutions of groups that are narrower than a vector.
 *
 * V output channels are those of V / g groups of g channels, and depend on the same V channels of
 * src. Of each of its pixels g vectors are made, in the i-th of which all channels of a group are
 * its i-th one; they are multiplied with the weights that all channels of dst have for that one. So
 * none is multiplied with zero, as where V / g groups are put together as one.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_GROUPED_H_
#define DNNL_BYOC_ENGINE_KERNELS_GROUPED_H_

#include "image.h"

namespace dnnl_byoc {
namespace grouped {

constexpr int64_t kKernel = 3;  // along both sides

struct Convolution {
  kernels::Image src, dst;
  int64_t batch, channel_vectors;
  int64_t row_step;  // rows of src from one of dst to the next
  int64_t padding_top, padding_left;
  kernels::Activation activation;
};

/*! \param weights As arrange_weights() leaves them. \param bias By channel, or null.
 *  \param addend An image like dst, perhaps dst itself, or null. */
using Function = void (*)(const Convolution&, const float* src, const float* weights,
                          const float* bias, const float* addend, float* dst);

/*!
 * \brief For one instruction set; null where there is none.
 *
 * \param group The channels of a group. \param stride Columns of src from one of dst to the next.
 */
Function avx2_function(int64_t group, int64_t stride);
Function avx512_function(int64_t group, int64_t stride);

/*!
 * \brief (channels, group, 3, 3) → (channels / V, 3, group, 3, V).
 *
 * \param vector V.
 */
void arrange_weights(int64_t channels, int64_t group, int64_t vector, const float* weights,
                     float* arranged);

}  // namespace grouped
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_GROUPED_H_
