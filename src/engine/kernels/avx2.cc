#include <immintrin.h>

#include "grouped_convolution.h"
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
};

}  // namespace

winograd::Functions winograd::avx2_functions(int tile, const KernelSize& kernel,
                                             const DataTypes& dtypes) {
  return functions<Avx2::V>(tile, kernel, dtypes);
}

grouped::Function grouped::avx2_function(int64_t group, int64_t stride) {
  return group == 4 ? function_of<Avx2, 4>(stride) : nullptr;
}

}  // namespace dnnl_byoc
