#include "tiles.h"

#include <omp.h>

#include <memory>
#include <utility>

#include "../isa.h"
#include "../kernels/tiles.h"
#include "dense.h"

namespace dnnl_byoc {
namespace {

constexpr int64_t kFewestWords = 8;  // of a tile's row: with fewer, oneDNN's fill more of it

class TilesKernel final : public Kernel {
 public:
  TilesKernel(const tiles::Convolution& convolution, bool of_numbers)
      : of_numbers_(of_numbers), convolution_(convolution) {}
  const char* impl() const override { return "tiles"; }
  void run(void* const* data) const override {
    const DenseArguments args(data + 1, convolution_.results, of_numbers_, /*has_workspace=*/true);
    function_(convolution_, args.constants, data[0], args.addend, args.workspace, args.dst);
  }

 private:
  const tiles::Function function_ = tiles::amx_function();
  const bool of_numbers_;
  const tiles::Convolution convolution_;
};

tiles::Convolution convolution_of(const DenseConvolution& c) {
  const memory::dims src = c.src_md.get_dims(), dst = c.dst_md.get_dims();
  const int64_t pixel = bytes_of_pixel(c.src_md);
  const auto side = [&](int i, int64_t src_step, int64_t dst_step) -> tiles::Side {
    return {c.kernel[i], c.window.strides[i], c.window.padding_l[i],
            src[2 + i],  dst[2 + i],          src_step * pixel,
            dst_step};
  };
  tiles::Convolution result = {dense_dtype(c.src_md.get_data_type()),
                               src[0],
                               c.words(),
                               static_cast<uint8_t>(c.numbers ? c.numbers->zero() : 0),
                               side(0, src[3], dst[3]),
                               side(1, 1, 1),
                               c.results(),
                               omp_get_max_threads()};
  if (c.is_pointwise()) {  // the pixels are one line
    const int64_t pixels = src[0] * src[2] * src[3];
    result.batch = 1;
    result.vertical = {1, 1, 0, pixels, pixels, pixel, 1};
    result.horizontal = {1, 1, 0, 1, 1, pixel, 1};
  } else if (c.kernel[0] == 1 && c.kernel[1] > 1) {
    // Along a column there is nothing that a window adds to it, and nothing is computed in vain.
    std::swap(result.vertical, result.horizontal);
  }
  return result;
}

}  // namespace

bool build_tiles(PlanBuilder& b, const Node& node) {
  if (!has_amx()) return false;
  const auto c = dense_convolution(b, node, kFewestChannels);
  if (!c || c->is_of_f32() || c->kernel[0] * c->kernel[1] > tiles::kMostTaps) return false;
  const tiles::Convolution convolution = convolution_of(*c);
  if (convolution.words_of_tile() < kFewestWords || !b.wants_own_kernel()) return false;
  emit_dense(b, node, *c, std::make_shared<TilesKernel>(convolution, c->numbers.has_value()),
             convolution.threads * convolution.workspace_bytes());
  return true;
}

}  // namespace dnnl_byoc
