/*!
 * \file normalize.h
 * \brief Batch normalization, for the files that are compiled for one instruction set.
 *
 * Isa has V, what bytes.h says, and sqrt().
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_NORMALIZE_H_
#define DNNL_BYOC_ENGINE_KERNELS_NORMALIZE_H_

#include "bytes.h"
#include "normalization.h"

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
void factors_of(const Normalization& n, const Statistics& statistics, float* factors,
                float* terms) {
  using Vectors = VectorOf<Isa::V>;
  using Vector = typename Vectors::Type;
  for_vectors<Isa::V>(n.channels, [&](int64_t c) {
    const Vector deviation = Isa::sqrt(Vectors::load(statistics.variance + c) + n.epsilon);
    const Vector factor = Vectors::load(statistics.scale + c) / deviation;
    const Vector mean = Vectors::load(statistics.mean + c);
    const Vector term = Vectors::load(statistics.shift + c) - mean * factor;
    Vectors::store(factors + c, factor / n.number_scale);
    Vectors::store(terms + c, term / n.number_scale);
  });
}

template <class Isa, class T, class Byte>
void normalize(const Normalization& n, const Part* parts, int64_t count,
               const Statistics& statistics, float* factors, void* to) {
  constexpr int64_t kPixels = 8;  // of a part, one after the other: enough to be read in advance
  constexpr int V = Isa::V;
  using Vectors = VectorOf<V>;
  auto* dst = static_cast<Byte*>(to);
  float* terms = factors + n.channels;
  factors_of<Isa>(n, statistics, factors, terms);
  const Finish<V> finish(n.activation, nullptr, false);
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < n.pixels; first += kPixels) {
    const int64_t end = first + kPixels < n.pixels ? first + kPixels : n.pixels;
    int64_t begin = 0;  // of the part's channels
    for (const Part* part = parts; part < parts + count; begin += part++->channels)
      for (int64_t pixel = first; pixel < end; ++pixel) {
        const T* x = static_cast<const T*>(part->src) + pixel * part->channels;
        Byte* y = dst + pixel * n.channels + begin;
        for_vectors<V>(part->channels, [&](int64_t c) {
          const auto steps = Vectors::load(x + c) * Vectors::load(factors + begin + c) +
                             Vectors::load(terms + begin + c);
          Numbers<Isa, Byte>::store(y + c, finish(steps, x) + n.zero_point);
        });
      }
  }
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
