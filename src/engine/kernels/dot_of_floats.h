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

float as_float(float x) { return x; }

[[maybe_unused]] float as_float(kernels::Bf16 x) {
  const uint32_t bits = uint32_t{x.bits} << 16;
  float result;
  __builtin_memcpy(&result, &bits, sizeof(bits));
  return result;
}

/*! \tparam T float, or kernels::Bf16. */
template <int V, class T>
void dot(const void* vector, const void* rows, int64_t length, void* sums) {
  using Vectors = kernels::VectorOf<V>;
  const auto *x = static_cast<const T*>(vector), *w = static_cast<const T*>(rows);
  typename Vectors::Type parts[kRows] = {};
  int64_t whole = 0;
  for (; whole + V <= length; whole += V) {
    const auto values = Vectors::load(x + whole);
    for (int row = 0; row < kRows; ++row)
      parts[row] += values * Vectors::load(w + row * length + whole);
  }
  for (int row = 0; row < kRows; ++row) {
    float sum = 0;
    for (int lane = 0; lane < V; ++lane) sum += parts[row][lane];
    for (int64_t i = whole; i < length; ++i) sum += as_float(x[i]) * as_float(w[row * length + i]);
    static_cast<float*>(sums)[row] = sum;
  }
}

}  // namespace
}  // namespace dot
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_DOT_OF_FLOATS_H_
