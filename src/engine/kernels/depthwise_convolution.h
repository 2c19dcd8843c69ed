/*!
 * \file depthwise_convolution.h
 * \brief The convolution, for the files that are compiled for one instruction set.
 *
 * A Vector is one of bytes, in lanes of 16: kBytes, Mask, mask(n) of the first n bytes, load() with
 * zeros where the mask has none, store(), all(byte), flip_sign(), interleave_bytes() and
 * interleave_shorts() of the low or high halves of the lanes, multiply_add(sums, u8, s8), and
 * result(), which makes bytes of four vectors of sums in the order in which interleaving left them.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_DEPTHWISE_CONVOLUTION_H_
#define DNNL_BYOC_ENGINE_KERNELS_DEPTHWISE_CONVOLUTION_H_

#include "depthwise.h"
#include "shares.h"

namespace dnnl_byoc {
namespace depthwise {
namespace {

constexpr int64_t kMostColumns = 64;  // of src, that are put together before they are used

template <class Vector, int kKernel, bool kSigned>
struct Block {
  using V = typename Vector::Type;
  static constexpr int kGroups = (kKernel + kTogether - 1) / kTogether;
  static constexpr int kPerColumn = kGroups * kTogether;  // vectors

  const Convolution& c;
  const Constants constants;  // of this block
  const typename Vector::Mask mask;
  const uint8_t* src;  // the first channel of the image's first pixel
  uint8_t* dst;

  /*! \brief The rows of the result that need no others of src than those put together. */
  void rows(int64_t first_row) const {
    alignas(64) uint8_t columns[kMostColumns * kPerColumn * Vector::kBytes];
    const int64_t stride = c.columns.stride, fit = (kMostColumns - kKernel) / stride + 1;
    const int64_t row_count =
        first_row + c.rows_at_once() > c.dst.height ? c.dst.height - first_row : c.rows_at_once();
    for (int64_t first = 0; first < c.dst.width; first += fit) {
      const int64_t count = first + fit > c.dst.width ? c.dst.width - first : fit;
      put_together(first_row * c.rows.stride - c.rows.padding, first * stride - c.columns.padding,
                   (count - 1) * stride + kKernel, columns);
      for (int64_t row = 0; row < row_count; ++row)
        convolve(columns, row, count,
                 dst + (first_row + row) * c.dst.row_stride + first * c.dst.column_stride);
    }
  }

 private:
  void put_together(int64_t first_row, int64_t first_column, int64_t count, uint8_t* to) const {
    const V padding = Vector::all(c.padding);
    for (int64_t j = 0; j < count; ++j) {
      const int64_t column = first_column + j;
      const bool in_row = column >= 0 && column < c.src.width;
      V x[kPerColumn];
      for (int i = 0; i < kPerColumn; ++i) {
        const int64_t row = first_row + i;
        x[i] = padding;
        if (!in_row || row < 0 || row >= c.src.height) continue;
        x[i] = Vector::load(src + row * c.src.row_stride + column * c.src.column_stride, mask);
        if (c.is_src_signed) x[i] = Vector::flip_sign(x[i]);
      }
      for (int i = 0; i < kPerColumn; i += kTogether)
        for (int high = 0; high < 2; ++high) {
          const V first = Vector::interleave_bytes(x[i], x[i + 1], high);
          const V second = Vector::interleave_bytes(x[i + 2], x[i + 3], high);
          for (int higher = 0; higher < 2; ++higher) {
            Vector::store(to, Vector::interleave_shorts(first, second, higher));
            to += Vector::kBytes;
          }
        }
    }
  }

  /*! \param columns Of src, put together; `row` is that of the results among the rows at once. */
  void convolve(const uint8_t* columns, int64_t row, int64_t count, uint8_t* to) const {
    constexpr int kVectors = kKernel * kPerColumn;
    V weights[kVectors];
    for (int i = 0; i < kVectors; ++i)
      weights[i] = Vector::load(constants.weights + (row * kVectors + i) * Vector::kBytes);
    const V least = Vector::all(c.least);
    const auto most = static_cast<float>(kSigned ? static_cast<int8_t>(c.most) : c.most);
    for (int64_t x = 0; x < count; ++x) {
      V sums[kTogether];
      for (int k = 0; k < kTogether; ++k)
        sums[k] = Vector::load(constants.starts + k * Vector::kBytes / 4);
      for (int i = 0; i < kVectors; ++i)
        sums[i % kTogether] = Vector::multiply_add(
            sums[i % kTogether], Vector::load(columns + i * Vector::kBytes), weights[i]);
      const V y = Vector::template result<kSigned>(sums, constants.factors, constants.terms, most);
      Vector::store(to, Vector::template maximum<kSigned>(y, least), mask);
      columns += c.columns.stride * kPerColumn * Vector::kBytes;
      to += c.dst.column_stride;
    }
  }
};

template <class Vector, int kKernel, bool kSigned>
void convolve_rows(const Convolution& c, const Constants& constants, int64_t block, int64_t image,
                   int64_t row, const void* src, void* dst) {
  const int64_t channel = block * kBlock, left = c.channels - channel;
  const Constants own = {constants.weights + block * c.block_bytes(), constants.starts + channel,
                         constants.factors + channel, constants.terms + channel};
  const Block<Vector, kKernel, kSigned> b = {
      c, own, Vector::first(left < Vector::kBytes ? left : Vector::kBytes),
      static_cast<const uint8_t*>(src) + image * c.src.batch_stride + channel,
      static_cast<uint8_t*>(dst) + image * c.dst.batch_stride + channel};
  b.rows(row);
}

/*! \tparam Whole A vector of kBlock bytes. \tparam Half One of half as many. */
template <class Whole, class Half, int kKernel, bool kSigned>
void convolve(const Convolution& c, const Constants& constants, const void* src, void* dst) {
  const int64_t at_once = c.rows_at_once(), bands = (c.dst.height + at_once - 1) / at_once;
  const int64_t blocks = c.blocks();
  kernels::share(c.batch * bands * blocks, [&](int64_t item) {
    const int64_t block = item % blocks, band = item / blocks % bands;
    const auto rows = c.width(block) == kBlock ? convolve_rows<Whole, kKernel, kSigned>
                                               : convolve_rows<Half, kKernel, kSigned>;
    rows(c, constants, block, item / blocks / bands, band * at_once, src, dst);
  });
}

template <class Whole, class Half, bool kSigned>
Function function_of(int64_t kernel) {
  switch (kernel) {
    case 3:
      return convolve<Whole, Half, 3, kSigned>;
    case 5:
      return convolve<Whole, Half, 5, kSigned>;
    case 7:
      return convolve<Whole, Half, 7, kSigned>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace depthwise
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_DEPTHWISE_CONVOLUTION_H_
