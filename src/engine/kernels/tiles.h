/*!
 * \file tiles.h
 * \brief Convolution by AMX's products of tiles: 16 pixels by 16 channels of dst at once.
 *
 * What oneDNN's lacks shows where another thread, perhaps another machine's, runs on the same core:
 * then half of the registers for tiles are left, 8, as many as the instructions can name, and none
 * is free to be loaded while another waits for its product. oneDNN's loops, which keep all 8 in
 * use, take four times as long then. These keep 7, and give each back after its last product, by
 * setting it to zero: 1.7 times as fast as oneDNN's then, and as fast on a core of one's own.
 */
#ifndef DNNL_BYOC_ENGINE_KERNELS_TILES_H_
#define DNNL_BYOC_ENGINE_KERNELS_TILES_H_

#include "dense.h"
#include "image.h"

namespace dnnl_byoc {
namespace tiles {

using dense::DataType;
using kernels::WindowSide;

constexpr int kPixels = 16, kMostWords = 16;  // of a tile of src
constexpr int kMostTaps = 64;                 // elements of a window

/*! \brief What is convolved, channels-last, and what becomes of the sums. */
struct Convolution {
  DataType src;
  int64_t batch, height, width;  // of src
  int64_t pixel_stride;          // of src, in bytes
  int64_t words;                 // of a pixel of src
  uint8_t padding;               // what lies beyond its border, in each byte
  WindowSide vertical, horizontal;
  int64_t rows, columns;  // of dst, whose pixels lie in lines
  dense::Results results;
  int64_t threads;  // at most

  /*!
   * \brief Whether src is copied before: the pixels of a tile have to be as far from each other,
   * one after the other, and in memory, also those beyond the border or the end.
   */
  bool copies() const {
    return vertical.kernel > 1 || vertical.stride > 1 || vertical.padding > 0 ||
           horizontal.kernel > 1 || horizontal.stride > 1 || horizontal.padding > 0 ||
           rows != height || columns != width || rows * columns < kPixels;
  }

  /*!
   * \brief What a stride skips between the elements of a window lies in another plane of the copy,
   * so that in each of these a window moves by a pixel.
   */
  int64_t planes_across() const { return planes(horizontal); }
  int64_t plane_count() const { return planes(vertical) * planes_across(); }
  /*! \brief Pixels in a row of a plane; those that are too many make results that nobody reads. */
  int64_t pitch() const { return columns + reach(horizontal); }
  int64_t plane_rows(int64_t rows_of_dst) const { return rows_of_dst + reach(vertical); }
  int64_t row_stride() const { return width * pixel_stride; }
  int64_t image_stride() const { return height * row_stride(); }
  int64_t pixel_bytes() const { return words * dense::kWord; }

  /*! \brief As many of a pixel's words in each tile. */
  int64_t words_of_tile() const {
    int64_t count = kMostWords;
    while (words % count) --count;
    return count;
  }

  /*! \brief The rows of an image. */
  kernels::Chunks chunks() const {
    const int64_t most = kMostBytesInChunk / pixel_bytes();
    const int64_t most_rows = (most < kMostInChunk ? most : kMostInChunk) / pitch();
    const int64_t of_image = threads / (batch > 0 ? batch : 1);
    return {rows, most_rows > 0 ? most_rows : 1, results.blocks(), of_image > 0 ? of_image : 1};
  }

  /*! \brief The memory that each thread works in. */
  int64_t workspace_bytes() const {
    if (!copies()) return 0;
    const int64_t pixels = plane_count() * plane_rows(chunks().of_pixels().most()) * pitch();
    return (pixels + kPixels) * pixel_bytes();  // the last tile may be read beyond the end
  }

 private:
  // So many leave src in the second cache, read weights from behind it seldom enough, and copy few
  // rows twice.
  static constexpr int64_t kMostInChunk = 512, kMostBytesInChunk = 1 << 19;

  static int64_t planes(const WindowSide& side) {
    return side.stride < side.kernel ? side.stride : side.kernel;
  }
  static int64_t reach(const WindowSide& side) { return (side.kernel - 1) / side.stride; }
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
