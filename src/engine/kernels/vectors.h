/*!
 * \file vectors.h
 * \brief Vectors of channels, for the files that are compiled for one instruction set.
 *
 * V is the number of floats in a vector, that is of channels that are computed at once. All is in
 * an unnamed namespace: what two files compile for two instruction sets must not be merged. For the
 * same reason these files use no function of the standard library: if one is inline, the linker
 * could take what was compiled for AVX-512 for all.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_VECTORS_H_
#define DNNL_BYOC_ENGINE_KERNELS_VECTORS_H_

#include "image.h"

namespace dnnl_byoc {
namespace kernels {
namespace {

/*! \brief The upper half of a float. */
struct Bf16 {
  uint16_t bits;
};

template <int V>
struct Lanes {
  typedef float Floats __attribute__((vector_size(V * sizeof(float))));
  typedef float Unaligned __attribute__((vector_size(V * sizeof(float)), aligned(4), may_alias));
  typedef uint32_t Bits __attribute__((vector_size(V * sizeof(uint32_t))));
  typedef uint16_t Halves __attribute__((vector_size(V * sizeof(uint16_t)), aligned(2), may_alias));
};

template <int V>
struct VectorOf {
  using Type = typename Lanes<V>::Floats;
  using Unaligned = typename Lanes<V>::Unaligned;
  using Bits = typename Lanes<V>::Bits;
  using Halves = typename Lanes<V>::Halves;

  static Type load(const float* p) { return *reinterpret_cast<const Unaligned*>(p); }
  static void store(float* p, Type v) { *reinterpret_cast<Unaligned*>(p) = v; }

  static Type load(const Bf16* p) {
    const Halves halves = *reinterpret_cast<const Halves*>(p);
    return (Type)(__builtin_convertvector(halves, Bits) << 16);
  }

  /*! \brief Rounds to the nearest, of two to the even one; what is no number stays none. */
  static Bits bf16_bits(Type v) {
    const Bits bits = (Bits)v;
    const Bits rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (v == v ? rounded : bits | 0x400000) >> 16;
  }

  static void store(Bf16* p, Type v) {
    *reinterpret_cast<Halves*>(p) = __builtin_convertvector(bf16_bits(v), Halves);
  }
};

/*! \brief The part of a tile that lies in the image: rows and columns from first to last - 1. */
struct Extent {
  int first_row, last_row, first_column, last_column;

  bool holds(int row, int column) const {
    return row >= first_row && row < last_row && column >= first_column && column < last_column;
  }
};

/*! \brief Which of a tile's `edge` elements from `start` on lie in 0 … size - 1. */
inline void clip(int64_t start, int64_t size, int edge, int* first, int* last) {
  const auto within = [edge](int64_t i) {
    return static_cast<int>(i < 0 ? 0 : i > edge ? edge : i);
  };
  *first = within(-start);
  *last = within(size - start);
}

/*! \brief What is added to each element, and what becomes of the sum. */
template <int V>
struct Finish {
  using Vector = typename VectorOf<V>::Type;
  const Vector bias;
  const bool add, relu;
  const float negative_slope;

  /*! \param biases Of these channels, or null. */
  Finish(const Activation& activation, const float* biases, bool addend)
      : bias(biases ? VectorOf<V>::load(biases) : Vector{}),
        add(addend),
        relu(activation.relu),
        negative_slope(activation.negative_slope) {}

  template <class T>
  Vector operator()(Vector y, const T* addend) const {
    y += bias;
    if (add) y += VectorOf<V>::load(addend);
    if (relu) y = y > 0 ? y : negative_slope != 0 ? negative_slope * y : Vector{};
    return y;
  }
};

}  // namespace
}  // namespace kernels
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_VECTORS_H_
