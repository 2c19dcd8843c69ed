#include <immintrin.h>

#include "dense_floats.h"
#include "depthwise_of_floats_convolution.h"
#include "dot_of_floats.h"
#include "grouped_convolution.h"
#include "normalize.h"
#include "normalized_pointwise_convolution.h"
#include "pixels_of_planes.h"
#include "pointwise_convolution.h"
#include "pooling_of_bytes.h"
#include "windows_convolution.h"
#include "winograd_product.h"
#include "winograd_transforms.h"

namespace dnnl_byoc {
namespace {

/*!
 * \brief Where each element of three vectors of V is, that are stored in turn.
 *
 * Of halves, where in two vectors, of which the first has two in turn, and the second every other.
 * Of floats, where in the first two vectors; those of the third come after.
 */
struct InTurn {
  static constexpr int V = kernels::kAvx512Vector;
  uint16_t halves[4 * V] = {};
  int32_t floats[3 * V] = {}, third[3 * V] = {};
  constexpr InTurn() {
    for (int i = 0; i < 3 * V; ++i) {
      const int pixel = i / 3, channel = i % 3;
      halves[i] = static_cast<uint16_t>(channel < 2 ? 2 * pixel + channel : 2 * V + 2 * pixel);
      floats[i] = channel < 2 ? channel * V + pixel : 0;
      third[i] = channel < 2 ? i % V : V + pixel;
    }
  }
};
constexpr InTurn kInTurn{};

struct Avx512 {
  static constexpr int V = kernels::kAvx512Vector;
  static constexpr int results(int) { return 8; }

  template <int kGroup, int in>
  static kernels::VectorOf<V>::Type spread(kernels::VectorOf<V>::Type x) {
    // Masked: of the others, GCC 12 warns that they leave a register undefined.
    constexpr __mmask16 all = 0xffff;
    if constexpr (kGroup == 4) return _mm512_maskz_permute_ps(all, x, in * 0x55);
    constexpr int a = in, b = 8 + in;
    const __m512i from = _mm512_setr_epi32(a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b);
    return _mm512_maskz_permutexvar_ps(all, from, x);
  }

  using Ints = __m512i;

  static __m256i widen(const uint8_t* p) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static __m256i widen(const int8_t* p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static __m512 sqrt(__m512 x) { return _mm512_maskz_sqrt_ps(0xffff, x); }
  static void store_lowest(void* p, Ints x) { _mm512_mask_cvtepi32_storeu_epi8(p, 0xffff, x); }
  static void store_three_lowest(void* p, Ints x) {
    // In each lane first, and then the lanes side by side.
    const Ints lowest = _mm512_set4_epi32(-1, 0x0e0d0c0a, 0x09080605, 0x04020100);
    const Ints together = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 3, 3, 3);
    const Ints lanes = _mm512_shuffle_epi8(x, lowest);
    _mm512_mask_storeu_epi32(p, 0x0fff, _mm512_maskz_permutexvar_epi32(0xffff, together, lanes));
  }

  static void store_three_halves(void* p, Ints a, Ints b) {
    char* to = static_cast<char*>(p);
    const auto together = [&](const uint16_t* places) {
      return _mm512_permutex2var_epi16(a, _mm512_loadu_si512(places), b);
    };
    _mm512_storeu_si512(to, together(kInTurn.halves));
    _mm512_mask_storeu_epi16(to + 64, 0xffff, together(kInTurn.halves + 2 * V));
  }

  static void store_three(void* p, __m512 a, __m512 b, __m512 c) {
    for (int i = 0; i < 3 * V; i += V) {
      const __m512 two = _mm512_permutex2var_ps(a, _mm512_loadu_si512(kInTurn.floats + i), b);
      const __m512i third = _mm512_loadu_si512(kInTurn.third + i);
      _mm512_storeu_ps(static_cast<float*>(p) + i, _mm512_permutex2var_ps(two, third, c));
    }
  }
};

/*! \brief See dense_block.h. */
struct OneFloat {
  using Sums = __m512;
  using Words = __m512;
  static constexpr int64_t kMostInChain = 256;

