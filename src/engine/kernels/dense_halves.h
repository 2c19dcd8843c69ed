/*!
 * \file dense_halves.h
 * \brief Results in bf16 that are made of sums of floats, with AVX-512; see vectors.h.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_DENSE_HALVES_H_
#define DNNL_BYOC_ENGINE_KERNELS_DENSE_HALVES_H_

#include <immintrin.h>

#include "dense.h"
#include "vectors.h"

namespace dnnl_byoc {
namespace {

using kernels::Bf16;
using Floats = kernels::VectorOf<kernels::kAvx512Vector>;

/*! \brief Stores the sums of a block's channels. */
template <bool kAdds>
class FinishHalves {
 public:
  FinishHalves(const dense::Results& r, const dense::Constants&, int64_t channel,
               const void* addend, void* dst)
      : vectors_((r.channels - channel) / dense::kLanes),
        addend_(static_cast<const char*>(addend) + (kAdds ? channel * kBytes : 0)),
        dst_(static_cast<char*>(dst) + channel * kBytes),
        addend_stride_(r.addend_stride),
        dst_stride_(r.stride),
        least_(r.least),
        most_(r.most) {}

  void operator()(const Floats::Type (&sums)[dense::kVectors], int64_t pixel) const {
    const __m512 least = _mm512_set1_ps(least_), most = _mm512_set1_ps(most_);
    const char* addend = addend_ + (kAdds ? pixel * addend_stride_ : 0);
    char* dst = dst_ + pixel * dst_stride_;
#pragma GCC unroll 4
    for (int v = 0; v < dense::kVectors; ++v) {
      if (v >= vectors_) break;
      const int64_t offset = v * dense::kLanes * kBytes;
      __m512 x = sums[v];
      if (kAdds) x += Floats::load(reinterpret_cast<const Bf16*>(addend + offset));
      // In this order, what is no number stays none.
      x = _mm512_maskz_min_ps(kAll, most, _mm512_maskz_max_ps(kAll, least, x));
      const __m256bh halves = _mm512_maskz_cvtneps_pbh(kAll, x);
      __builtin_memcpy(dst + offset, &halves, sizeof(halves));
    }
  }

 private:
  static constexpr __mmask16 kAll = 0xffff;
  static constexpr int64_t kBytes = sizeof(Bf16);

  const int64_t vectors_;
  const char* const addend_;
  char* const dst_;
  const int64_t addend_stride_, dst_stride_;
  const float least_, most_;
};

}  // namespace
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_DENSE_HALVES_H_
