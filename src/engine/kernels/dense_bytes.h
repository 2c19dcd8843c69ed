/*!
 * \file dense_bytes.h
 * \brief Vectors of 64 bytes with AVX-512, and results that are made of whole numbers; see
 * vectors.h.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_DENSE_BYTES_H_
#define DNNL_BYOC_ENGINE_KERNELS_DENSE_BYTES_H_

#include <immintrin.h>

#include "dense.h"

namespace dnnl_byoc {
namespace {

struct Whole {
  using Type = __m512i;
  using Mask = __mmask64;
  static constexpr int kBytes = 64;

  static Mask first(int64_t n) { return n >= kBytes ? ~Mask{0} : (Mask{1} << n) - 1; }
  static Type all(uint8_t x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static Type load(const void* p) { return _mm512_loadu_si512(p); }
  static Type load(const void* p, Mask mask) { return _mm512_maskz_loadu_epi8(mask, p); }
  static void store(void* p, Type x) { _mm512_storeu_si512(p, x); }
  static void store(void* p, Type x, Mask mask) { _mm512_mask_storeu_epi8(p, mask, x); }
  static Type flip_sign(Type x) { return _mm512_xor_si512(x, all(0x80)); }
  static Type interleave_bytes(Type a, Type b, bool high) {
    return high ? _mm512_unpackhi_epi8(a, b) : _mm512_unpacklo_epi8(a, b);
  }
  static Type interleave_shorts(Type a, Type b, bool high) {
    return high ? _mm512_unpackhi_epi16(a, b) : _mm512_unpacklo_epi16(a, b);
  }
  static Type multiply_add(Type sums, Type a, Type b) { return _mm512_dpbusd_epi32(sums, a, b); }

  template <bool kSigned>
  static Type result(const Type (&sums)[4], const float* factors, const float* terms, float most) {
    Type y[4];
    for (int i = 0; i < 4; ++i) {
      // In this order, what is no number stays none, and becomes the least of all integers.
      const __m512 factor = _mm512_loadu_ps(factors + 16 * i),
                   term = _mm512_loadu_ps(terms + 16 * i);
      const __m512 x = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(0xffff, sums[i]), factor, term);
      y[i] = _mm512_maskz_cvtps_epi32(0xffff, _mm512_maskz_min_ps(0xffff, _mm512_set1_ps(most), x));
    }
    return pack<kSigned>(y);
  }
  template <bool kSigned>
  static Type maximum(Type a, Type b) {
    return kSigned ? _mm512_max_epi8(a, b) : _mm512_max_epu8(a, b);
  }
  template <bool kSigned>
  static Type pack(const Type (&y)[4]) {
    const Type low = _mm512_packs_epi32(y[0], y[1]), high = _mm512_packs_epi32(y[2], y[3]);
    return kSigned ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
  }
};

using dense::DataType;

/*! \brief Makes bytes of the sums of a block's channels, or floats. */
template <bool kAdds, bool kIsAddendSigned, DataType kDst>
class FinishBytes {
 public:
  FinishBytes(const dense::Results& r, const dense::Constants& constants, int64_t channel,
              const void* addend, void* dst)
      : mask_(Whole::first(r.channels - channel)),
        addend_(static_cast<const char*>(addend) + (kAdds ? channel : 0)),
        dst_(static_cast<char*>(dst) + channel * (kIsDstFloat ? 4 : 1)),
        addend_stride_(r.addend_stride),
        dst_stride_(r.stride),
        // Signed ones become the highest bytes of 32 bits, 2²⁴ times as much.
        addend_factor_(_mm512_set1_ps(r.addend_factor * (kIsAddendSigned ? 0x1p-24f : 1.f))),
        least_(r.least),
        most_(r.most),
        factors_(constants.factors + channel),
        terms_(constants.terms + channel) {}

