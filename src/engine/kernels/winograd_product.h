/*!
 * \file winograd_product.h
 * \brief The matrix products of Winograd's algorithm, for the files that are compiled for one
 * instruction set; see dense_block.h.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_PRODUCT_H_
#define DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_PRODUCT_H_

#include "dense_block.h"
#include "shares.h"
#include "winograd.h"

namespace dnnl_byoc {
namespace winograd {
namespace {

template <class Arithmetic, class Finish>
void multiply(const Product& p, const float* src, const float* weights, const float* starts,
              float* dst) {
  constexpr float kInfinity = __builtin_inff();
  constexpr int64_t kBytes = sizeof(float);
  const dense::Results results = {p.out_channels,
                                  dense::DataType::f32,
                                  p.dst.row_stride * kBytes,
                                  /*adds=*/false,
                                  dense::DataType::f32,
                                  0,
                                  0.f,
                                  -kInfinity,
                                  kInfinity};
  const dense::Window window = {1, p.in_channels, 0};
  const kernels::Parts chunks = kernels::parts_of_at_most(dense::kMostInChunk, p.tiles);
  const int64_t blocks = results.blocks();
  kernels::share(p.elements * chunks.count * blocks, [&](int64_t item) {
    const int64_t element = item / blocks / chunks.count, chunk = item / blocks % chunks.count;
    const dense::Constants constants = {weights + element * p.weights_of_element(), starts, nullptr,
                                        nullptr};
    const dense::Line tiles = {reinterpret_cast<const char*>(src + element * p.src.matrix_stride),
                               p.src.row_stride * kBytes};
    const dense::Block<Arithmetic, Finish, dense::Line> block(results, constants, item % blocks,
                                                              window, tiles, nullptr,
                                                              dst + element * p.dst.matrix_stride);
    block.compute(chunks.first(chunk), chunks.first(chunk + 1));
  });
}

}  // namespace
}  // namespace winograd
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_PRODUCT_H_
