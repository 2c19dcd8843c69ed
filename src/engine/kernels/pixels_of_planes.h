/*!
 * \file pixels_of_planes.h
 * \brief Planes to pixels, for the files that are compiled for one instruction set.
 *
 * Isa has V, what bytes.h says, store_three_lowest(), which stores three bytes of each of V numbers
 * of 32 bits, store_three_halves(a, b), which stores each of a and the lower half of each of b, and
 * store_three(a, b, c), which stores one of each in turn.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_PIXELS_OF_PLANES_H_
#define DNNL_BYOC_ENGINE_KERNELS_PIXELS_OF_PLANES_H_

#include "bytes.h"
#include "pixels.h"

namespace dnnl_byoc {
namespace pixels {
namespace {

/*! \brief Bytes of a pixel, in which x · factor + point is rounded. */
template <class Isa, class Byte>
struct Bytes {
  using Numbers = kernels::Numbers<Isa, Byte>;
  static constexpr int kSize = 1;  // of a channel

  template <class Vector>
  static void store(const Images& images, const Vector (&x)[kChannels], char* pixels) {
    typename Numbers::Bits bits{};
    for (int channel = 0; channel < kChannels; ++channel)
      bits |= Numbers::bits(x[channel] * images.factor + images.point) << (8 * channel);
    Isa::store_three_lowest(pixels, (typename Isa::Ints)bits);
  }
};

template <class Isa>
struct Halves {
  static constexpr int kSize = 2;

  template <class Vector>
  static void store(const Images&, const Vector (&x)[kChannels], char* pixels) {
    const auto bits = kernels::VectorOf<Isa::V>::bf16_bits;
    Isa::store_three_halves(pixels, (typename Isa::Ints)(bits(x[0]) | bits(x[1]) << 16),
                            (typename Isa::Ints)bits(x[2]));
  }
};

template <class Isa>
struct Floats {
  static constexpr int kSize = 4;

  template <class Vector>
  static void store(const Images&, const Vector (&x)[kChannels], char* pixels) {
    Isa::store_three(pixels, x[0], x[1], x[2]);
  }
};

template <class Isa, class Kind>
void convert(const Images& images, const float* src, void* dst) {
  using Vectors = kernels::VectorOf<Isa::V>;
  constexpr int64_t V = Isa::V, kTogether = 64 * V;  // pixels, for a thread
  const int64_t size = images.size, parts = size < kTogether ? 1 : size / kTogether;
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t image = 0; image < images.batch; ++image)
    for (int64_t part = 0; part < parts; ++part) {
      const float* planes = src + image * kChannels * size;
      char* pixels = static_cast<char*>(dst) + image * kChannels * size * Kind::kSize;
      const int64_t begin = part * kTogether;
      const int64_t end = part + 1 < parts ? begin + kTogether : size;
      for (int64_t i = begin; i < end; i += V) {
        // The last vector may have some pixels in common with the one before.
        const int64_t first = i + V > size ? size - V : i;
        const float* plane = planes + first;
        const typename Vectors::Type x[kChannels] = {
            Vectors::load(plane), Vectors::load(plane + size), Vectors::load(plane + 2 * size)};
        Kind::store(images, x, pixels + kChannels * first * Kind::kSize);
      }
    }
}

template <class Isa>
Function function_of(Type type) {
  switch (type) {
    case Type::u8:
      return convert<Isa, Bytes<Isa, uint8_t>>;
    case Type::s8:
      return convert<Isa, Bytes<Isa, int8_t>>;
    case Type::bf16:
      return convert<Isa, Halves<Isa>>;
    default:
      return convert<Isa, Floats<Isa>>;
  }
}

}  // namespace
}  // namespace pixels
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_PIXELS_OF_PLANES_H_
