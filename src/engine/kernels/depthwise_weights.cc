#include <algorithm>
#include <numeric>

#include "depthwise.h"

namespace dnnl_byoc {
namespace depthwise {
namespace {

// The bytes of two vectors are put together in lanes of 16, low and high halves apart; twice, this
// leaves in each of four vectors four channels of each lane.
constexpr int64_t kLane = 16, kOfLane = 4;

/*! \brief Where the 32-bit number of a channel is in its block. */
int64_t place(int64_t channel, int64_t width) {
  const int64_t lane = channel / kLane, vector = channel % kLane / kOfLane;
  return vector * width / kOfLane + lane * kOfLane + channel % kOfLane;
}

/*! \brief Calls f(channel, place in the arranged numbers) for all. */
template <class F>
void for_channels(const Convolution& c, F f) {
  for (int64_t channel = 0; channel < c.channels; ++channel) {
    const int64_t block = channel / kBlock;
    f(channel, block * kBlock + place(channel % kBlock, c.width(block)));
  }
}

}  // namespace

void arrange_weights(const Convolution& c, const int8_t* weights, int8_t* arranged) {
  std::fill_n(arranged, c.blocks() * c.block_bytes(), int8_t{0});
  const int64_t groups = c.groups(), height = c.rows.kernel, width = c.columns.kernel;
  for_channels(c, [&](int64_t channel, int64_t number) {
    const int64_t block = channel / kBlock;
    int8_t* to = arranged + block * c.block_bytes() + number % kBlock * kTogether;
    const int8_t* from = weights + channel * height * width;
    for (int64_t result = 0; result < c.rows_at_once(); ++result)
      for (int64_t i = 0; i < height; ++i)
        for (int64_t j = 0; j < width; ++j) {
          const int64_t row = result * c.rows.stride + i;
          const int64_t vectors = (result * width + j) * groups + row / kTogether;
          to[vectors * kTogether * c.width(block) + row % kTogether] = from[i * width + j];
        }
  });
}

void arrange_starts(const Convolution& c, const int8_t* weights, int32_t* starts) {
  std::fill_n(starts, c.blocks() * kBlock, 0);
  const int64_t size = c.rows.kernel * c.columns.kernel;
  for_channels(c, [&](int64_t channel, int64_t number) {
    const int8_t* first = weights + channel * size;
    starts[number] = -c.padding * std::accumulate(first, first + size, int32_t{0});
  });
}

void arrange(const Convolution& c, const float* by_channel, float* arranged) {
  std::fill_n(arranged, c.blocks() * kBlock, 0.f);
  for_channels(c, [&](int64_t channel, int64_t number) { arranged[number] = by_channel[channel]; });
}

}  // namespace depthwise
}  // namespace dnnl_byoc
