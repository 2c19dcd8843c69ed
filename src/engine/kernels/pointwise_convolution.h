/*!
 * \file pointwise_convolution.h
 * \brief The convolution, for the files that are compiled for one instruction set; see
 * dense_block.h.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_POINTWISE_CONVOLUTION_H_
#define DNNL_BYOC_ENGINE_KERNELS_POINTWISE_CONVOLUTION_H_

#include "dense_block.h"
#include "pointwise.h"
#include "shares.h"

namespace dnnl_byoc {
namespace pointwise {
namespace {

template <class Arithmetic, class Finish>
void convolve(const Convolution& c, const dense::Constants& constants, const void* src,
              const void* addend, void* dst) {
  const kernels::Parts chunks = c.chunks();
  const int64_t blocks = c.results.blocks();
  const dense::Window window = {1, c.words, 0};
  const dense::Line pixels = {static_cast<const char*>(src), c.src_stride};
  kernels::share(chunks.count * blocks, [&](int64_t item) {
    const int64_t chunk = item / blocks;
    const dense::Block<Arithmetic, Finish, dense::Line> block(c.results, constants, item % blocks,
                                                              window, pixels, addend, dst);
    block.compute(chunks.first(chunk), chunks.first(chunk + 1));
  });
}

}  // namespace
}  // namespace pointwise
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_POINTWISE_CONVOLUTION_H_