  void operator()(const __m512i (&sums)[4], int64_t pixel) const {
    __m512 x[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      x[i] = _mm512_fmadd_ps(floats(sums[i]), _mm512_loadu_ps(factors_ + 16 * i),
                             _mm512_loadu_ps(terms_ + 16 * i));
    if (kAdds) add(Whole::load(addend_ + pixel * addend_stride_, mask_), x);
    char* to = dst_ + pixel * dst_stride_;
    if (kIsDstFloat)
      store_floats(to, x);
    else
      Whole::store(to, cut_off(bytes(x)), mask_);
  }

 private:
  static constexpr bool kIsDstSigned = kDst == DataType::s8, kIsDstFloat = kDst == DataType::f32;
  static constexpr __mmask16 kAll = 0xffff;

  static __m512 floats(__m512i x) { return _mm512_maskz_cvtepi32_ps(kAll, x); }

  static __m512i bytes(const __m512 (&x)[4]) {
    __m512i y[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) y[i] = _mm512_maskz_cvtps_epi32(kAll, x[i]);
    return in_other_order(Whole::pack<kIsDstSigned>(y));
  }

  void store_floats(char* to, const __m512 (&x)[4]) const {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      // In this order, what is no number stays none.
      const __m512 y = _mm512_maskz_max_ps(kAll, _mm512_set1_ps(least_), x[i]);
      _mm512_mask_storeu_ps(to + 64 * i, static_cast<__mmask16>(mask_ >> (16 * i)),
                            _mm512_maskz_min_ps(kAll, _mm512_set1_ps(most_), y));
    }
  }

  /*!
   * \brief From four channels of each of four vectors in each lane of 16 bytes, as putting these
   * together leaves them, to their order; or back.
   */
  static __m512i in_other_order(__m512i x) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_maskz_permutexvar_epi32(kAll, order, x);
  }

  void add(__m512i bytes, __m512 (&x)[4]) const {
    const __m512i in_lanes = in_other_order(bytes), zero = Whole::all(0);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const bool high = i >= 2;
      const __m512i shorts = kIsAddendSigned ? Whole::interleave_bytes(zero, in_lanes, high)
                                             : Whole::interleave_bytes(in_lanes, zero, high);
      const __m512i numbers = kIsAddendSigned ? Whole::interleave_shorts(zero, shorts, i % 2)
                                              : Whole::interleave_shorts(shorts, zero, i % 2);
      x[i] = _mm512_fmadd_ps(floats(numbers), addend_factor_, x[i]);
    }
  }

  __m512i cut_off(__m512i bytes) const {
    const __m512i least = Whole::all(static_cast<uint8_t>(static_cast<int>(least_)));
    const __m512i most = Whole::all(static_cast<uint8_t>(static_cast<int>(most_)));
    return kIsDstSigned ? _mm512_min_epi8(_mm512_max_epi8(bytes, least), most)
                        : _mm512_min_epu8(_mm512_max_epu8(bytes, least), most);
  }

  const Whole::Mask mask_;
  const char* const addend_;
  char* const dst_;
  const int64_t addend_stride_, dst_stride_;
  const __m512 addend_factor_;
  const float least_, most_;
  const float *const factors_, *const terms_;
};

/*! \brief A type, as a function's argument. */
template <class T>
struct Tag {
  using Type = T;
};

template <bool kAdds, bool kIsAddendSigned, class Call>
void with_finish_of_bytes(DataType dst, Call call) {
  switch (dst) {
    case DataType::s8:
      return call(Tag<FinishBytes<kAdds, kIsAddendSigned, DataType::s8>>());
    case DataType::f32:
      return call(Tag<FinishBytes<kAdds, kIsAddendSigned, DataType::f32>>());
    default:
      return call(Tag<FinishBytes<kAdds, kIsAddendSigned, DataType::u8>>());
  }
}

/*! \brief Calls with the Tag of what makes such results. */
template <class Call>
void with_finish_of_bytes(const dense::Results& r, Call call) {
  if (!r.adds) return with_finish_of_bytes<false, false>(r.dtype, call);
  if (r.addend_dtype == DataType::s8) return with_finish_of_bytes<true, true>(r.dtype, call);
  with_finish_of_bytes<true, false>(r.dtype, call);
}

}  // namespace
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_DENSE_BYTES_H_
