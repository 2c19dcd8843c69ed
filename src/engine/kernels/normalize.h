/*!
 * \file normalize.h
 * \brief Batch normalization, for the files that are compiled for one instruction set.
 *
 * Isa has V, what bytes.h says, and sqrt().
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_NORMALIZE_H_
#define DNNL_BYOC_ENGINE_KERNELS_NORMALIZE_H_

#include "bytes.h"
#include "chunks.h"
#include "normalization.h"
#include "shares.h"

namespace dnnl_byoc {
namespace normalization {
namespace {

using kernels::Bf16;
using kernels::Finish;
using kernels::Numbers;
using kernels::VectorOf;

/*! \brief Calls `f` with the first channel of each vector; the last may overlap the one before. */
template <int V, class F>
void for_vectors(int64_t channels, F f) {
  for (int64_t next = 0; next < channels; next += V) f(next + V > channels ? channels - V : next);
}

/*! \brief For each channel, what to multiply it with and what to add; as numbers, of which a ReLU
 * is that of what they stand for. */
template <class Isa>
void find_factors(const Normalization& n, const Source& source) {
  using Vectors = VectorOf<Isa::V>;
  using Vector = typename Vectors::Type;
  const Statistics& statistics = source.statistics;
  for_vectors<Isa::V>(n.channels, [&](int64_t c) {
    const Vector deviation = Isa::sqrt(Vectors::load(statistics.variance + c) + n.epsilon);
    const Vector factor = Vectors::load(statistics.scale + c) / deviation;
    const Vector mean = Vectors::load(statistics.mean + c);
    const Vector term = Vectors::load(statistics.shift + c) - mean * factor;
    Vectors::store(source.factors + c, factor / n.number_scale);
    Vectors::store(source.factors + n.channels + c, term / n.number_scale);
  });
}

/*! \brief Stores a vector of results: bytes, or floats as they are. */
template <class Isa, class Element>
void store(Element* p, typename VectorOf<Isa::V>::Type x, float zero_point) {
  if constexpr (sizeof(Element) == sizeof(float))
    VectorOf<Isa::V>::store(p, x);
  else
    Numbers<Isa, Element>::store(p, x + zero_point);
}

/*!
 * \brief Normalizes pixels from first to end - 1, after find_factors().
 * \param dst The first of these.
 */
template <class Isa, class T, class Element>
void normalize_pixels(const Normalization& n, const Source& source, int64_t first, int64_t end,
                      Element* dst) {
  constexpr int V = Isa::V;
  using Vectors = VectorOf<V>;
  const Finish<V> finish(n.activation, nullptr, false);
  const float *factors = source.factors, *terms = factors + n.channels;
  const float zero_point = n.zero_point;
  for (const Part* part = source.parts; part < source.parts + source.count; ++part) {
    Element* to = dst;
    for (int64_t pixel = first; pixel < end; ++pixel, to += n.channels) {
      const T* x = static_cast<const T*>(part->src) + pixel * part->channels;
      for_vectors<V>(part->channels, [&](int64_t c) {
        const auto steps =
            Vectors::load(x + c) * Vectors::load(factors + c) + Vectors::load(terms + c);
        store<Isa>(to + c, finish(steps, x), zero_point);
      });
    }
    dst += part->channels;
    factors += part->channels;
    terms += part->channels;
  }
}

template <class Isa, class T, class Element>
void normalize(const Normalization& n, const Source& source, void* dst) {
  constexpr int64_t kPixels = 8;  // of a part, one after the other: enough to be read in advance
  find_factors<Isa>(n, source);
  const kernels::Parts parts = kernels::parts_of_at_most(kPixels, n.pixels);
  kernels::share(parts.count, [&](int64_t i) {
    const int64_t first = parts.first(i);
    normalize_pixels<Isa, T>(n, source, first, parts.first(i + 1),
                             static_cast<Element*>(dst) + first * n.channels);
  });
}

template <class Isa>
Function function_of(bool is_bf16, bool is_signed) {
  if (is_bf16) return is_signed ? normalize<Isa, Bf16, int8_t> : normalize<Isa, Bf16, uint8_t>;
  return is_signed ? normalize<Isa, float, int8_t> : normalize<Isa, float, uint8_t>;
}

}  // namespace
}  // namespace normalization
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_NORMALIZE_H_
