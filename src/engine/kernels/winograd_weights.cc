#include <vector>

#include "winograd.h"

namespace dnnl_byoc {
namespace winograd {
namespace {

/*! \brief G of one side, n rows: 1, p, p², … over the product of p's distances from the others. */
std::vector<double> filter_matrix(int tile, int64_t side) {
  const int64_t n = tile + side - 1;
  if (n == 1) return {1};
  std::vector<double> points = {0};  // the finite ones
  for (int64_t i = 0; i < n / 2 - 1; ++i) {
    const double point = kPoints[n / 2 - 2][i];
    points.insert(points.end(), {point, -point});
  }
  std::vector<double> matrix;
  for (const double p : points) {
    double entry = 1;
    for (const double other : points)
      if (other != p) entry /= p - other;
    for (int64_t k = 0; k < side; ++k, entry *= p) matrix.push_back(entry);
  }
  matrix.insert(matrix.end(), side - 1, 0);
  matrix.push_back(1);  // ∞
  return matrix;
}

}  // namespace

int tile_along(int tile, int64_t side) { return side == 1 ? 1 : tile; }

void transform_weights(int tile, const KernelSize& kernel, int64_t out_channels,
                       int64_t in_channels, const float* weights, float* matrices) {
  const int64_t height = kernel.height, width = kernel.width;
  const auto vertical = filter_matrix(tile_along(tile, height), height);
  const auto horizontal = filter_matrix(tile_along(tile, width), width);
  const int64_t rows = vertical.size() / height, columns = horizontal.size() / width;
  const int64_t matrix_stride = in_channels * out_channels;
#pragma omp parallel for schedule(static)
  for (int64_t in = 0; in < in_channels; ++in) {
    std::vector<double> row(width);  // of G g
    for (int64_t out = 0; out < out_channels; ++out) {
      const float* w = weights + (out * in_channels + in) * height * width;
      float* result = matrices + in * out_channels + out;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t x = 0; x < width; ++x) {
          row[x] = 0;
          for (int64_t y = 0; y < height; ++y)
            row[x] += vertical[i * height + y] * w[y * width + x];
        }
        for (int64_t j = 0; j < columns; ++j) {
          double sum = 0;
          for (int64_t x = 0; x < width; ++x) sum += horizontal[j * width + x] * row[x];
          result[(i * columns + j) * matrix_stride] = static_cast<float>(sum);
        }
      }
    }
  }
}

}  // namespace winograd
}  // namespace dnnl_byoc
