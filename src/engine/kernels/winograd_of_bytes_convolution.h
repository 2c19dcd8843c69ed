/*!
 * \file winograd_of_bytes_convolution.h
 * \brief The convolution, for the files that are compiled for one instruction set.
 *
 * An Isa has load(), which makes numbers of 16 bits of kBlock bytes; multiply_add(sums, weights,
 * pair), of the pair of numbers there; divide_by_576(), of sums that are 576 times something modulo
 * 2³²; and a Finish, which stores bytes of a vector of sums.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_OF_BYTES_CONVOLUTION_H_
#define DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_OF_BYTES_CONVOLUTION_H_

#include <omp.h>

#include "vectors.h"
#include "winograd_of_bytes.h"

namespace dnnl_byoc {
namespace winograd_of_bytes {
namespace {

using kernels::clip;
using kernels::Extent;

typedef int16_t Shorts __attribute__((vector_size(64)));
typedef uint32_t Sums __attribute__((vector_size(64)));
// In memory, wherever that begins.
typedef int16_t StoredShorts __attribute__((vector_size(64), aligned(2), may_alias));
typedef uint32_t StoredSums __attribute__((vector_size(64), aligned(4), may_alias));

/*! \brief B^T x. */
inline void transform_src_side(const Shorts (&x)[kSide], Shorts (&t)[kSide]) {
  const Shorts even = x[4] - (x[2] << 2), odd = x[3] - (x[1] << 2);
  const Shorts outer = x[4] - x[2], inner = x[3] - x[1], twice = inner + inner;
  t[0] = outer + ((x[0] - x[2]) << 2);
  t[1] = even + odd;
  t[2] = even - odd;
  t[3] = outer + twice;
  t[4] = outer - twice;
  t[5] = x[5] - x[3] - (twice + twice);
}

/*! \brief 24 A^T x, of sums for these rows of G. */
inline void transform_dst_side(const Sums (&x)[kSide], Sums (&y)[kTile]) {
  const Sums sum1 = x[1] + x[2], difference1 = x[1] - x[2];
  const Sums sum2 = x[3] + x[4], difference2 = x[3] - x[4];
  y[0] = x[0] + sum1 + sum2;
  y[1] = difference1 + difference2 + difference2;
  y[2] = sum1 + (sum2 << 2);
  y[3] = difference1 + (difference2 << 3) + x[5] + x[5];
}

/*! \brief Where a tile is. */
struct Place {
  int64_t image, row, column;  // in tiles

  Place(const Convolution& c, int64_t tile)
      : image(tile / (c.rows() * c.columns())),
        row(tile / c.columns() % c.rows()),
        column(tile % c.columns()) {}
};

/*! \param pixel The tile's first element, which may lie outside of the image. */
template <class Isa, bool kWhole>
void transform_src_tile(const Convolution& c, const uint8_t* pixel, const Extent& inside,
                        int64_t channels, int16_t* matrix, int64_t matrix_stride) {
  const Shorts padding = Shorts{} + static_cast<int16_t>(c.padding - 128);
  Shorts half[kSide][kSide];
  for (int j = 0; j < kSide; ++j) {
    Shorts x[kSide], t[kSide];
    for (int i = 0; i < kSide; ++i)
      x[i] = kWhole || inside.holds(i, j)
                 ? Isa::load(pixel + i * c.src.row_stride + j * c.src.column_stride, channels,
                             c.is_src_signed)
                 : padding;
    transform_src_side(x, t);
    for (int i = 0; i < kSide; ++i) half[i][j] = t[i];
  }
  for (int i = 0; i < kSide; ++i) {
    Shorts t[kSide];
    transform_src_side(half[i], t);
    for (int j = 0; j < kSide; ++j)
      *reinterpret_cast<StoredShorts*>(matrix + (i * kSide + j) * matrix_stride) = t[j];
  }
}

