/*!
 * \file normalized_pointwise_convolution.h
 * \brief The convolution of normalized pixels, for the files that are compiled for one instruction
 * set; see dense_block.h and normalize.h.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_NORMALIZED_POINTWISE_CONVOLUTION_H_
#define DNNL_BYOC_ENGINE_KERNELS_NORMALIZED_POINTWISE_CONVOLUTION_H_

#include "dense_block.h"
#include "normalize.h"
#include "pointwise.h"
#include "shares.h"

namespace dnnl_byoc {
namespace pointwise {
namespace {

template <class Isa, class Arithmetic, class Finish>
void convolve_normalized(const Convolution& c, const dense::Constants& constants,
                         const normalization::Normalization& n, const normalization::Source& source,
                         const void* addend, void* workspace, void* dst) {
  normalization::find_factors<Isa>(n, source);
  const kernels::Parts chunks = c.chunks();
  const int64_t blocks = c.results.blocks();
  const dense::Window window = {1, c.words, 0};
  kernels::Shares shares(chunks.count * blocks, c.threads);
#pragma omp parallel num_threads(shares.threads())
  {
    const int thread = omp_get_thread_num();
    char* own = static_cast<char*>(workspace) + thread * c.chunk_bytes();
    const dense::Line pixels = {own, c.words * dense::kWord};
    int64_t normalized = -1;  // chunk
    for (int64_t item; (item = shares.next(thread)) >= 0;) {
      const int64_t chunk = item / blocks, first = chunks.first(chunk);
      const int64_t end = chunks.first(chunk + 1);
      if (chunk != normalized) {
        normalization::normalize_pixels<Isa, float>(n, source, first, end,
                                                    reinterpret_cast<float*>(own));
        normalized = chunk;
      }
      const dense::Block<Arithmetic, Finish, dense::Line> block(
          c.results, constants, item % blocks, window, pixels,
          addend ? static_cast<const char*>(addend) + first * c.results.addend_stride : nullptr,
          static_cast<char*>(dst) + first * c.results.stride);
      block.compute(0, end - first);
    }
  }
}

}  // namespace
}  // namespace pointwise
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_NORMALIZED_POINTWISE_CONVOLUTION_H_
