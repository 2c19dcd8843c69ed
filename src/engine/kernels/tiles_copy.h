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

/*! \brief A row of a plane; `row` is null if it lies beyond the border. */
inline void copy_row(const Convolution& c, const char* row, int64_t column, char* copy) {
  const int64_t bytes = c.pixel_bytes(), count = c.pitch();
  const int64_t start = column - c.horizontal.padding;
  if (!row) {
    __builtin_memset(copy, c.padding, static_cast<size_t>(count * bytes));
    return;
  }
  const Inside inside(start, c.horizontal.stride, c.width, count);
  __builtin_memset(copy, c.padding, static_cast<size_t>(inside.first * bytes));
  const int64_t step = c.horizontal.stride * c.pixel_stride;
  const char* pixel = row + (start + inside.first * c.horizontal.stride) * c.pixel_stride;
  char* to = copy + inside.first * bytes;
  const int64_t inner = inside.last - inside.first;
  if (step == bytes) {
    __builtin_memcpy(to, pixel, static_cast<size_t>(inner * bytes));
  } else {
    for (int64_t i = 0; i < inner; ++i)
      __builtin_memcpy(to + i * bytes, pixel + i * step, static_cast<size_t>(bytes));
  }
  __builtin_memset(copy + inside.last * bytes, c.padding,
                   static_cast<size_t>((count - inside.last) * bytes));
}

/*!
 * \brief What the windows of a few rows of dst read of an image.
 * \param offsets By element of the window: where in the copy the first of them reads it.
 */
inline void copy_src(const Convolution& c, const char* image, int64_t first_row, int64_t rows,
                     char* copy, int64_t (&offsets)[kMostTaps]) {
  const WindowSide &v = c.vertical, &h = c.horizontal;
  const int64_t row_bytes = c.pitch() * c.pixel_bytes();
  const int64_t plane_rows = c.plane_rows(rows), plane_bytes = plane_rows * row_bytes;
  const int64_t across = c.planes_across();
  for (int64_t plane = 0; plane < c.plane_count(); ++plane)
    for (int64_t i = 0; i < plane_rows; ++i) {
      const int64_t row = (first_row + i) * v.stride + plane / across - v.padding;
      const bool is_inside = row >= 0 && row < c.height;
      copy_row(c, is_inside ? image + row * c.row_stride() : nullptr, plane % across,
               copy + plane * plane_bytes + i * row_bytes);
    }
  for (int64_t i = 0; i < v.kernel; ++i)
    for (int64_t j = 0; j < h.kernel; ++j)
      offsets[i * h.kernel + j] = (i % v.stride * across + j % h.stride) * plane_bytes +
                                  i / v.stride * row_bytes + j / h.stride * c.pixel_bytes();
}

}  // namespace
}  // namespace tiles
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_TILES_COPY_H_
