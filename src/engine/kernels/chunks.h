/*!
 * \file chunks.h
 * \brief How a convolution's work is divided among threads.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_CHUNKS_H_
#define DNNL_BYOC_ENGINE_KERNELS_CHUNKS_H_

#include <cstdint>

namespace dnnl_byoc {
namespace kernels {

/*! \brief Numbers from 0 on, in parts that differ by one at most. */
struct Parts {
  int64_t size, count;

  int64_t first(int64_t part) const { return part * size / count; }
  int64_t most() const { return (size + count - 1) / count; }
};

/*! \brief So many parts that none is larger than `most`. */
inline Parts parts_of_at_most(int64_t most, int64_t size) {
  return {size, (size + most - 1) / most};
}

/*! \brief Pixels in chunks of at most so many: as many for each thread, if there are enough. */
inline Parts chunks(int64_t pixels, int64_t most, int64_t threads) {
  const int64_t few = parts_of_at_most(most, pixels).count;
  return {pixels, few < threads ? few : (few + threads - 1) / threads * threads};
}

}  // namespace kernels
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_CHUNKS_H_
