#include "windows.h"

#include <omp.h>

#include <memory>
#include <optional>

#include "../kernels/windows.h"
#include "dense.h"

namespace dnnl_byoc {
namespace {

class WindowsKernel final : public RowKernel {
 public:
  explicit WindowsKernel(const windows::Convolution& convolution) : convolution_(convolution) {}
  const char* impl() const override { return "windows"; }
  void run(void* const* data) const override { run(convolution_, data, 0); }

  std::optional<Rows> rows() const override {
    if (convolution_.batch != 1) return std::nullopt;
    const windows::Side& side = convolution_.vertical;
    return Rows{side.src, side.dst, side.window,
                convolution_.horizontal.dst * convolution_.results.stride};
  }
  void run_rows(void* const* data, int64_t first, int64_t last) const override {
    windows::Convolution part = convolution_;
    part.vertical = part.vertical.part(first, last - first);
    run(part, data, first * convolution_.horizontal.dst);
  }

 private:
  /*! \param pixel Of dst, the first. */
  void run(const windows::Convolution& convolution, void* const* data, int64_t pixel) const {
    const DenseArguments args(data + 1, convolution.results, /*of_numbers=*/false,
                              convolution_.copies(), pixel);
    function_(convolution, args.constants, data[0], args.addend, args.workspace, args.dst);
  }

  const windows::Function function_ = windows::avx512_function();
  const windows::Convolution convolution_;
};

windows::Convolution convolution_of(const DenseConvolution& c, bool has_planes) {
  const memory::dims src = c.src_md.get_dims(), dst = c.dst_md.get_dims();
  const auto side = [&](int i) -> windows::Side {
    return {{c.kernel[i], c.window.strides[i], c.window.padding_l[i]}, src[2 + i], dst[2 + i]};
  };
  return {src[0], src[1], has_planes, side(0), side(1), c.results(), omp_get_max_threads()};
}

}  // namespace

bool build_windows(PlanBuilder& b, const Node& node) {
  auto c = dense_convolution(b, node, windows::kPlanes);
  if (!c || !c->is_of_f32() || c->is_pointwise() || !b.wants_own_kernel()) return false;
  const memory::desc planes = plain_md(c->src_md.get_dims(), c->src_md.get_data_type());
  const bool has_planes = planes.get_dims()[1] == windows::kPlanes && b.md(c->src) == planes;
  if (has_planes) c->src_md = planes;
  const windows::Convolution convolution = convolution_of(*c, has_planes);
  emit_dense(b, node, *c, std::make_shared<WindowsKernel>(convolution),
             convolution.threads * convolution.workspace_bytes());
  return true;
}

}  // namespace dnnl_byoc
