#include <immintrin.h>

#include "dense_halves.h"
#include "pointwise_convolution.h"

namespace dnnl_byoc {
namespace {

/*! \brief See dense_block.h. */
struct TwoHalves {
  using Sums = __m512;
  using Words = __m512bh;
  static constexpr int64_t kMostInChain = 128;  // of two products each

  static Sums add(Sums a, Sums b) { return a + b; }
  static Sums none() { return _mm512_setzero_ps(); }
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

void convolve(const pointwise::Convolution& c, const dense::Constants& constants, const void* src,
              const void* addend, void* dst) {
  (c.results.adds ? pointwise::convolve<TwoHalves, FinishFloats<Halves, true>>
                  : pointwise::convolve<TwoHalves, FinishFloats<Halves, false>>)(c, constants, src,
                                                                                 addend, dst);
}

}  // namespace

pointwise::Function pointwise::avx512_bf16_function() { return dnnl_byoc::convolve; }

}  // namespace dnnl_byoc
