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
  const int64_t blocks = c.results.blocks();
  const int64_t row_bytes = c.copies() ? c.copied_row_bytes() : c.src_row_bytes();
  const dense::Window window = {v.window.kernel, h.window.kernel * c.channels, row_bytes};
  kernels::Shares shares(c.batch * chunks.count * blocks, c.threads);
#pragma omp parallel num_threads(shares.threads())
  {
    const int thread = omp_get_thread_num();
    char* own = static_cast<char*>(workspace) + thread * c.workspace_bytes();
    int64_t copied = -1;  // chunk
    for (int64_t item; (item = shares.next(thread)) >= 0;) {
      const int64_t i = item / blocks, image = i / chunks.count, chunk = i % chunks.count;
      const int64_t row = chunks.first(chunk), count = chunks.first(chunk + 1) - row;
      const float* const from = static_cast<const float*>(src) + image * v.src * h.src * c.channels;
      const int64_t src_row = row * v.window.stride - v.window.padding;
      if (c.copies() && i != copied) {
        Copy<Isa>(c, from).rows(src_row, v.reach(count), own);
        copied = i;
      }
      const char* first =
          c.copies() ? own : reinterpret_cast<const char*>(from) + src_row * row_bytes;
      const dense::Lines pixels = {first, h.dst, v.window.stride * row_bytes,
                                   h.window.stride * c.pixel_bytes()};
      const int64_t before = (image * v.dst + row) * h.dst;  // pixels of dst
      const dense::Block<Arithmetic, Finish, dense::Lines> block(
          c.results, constants, item % blocks, window, pixels,
          addend ? static_cast<const char*>(addend) + before * c.results.addend_stride : nullptr,
          static_cast<char*>(dst) + before * c.results.stride);
      block.compute(0, count * h.dst);
    }
  }
}

}  // namespace
}  // namespace windows
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_WINDOWS_CONVOLUTION_H_
