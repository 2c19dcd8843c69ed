#include <immintrin.h>

#include "pointwise_convolution.h"
#include "vectors.h"

namespace dnnl_byoc {
namespace {

using kernels::Bf16;
using Floats = kernels::VectorOf<kernels::kAvx512Vector>;

/*! \brief See pointwise_convolution.h. */
struct TwoHalves {
  using Sums = Floats::Type;
  using Words = __m512bh;

  static Sums start(const void* p) { return _mm512_loadu_ps(p); }
  static Words load(const void* p) { return (Words)_mm512_loadu_si512(p); }
  static Words all(const void* word) {
    int32_t halves;
    __builtin_memcpy(&halves, word, sizeof(halves));
    return (Words)_mm512_set1_epi32(halves);
  }
  static Sums multiply_add(Sums sums, Words x, Words w) { return _mm512_dpbf16_ps(sums, x, w); }
  static Sums in_register(Sums x) {
    asm("" : "+v"(x));
    return x;
  }
};

/*! \brief Stores the sums of a block's channels. */
template <bool kAdds>
class FinishHalves {
 public:
  FinishHalves(const pointwise::Convolution& c, const pointwise::Constants&, int64_t channel,
               const void* addend, void* dst)
      : c_(c),
        vectors_((c.out_channels - channel) / pointwise::kLanes),
        addend_(static_cast<const Bf16*>(addend) + (kAdds ? channel : 0)),
        dst_(static_cast<Bf16*>(dst) + channel) {}

  void operator()(const Floats::Type (&sums)[pointwise::kVectors], int64_t pixel) const {
    const __m512 least = _mm512_set1_ps(c_.least), most = _mm512_set1_ps(c_.most);
#pragma GCC unroll 4
    for (int v = 0; v < pointwise::kVectors; ++v) {
      if (v >= vectors_) break;
      const int64_t first = v * pointwise::kLanes;
      __m512 x = sums[v];
      if (kAdds) x += Floats::load(addend_ + pixel * c_.addend_stride / kBytes + first);
      // In this order, what is no number stays none.
      x = _mm512_maskz_min_ps(kAll, most, _mm512_maskz_max_ps(kAll, least, x));
      const __m256bh halves = _mm512_maskz_cvtneps_pbh(kAll, x);
      __builtin_memcpy(dst_ + pixel * c_.dst_stride / kBytes + first, &halves, sizeof(halves));
    }
  }

 private:
  static constexpr __mmask16 kAll = 0xffff;
  static constexpr int64_t kBytes = sizeof(Bf16);

  const pointwise::Convolution& c_;
  const int64_t vectors_;
  const Bf16* const addend_;
  Bf16* const dst_;
};

void convolve(const pointwise::Convolution& c, const pointwise::Constants& constants,
              const void* src, const void* addend, void* dst) {
  (c.adds ? pointwise::convolve<TwoHalves, FinishHalves<true>>
          : pointwise::convolve<TwoHalves, FinishHalves<false>>)(c, constants, src, addend, dst);
}

}  // namespace

pointwise::Function pointwise::avx512_bf16_function() { return dnnl_byoc::convolve; }

}  // namespace dnnl_byoc
