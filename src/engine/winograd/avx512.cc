#include "transforms.h"

namespace dnnl_byoc {
namespace winograd {

Functions avx512_functions(int tile, const KernelSize& kernel) {
  return functions<kAvx512Vector>(tile, kernel);
}

}  // namespace winograd
}  // namespace dnnl_byoc
