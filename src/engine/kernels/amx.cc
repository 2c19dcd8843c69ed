#include <immintrin.h>

#include "dense_bytes.h"
#include "dense_halves.h"
#include "shares.h"
#include "tiles.h"
#include "tiles_copy.h"

namespace dnnl_byoc {
namespace tiles {
namespace {

using dense::kBlock, dense::kLanes, dense::kVectors, dense::kWord;

constexpr int64_t kLine = kBlock * kWord;  // bytes: of weights, of a word; of sums, of a pixel

/*! \name The instructions, on the registers of these numbers. */
///@{
template <int kTo>
void zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTo));
}
template <int kTo>
void load(const char* rows, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride), "i"(kTo) : "memory");
}
template <int kFrom>
void store(char* rows, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(rows), "r"(stride), "i"(kFrom) : "memory");
}
///@}

/*! \brief Products of src in bf16. */
struct OfHalves {
  using Sums = __m512;
  static Sums add(__m512 a, __m512 b) { return a + b; }
  template <int kSums, int kSrc, int kWeights>
  static void multiply_add() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kSrc), "i"(kWeights));
  }
};

/*! \brief Of src in bytes, with s8. */
template <bool kSigned>
struct OfBytes {
  using Sums = __m512i;
  static Sums add(__m512 a, __m512 b) { return _mm512_add_epi32((Sums)a, (Sums)b); }
  template <int kSums, int kSrc, int kWeights>
  static void multiply_add() {
    if (kSigned)
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kSrc), "i"(kWeights));
    else
      asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kSrc), "i"(kWeights));
  }
};

/*! \brief The registers' shapes, from the processor's manual; a thread's own. */
class Shapes {
 public:
  explicit Shapes(int64_t words) {
    struct {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t bytes_of_row[16] = {};
      uint8_t rows[16] = {};
    } shapes;
    const auto set = [&](int number, int64_t rows, int64_t words_of_row) {
      shapes.rows[number] = static_cast<uint8_t>(rows);
      shapes.bytes_of_row[number] = static_cast<uint16_t>(words_of_row * kWord);
    };
    for (int i = 0; i < 4; ++i) set(i, kPixels, kLanes);
    set(4, kPixels, words);
    set(5, words, kLanes);
    set(6, words, kLanes);
    asm volatile("ldtilecfg %0" ::"m"(shapes));
  }
  ~Shapes() { asm volatile("tilerelease"); }
  Shapes(const Shapes&) = delete;
};

/*!
 * \brief Weights to ask for, so many bytes with each tile of src.
 *
 * What comes from far takes a while, and the processor itself asks for it too late.
 */
struct Fetched {
  const char* first;
  int64_t bytes;

  void next() {
    constexpr int64_t kOfCache = 64;  // bytes of a line
    for (int64_t i = 0; i < bytes; i += kOfCache)
      __builtin_prefetch(first + i, 0, 2);  // to the second cache
    first += bytes;
  }
};

/*!
 * \brief The sums of one or two tiles of pixels by one or two of channels of dst.
 *
 * Registers: 0 to 3 for the sums, 4 for src, 5 and 6 for weights.
 * \param words Of a tile's row.
 * \param src The first of the pixels, at the window's first tap. \param stride Between pixels.
 * \param distance Between the two tiles. All in bytes.
 */
