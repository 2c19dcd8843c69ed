#include <immintrin.h>

#include "dense_bytes.h"
#include "depthwise_convolution.h"
#include "dot.h"
#include "pointwise_convolution.h"
#include "winograd_of_bytes_convolution.h"

namespace dnnl_byoc {
namespace {

struct Half {
  using Type = __m256i;
  using Mask = __mmask32;
  static constexpr int kBytes = 32;

  static Mask first(int64_t n) { return n >= kBytes ? ~Mask{0} : (Mask{1} << n) - 1; }
  static Type all(uint8_t x) { return _mm256_set1_epi8(static_cast<char>(x)); }
  static Type load(const void* p) { return _mm256_loadu_si256(static_cast<const Type*>(p)); }
  static Type load(const void* p, Mask mask) { return _mm256_maskz_loadu_epi8(mask, p); }
  static void store(void* p, Type x) { _mm256_storeu_si256(static_cast<Type*>(p), x); }
  static void store(void* p, Type x, Mask mask) { _mm256_mask_storeu_epi8(p, mask, x); }
  static Type flip_sign(Type x) { return _mm256_xor_si256(x, all(0x80)); }
  static Type interleave_bytes(Type a, Type b, bool high) {
    return high ? _mm256_unpackhi_epi8(a, b) : _mm256_unpacklo_epi8(a, b);
  }
  static Type interleave_shorts(Type a, Type b, bool high) {
    return high ? _mm256_unpackhi_epi16(a, b) : _mm256_unpacklo_epi16(a, b);
  }
  static Type multiply_add(Type sums, Type a, Type b) { return _mm256_dpbusd_epi32(sums, a, b); }

  template <bool kSigned>
  static Type result(const Type (&sums)[4], const float* factors, const float* terms, float most) {
    Type y[4];
    for (int i = 0; i < 4; ++i) {
      const __m256 factor = _mm256_loadu_ps(factors + 8 * i), term = _mm256_loadu_ps(terms + 8 * i);
      const __m256 x = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[i]), factor, term);
      y[i] = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_set1_ps(most), x));
    }
    const Type low = _mm256_packs_epi32(y[0], y[1]), high = _mm256_packs_epi32(y[2], y[3]);
    return kSigned ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
  }
  template <bool kSigned>
  static Type maximum(Type a, Type b) {
    return kSigned ? _mm256_max_epi8(a, b) : _mm256_max_epu8(a, b);
  }
};

struct Pairs {
  using Shorts = winograd_of_bytes::Shorts;
  using Sums = winograd_of_bytes::Sums;

  static Shorts load(const uint8_t* p, int64_t n, bool is_signed) {
    const Half::Type bytes = Half::load(p, Half::first(n));
    return (Shorts)_mm512_cvtepi8_epi16(is_signed ? bytes : Half::flip_sign(bytes));
  }

  static Sums multiply_add(Sums sums, Shorts weights, const int16_t* pair) {
    int32_t both;
    __builtin_memcpy(&both, pair, sizeof(both));
    return (Sums)_mm512_dpwssd_epi32((__m512i)sums, (__m512i)weights, _mm512_set1_epi32(both));
  }

  static Sums divide_by_576(Sums x) {
    constexpr uint32_t kInverseOf9 = 0x38e38e39;  // modulo 2³²
    static_assert(9 * kInverseOf9 == 1);
    return (Sums)_mm512_maskz_srai_epi32(0xffff, (__m512i)(x * kInverseOf9), 6);
  }

  class Finish {
   public:
    /*! \param channel The first of the vector. */
    Finish(const winograd_of_bytes::Constants& constants, int64_t channel,
           const winograd_of_bytes::Convolution& c, const uint8_t* addend, uint8_t* dst)
        : addend_(c.adds ? addend + channel : nullptr),
          dst_(dst + channel),
          is_addend_signed_(c.is_addend_signed),
          addend_factor_(_mm512_set1_ps(c.addend_factor)),
          starts_(_mm512_loadu_si512(constants.starts + channel)),
          factors_(_mm512_loadu_ps(constants.factors + channel)),
          terms_(_mm512_loadu_ps(constants.terms + channel)),
          most_(_mm512_set1_ps(static_cast<float>(c.most))),
          least_(_mm512_set1_epi32(c.least)),
          mask_(static_cast<__mmask16>(Whole::first(c.channels.out - channel))) {}

