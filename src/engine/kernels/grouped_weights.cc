#include "grouped.h"

namespace dnnl_byoc {
namespace grouped {

void arrange_weights(int64_t channels, int64_t group, int64_t vector, const float* weights,
                     float* arranged) {
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t in = 0; in < group; ++in)
      for (int64_t i = 0; i < kKernel; ++i)
        for (int64_t j = 0; j < kKernel; ++j) {
          const int64_t row = channel / vector * kKernel + i;
          const int64_t place = (row * group + in) * kKernel + j;
          arranged[place * vector + channel % vector] = *weights++;
        }
}

}  // namespace grouped
}  // namespace dnnl_byoc
