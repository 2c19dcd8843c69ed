/*!
 * \file bytes.h
 * \brief Vectors of whole numbers, for the files that are compiled for one instruction set.
 *
 * Isa has V, Ints, widen(), which loads V bytes as numbers of 16 bits, and store_lowest(), which
 * stores the lowest byte of each of V numbers of 32 bits.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_BYTES_H_
#define DNNL_BYOC_ENGINE_KERNELS_BYTES_H_

#include "vectors.h"

namespace dnnl_byoc {
namespace kernels {
namespace {

/*! \brief What adds up a few bytes. */
template <class Byte>
struct ShortOf {
  using Type = uint16_t;
};
template <>
struct ShortOf<int8_t> {
  using Type = int16_t;
};

/*! \brief V bytes, s8 or u8. */
template <class Isa, class Byte>
struct Numbers {
  static constexpr int V = Isa::V;
  using Short = typename ShortOf<Byte>::Type;
  typedef Short Shorts __attribute__((vector_size(V * sizeof(Short))));
  typedef int32_t Ints __attribute__((vector_size(V * sizeof(int32_t))));
  using Floats = typename Lanes<V>::Floats;
  using Bits = typename Lanes<V>::Bits;

  static Shorts load(const Byte* p) { return (Shorts)Isa::widen(p); }

  static Floats floats(Shorts x) {
    return __builtin_convertvector(__builtin_convertvector(x, Ints), Floats);
  }

  static void store(Byte* p, Floats x) { Isa::store_lowest(p, (typename Isa::Ints)number(x)); }

  /*! \brief As what is stored, in the lowest byte of 32 bits, with zeros above. */
  static Bits bits(Floats x) { return (Bits)number(x) & 0xff; }

 private:
  /*!
   * \brief A number in the lowest byte, with others above it.
   *
   * Rounds to the nearest, of two to the even one, and saturates; NaN becomes the least.
   */
  static Floats number(Floats x) {
    constexpr float least = Byte(-1) < 0 ? -128.f : 0.f, most = least + 255.f;
    x = x > most ? Floats{} + most : x;
    x = x > least ? x : Floats{} + least;
    // A float of this size has no bits for fractions: the processor rounds, and its lowest bits
    // are the whole number's.
    constexpr float whole = 0x1.8p23f;
    return x + whole;
  }
};

}  // namespace
}  // namespace kernels
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_BYTES_H_
