/*!
 * \file convolution_of_floats.h
 * \brief What our own convolutions of floats, with AVX-512, have in common.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_CONVOLUTION_OF_FLOATS_H_
#define DNNL_BYOC_ENGINE_OPS_CONVOLUTION_OF_FLOATS_H_

#include <optional>

#include "spatial.h"
#include "sums.h"

namespace dnnl_byoc {

/*!
 * \brief A two-dimensional convolution of f32 or bf16 with a result of the same, in vectors of
 * channels, with constant weights, without holes in its window. Its post-ops may be an addition of
 * a whole tensor of that data type, and a ReLU or a clip.
 */
struct ConvolutionOfFloats {
  Window window;
  memory::desc src_md, dst_md;
  int addend;   // a tensor, or -1
  Range range;  // of dst

  memory::data_type dtype() const { return src_md.get_data_type(); }
};

/*! \brief A node as such; none if it is another. */
std::optional<ConvolutionOfFloats> convolution_of_floats(const PlanBuilder& b, const Node& node);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_CONVOLUTION_OF_FLOATS_H_
