/*!
 * \file windows.h
 * \brief Convolution of floats by windows of any size.
 *
 * oneDNN's kernels wait for weights that come from behind the second cache, as most do of an image
 * of few pixels; these ask for them in time, see dense_block.h. Where images have three channels,
 * these read them as they are, in planes, and leave pixels whose channels lie side by side.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_WINDOWS_H_
#define DNNL_BYOC_ENGINE_KERNELS_WINDOWS_H_

#include "dense.h"
#include "image.h"

namespace dnnl_byoc {
namespace windows {

constexpr int64_t kPlanes = 3;  // channels of an image that may lie one after the other

/*! \brief The rows of src, dst and the window, or what a row has of pixels. */
struct Side {
  kernels::WindowSide window;
  int64_t src, dst;

  /*! \brief How many of src, and of what lies beyond its border, so many of dst need. */
  int64_t reach(int64_t count) const { return (count - 1) * window.stride + window.kernel; }
  bool is_inside() const { return window.padding <= 0 && reach(dst) - window.padding <= src; }

  /*! \brief The same for so many of dst, from the one with the number `first` on. */
  Side part(int64_t first, int64_t count) const {
    Side side = *this;
    side.window.padding -= first * window.stride;
    side.dst = count;
    return side;
  }
};

/*! \brief What is convolved, and what becomes of the sums. */
struct Convolution {
  int64_t batch, channels;  // of src
  bool has_planes;
  Side vertical, horizontal;
  dense::Results results;
  int64_t threads;  // at most

  int64_t pixel_bytes() const { return channels * dense::kWord; }
  int64_t src_row_bytes() const { return horizontal.src * pixel_bytes(); }

  /*! \brief Whether what a few rows of dst need is copied, with zeros around, before it is read. */
  bool copies() const { return has_planes || !vertical.is_inside() || !horizontal.is_inside(); }
  int64_t copied_row_bytes() const { return horizontal.reach(horizontal.dst) * pixel_bytes(); }

  /*! \brief The rows of an image of dst that a chunk has at most. */
  int64_t most_rows() const {
    const int64_t rows = dense::kMostInChunk / horizontal.dst;
    return rows < 1 ? 1 : rows < vertical.dst ? rows : vertical.dst;
  }
  kernels::Parts chunks() const {
    return kernels::chunks(vertical.dst, most_rows(), threads > batch ? threads / batch : 1);
  }

  /*! \brief The memory that each thread works in; that of a single one is for any part, too. */
  int64_t workspace_bytes() const {
    const int64_t rows = threads > 1 ? chunks().most() : most_rows();
    return copies() ? vertical.reach(rows) * copied_row_bytes() : 0;
  }
};

/*!
 * \param addend An image like dst, perhaps dst itself, or null.
 * \param workspace workspace_bytes() for each thread.
 */
using Function = void (*)(const Convolution&, const dense::Constants&, const void* src,
                          const void* addend, void* workspace, void* dst);

Function avx512_function();

}  // namespace windows
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_WINDOWS_H_
