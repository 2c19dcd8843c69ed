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
  const dense::Window window = {1, c.words, 0};
  const auto own = [&](int thread) {
    return static_cast<char*>(workspace) + thread * c.chunk_bytes();
  };
  kernels::share_blocks(
      chunks.count, c.results.blocks(), c.threads,
      [&](int thread, int64_t chunk) {
        normalization::normalize_pixels<Isa, float>(n, source, chunks.first(chunk),
                                                    chunks.first(chunk + 1),
                                                    reinterpret_cast<float*>(own(thread)));
      },
      [&](int thread, int64_t chunk, int64_t block) {
        const int64_t first = chunks.first(chunk);
        const dense::Line pixels = {own(thread), c.words * dense::kWord};
        const dense::Block<Arithmetic, Finish, dense::Line> results(
            c.results, constants, block, window, pixels,
            addend ? static_cast<const char*>(addend) + first * c.results.addend_stride : nullptr,
            static_cast<char*>(dst) + first * c.results.stride);
        results.compute(0, chunks.first(chunk + 1) - first);
      });
}

}  // namespace
}  // namespace pointwise
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_NORMALIZED_POINTWISE_CONVOLUTION_H_