  static Sums add(Sums a, Sums b) { return a + b; }
  static Sums none() { return _mm512_setzero_ps(); }
  static Sums start(const void* p) { return _mm512_loadu_ps(p); }
  static Words load(const void* p) { return _mm512_loadu_ps(p); }
  static Words all(const void* word) { return _mm512_set1_ps(*static_cast<const float*>(word)); }
  static Sums multiply_add(Sums sums, Words x, Words w) { return _mm512_fmadd_ps(x, w, sums); }
  static Sums in_register(Sums x) {
    asm("" : "+v"(x));
    return x;
  }
};

void convolve_windows(const windows::Convolution& c, const dense::Constants& constants,
                      const void* src, const void* addend, void* workspace, void* dst) {
  (c.results.adds
       ? windows::convolve<Avx512, OneFloat, FinishFloats<Singles, true>>
       : windows::convolve<Avx512, OneFloat, FinishFloats<Singles, false>>)(c, constants, src,
                                                                            addend, workspace, dst);
}

void convolve_pixels(const pointwise::Convolution& c, const dense::Constants& constants,
                     const void* src, const void* addend, void* dst) {
  (c.results.adds ? pointwise::convolve<OneFloat, FinishFloats<Singles, true>>
                  : pointwise::convolve<OneFloat, FinishFloats<Singles, false>>)(c, constants, src,
                                                                                 addend, dst);
}

void convolve_normalized_pixels(const pointwise::Convolution& c, const dense::Constants& constants,
                                const normalization::Normalization& n,
                                const normalization::Source& source, const void* addend,
                                void* workspace, void* dst) {
  (c.results.adds
       ? pointwise::convolve_normalized<Avx512, OneFloat, FinishFloats<Singles, true>>
       : pointwise::convolve_normalized<Avx512, OneFloat, FinishFloats<Singles, false>>)(c,
                                                                                         constants,
                                                                                         n, source,
                                                                                         addend,
                                                                                         workspace,
                                                                                         dst);
}

}  // namespace

winograd::Functions winograd::avx512_functions(int tile, const KernelSize& kernel,
                                               const DataTypes& dtypes) {
  return functions<Avx512::V>(tile, kernel, dtypes);
}

grouped::Function grouped::avx512_function(int64_t group, int64_t stride) {
  if (group == 4) return function_of<Avx512, 4>(stride);
  return group == 8 ? function_of<Avx512, 8>(stride) : nullptr;
}

depthwise_of_floats::Function depthwise_of_floats::avx512_function(int64_t stride) {
  return function_of<Avx512::V>(stride);
}

pixels::Function pixels::avx512_function(Type type) { return function_of<Avx512>(type); }

pointwise::Function pointwise::avx512_function() { return convolve_pixels; }

pointwise::NormalizedFunction pointwise::avx512_normalized_function() {
  return convolve_normalized_pixels;
}

winograd::Multiply winograd::avx512_product() {
  return multiply<OneFloat, FinishFloats<Singles, false>>;
}

windows::Function windows::avx512_function() { return convolve_windows; }

pooling::Function pooling::avx512_function(bool is_maximum, bool is_signed) {
  return function_of<Avx512>(is_maximum, is_signed);
}

dot::Function dot::avx512_function(bool is_bf16) {
  return is_bf16 ? dot<Avx512::V, kernels::Bf16> : dot<Avx512::V, float>;
}

normalization::Function normalization::avx512_function(bool is_bf16, bool is_signed) {
  return function_of<Avx512>(is_bf16, is_signed);
}

normalization::Function normalization::avx512_function_of_floats() {
  return normalize<Avx512, float, float>;
}

}  // namespace dnnl_byoc
