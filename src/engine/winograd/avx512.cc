#include "transforms.h"

namespace dnnl_byoc {
namespace winograd {

Functions avx512_functions(int tile, const KernelSize& kernel, const DataTypes& dtypes) {
  return functions<kAvx512Vector>(tile, kernel, dtypes);
}

}  // namespace winograd
}  // namespace dnnl_byoc