    /*! \param offset Of a pixel. */
    void store(int64_t offset, Sums sums) const {
      const __m512i sum = _mm512_add_epi32((__m512i)sums, starts_);
      __m512 x = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(kAll, sum), factors_, terms_);
      if (addend_) x = _mm512_fmadd_ps(addend(offset), addend_factor_, x);
      // In this order, what is no number stays none, and becomes the least of all integers.
      const __m512i number = _mm512_maskz_max_epi32(
          kAll, _mm512_maskz_cvtps_epi32(kAll, _mm512_maskz_min_ps(kAll, most_, x)), least_);
      _mm_mask_storeu_epi8(dst_ + offset, mask_, _mm512_maskz_cvtepi32_epi8(kAll, number));
    }

   private:
    static constexpr __mmask16 kAll = 0xffff;

    __m512 addend(int64_t offset) const {
      const __m128i bytes = _mm_maskz_loadu_epi8(mask_, addend_ + offset);
      const __m512i numbers = is_addend_signed_ ? _mm512_maskz_cvtepi8_epi32(kAll, bytes)
                                                : _mm512_maskz_cvtepu8_epi32(kAll, bytes);
      return _mm512_maskz_cvtepi32_ps(kAll, numbers);
    }

    const uint8_t* const addend_;
    uint8_t* const dst_;
    const bool is_addend_signed_;
    const __m512 addend_factor_;
    const __m512i starts_;
    const __m512 factors_, terms_, most_;
    const __m512i least_;
    const __mmask16 mask_;
  };
};

/*! \brief See dense_block.h. */
struct FourBytes {
  using Sums = __m512i;
  using Words = __m512i;
  static constexpr int64_t kMostInChain = INT64_MAX;  // whole numbers lose nothing

  static Sums add(Sums a, Sums b) { return _mm512_add_epi32(a, b); }
  static Sums none() { return _mm512_setzero_si512(); }
  static Sums start(const void* p) { return _mm512_loadu_si512(p); }
  static Words load(const void* p) { return _mm512_loadu_si512(p); }
  static Words all(const void* word) {
    int32_t bytes;
    __builtin_memcpy(&bytes, word, sizeof(bytes));
    return _mm512_set1_epi32(bytes);
  }
  static Sums multiply_add(Sums sums, Words x, Words w) { return _mm512_dpbusd_epi32(sums, x, w); }
  static Sums in_register(Sums x) {
    asm("" : "+v"(x));
    return x;
  }
};

void convolve_bytes(const pointwise::Convolution& c, const dense::Constants& constants,
                    const void* src, const void* addend, void* dst) {
  with_finish_of_bytes(c.results, [&](auto finish) {
    pointwise::convolve<FourBytes, typename decltype(finish)::Type>(c, constants, src, addend, dst);
  });
}

/*! \brief The products of bytes with those of dot::kRows rows. */
template <bool kSigned>
void dot_of_bytes(const void* vector, const void* rows, int64_t length, void* sums) {
  const auto* x = static_cast<const uint8_t*>(vector);
  const auto* w = static_cast<const uint8_t*>(rows);
  __m512i parts[dot::kRows];
  for (__m512i& part : parts) part = _mm512_setzero_si512();
  const auto add = [&](int64_t i, Whole::Mask mask) {
    __m512i values = Whole::load(x + i, mask);
    if (kSigned) values = Whole::flip_sign(values);  // what the mask leaves out meets weights of 0
    for (int row = 0; row < dot::kRows; ++row)
      parts[row] = Whole::multiply_add(parts[row], values, Whole::load(w + row * length + i, mask));
  };
  int64_t i = 0;
  for (; i + Whole::kBytes <= length; i += Whole::kBytes) add(i, ~Whole::Mask{0});
  if (i < length) add(i, Whole::first(length - i));
  for (int row = 0; row < dot::kRows; ++row) {
    int32_t lanes[Whole::kBytes / sizeof(int32_t)], sum = 0;
    Whole::store(lanes, parts[row]);
    for (const int32_t lane : lanes) sum += lane;
    static_cast<int32_t*>(sums)[row] = sum;
  }
}

}  // namespace

dot::Function dot::avx512_vnni_function(bool is_vector_signed) {
  return is_vector_signed ? dot_of_bytes<true> : dot_of_bytes<false>;
}

pointwise::Function pointwise::avx512_vnni_function() { return convolve_bytes; }

winograd_of_bytes::Function winograd_of_bytes::avx512_vnni_function() { return convolve<Pairs>; }

depthwise::Function depthwise::avx512_vnni_function(int64_t kernel, bool is_dst_signed) {
  return is_dst_signed ? function_of<Whole, Half, true>(kernel)
                       : function_of<Whole, Half, false>(kernel);
}

}  // namespace dnnl_byoc
