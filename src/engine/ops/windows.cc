#include "windows.h"

#include <omp.h>

#include <memory>

#include "../kernels/windows.h"
#include "dense.h"

namespace dnnl_byoc {
namespace {

class WindowsKernel final : public Kernel {
 public:
  explicit WindowsKernel(const windows::Convolution& convolution) : convolution_(convolution) {}
  const char* impl() const override { return "windows"; }
  void run(void* const* data) const override {
    const DenseArguments args(data + 1, convolution_.results, /*of_numbers=*/false,
                              convolution_.copies());
    function_(convolution_, args.constants, data[0], args.addend, args.workspace, args.dst);
  }

 private:
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
