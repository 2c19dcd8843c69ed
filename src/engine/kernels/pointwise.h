/*!
 * \file pointwise.h
 * \brief 1 × 1 convolution: for each pixel a product of its channels with a matrix.
 *
 * What oneDNN's lacks is in the ends: where the channels of src are few, what becomes of a sum
 * takes as long as the sum. Here it is done for 64 channels of dst at once, of which bytes are made
 * before they are cut off, and another image is added on the way.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_POINTWISE_H_
#define DNNL_BYOC_ENGINE_KERNELS_POINTWISE_H_

#include "dense.h"
#include "normalization.h"

namespace dnnl_byoc {
namespace pointwise {

/*! \brief What is convolved, pixels that lie in lines, and what becomes of the sums. */
struct Convolution {
  int64_t pixels, words;  // of src, in each pixel
  int64_t src_stride;     // from pixel to pixel, in bytes
  dense::Results results;
  int64_t threads;  // for which there are to be chunks

  kernels::Parts chunks() const { return kernels::chunks(pixels, dense::kMostInChunk, threads); }
  int64_t chunk_bytes() const { return chunks().most() * words * dense::kWord; }
};

/*!
 * \param addend An image like dst, perhaps dst itself, or null.
 *
 * Results in bytes are rounded to the nearest, of two to the even one, and saturate; they have to
 * be less than 2³¹ before that.
 */
using Function = void (*)(const Convolution&, const dense::Constants&, const void* src,
                          const void* addend, void* dst);

/*!
 * \brief The same of what a batch normalization makes of src, in f32, where a thread needs it.
 *
 * A normalization of its own is as long as memory takes to bring an image twice. In a DenseNet that
 * and putting together what its layers leave took a quarter of the time.
 * \param workspace A chunk for each thread.
 */
using NormalizedFunction = void (*)(const Convolution&, const dense::Constants&,
                                    const normalization::Normalization&,
                                    const normalization::Source&, const void* addend,
                                    void* workspace, void* dst);

/*! \name For src in f32, bf16 and bytes. */
///@{
Function avx512_function();
Function avx512_bf16_function();
Function avx512_vnni_function();
NormalizedFunction avx512_normalized_function();
///@}

}  // namespace pointwise
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_POINTWISE_H_
