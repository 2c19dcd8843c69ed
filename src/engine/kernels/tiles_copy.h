/*!
 * \file tiles_copy.h
 * \brief The copy of src, see tiles.h, for the files that are compiled for one instruction set.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_TILES_COPY_H_
#define DNNL_BYOC_ENGINE_KERNELS_TILES_COPY_H_

#include "tiles.h"

namespace dnnl_byoc {
namespace tiles {
namespace {

/*! \brief Which of a plane's pixels along a side lie in src: from first to last - 1. */
struct Inside {
  int64_t first, last;

  /*! \param start Where in src the plane's first one would lie. */
  Inside(int64_t start, int64_t stride, int64_t size, int64_t count)
      : first(clip((stride - 1 - start) / stride, start < 0, count)),
        last(clip((size - start + stride - 1) / stride, start < size, count)) {
    if (last < first) last = first;
  }

 private:
  static int64_t clip(int64_t i, bool is_any, int64_t count) {
    return !is_any ? 0 : i < count ? i : count;
  }
};

/*! \brief A row of a plane, the first or another; `row` is null if it lies beyond the border. */
inline void copy_row(const Convolution& c, const char* row, int64_t plane, char* copy) {
  const Side& side = c.horizontal;
  const int64_t bytes = c.pixel_bytes(), count = c.pitch(), start = plane - side.padding;
  const auto fill = [&](int64_t first, int64_t last) {
    __builtin_memset(copy + first * bytes, c.padding, static_cast<size_t>((last - first) * bytes));
  };
  if (!row) return fill(0, count);
  const Inside inside(start, side.stride, side.src, count);
  fill(0, inside.first);
  const int64_t step = side.stride * side.src_step;
  row += (start + inside.first * side.stride) * side.src_step;
  char* to = copy + inside.first * bytes;
  const int64_t inner = inside.last - inside.first;
  if (step == bytes) {
    __builtin_memcpy(to, row, static_cast<size_t>(inner * bytes));
  } else {
    for (int64_t i = 0; i < inner; ++i)
      __builtin_memcpy(to + i * bytes, row + i * step, static_cast<size_t>(bytes));
  }
  fill(inside.last, count);
}

/*!
 * \brief What the windows of a few rows of dst read of an image.
 * \param offsets By tap: where in the copy the first of the windows reads it.
 */
inline void copy_src(const Convolution& c, const char* image, int64_t first_row, int64_t rows,
                     char* copy, int64_t (&offsets)[kMostTaps]) {
  const Side &v = c.vertical, &h = c.horizontal;
  const int64_t row_bytes = c.pitch() * c.pixel_bytes();
  const int64_t plane_rows = rows + v.reach(), plane_bytes = plane_rows * row_bytes;
  for (int64_t i = 0; i < v.planes(); ++i)
    for (int64_t j = 0; j < h.planes(); ++j)
      for (int64_t k = 0; k < plane_rows; ++k, copy += row_bytes) {
        const int64_t row = (first_row + k) * v.stride + i - v.padding;
        copy_row(c, row >= 0 && row < v.src ? image + row * v.src_step : nullptr, j, copy);
      }
  const int64_t taps = c.taps(), across = taps / v.kernel;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t i = tap / across, j = tap % across;
    offsets[tap] = (i % v.stride * h.planes() + j % h.stride) * plane_bytes +
                   i / v.stride * row_bytes + j / h.stride * c.pixel_bytes();
  }
}

}  // namespace
}  // namespace tiles
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_TILES_COPY_H_
