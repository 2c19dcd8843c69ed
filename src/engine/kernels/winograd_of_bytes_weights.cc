#include <algorithm>
#include <numeric>

#include "winograd_of_bytes.h"

namespace dnnl_byoc {
namespace winograd_of_bytes {
namespace {

// Lagrange's divisors of the points are 4, -6, -6, 24, 24 and 1: after these multiples of the rows
// of G, A^T's columns have to be multiplied with 1, and that of ∞ with 2, to give 24 times dst.
constexpr int kFilter[kSide][kKernel] = {{6, 0, 0}, {-4, -4, -4}, {-4, 4, -4},
                                         {1, 2, 4}, {1, -2, 4},   {0, 0, 12}};

/*! \brief G g G^T. */
void transform(const int8_t* g, int16_t (&matrix)[kElements]) {
  for (int i = 0; i < kSide; ++i) {
    int row[kKernel] = {};
    for (int x = 0; x < kKernel; ++x)
      for (int y = 0; y < kKernel; ++y) row[x] += kFilter[i][y] * g[y * kKernel + x];
    for (int j = 0; j < kSide; ++j)
      matrix[i * kSide + j] =
          static_cast<int16_t>(std::inner_product(row, row + kKernel, kFilter[j], 0));
  }
}

}  // namespace

void arrange_weights(const Channels& channels, const int8_t* weights, int16_t* arranged) {
  std::fill_n(arranged, channels.vectors() * channels.weights_of_vector(), int16_t{0});
#pragma omp parallel for schedule(static)
  for (int64_t out = 0; out < channels.out; ++out) {
    int16_t* vector = arranged + out / kVector * channels.weights_of_vector();
    for (int64_t group = 0; group < channels.groups(); ++group) {
      const int64_t first = channels.pairs_before(channels.first_block(group));
      const int64_t pairs = channels.pairs_before(channels.first_block(group + 1)) - first;
      const int64_t last = std::min(kPair * (first + pairs), channels.in);
      for (int64_t in = kPair * first; in < last; ++in) {
        int16_t matrix[kElements];
        transform(weights + (out * channels.in + in) * kKernel * kKernel, matrix);
        const int64_t pair = in / kPair - first;
        for (int64_t e = 0; e < kElements; ++e) {
          const int64_t place = (kElements * first + e * pairs + pair) * kVector + out % kVector;
          vector[place * kPair + in % kPair] = matrix[e];
        }
      }
    }
  }
}

void arrange_starts(const Channels& channels, uint8_t padding, const int8_t* weights,
                    int32_t* starts) {
  std::fill_n(starts, channels.vectors() * kVector, 0);
  const int64_t size = channels.in * kKernel * kKernel;
  for (int64_t out = 0; out < channels.out; ++out) {
    const int8_t* first = weights + out * size;
    starts[out] = (128 - padding) * std::accumulate(first, first + size, int32_t{0});
  }
}

}  // namespace winograd_of_bytes
}  // namespace dnnl_byoc
