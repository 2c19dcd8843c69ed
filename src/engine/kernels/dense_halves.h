/*!
 * \file dense_halves.h
 * \brief Results in bf16, for the files that are compiled for its instructions; see vectors.h.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_DENSE_HALVES_H_
#define DNNL_BYOC_ENGINE_KERNELS_DENSE_HALVES_H_

#include "dense_floats.h"

namespace dnnl_byoc {
namespace {

struct Halves {
  static constexpr int64_t kBytes = 2;

  static __m512 load(const void* p, __mmask16 mask) {
    const __m512i bits = _mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, p));
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(mask, bits, 16));
  }
  static void store(void* p, __m512 x, __mmask16 mask) {
    const auto halves = (__m256i)_mm512_maskz_cvtneps_pbh(mask, x);
    _mm256_mask_storeu_epi16(p, mask, halves);
  }
};

}  // namespace
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_DENSE_HALVES_H_
