#include "pooling_of_numbers.h"

#include <memory>
#include <optional>

#include "../isa.h"
#include "../kernel.h"
#include "../kernels/pooling.h"
#include "ending.h"
#include "spatial.h"

namespace dnnl_byoc {
namespace {

using Type = memory::data_type;

class PoolingKernel final : public Kernel {
 public:
  PoolingKernel(const char* impl, pooling::Function function, const pooling::Pooling& pooling)
      : impl_(impl), function_(function), pooling_(pooling) {}
  const char* impl() const override { return impl_; }
  void run(void* const* data) const override { function_(pooling_, data[0], data[1]); }

 private:
  const char* impl_;
  const pooling::Function function_;
  const pooling::Pooling pooling_;
};

/*! \brief Whether every window has a part in the image: there is no number for nothing. */
bool all_see_the_image(const kernels::WindowSide& side, memory::dim src, memory::dim dst) {
  return src > 0 && side.padding < side.kernel && (dst - 1) * side.stride - side.padding < src;
}

/*! \brief A node's pooling of channels-last numbers; none if our kernel does not do it. */
std::optional<pooling::Pooling> pooling_of(PlanBuilder& b, const Node& node,
                                           const memory::desc& src_md) {
  if (!b.has_own_kernels()) return std::nullopt;
  const memory::dims shape = src_md.get_dims(), kernel = node.attr<memory::dims>("kernel");
  if (shape.size() != 4 || data_layout_of(src_md) != DataLayout::channels_last ||
      shape[1] < channel_block())
    return std::nullopt;
  const Window window(b, node, kernel);
  const memory::dims dst = window.output(b, node, kernel);
  const auto rows = window_side(window, kernel, 0), columns = window_side(window, kernel, 1);
  if (count(kernel) > pooling::kMostPixels || window.dilation != memory::dims{0, 0} ||
      !all_see_the_image(rows, shape[2], dst[0]) || !all_see_the_image(columns, shape[3], dst[1]) ||
      !b.wants_own_kernel())
    return std::nullopt;
  const memory::desc dst_md = same_layout(src_md, {shape[0], shape[1], dst[0], dst[1]});
  return pooling::Pooling{image_of(src_md), image_of(dst_md), shape[0], shape[1], rows, columns};
}

/*! \param src, dst Tensors: the numbers. */
void emit(PlanBuilder& b, const Node& node, bool is_maximum, const pooling::Pooling& pooling,
          int src, int dst) {
  const memory::desc src_md = b.md(src);
  const bool is_signed = src_md.get_data_type() == Type::s8;
  const auto function = channel_block() == kernels::kAvx512Vector
                            ? pooling::avx512_function(is_maximum, is_signed)
                            : pooling::avx2_function(is_maximum, is_signed);
  const memory::dims dst_shape = {pooling.batch, pooling.channels, pooling.dst.height,
                                  pooling.dst.width};
  const int src_value = b.require(src, src_md);
  b.emit(node.kind,
         std::make_shared<PoolingKernel>(is_maximum ? "maximum" : "average", function, pooling),
         {{DNNL_ARG_SRC, src_value}, {DNNL_ARG_DST, b.define(dst, same_layout(src_md, dst_shape))}},
         is_maximum ? "" : "eltwise_linear");
}

}  // namespace

bool build_average(PlanBuilder& b, const Node& node, const NumbersAverage& numbers) {
  auto pooling = pooling_of(b, node, b.md(numbers.src));
  if (!pooling) return false;
  pooling->counts_padding = numbers.counts_padding;
  pooling->scale = numbers.scale;
  pooling->shift = numbers.shift;
  emit(b, node, false, *pooling, numbers.src, numbers.dst);
  return true;
}

bool build_maximum(PlanBuilder& b, const Node& node) {
  const int src = node.inputs[0];
  const Type dtype = b.dtype(src);
  if ((dtype != Type::u8 && dtype != Type::s8) || !node.post_ops.empty()) return false;
  const auto pooling = pooling_of(b, node, b.md(src));
  if (!pooling) return false;
  emit(b, node, true, *pooling, src, node.output);
  return true;
}

}  // namespace dnnl_byoc
