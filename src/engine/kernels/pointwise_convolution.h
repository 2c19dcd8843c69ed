/*!
 * \file pointwise_convolution.h
 * \brief The convolution, for the files that are compiled for one instruction set.
 *
 * An Arithmetic has vectors, Sums and Words, of kLanes channels: start() and load() of them, all(),
 * which repeats a word, multiply_add(sums, words, weights), in_register() and none(), which is
 * zero. A Finish makes results of the sums of a block.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_POINTWISE_CONVOLUTION_H_
#define DNNL_BYOC_ENGINE_KERNELS_POINTWISE_CONVOLUTION_H_

#include "pointwise.h"
#include "shares.h"

namespace dnnl_byoc {
namespace pointwise {
namespace {

using dense::kBlock, dense::kLanes, dense::kVectors, dense::kWord;

constexpr int kMostSums = 24;  // vectors of them, in registers

/*! \brief A block of dst's channels. */
template <class Arithmetic, class Finish>
class Block {
 public:
  /*! \param src, addend, dst The first pixel. */
  Block(const Convolution& c, const dense::Constants& constants, int64_t block, const void* src,
        const void* addend, void* dst)
      : c_(c),
        bytes_(c.words * kBlock * kWord),
        weights_(static_cast<const char*>(constants.weights) + block * bytes_),
        next_weights_(static_cast<const char*>(constants.weights) +
                      (block + 1) % c.results.blocks() * bytes_),
        starts_(static_cast<const char*>(constants.starts) + block * kBlock * kWord),
        src_(static_cast<const char*>(src)),
        finish_(c.results, constants, block * kBlock, addend, dst) {}

  /*! \brief Pixels from first to last - 1, of a block with channels for so many vectors. */
  void compute(int64_t first, int64_t last, int64_t vectors) const {
    // Where there are fewer vectors, for as many pixels more at once, as long as there are so many.
    const int64_t many = kMostSums / vectors;
    const int64_t whole = vectors < kVectors ? (last - first) / many : 0;
    const int64_t left = first + whole * many;
    const kernels::Parts few = kernels::parts_of_at_most(kMostSums / kVectors, last - left);
    const int64_t rounds = whole + few.count;
    for (int64_t i = 0; i < rounds; ++i) {
      const Fetched fetched = {next_weights_ + i * bytes_ / rounds, kBlock * kWord / rounds};
      if (i < whole)
        compute_many(first + i * many, vectors, fetched);
      else
        compute_few(left + few.first(i - whole), few.first(i - whole + 1) - few.first(i - whole),
                    fetched);
    }
  }

 private:
  using Sums = typename Arithmetic::Sums;
  using Words = typename Arithmetic::Words;

  /*!
   * \brief A part of the next block's weights. What they come from takes a while, and the processor
   * itself asks for them too late: they are asked for one by one while this block is computed.
   */
  struct Fetched {
    const char* first;
    int64_t step;  // bytes, from word to word of src
  };

  void compute_many(int64_t first, int64_t vectors, const Fetched& fetched) const {
    switch (vectors) {
      case 1:
        return compute<kMostSums, 1>(first, fetched);
      case 2:
        return compute<kMostSums / 2, 2>(first, fetched);
      default:
        return compute<kMostSums / 3, 3>(first, fetched);
    }
  }

  void compute_few(int64_t first, int64_t count, const Fetched& fetched) const {
    switch (count) {
      case 1:
        return compute<1>(first, fetched);
      case 2:
        return compute<2>(first, fetched);
      case 3:
        return compute<3>(first, fetched);
      case 4:
        return compute<4>(first, fetched);
      case 5:
        return compute<5>(first, fetched);
      default:
        return compute<kMostSums / kVectors>(first, fetched);
    }
  }

  /*!
   * \brief Not inline: what finish_ needs again and again would take registers of the sums.
   * \tparam kUsed Vectors of a block that has channels for no more.
   */
  template <int kPixels, int kUsed = kVectors>
  __attribute__((noinline)) void compute(int64_t first, Fetched fetched) const {
    Sums sums[kPixels][kVectors];
    multiply<kPixels, kUsed>(src_ + first * c_.src_stride, fetched, sums);
    const Finish finish = finish_;  // a copy: what is written to dst does not change it
#pragma GCC unroll 24
    for (int i = 0; i < kPixels; ++i) finish(sums[i], first + i);
  }

  template <int kPixels, int kUsed>
  void multiply(const char* pixel, Fetched fetched, Sums (&results)[kPixels][kVectors]) const {
    Sums sums[kPixels][kUsed];  // in registers, as nobody else sees them
#pragma GCC unroll 24
    for (int i = 0; i < kPixels; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kUsed; ++v) sums[i][v] = Arithmetic::start(starts_ + v * kLanes * kWord);
    const char* weights = weights_;
#pragma GCC unroll 2
    for (int64_t word = 0; word < c_.words; ++word, weights += kBlock * kWord) {
      __builtin_prefetch(fetched.first + word * fetched.step, 0, 2);  // to the second cache
      Words w[kUsed];
#pragma GCC unroll 4
      for (int v = 0; v < kUsed; ++v) w[v] = Arithmetic::load(weights + v * kLanes * kWord);
#pragma GCC unroll 24
      for (int i = 0; i < kPixels; ++i) {
        const Words x = Arithmetic::all(pixel + i * c_.src_stride + word * kWord);
#pragma GCC unroll 4
        for (int v = 0; v < kUsed; ++v) sums[i][v] = Arithmetic::multiply_add(sums[i][v], x, w[v]);
      }
    }
#pragma GCC unroll 24
    for (int i = 0; i < kPixels; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        results[i][v] = v < kUsed ? Arithmetic::in_register(sums[i][v]) : Arithmetic::none();
  }

  const Convolution& c_;
  const int64_t bytes_;  // of weights
  const char *const weights_, *const next_weights_, *const starts_, *const src_;
  const Finish finish_;
};

template <class Arithmetic, class Finish>
void convolve(const Convolution& c, const dense::Constants& constants, const void* src,
              const void* addend, void* dst) {
  const kernels::Parts chunks = c.chunks();
  const int64_t blocks = c.results.blocks();
  kernels::share(chunks.count * blocks, [&](int64_t item) {
    const int64_t chunk = item / blocks, i = item % blocks;
    const Block<Arithmetic, Finish> block(c, constants, i, src, addend, dst);
    block.compute(chunks.first(chunk), chunks.first(chunk + 1), c.results.vectors(i));
  });
}

}  // namespace
}  // namespace pointwise
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_POINTWISE_CONVOLUTION_H_
