/*!
 * \file dense_block.h
 * \brief Products of pixels with a block of weights, for the files that are compiled for one
 * instruction set.
 *
 * An Arithmetic has vectors, Sums and Words, of kLanes channels: start() and load() of them, all(),
 * which repeats a word, multiply_add(sums, words, weights), add() of sums, none(), which is zero,
 * and in_register(); and kMostInChain, how many words may be added up one after the other. A Finish
 * makes results of the sums of a block.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_DENSE_BLOCK_H_
#define DNNL_BYOC_ENGINE_KERNELS_DENSE_BLOCK_H_

#include "dense.h"

namespace dnnl_byoc {
namespace dense {
namespace {

constexpr int kMostSums = 24;  // vectors of them, in registers

/*! \brief What of src makes a pixel of dst: words that lie side by side, in a few rows. */
struct Window {
  int64_t rows, words;  // of a row
  int64_t row_stride;   // in bytes

  int64_t weight_bytes() const { return rows * words * kBlock * kWord; }
};

/*! \brief Pixels that lie in lines, of as many as dst's have; strides in bytes. */
struct Lines {
  const char* first;
  int64_t length, line_stride, stride;

  /*! \brief Where a few of them are, from the one with this number on. */
  template <int kPixels>
  void find(int64_t number, const char* (&at)[kPixels]) const {
    int64_t column = number % length;
    const char* line = first + number / length * line_stride;
#pragma GCC unroll 24
    for (int i = 0; i < kPixels; ++i) {
      at[i] = line + column * stride;
      if (++column == length) {
        column = 0;
        line += line_stride;
      }
    }
  }
};

/*! \brief A single line of pixels. */
struct Line {
  const char* first;
  int64_t stride;

  template <int kPixels>
  void find(int64_t number, const char* (&at)[kPixels]) const {
#pragma GCC unroll 24
    for (int i = 0; i < kPixels; ++i) at[i] = first + (number + i) * stride;
  }
};

/*! \brief A block of dst's channels. \tparam Pixels Line, or Lines. */
template <class Arithmetic, class Finish, class Pixels>
class Block {
 public:
  /*! \param addend, dst The first pixel. */
  Block(const Results& results, const Constants& constants, int64_t block, const Window& window,
        const Pixels& pixels, const void* addend, void* dst)
      : window_(window),
        pixels_(pixels),
        bytes_(window.weight_bytes()),
        weights_(static_cast<const char*>(constants.weights) + block * bytes_),
        next_weights_(static_cast<const char*>(constants.weights) +
                      (block + 1) % results.blocks() * bytes_),
        starts_(static_cast<const char*>(constants.starts) + block * kBlock * kWord),
        vectors_(results.vectors(block)),
        finish_(results, constants, block * kBlock, addend, dst) {}

  /*! \brief Pixels from first to last - 1. */
  void compute(int64_t first, int64_t last) const {
    // Where there are fewer vectors, for as many pixels more at once, as long as there are so many.
    const int64_t many = kMostSums / vectors_;
    const int64_t whole = vectors_ < kVectors ? (last - first) / many : 0;
    const int64_t left = first + whole * many;
    const kernels::Parts few = kernels::parts_of_at_most(kMostSums / kVectors, last - left);
    const int64_t rounds = whole + few.count;
    if (rounds == 0) return;
    Fetched fetched = {next_weights_, kBlock * kWord / rounds};
    const int64_t part = bytes_ / rounds;
    for (int64_t i = 0; i < whole; ++i, fetched.first += part)
      compute_many(first + i * many, fetched);
    for (int64_t i = 0; i < few.count; ++i, fetched.first += part)
      compute_few(left + few.first(i), few.first(i + 1) - few.first(i), fetched);
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

  void compute_many(int64_t first, const Fetched& fetched) const {
    switch (vectors_) {
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
    multiply<kPixels, kUsed>(first, fetched, sums);
    const Finish finish = finish_;  // a copy: what is written to dst does not change it
#pragma GCC unroll 24
    for (int i = 0; i < kPixels; ++i) finish(sums[i], first + i);
  }

  template <int kPixels, int kUsed>
  void multiply(int64_t first, Fetched fetched, Sums (&results)[kPixels][kVectors]) const {
    const char* at[kPixels];
    pixels_.find(first, at);
    Sums sums[kPixels][kUsed];  // in registers, as nobody else sees them
    const auto for_sums = [&sums](auto call) __attribute__((always_inline)) {
#pragma GCC unroll 24
      for (int i = 0; i < kPixels; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < kUsed; ++v) call(i, v, sums[i][v]);
    };
    for_sums([&](int, int v, Sums& sum) __attribute__((always_inline)) {
      sum = Arithmetic::start(starts_ + v * kLanes * kWord);
    });
    const char* weights = weights_;
    int64_t in_chain = 0;
    bool is_part = false;  // of the sums: what came before is in results
    for (int64_t row = 0; row < window_.rows; ++row)
      for (int64_t word = 0, end; word < window_.words; word = end) {
        // A long chain loses digits; also oneDNN adds up a few hundred products apart.
        if (in_chain >= Arithmetic::kMostInChain) {
          for_sums([&](int i, int v, Sums& sum) __attribute__((always_inline)) {
            results[i][v] = is_part ? Arithmetic::add(results[i][v], sum) : sum;
            sum = Arithmetic::none();
          });
          is_part = true;
          in_chain = 0;
        }
        const int64_t left = window_.words - word;
        const int64_t count = left < Arithmetic::kMostInChain ? left : Arithmetic::kMostInChain;
        const int64_t offset = row * window_.row_stride;
        end = word + count;
        in_chain += count;
#pragma GCC unroll 2
        for (int64_t k = word; k < end; ++k, weights += kBlock * kWord) {
          __builtin_prefetch(fetched.first, 0, 2);  // to the second cache
          fetched.first += fetched.step;
          Words w[kUsed];
#pragma GCC unroll 4
          for (int v = 0; v < kUsed; ++v) w[v] = Arithmetic::load(weights + v * kLanes * kWord);
#pragma GCC unroll 24
          for (int i = 0; i < kPixels; ++i) {
            const Words x = Arithmetic::all(at[i] + offset + k * kWord);
#pragma GCC unroll 4
            for (int v = 0; v < kUsed; ++v)
              sums[i][v] = Arithmetic::multiply_add(sums[i][v], x, w[v]);
          }
        }
      }
#pragma GCC unroll 24
    for (int i = 0; i < kPixels; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        if (v >= kUsed) {
          results[i][v] = Arithmetic::none();
          continue;
        }
        const Sums sum = is_part ? Arithmetic::add(results[i][v], sums[i][v]) : sums[i][v];
        results[i][v] = Arithmetic::in_register(sum);
      }
  }

  const Window window_;
  const Pixels pixels_;
  const int64_t bytes_;  // of weights
  const char *const weights_, *const next_weights_, *const starts_;
  const int64_t vectors_;
  const Finish finish_;
};

}  // namespace
}  // namespace dense
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_DENSE_BLOCK_H_