/*! \brief What the products of a tile add up to. */
template <class Isa>
void transform_dst_tile(const StoredSums* products, int64_t matrix_stride,
                        Sums (&results)[kTile * kTile]) {
  Sums half[kTile][kSide];
  for (int j = 0; j < kSide; ++j) {
    Sums x[kSide], y[kTile];
    for (int i = 0; i < kSide; ++i) x[i] = products[(i * kSide + j) * matrix_stride];
    transform_dst_side(x, y);
    for (int i = 0; i < kTile; ++i) half[i][j] = y[i];
  }
  for (int i = 0; i < kTile; ++i) {
    Sums y[kTile];
    transform_dst_side(half[i], y);
    for (int j = 0; j < kTile; ++j) results[i * kTile + j] = Isa::divide_by_576(y[j]);
  }
}

/*!
 * \brief The products of kTiles rows of one matrix with one of weights.
 * \param block_stride Between a matrix's blocks of channels.
 */
template <class Isa, int kTiles>
void multiply(const int16_t* matrix, int64_t block_stride, const int16_t* weights, int64_t pairs,
              StoredSums* products) {
  // The next matrix's come from far, and the processor itself asks for them too late.
  const int64_t of_matrix = pairs * kPair * kVector;
  Sums sums[kTiles];
#pragma GCC unroll 16
  for (int i = 0; i < kTiles; ++i) sums[i] = Sums{};
  constexpr int64_t kPairs = kBlock / kPair;
  for (; pairs > 0; pairs -= kPairs, matrix += block_stride) {
    const int64_t count = pairs < kPairs ? pairs : kPairs;
    for (int64_t k = 0; k < count; ++k, weights += kPair * kVector) {
      const Shorts of_vector = *reinterpret_cast<const StoredShorts*>(weights);
      __builtin_prefetch(weights + of_matrix);
#pragma GCC unroll 16
      for (int i = 0; i < kTiles; ++i)
        sums[i] = Isa::multiply_add(sums[i], of_vector, matrix + i * kBlock + k * kPair);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kTiles; ++i) products[i] = sums[i];
}

template <class Isa>
struct Multiply {
  using Function = void (*)(const int16_t*, int64_t, const int16_t*, int64_t, StoredSums*);

  /*! \brief For 1 to kMostAtOnce tiles. */
  static Function of(int64_t tiles) {
    constexpr Function kFunctions[kMostAtOnce] = {
        multiply<Isa, 1>,  multiply<Isa, 2>,  multiply<Isa, 3>,  multiply<Isa, 4>,
        multiply<Isa, 5>,  multiply<Isa, 6>,  multiply<Isa, 7>,  multiply<Isa, 8>,
        multiply<Isa, 9>,  multiply<Isa, 10>, multiply<Isa, 11>, multiply<Isa, 12>,
        multiply<Isa, 13>, multiply<Isa, 14>};
    return kFunctions[tiles - 1];
  }
};

/*! \brief A few tiles. */
template <class Isa>
class Chunk {
 public:
  Chunk(const Convolution& c, int64_t first, int64_t tiles, void* workspace)
      : c_(c),
        first_(first),
        tiles_(tiles),
        matrices_(static_cast<int16_t*>(workspace)),
        products_(reinterpret_cast<StoredSums*>(matrices_ + kElements * matrix_stride())),
        results_(products_ + kElements * tiles_) {}

  /*! \param src The first pixel of the first image. */
  void transform_src(const uint8_t* src) const {
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      const Place place(c_, first_ + tile);
      const int64_t y = place.row * kTile - c_.padding_top;
      const int64_t x = place.column * kTile - c_.padding_left;
      Extent inside;
      clip(y, c_.src.height, kSide, &inside.first_row, &inside.last_row);
      clip(x, c_.src.width, kSide, &inside.first_column, &inside.last_column);
      const bool whole = inside.first_row == 0 && inside.last_row == kSide &&
                         inside.first_column == 0 && inside.last_column == kSide;
      const auto transform = whole ? transform_src_tile<Isa, true> : transform_src_tile<Isa, false>;
      const uint8_t* pixel = src + place.image * c_.src.batch_stride + y * c_.src.row_stride +
                             x * c_.src.column_stride;
      for (int64_t block = 0; block < c_.channels.blocks(); ++block)
        transform(c_, pixel + block * kBlock, inside, c_.channels.in - block * kBlock,
                  matrices_ + block * block_stride() + tile * kBlock, matrix_stride());
    }
  }

  /*! \brief One vector of dst's channels. */
  void compute(const Constants& constants, int64_t vector, const uint8_t* addend,
               uint8_t* dst) const {
    const Channels& channels = c_.channels;
    const int64_t groups = channels.groups();
    const typename Isa::Finish finish(constants, vector * kVector, c_, addend, dst);
    const int16_t* weights = constants.weights + vector * channels.weights_of_vector();
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t block = channels.first_block(group);
      const int64_t pairs =
          channels.pairs_before(channels.first_block(group + 1)) - channels.pairs_before(block);
      const int16_t* matrix = matrices_ + block * block_stride();
      for (int e = 0; e < kElements; ++e) {
        multiply_matrix(matrix, weights, pairs, products_ + e * tiles_);
        matrix += matrix_stride();
        weights += pairs * kPair * kVector;
      }
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        Sums y[kTile * kTile];
        transform_dst_tile<Isa>(products_ + tile, tiles_, y);
        StoredSums* before = results_ + tile * kTile * kTile;
        for (int k = 0; group > 0 && k < kTile * kTile; ++k) y[k] += before[k];
        if (group + 1 < groups)
          for (int k = 0; k < kTile * kTile; ++k) before[k] = y[k];
        else
          store(finish, Place(c_, first_ + tile), y);
      }
    }
  }

 private:
  int64_t block_stride() const { return tiles_ * kBlock; }
  int64_t matrix_stride() const { return c_.channels.blocks() * block_stride(); }

  void multiply_matrix(const int16_t* matrix, const int16_t* weights, int64_t pairs,
                       StoredSums* products) const {
    const kernels::Parts rounds = kernels::parts_of_at_most(kMostAtOnce, tiles_);
    for (int64_t i = 0; i < rounds.count; ++i) {
      const int64_t from = rounds.first(i), to = rounds.first(i + 1);
      Multiply<Isa>::of(to - from)(matrix + from * kBlock, block_stride(), weights, pairs,
                                   products + from);
    }
  }

  void store(const typename Isa::Finish& finish, const Place& place,
             const Sums (&results)[kTile * kTile]) const {
    const Image& image = c_.dst;
    Extent inside;
    clip(place.row * kTile, image.height, kTile, &inside.first_row, &inside.last_row);
    clip(place.column * kTile, image.width, kTile, &inside.first_column, &inside.last_column);
    const int64_t pixel = place.image * image.batch_stride + place.row * kTile * image.row_stride +
                          place.column * kTile * image.column_stride;
    for (int i = 0; i < kTile; ++i)
      for (int j = 0; j < kTile; ++j)
        if (inside.holds(i, j))
          finish.store(pixel + i * image.row_stride + j * image.column_stride,
                       results[i * kTile + j]);
  }

  const Convolution& c_;
  const int64_t first_, tiles_;
  int16_t* const matrices_;     // by element of the tile, block of channels, tile, channel
  StoredSums* const products_;  // by element of the tile, tile
  StoredSums* const results_;   // by tile
};

template <class Isa>
void convolve(const Convolution& c, const Constants& constants, const void* src, const void* addend,
              void* workspace, void* dst) {
  const kernels::Parts chunks = c.chunks();
  const auto tiles = [&](int thread, int64_t chunk) {
    const int64_t first = chunks.first(chunk);
    return Chunk<Isa>(c, first, chunks.first(chunk + 1) - first,
                      static_cast<char*>(workspace) + thread * c.workspace_bytes());
  };
  kernels::share_blocks(
      chunks.count, c.channels.vectors(), c.threads,
      [&](int thread, int64_t chunk) {
        tiles(thread, chunk).transform_src(static_cast<const uint8_t*>(src));
      },
      [&](int thread, int64_t chunk, int64_t vector) {
        tiles(thread, chunk)
            .compute(constants, vector, static_cast<const uint8_t*>(addend),
                     static_cast<uint8_t*>(dst));
      });
}

}  // namespace
}  // namespace winograd_of_bytes
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_WINOGRAD_OF_BYTES_CONVOLUTION_H_