template <class Product, int kHigh, int kWide>
void multiply(const Convolution& c, int64_t words, const char* src, const int64_t* offsets,
              int64_t stride, int64_t distance, const char* weights, Fetched fetched, char* sums) {
  const int64_t taps = c.taps();
  zero<0>(), zero<1>(), zero<2>(), zero<3>();
  for (int64_t tap = 0; tap < taps; ++tap) {
    const char* x = src + offsets[tap];
    for (int64_t left = c.words_of_tap(); left > 0; left -= words) {
      fetched.next();
      load<4>(x, stride);
      load<6>(weights, kLine);
      Product::template multiply_add<0, 4, 6>();
      if (kWide > 1) {
        load<5>(weights + kLanes * kWord, kLine);
        Product::template multiply_add<1, 4, 5>();
      }
      zero<4>();
      if (kHigh > 1) {
        load<4>(x + distance, stride);
        Product::template multiply_add<2, 4, 6>();
        if (kWide > 1) Product::template multiply_add<3, 4, 5>();
        zero<4>();
      }
      zero<6>();
      if (kWide > 1) zero<5>();
      x += words * kWord;
      weights += words * kLine;
    }
  }
  store<0>(sums, kLine);
  if (kWide > 1) store<1>(sums + kLanes * kWord, kLine);
  if (kHigh > 1) store<2>(sums + kPixels * kLine, kLine);
  if (kHigh > 1 && kWide > 1) store<3>(sums + kPixels * kLine + kLanes * kWord, kLine);
}

/*! \brief A few rows of an image of dst. */
template <class Product, class Finish>
class Chunk {
 public:
  Chunk(const Convolution& c, int64_t words, int64_t image, int64_t first_row, int64_t rows,
        const char* src, char* workspace)
      : c_(c),
        words_(words),
        first_(image * c.image_of_dst() + first_row * c.vertical.dst_step),
        positions_(rows * c.pitch() - c.horizontal.reach()),
        copied_(c.copies() || positions_ < kPixels),
        stride_(copied_ ? c.pixel_bytes() : c.vertical.src_step) {
    src += image * c.image_of_src();
    if (copied_) {
      copy_src(c, src, first_row, rows, workspace, offsets_);
      src_ = workspace;
    } else {
      src_ = src + first_row * c.vertical.src_step;
      offsets_[0] = 0;
    }
  }

  /*! \param is_new Whether the block's weights were not asked for while another was computed. */
  void compute(int64_t block, bool is_new, const dense::Constants& constants, const void* addend,
               void* dst) {
    const Finish finish(c_.results, constants, block * kBlock, addend, dst);
    const auto* all_weights = static_cast<const char*>(constants.weights);
    const int64_t block_bytes = c_.taps() * c_.words_of_tap() * kLine;
    const char* weights = all_weights + block * block_bytes;
    const char* next = all_weights + (block + 1) % c_.results.blocks() * block_bytes;
    const float* starts = static_cast<const float*>(constants.starts) + block * kBlock;
    const int64_t vectors = c_.results.vectors(block);
    const int64_t step_bytes = words_ * kLine;
    const int64_t rounds = kernels::parts_of_at_most(2 * kPixels, positions_).count *
                           kernels::parts_of_at_most(2, vectors).count;
    int64_t round = 0;
    for (int64_t position = 0; position < positions_; position += 2 * kPixels) {
      const int64_t second = position + kPixels;
      const bool is_high = second < positions_;
      const int64_t start = start_of(position), distance = start_of(second) - start;
      for (int64_t v = 0; v < vectors; v += 2, ++round) {
        const Fetched fetched = is_new && round == 0 ? Fetched{weights + step_bytes, step_bytes}
                                                     : Fetched{next + round * block_bytes / rounds,
                                                               step_bytes / rounds};
        function_of(is_high, v + 1 < vectors)(c_, words_, src_ + start * stride_, offsets_, stride_,
                                              distance * stride_, weights + v * kLanes * kWord,
                                              fetched, sums_ + v * kLanes * kWord);
      }
      store(finish, starts, position, start, sums_);
      if (is_high) store(finish, starts, second, start + distance, sums_ + kPixels * kLine);
    }
  }

 private:
  static auto function_of(bool is_high, bool is_wide) {
    if (is_high) return is_wide ? multiply<Product, 2, 2> : multiply<Product, 2, 1>;
    return is_wide ? multiply<Product, 1, 2> : multiply<Product, 1, 1>;
  }

