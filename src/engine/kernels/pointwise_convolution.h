/*!
 * \file pointwise_convolution.h
 * \brief The convolution, for the files that are compiled for one instruction set.
 *
 * An Arithmetic has vectors, Sums and Words, of kLanes channels: start() and load() of them, all(),
 * which repeats a word, multiply_add(sums, words, weights) and in_register(). A Finish makes
 * results of the sums of a block.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_POINTWISE_CONVOLUTION_H_
#define DNNL_BYOC_ENGINE_KERNELS_POINTWISE_CONVOLUTION_H_

#include <omp.h>

#include "pointwise.h"

namespace dnnl_byoc {
namespace pointwise {
namespace {

using dense::kBlock, dense::kLanes, dense::kVectors, dense::kWord;

constexpr int kMostAtOnce = 6;  // pixels whose sums are in registers
// Bytes of weights. What they come from takes a while, and the processor itself does not ask for
// them beyond the end of a page.
constexpr int64_t kAhead = 4096;

/*! \brief A block of dst's channels. */
template <class Arithmetic, class Finish>
class Block {
 public:
  /*! \param src, addend, dst The first pixel. */
  Block(const Convolution& c, const dense::Constants& constants, int64_t block, const void* src,
        const void* addend, void* dst)
      : c_(c),
        weights_(static_cast<const char*>(constants.weights) + block * c.words * kBlock * kWord),
        starts_(static_cast<const char*>(constants.starts) + block * kBlock * kWord),
        src_(static_cast<const char*>(src)),
        finish_(c.results, constants, block * kBlock, addend, dst) {}

  /*! \brief From 1 to kMostAtOnce pixels. */
  void compute(int64_t first, int64_t count) const {
    switch (count) {
      case 1:
        return compute<1>(first);
      case 2:
        return compute<2>(first);
      case 3:
        return compute<3>(first);
      case 4:
        return compute<4>(first);
      case 5:
        return compute<5>(first);
      default:
        return compute<kMostAtOnce>(first);
    }
  }

 private:
  using Sums = typename Arithmetic::Sums;
  using Words = typename Arithmetic::Words;

  /*! \brief Not inline: what finish_ needs again and again would take registers of the sums. */
  template <int kPixels>
  __attribute__((noinline)) void compute(int64_t first) const {
    Sums sums[kPixels][kVectors];
    multiply(src_ + first * c_.src_stride, sums);
#pragma GCC unroll 6
    for (int i = 0; i < kPixels; ++i) finish_(sums[i], first + i);
  }

  template <int kPixels>
  void multiply(const char* pixel, Sums (&results)[kPixels][kVectors]) const {
    Sums sums[kPixels][kVectors];  // in registers, as nobody else sees them
#pragma GCC unroll 6
    for (int i = 0; i < kPixels; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        sums[i][v] = Arithmetic::start(starts_ + v * kLanes * kWord);
    const char* weights = weights_;
    for (int64_t word = 0; word < c_.words; ++word, weights += kBlock * kWord) {
      Words w[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        w[v] = Arithmetic::load(weights + v * kLanes * kWord);
        __builtin_prefetch(weights + v * kLanes * kWord + kAhead);
      }
#pragma GCC unroll 6
      for (int i = 0; i < kPixels; ++i) {
        const Words x = Arithmetic::all(pixel + i * c_.src_stride + word * kWord);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v)
          sums[i][v] = Arithmetic::multiply_add(sums[i][v], x, w[v]);
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < kPixels; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) results[i][v] = Arithmetic::in_register(sums[i][v]);
  }

  const Convolution& c_;
  const char *const weights_, *const starts_, *const src_;
  const Finish finish_;
};

template <class Arithmetic, class Finish>
void convolve(const Convolution& c, const dense::Constants& constants, const void* src,
              const void* addend, void* dst) {
  const kernels::Parts chunks = c.chunks().of_pixels(), parts = c.chunks().of_blocks();
  const int most = omp_get_max_threads();
#pragma omp parallel for collapse(2) schedule(static) \
    num_threads(c.threads < most ? static_cast<int>(c.threads) : most)
  for (int64_t chunk = 0; chunk < chunks.count; ++chunk)
    for (int64_t part = 0; part < parts.count; ++part)
      for (int64_t i = parts.first(part); i < parts.first(part + 1); ++i) {
        const Block<Arithmetic, Finish> block(c, constants, i, src, addend, dst);
        const int64_t first = chunks.first(chunk);
        const kernels::Parts rounds =
            kernels::parts_of_at_most(kMostAtOnce, chunks.first(chunk + 1) - first);
        for (int64_t k = 0; k < rounds.count; ++k)
          block.compute(first + rounds.first(k), rounds.first(k + 1) - rounds.first(k));
      }
}

}  // namespace
}  // namespace pointwise
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_POINTWISE_CONVOLUTION_H_
