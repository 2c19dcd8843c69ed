/*!
 * \file pointwise_convolution.h
 * \brief The convolution, for the files that are compiled for one instruction set.
 *
 * A Vector is one of kBlock bytes; see depthwise_convolution.h. Besides, there are Floats,
 * all_of(), of four bytes, floats() of 32-bit numbers, add_bytes(), which adds up four Floats and a
 * factor times kBlock bytes, and bytes() of four Floats, both in the order of channel_order.h.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_POINTWISE_CONVOLUTION_H_
#define DNNL_BYOC_ENGINE_KERNELS_POINTWISE_CONVOLUTION_H_

#include <omp.h>

#include "pointwise.h"

namespace dnnl_byoc {
namespace pointwise {
namespace {

constexpr int kMostAtOnce = 6;  // pixels whose sums are in registers

/*! \brief A block of dst's channels. */
template <class Vector, Addend kAddend, bool kSigned>
struct Block {
  using V = typename Vector::Type;
  using F = typename Vector::Floats;
  static constexpr int kVectors = kTogether;  // of the sums

  const Convolution& c;
  const Constants constants;  // of this block
  const typename Vector::Mask mask;
  const uint8_t *src, *addend;  // the first pixel, of the addend and dst this block's channels
  uint8_t* dst;

  template <int kPixels>
  void pixels(int64_t first) const {
    const V least = Vector::all(c.least), most = Vector::all(c.most);
    V sums[kPixels][kVectors];
    multiply(src + first * c.src_stride, sums);
#pragma GCC unroll 6
    for (int i = 0; i < kPixels; ++i) {
      F x[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        x[v] = Vector::multiply_add(Vector::floats(sums[i][v]),
                                    Vector::load_floats(constants.factors + v * kLanes),
                                    Vector::load_floats(constants.terms + v * kLanes));
      if (kAddend != Addend::none)
        Vector::template add_bytes<kAddend == Addend::s8>(
            Vector::load(addend + (first + i) * c.addend_stride, mask), c.addend_factor, x);
      const V y = Vector::template bytes<kSigned>(x);
      Vector::store(
          dst + (first + i) * c.dst_stride,
          Vector::template minimum<kSigned>(Vector::template maximum<kSigned>(y, least), most),
          mask);
    }
  }

 private:
  static constexpr int kLanes = Vector::kBytes / 4;

  template <int kPixels>
  void multiply(const uint8_t* pixel, V (&results)[kPixels][kVectors]) const {
    V sums[kPixels][kVectors];  // in registers, as nobody else sees them
#pragma GCC unroll 6
    for (int i = 0; i < kPixels; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[i][v] = Vector::load(constants.starts + v * kLanes);
    const int8_t* weights = constants.weights;
    for (int64_t k = 0; k < c.in_channels; k += kTogether, weights += kTogether * kBlock) {
      V w[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) w[v] = Vector::load(weights + v * Vector::kBytes);
#pragma GCC unroll 6
      for (int i = 0; i < kPixels; ++i) {
        const V x = Vector::all_of(pixel + i * c.src_stride + k);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[i][v] = Vector::multiply_add(sums[i][v], x, w[v]);
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < kPixels; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) results[i][v] = Vector::in_register(sums[i][v]);
  }
};

/*! \brief From 1 to kMostAtOnce pixels. */
template <class Block>
void compute_pixels(const Block& block, int64_t first, int64_t count) {
  switch (count) {
    case 1:
      return block.template pixels<1>(first);
    case 2:
      return block.template pixels<2>(first);
    case 3:
      return block.template pixels<3>(first);
    case 4:
      return block.template pixels<4>(first);
    case 5:
      return block.template pixels<5>(first);
    default:
      return block.template pixels<kMostAtOnce>(first);
  }
}

template <class Vector, Addend kAddend, bool kSigned>
void convolve_as(const Convolution& c, const Constants& constants, const uint8_t* src,
                 const uint8_t* addend, uint8_t* dst) {
  const kernels::Parts chunks = c.chunks().of_pixels(), parts = c.chunks().of_blocks();
  const int most = omp_get_max_threads();
#pragma omp parallel for collapse(2) schedule(static) \
    num_threads(c.threads < most ? static_cast<int>(c.threads) : most)
  for (int64_t chunk = 0; chunk < chunks.count; ++chunk)
    for (int64_t part = 0; part < parts.count; ++part)
      for (int64_t i = parts.first(part); i < parts.first(part + 1); ++i) {
        const int64_t channel = i * kBlock;
        const Block<Vector, kAddend, kSigned> block = {
            c,
            {constants.weights + i * c.block_bytes(), constants.starts + channel,
             constants.factors + channel, constants.terms + channel},
            Vector::first(c.out_channels - channel),
            src,
            addend + (kAddend == Addend::none ? 0 : channel),
            dst + channel};
        const int64_t first = chunks.first(chunk);
        const kernels::Parts rounds =
            kernels::parts_of_at_most(kMostAtOnce, chunks.first(chunk + 1) - first);
        for (int64_t k = 0; k < rounds.count; ++k)
          compute_pixels(block, first + rounds.first(k), rounds.first(k + 1) - rounds.first(k));
      }
}

template <class Vector>
void convolve(const Convolution& c, const Constants& constants, const void* src, const void* addend,
              void* dst) {
  const auto as = [&](auto run) {
    run(c, constants, static_cast<const uint8_t*>(src), static_cast<const uint8_t*>(addend),
        static_cast<uint8_t*>(dst));
  };
  switch (c.addend) {
    case Addend::none:
      return as(c.is_dst_signed ? convolve_as<Vector, Addend::none, true>
                                : convolve_as<Vector, Addend::none, false>);
    case Addend::u8:
      return as(c.is_dst_signed ? convolve_as<Vector, Addend::u8, true>
                                : convolve_as<Vector, Addend::u8, false>);
    case Addend::s8:
      return as(c.is_dst_signed ? convolve_as<Vector, Addend::s8, true>
                                : convolve_as<Vector, Addend::s8, false>);
  }
}

}  // namespace
}  // namespace pointwise
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_POINTWISE_CONVOLUTION_H_
