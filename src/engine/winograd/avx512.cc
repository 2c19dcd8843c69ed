#include "transforms.h"

namespace dnnl_byoc {
namespace winograd {

Functions avx512_functions(int tile) { return functions<kAvx512Vector>(tile); }

}  // namespace winograd
}  // namespace dnnl_byoc