  /*! \brief Where a tile begins: the last one of pixels that are not copied, so that it ends there.
   */
  int64_t start_of(int64_t position) const {
    const int64_t last = positions_ - kPixels;
    return copied_ || position < last ? position : last;
  }

  /*!
   * \brief Not inline: the loops before would take its registers.
   * \param position The first whose results are wanted; of what lies at sums, `start`.
   */
  __attribute__((noinline)) void store(Finish finish, const float* starts, int64_t position,
                                       int64_t start, const char* sums) const {
    __m512 first_sums[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) first_sums[v] = _mm512_loadu_ps(starts + v * kLanes);
    const int64_t pitch = c_.pitch(), columns = c_.horizontal.dst, left = positions_ - start;
    const int64_t down = c_.vertical.dst_step, right = c_.horizontal.dst_step;
    const char* const end = sums + (left < kPixels ? left : kPixels) * kLine;
    int64_t row = position / pitch, column = position % pitch;
    for (sums += (position - start) * kLine; sums < end; sums += kLine) {
      if (column < columns) {
        typename Product::Sums of_pixel[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v)
          of_pixel[v] = Product::add(_mm512_load_ps(sums + v * kLanes * kWord), first_sums[v]);
        finish(of_pixel, first_ + row * down + column * right);
      }
      if (++column == pitch) {
        column = 0;
        ++row;
      }
    }
  }

  const Convolution& c_;
  const int64_t words_;      // of a tile's row
  const int64_t first_;      // pixel of dst
  const int64_t positions_;  // in planes of src, from the first to the last of them
  const bool copied_;
  const int64_t stride_;  // from one to the next, in bytes
  const char* src_;
  int64_t offsets_[kMostTaps];
  alignas(64) char sums_[2 * kPixels * kLine];
};

template <class Product, class Finish>
void convolve(const Convolution& c, const dense::Constants& constants, const void* src,
              const void* addend, void* workspace, void* dst) {
  const kernels::Parts chunks = c.chunks();
  const int64_t blocks = c.results.blocks();
  kernels::Shares shares(c.batch * chunks.count * blocks, c.threads);
#pragma omp parallel num_threads(shares.threads())
  {
    const int thread = omp_get_thread_num();
    const int64_t words = c.words_of_tile();
    const Shapes shapes(words);
    char* own = static_cast<char*>(workspace) + thread * c.workspace_bytes();
    int64_t next = -1;  // block whose weights were asked for
    for (int64_t item = shares.next(thread); item >= 0;) {
      const int64_t i = item / blocks, first = chunks.first(i % chunks.count);
      Chunk<Product, Finish> chunk(c, words, i / chunks.count, first,
                                   chunks.first(i % chunks.count + 1) - first,
                                   static_cast<const char*>(src), own);
      do {
        const int64_t block = item % blocks;
        chunk.compute(block, block != next, constants, addend, dst);
        next = (block + 1) % blocks;
      } while ((item = shares.next(thread)) >= 0 && item / blocks == i);
    }
  }
}

void convolve(const Convolution& c, const dense::Constants& constants, const void* src,
              const void* addend, void* workspace, void* dst) {
  const auto with = [&](auto product, auto finish) {
    convolve<typename decltype(product)::Type, typename decltype(finish)::Type>(
        c, constants, src, addend, workspace, dst);
  };
  if (c.src == DataType::bf16) {
    if (c.results.adds)
      with(Tag<OfHalves>(), Tag<FinishFloats<Halves, true>>());
    else
      with(Tag<OfHalves>(), Tag<FinishFloats<Halves, false>>());
  } else {
    with_finish_of_bytes(c.results, [&](auto finish) {
      if (c.src == DataType::s8)
        with(Tag<OfBytes<true>>(), finish);
      else
        with(Tag<OfBytes<false>>(), finish);
    });
  }
}

}  // namespace

Function amx_function() { return convolve; }

}  // namespace tiles
}  // namespace dnnl_byoc
