#include "transforms.h"

namespace dnnl_byoc {
namespace winograd {

Functions avx2_functions(int tile, const KernelSize& kernel) {
  return functions<kAvx2Vector>(tile, kernel);
}

}  // namespace winograd
}  // namespace dnnl_byoc
