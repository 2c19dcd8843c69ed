/*!
 * \file channel_order.h
 * \brief Which channel is where in four vectors of 32-bit numbers of which one of bytes is made.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_CHANNEL_ORDER_H_
#define DNNL_BYOC_ENGINE_KERNELS_CHANNEL_ORDER_H_

#include <cstdint>

namespace dnnl_byoc {
namespace kernels {

/*!
 * \brief The place of a channel's number in the four vectors, one after the other.
 *
 * Instructions put the numbers of two vectors together in lanes of 16 bytes. Done twice, four
 * numbers of each vector are left side by side in each lane.
 * \param width Of channels, 16 in a lane.
 */
inline int64_t place_of(int64_t channel, int64_t width) {
  constexpr int64_t kLane = 16, kOfLane = 4;
  const int64_t lane = channel / kLane, vector = channel % kLane / kOfLane;
  return vector * width / kOfLane + lane * kOfLane + channel % kOfLane;
}

}  // namespace kernels
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_CHANNEL_ORDER_H_
