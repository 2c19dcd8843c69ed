/*!
 * \file dense_floats.h
 * \brief Results that are made of sums of floats, with AVX-512; see vectors.h.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_DENSE_FLOATS_H_
#define DNNL_BYOC_ENGINE_KERNELS_DENSE_FLOATS_H_

#include <immintrin.h>

#include "dense.h"

namespace dnnl_byoc {
namespace {

/*! \brief dst's elements as they are; see Halves, too. */
struct Singles {
  static constexpr int64_t kBytes = sizeof(float);

  static __m512 load(const void* p, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, p); }
  static void store(void* p, __m512 x, __mmask16 mask) { _mm512_mask_storeu_ps(p, mask, x); }
};

/*! \brief Stores the sums of a block's channels. */
template <class Elements, bool kAdds>
class FinishFloats {
 public:
  FinishFloats(const dense::Results& r, const dense::Constants&, int64_t channel,
               const void* addend, void* dst)
      : addend_(static_cast<const char*>(addend) + (kAdds ? channel * kBytes : 0)),
        dst_(static_cast<char*>(dst) + channel * kBytes),
        addend_stride_(r.addend_stride),
        dst_stride_(r.stride),
        least_(r.least),
        most_(r.most) {
    for (int64_t v = 0; v < dense::kVectors; ++v) {
      const int64_t left = r.channels - channel - v * dense::kLanes;
      masks_[v] = static_cast<__mmask16>(left >= dense::kLanes ? kAll
                                         : left > 0            ? (1 << left) - 1
                                                               : 0);
    }
  }

  void operator()(const __m512 (&sums)[dense::kVectors], int64_t pixel) const {
    const __m512 least = _mm512_set1_ps(least_), most = _mm512_set1_ps(most_);
    const char* addend = addend_ + (kAdds ? pixel * addend_stride_ : 0);
    char* dst = dst_ + pixel * dst_stride_;
#pragma GCC unroll 4
    for (int v = 0; v < dense::kVectors; ++v) {
      const int64_t offset = v * dense::kLanes * kBytes;
      __m512 x = sums[v];
      if (kAdds) x += Elements::load(addend + offset, masks_[v]);
      // In this order, what is no number stays none.
      x = _mm512_maskz_min_ps(kAll, most, _mm512_maskz_max_ps(kAll, least, x));
      Elements::store(dst + offset, x, masks_[v]);
    }
  }

 private:
  static constexpr __mmask16 kAll = 0xffff;
  static constexpr int64_t kBytes = Elements::kBytes;

  const char* const addend_;
  char* const dst_;
  const int64_t addend_stride_, dst_stride_;
  const float least_, most_;
  __mmask16 masks_[dense::kVectors];
};

}  // namespace
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_DENSE_FLOATS_H_
