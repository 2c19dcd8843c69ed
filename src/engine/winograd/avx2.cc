#include "transforms.h"

namespace dnnl_byoc {
namespace winograd {

Functions avx2_functions(int tile, const KernelSize& kernel, const DataTypes& dtypes) {
  return functions<kAvx2Vector>(tile, kernel, dtypes);
}

}  // namespace winograd
}  // namespace dnnl_byoc
