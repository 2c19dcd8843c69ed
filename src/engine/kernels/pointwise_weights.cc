#include <algorithm>
#include <numeric>

#include "channel_order.h"
#include "pointwise.h"

namespace dnnl_byoc {
namespace pointwise {
namespace {

/*! \brief The place of a channel's number among those of all blocks. */
int64_t place(int64_t channel) {
  return channel / kBlock * kBlock + kernels::place_of(channel % kBlock, kBlock);
}

}  // namespace

void arrange_weights(const Convolution& c, const int8_t* weights, int8_t* arranged) {
  std::fill_n(arranged, c.blocks() * c.block_bytes(), int8_t{0});
#pragma omp parallel for schedule(static)
  for (int64_t out = 0; out < c.out_channels; ++out) {
    int8_t* to = arranged + out / kBlock * c.block_bytes() + place(out) % kBlock * kTogether;
    for (int64_t in = 0; in < c.in_channels; ++in)
      to[in / kTogether * kTogether * kBlock + in % kTogether] = weights[out * c.in_channels + in];
  }
}

void arrange_starts(const Convolution& c, uint8_t zero, const int8_t* weights, int32_t* starts) {
  std::fill_n(starts, c.blocks() * kBlock, 0);
  for (int64_t out = 0; out < c.out_channels; ++out) {
    const int8_t* first = weights + out * c.in_channels;
    starts[place(out)] = -zero * std::accumulate(first, first + c.in_channels, int32_t{0});
  }
}

void arrange(const Convolution& c, const float* by_channel, float* arranged) {
  std::fill_n(arranged, c.blocks() * kBlock, 0.f);
  for (int64_t out = 0; out < c.out_channels; ++out) arranged[place(out)] = by_channel[out];
}

}  // namespace pointwise
}  // namespace dnnl_byoc
