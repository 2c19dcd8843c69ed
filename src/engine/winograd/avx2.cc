#include "transforms.h"

namespace dnnl_byoc {
namespace winograd {

Functions avx2_functions(int tile) { return functions<kAvx2Vector>(tile); }

}  // namespace winograd
}  // namespace dnnl_byoc
