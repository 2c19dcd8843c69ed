/*!
 * \file image.h
 * \brief What our own kernels read and write.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_IMAGE_H_
#define DNNL_BYOC_ENGINE_KERNELS_IMAGE_H_

#include <cstdint>

namespace dnnl_byoc {
namespace kernels {

/*! \brief The widths of vectors that there are functions for, in floats. */
constexpr int kAvx2Vector = 8, kAvx512Vector = 16;

/*! \brief An image (N, C, H, W) whose channels come in vectors; strides in elements. */
struct Image {
  int64_t height, width;
  int64_t batch_stride, vector_stride, row_stride, column_stride;
};

/*! \brief A window along one side of an image. */
struct WindowSide {
  int64_t kernel, stride, padding;
};

/*! \brief What ends a convolution, after the bias and another image are added. */
struct Activation {
  bool relu = false;
  float negative_slope = 0.f;
};

}  // namespace kernels
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_IMAGE_H_
