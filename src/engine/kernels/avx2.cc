#include <immintrin.h>

#include "dot_of_floats.h"
#include "grouped_convolution.h"
#include "normalize.h"
#include "pooling_of_bytes.h"
#include "winograd_transforms.h"

namespace dnnl_byoc {
namespace {

struct Avx2 {
  static constexpr int V = kernels::kAvx2Vector;
  static constexpr int results(int stride) { return stride == 1 ? 6 : 4; }  // of 16 registers

  template <int kGroup, int in>
  static kernels::VectorOf<V>::Type spread(kernels::VectorOf<V>::Type x) {
    static_assert(kGroup == 4, "the groups of one lane");
    return _mm256_permute_ps(x, in * 0x55);
  }

  using Ints = __m256i;

  static __m128i widen(const uint8_t* p) {
    return _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static __m128i widen(const int8_t* p) {
    return _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static __m256 sqrt(__m256 x) { return _mm256_sqrt_ps(x); }
  static void store_lowest(void* p, Ints x) {
    const __m256i lowest = _mm256_set1_epi32(0x0c080400);
    const __m256i lanes = _mm256_shuffle_epi8(x, lowest);  // four bytes of each, repeated
    _mm_storel_epi64(
        static_cast<__m128i*>(p),
        _mm_unpacklo_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1)));
  }
};

}  // namespace

winograd::Functions winograd::avx2_functions(int tile, const KernelSize& kernel,
                                             const DataTypes& dtypes) {
  return functions<Avx2::V>(tile, kernel, dtypes);
}

grouped::Function grouped::avx2_function(int64_t group, int64_t stride) {
  return group == 4 ? function_of<Avx2, 4>(stride) : nullptr;
}

pooling::Function pooling::avx2_function(bool is_maximum, bool is_signed) {
  return function_of<Avx2>(is_maximum, is_signed);
}

dot::Function dot::avx2_function() { return dot<Avx2::V, float>; }

normalization::Function normalization::avx2_function(bool is_bf16, bool is_signed) {
  return function_of<Avx2>(is_bf16, is_signed);
}

}  // namespace dnnl_byoc
