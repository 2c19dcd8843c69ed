/*!
 * \file dot_of_floats.h
 * \brief Products of one row, for the files that are compiled for one instruction set.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_DOT_OF_FLOATS_H_
#define DNNL_BYOC_ENGINE_KERNELS_DOT_OF_FLOATS_H_

#include "dot.h"
#include "vectors.h"

namespace dnnl_byoc {
namespace dot {
namespace {

template <int V>
void dot(const void* vector, const void* rows, int64_t length, void* sums) {
  using Vectors = kernels::VectorOf<V>;
  const auto *x = static_cast<const float*>(vector), *w = static_cast<const float*>(rows);
  typename Vectors::Type parts[kRows] = {};
  int64_t i = 0;
  for (; i + V <= length; i += V) {
    const auto values = Vectors::load(x + i);
    for (int row = 0; row < kRows; ++row)
      parts[row] += values * Vectors::load(w + row * length + i);
  }
  for (int row = 0; row < kRows; ++row) {
    float sum = 0;
    for (int lane = 0; lane < V; ++lane) sum += parts[row][lane];
    for (int64_t k = i; k < length; ++k) sum += x[k] * w[row * length + k];
    static_cast<float*>(sums)[row] = sum;
  }
}

}  // namespace
}  // namespace dot
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_DOT_OF_FLOATS_H_
