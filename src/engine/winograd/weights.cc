#include <vector>

#include "winograd.h"

namespace dnnl_byoc {
namespace winograd {
namespace {

/*! \brief The finite points of m = 2 and m = 4. */
std::vector<double> points(int tile) {
  if (tile == 2) return {0, 1, -1};
  return {0, 0.75, -0.75, 1.5, -1.5};
}

/*! \brief G, n rows of 3: 1, p, p² over the product of p's distances from the others; ∞ last. */
std::vector<double> filter_matrix(int tile) {
  std::vector<double> matrix;
  const auto finite = points(tile);
  for (const double p : finite) {
    double distances = 1;
    for (const double other : finite)
      if (other != p) distances *= p - other;
    matrix.insert(matrix.end(), {1 / distances, p / distances, p * p / distances});
  }
  matrix.insert(matrix.end(), {0, 0, 1});
  return matrix;
}

}  // namespace

void transform_weights(int tile, int64_t out_channels, int64_t in_channels, const float* weights,
                       float* matrices) {
  const auto g = filter_matrix(tile);
  const int n = tile + 2;
  const int64_t matrix_stride = in_channels * out_channels;
#pragma omp parallel for schedule(static)
  for (int64_t in = 0; in < in_channels; ++in)
    for (int64_t out = 0; out < out_channels; ++out) {
      const float* w = weights + (out * in_channels + in) * 9;
      float* result = matrices + in * out_channels + out;
      for (int i = 0; i < n; ++i) {
        double row[3];
        for (int k = 0; k < 3; ++k)
          row[k] = g[i * 3] * w[k] + g[i * 3 + 1] * w[3 + k] + g[i * 3 + 2] * w[6 + k];
        for (int j = 0; j < n; ++j)
          result[(i * n + j) * matrix_stride] =
              static_cast<float>(row[0] * g[j * 3] + row[1] * g[j * 3 + 1] + row[2] * g[j * 3 + 2]);
      }
    }
}

}  // namespace winograd
}  // namespace dnnl_byoc
