#include "average.h"

#include <memory>

#include "../isa.h"
#include "../kernel.h"
#include "../kernels/average.h"
#include "ending.h"
#include "spatial.h"

namespace dnnl_byoc {
namespace {

class AverageKernel final : public Kernel {
 public:
  AverageKernel(average::Function function, const average::Pooling& pooling)
      : function_(function), pooling_(pooling) {}
  const char* impl() const override { return "average"; }
  void run(void* const* data) const override { function_(pooling_, data[0], data[1]); }

 private:
  const average::Function function_;
  const average::Pooling pooling_;
};

/*! \brief Whether every window has a part in the image: an average of nothing is no number. */
bool all_see_the_image(const kernels::WindowSide& side, memory::dim src, memory::dim dst) {
  return side.padding < side.kernel && (dst - 1) * side.stride - side.padding < src;
}

}  // namespace

bool build_average(PlanBuilder& b, const Node& node, const NumbersAverage& numbers) {
  if (!b.has_own_kernels()) return false;
  const memory::desc src_md = b.md(numbers.src);
  const memory::dims shape = src_md.get_dims(), kernel = node.attr<memory::dims>("kernel");
  if (shape.size() != 4 || data_layout_of(src_md) != DataLayout::channels_last ||
      shape[1] < channel_block())
    return false;
  const Window window(b, node, kernel);
  const memory::dims dst = window.output(b, node, kernel);
  const auto rows = window_side(window, kernel, 0), columns = window_side(window, kernel, 1);
  if (count(kernel) > average::kMostPixels || window.dilation != memory::dims{0, 0} ||
      !all_see_the_image(rows, shape[2], dst[0]) || !all_see_the_image(columns, shape[3], dst[1]) ||
      !b.wants_own_kernel())
    return false;
  const memory::desc dst_md = same_layout(src_md, {shape[0], shape[1], dst[0], dst[1]});
  const bool is_signed = src_md.get_data_type() == memory::data_type::s8;
  const auto function = channel_block() == kernels::kAvx512Vector
                            ? average::avx512_function(is_signed)
                            : average::avx2_function(is_signed);
  const average::Pooling pooling = {
      image_of(src_md), image_of(dst_md),       shape[0],      shape[1],     rows,
      columns,          numbers.counts_padding, numbers.scale, numbers.shift};
  const int src_value = b.require(numbers.src, src_md);
  b.emit(node.kind, std::make_shared<AverageKernel>(function, pooling),
         {{DNNL_ARG_SRC, src_value}, {DNNL_ARG_DST, b.define(numbers.dst, dst_md)}},
         "eltwise_linear");
  return true;
}

}  // namespace dnnl_byoc
