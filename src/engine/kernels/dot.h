/*!
 * \file dot.h
 * \brief A matrix times one vector, of floats or of whole numbers: products of one row.
 *
 * Each weight is read once, from memory if there are many, so it takes as long as that. A core that
 * reads eight rows side by side gets more out of the memory than one that reads one after the
 * other, as oneDNN's kernels do, and the rows need no other layout: 39 instead of 33 GB/s for 100
 * MB of whole numbers on two cores, and 43 instead of 33 for 64 MB of floats.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_DOT_H_
#define DNNL_BYOC_ENGINE_KERNELS_DOT_H_

#include <cstdint>

namespace dnnl_byoc {
namespace dot {

constexpr int kRows = 8;  // that are read side by side

/*!
 * \brief The products of a vector with kRows rows that lie one behind the other.
 *
 * Of float or bf16, whose sums are float, or of u8 with s8, whose sums are int32_t; of s8 with s8,
 * each of the vector's counts for 128 more.
 */
using Function = void (*)(const void* vector, const void* rows, int64_t length, void* sums);

Function avx2_function();
Function avx512_function(bool is_bf16);
Function avx512_vnni_function(bool is_vector_signed);

}  // namespace dot
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_DOT_H_
