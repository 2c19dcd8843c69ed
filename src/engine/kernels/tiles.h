/*!
 * \file tiles.h
 * \brief Convolution by AMX's products of tiles: 16 pixels by 16 channels of dst at once.
 *
 * What oneDNN's lacks shows where another thread, perhaps another machine's, runs on the same core.
 * By what was measured, the processor then has half of its registers for tiles for each: 8, as many
 * as instructions can name, so that none is free to be loaded while another waits for its product.
 * oneDNN's loops, which keep all 8 in use, take four times as long then. These keep 7, and give
 * each back after its last product, by setting it to zero: 1.7 times as fast as oneDNN's then, and
 * as fast on a core of one's own.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_TILES_H_
#define DNNL_BYOC_ENGINE_KERNELS_TILES_H_

#include "dense.h"

namespace dnnl_byoc {
namespace tiles {

using dense::DataType;

constexpr int kPixels = 16, kMostWords = 16;  // of a tile of src
constexpr int kMostTaps = 64;                 // elements of a window

/*! \brief Of src, dst and the window: their rows, or what a row has of pixels. */
struct Side {
  int64_t kernel, stride, padding;
  int64_t src, dst;  // how many there are
  int64_t src_step;  // from one of src to the next, in bytes
  int64_t dst_step;  // from one of dst to the next, in pixels

  /*! \brief Whether a window has one of src's for each of dst's. */
  bool is_trivial() const { return kernel == 1 && stride == 1 && padding == 0 && src == dst; }
  /*!
   * \brief What a stride skips between the elements of a window lies in other planes of a copy of
   * src, so that in each of these a window moves by one.
   */
  int64_t planes() const { return stride < kernel ? stride : kernel; }
  /*! \brief How many more a plane has than dst. */
  int64_t reach() const { return (kernel - 1) / stride; }
};

/*! \brief What is convolved, channels-last, and what becomes of the sums. */
struct Convolution {
  DataType src;
  int64_t batch;
  int64_t words;              // of a pixel of src
  uint8_t padding;            // what lies beyond src's border, in each byte
  Side vertical, horizontal;  // or the other way round, as the names say nothing of memory
  dense::Results results;
  int64_t threads;  // at most

  /*!
   * \brief Whether src is copied before: the pixels of a tile have to be as far from each other,
   * one after the other, and in memory, also those beyond the border. If not, what is less than a
   * tile is, for those beyond the end.
   */
  bool copies() const { return !vertical.is_trivial() || !horizontal.is_trivial(); }

  int64_t pixel_bytes() const { return words * dense::kWord; }
  int64_t image_of_src() const { return vertical.src * horizontal.src * pixel_bytes(); }  // bytes
  int64_t image_of_dst() const { return vertical.dst * horizontal.dst; }                  // pixels

  /*! \brief Pixels in a row of a plane; those that are too many make results that nobody reads. */
  int64_t pitch() const { return horizontal.dst + horizontal.reach(); }

  /*! \brief Elements of the window; one row of it, whose pixels lie side by side, counts as one. */
  int64_t taps() const { return vertical.kernel * (has_whole_rows() ? 1 : horizontal.kernel); }
  int64_t words_of_tap() const { return words * (has_whole_rows() ? horizontal.kernel : 1); }
  /*! \brief Whether the pixels that a row of the window reads lie side by side. */
  bool has_whole_rows() const { return horizontal.stride == 1; }

  /*! \brief The most that a tap's words can be divided by: as many in a row of each tile. */
  int64_t words_of_tile() const {
    int64_t count = kMostWords;
    while (words_of_tap() % count) --count;
    return count;
  }

  /*! \brief The rows of an image. */
  kernels::Parts chunks() const {
    const int64_t most = kMostBytesInChunk / pixel_bytes(), rows = vertical.dst;
    const int64_t of_chunk = (most < kMostInChunk ? most : kMostInChunk) / pitch();
    const int64_t of_image = threads / batch > 1 ? threads / batch : 1;
    const kernels::Parts chunks = kernels::chunks(rows, of_chunk < 1 ? 1 : of_chunk, of_image);
    // Fewer rows for each thread are better than many more channels for one of them.
    const kernels::Parts items = {chunks.count * results.blocks(), of_image};
    if (items.most() * items.count * 8 > items.size * 9 && rows >= of_image)
      return {rows, of_image};
    return chunks;
  }

  /*! \brief The memory that each thread works in. */
  int64_t workspace_bytes() const {
    const int64_t planes = vertical.planes() * horizontal.planes();
    const int64_t rows = chunks().most() + vertical.reach();
    const int64_t pixels = copies() ? planes * rows * pitch() : kPixels;
    return (pixels + kPixels) * pixel_bytes();  // the last tile may be read beyond the end
  }

 private:
  // So many leave src in the second cache, read weights from behind it seldom enough, and copy few
  // rows twice.
  static constexpr int64_t kMostInChunk = 512, kMostBytesInChunk = 1 << 19;
};

/*!
 * \brief As pointwise::Function.
 * \param workspace workspace_bytes() for each thread.
 */
using Function = void (*)(const Convolution&, const dense::Constants&, const void* src,
                          const void* addend, void* workspace, void* dst);

Function amx_function();

}  // namespace tiles
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNELS_TILES_H_
