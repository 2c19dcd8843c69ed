/*!
 * \file windows_convolution.h
 * \brief The convolution, for the files that are compiled for one instruction set; see vectors.h.
 *
 * Isa has V and store_three(), as in pixels_of_planes.h.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_WINDOWS_CONVOLUTION_H_
#define DNNL_BYOC_ENGINE_KERNELS_WINDOWS_CONVOLUTION_H_

#include "dense_block.h"
#include "shares.h"
#include "vectors.h"
#include "windows.h"

namespace dnnl_byoc {
namespace windows {
namespace {

/*! \brief Copies rows of an image with zeros around. */
template <class Isa>
class Copy {
 public:
  /*! \param image Its first element. */
  Copy(const Convolution& c, const float* image) : c_(c), image_(image) {}

  /*! \param first Row of src; it may lie beyond the border. */
  void rows(int64_t first, int64_t count, char* to) const {
    for (int64_t i = 0; i < count; ++i, to += c_.copied_row_bytes())
      row(first + i, reinterpret_cast<float*>(to));
  }

 private:
  using Vectors = kernels::VectorOf<Isa::V>;

  void row(int64_t row, float* to) const {
    const Side& side = c_.horizontal;
    const int64_t columns = side.reach(side.dst), wanted = columns - side.window.padding;
    const bool is_inside = row >= 0 && row < c_.vertical.src && wanted > 0;
    const int64_t before = is_inside ? side.window.padding : columns;
    const int64_t inner = !is_inside ? 0 : wanted < side.src ? wanted : side.src;
    fill(to, before);
    if (inner > 0) pixels(row, inner, to + before * c_.channels);
    fill(to + (before + inner) * c_.channels, columns - before - inner);
  }

  void fill(float* to, int64_t count) const {
    __builtin_memset(to, 0, static_cast<size_t>(count * c_.pixel_bytes()));
  }

  void pixels(int64_t row, int64_t count, float* to) const {
    const int64_t width = c_.horizontal.src;
    if (!c_.has_planes) {
      __builtin_memcpy(to, image_ + row * width * c_.channels,
                       static_cast<size_t>(count * c_.pixel_bytes()));
      return;
    }
    const float* plane = image_ + row * width;
    const int64_t size = width * c_.vertical.src;
    int64_t i = 0;
    for (; i + Isa::V <= count; i += Isa::V)
      Isa::store_three(to + i * kPlanes, Vectors::load(plane + i), Vectors::load(plane + size + i),
                       Vectors::load(plane + 2 * size + i));
    for (; i < count; ++i)
      for (int64_t channel = 0; channel < kPlanes; ++channel)
        to[i * kPlanes + channel] = plane[channel * size + i];
  }

  const Convolution& c_;
  const float* const image_;
};

template <class Isa, class Arithmetic, class Finish>
void convolve(const Convolution& c, const dense::Constants& constants, const void* src,
              const void* addend, void* workspace, void* dst) {
  const Side &v = c.vertical, &h = c.horizontal;
  const kernels::Parts chunks = c.chunks();
  const int64_t row_bytes = c.copies() ? c.copied_row_bytes() : c.src_row_bytes();
  const dense::Window window = {v.window.kernel, h.window.kernel * c.channels, row_bytes};
  const auto own = [&](int thread) {
    return static_cast<char*>(workspace) + thread * c.workspace_bytes();
  };
  struct Rows {  // of dst, in a chunk
    int64_t image, first, count;
  };
  const auto rows_of = [&](int64_t i) {
    const int64_t chunk = i % chunks.count, first = chunks.first(chunk);
    return Rows{i / chunks.count, first, chunks.first(chunk + 1) - first};
  };
  const auto src_row = [&](const Rows& rows) {
    return rows.first * v.window.stride - v.window.padding;
  };
  const auto image_of = [&](const Rows& rows) {
    return static_cast<const float*>(src) + rows.image * v.src * h.src * c.channels;
  };
  kernels::share_blocks(
      c.batch * chunks.count, c.results.blocks(), c.threads,
      [&](int thread, int64_t i) {
        const Rows rows = rows_of(i);
        if (c.copies())
          Copy<Isa>(c, image_of(rows)).rows(src_row(rows), v.reach(rows.count), own(thread));
      },
      [&](int thread, int64_t i, int64_t block) {
        const Rows rows = rows_of(i);
        const char* first =
            c.copies() ? own(thread)
                       : reinterpret_cast<const char*>(image_of(rows)) + src_row(rows) * row_bytes;
        const dense::Lines pixels = {first, h.dst, v.window.stride * row_bytes,
                                     h.window.stride * c.pixel_bytes()};
        const int64_t before = (rows.image * v.dst + rows.first) * h.dst;  // pixels of dst
        const dense::Block<Arithmetic, Finish, dense::Lines> results(
            c.results, constants, block, window, pixels,
            addend ? static_cast<const char*>(addend) + before * c.results.addend_stride : nullptr,
            static_cast<char*>(dst) + before * c.results.stride);
        results.compute(0, rows.count * h.dst);
      });
}

}  // namespace
}  // namespace windows
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_WINDOWS_CONVOLUTION_H_
