#include "tiles.h"

#include <omp.h>

#include <memory>

#include "../isa.h"
#include "../kernels/tiles.h"
#include "dense.h"
#include "ending.h"

namespace dnnl_byoc {
namespace {

constexpr int64_t kFewestWords = 8;  // of a tile's row: with fewer, oneDNN's fill more of it

class TilesKernel final : public Kernel {
 public:
  explicit TilesKernel(const tiles::Convolution& convolution) : convolution_(convolution) {}
  const char* impl() const override { return "tiles"; }
  void run(void* const* data) const override {
    const DenseArguments args(data, convolution_.results, convolution_.copies());
    function_(convolution_, args.constants, args.src, args.addend, args.workspace, args.dst);
  }

 private:
  const tiles::Function function_ = tiles::amx_function();
  const tiles::Convolution convolution_;
};

uint8_t padding_of(const DenseConvolution& c) {
  if (!c.numbers) return 0;
  return static_cast<uint8_t>(c.numbers->padding - (c.numbers->is_src_signed() ? 128 : 0));
}

tiles::Convolution convolution_of(const DenseConvolution& c) {
  const memory::dims src = c.src_md.get_dims(), dst = c.dst_md.get_dims();
  const int64_t pixel = bytes_of_pixel(c.src_md);
  tiles::Convolution result = {dense_dtype(c.src_md.get_data_type()),
                               src[0],
                               src[2],
                               src[3],
                               pixel,
                               c.words(),
                               padding_of(c),
                               window_side(c.window, c.kernel, 0),
                               window_side(c.window, c.kernel, 1),
                               dst[2],
                               dst[3],
                               c.results(),
                               omp_get_max_threads()};
  if (c.is_pointwise()) {  // the pixels are one line
    result.rows = result.height = src[0] * src[2] * src[3];
    result.batch = result.columns = result.width = 1;
  }
  return result;
}

}  // namespace

bool build_tiles(PlanBuilder& b, const Node& node) {
  if (!has_amx()) return false;
  const auto c = dense_convolution(b, node);
  if (!c || c->kernel[0] * c->kernel[1] > tiles::kMostTaps) return false;
  const tiles::Convolution convolution = convolution_of(*c);
  if (convolution.words_of_tile() < kFewestWords || !b.wants_own_kernel()) return false;
  emit_dense(b, node, *c, std::make_shared<TilesKernel>(convolution),
             convolution.threads * convolution.workspace_bytes());
  return true;
}

}  // namespace dnnl_byoc
