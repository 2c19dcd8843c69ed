#include "grouped.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "../isa.h"
#include "../kernel.h"
#include "../kernels/grouped.h"
#include "ending.h"
#include "spatial.h"
#include "weights.h"

namespace dnnl_byoc {
namespace {

constexpr auto kF32 = memory::data_type::f32;

class GroupedKernel final : public Kernel {
 public:
  GroupedKernel(grouped::Function function, const grouped::Convolution& convolution, bool bias,
                bool addend)
      : function_(function), convolution_(convolution), bias_(bias), addend_(addend) {}
  const char* impl() const override { return "grouped"; }
  void run(void* const* data) const override {
    const auto next = [&data] { return static_cast<float*>(*data++); };
    const float *src = next(), *weights = next();
    float* dst = next();
    const float* bias = bias_ ? next() : nullptr;
    const float* addend = addend_ ? next() : nullptr;
    function_(convolution_, src, weights, bias, addend, dst);
  }

 private:
  const grouped::Function function_;
  const grouped::Convolution convolution_;
  const bool bias_, addend_;
};

grouped::Function function_for(memory::dim group, memory::dim stride) {
  return channel_block() == kernels::kAvx512Vector ? grouped::avx512_function(group, stride)
                                                   : grouped::avx2_function(group, stride);
}

}  // namespace

bool build_grouped(PlanBuilder& b, const Node& node) {
  if (!b.has_own_kernels()) return false;
  const int src = node.inputs[0], weights = node.inputs[1];
  const memory::dims src_shape = b.shape(src), weights_shape = b.shape(weights);
  const auto groups = node.attr<memory::dim>("groups");
  const memory::dim channels = weights_shape[0], group = weights_shape[1];
  const memory::dims kernel = spatial(weights_shape);
  const auto is_f32 = [&b](int tensor) { return b.dtype(tensor) == kF32; };
  if (groups == 1 || channels != src_shape[1] || channels % channel_block() ||
      kernel != memory::dims(2, grouped::kKernel) || b.dtypes_for(node, src).front() != kF32 ||
      !std::all_of(node.inputs.begin(), node.inputs.end(), is_f32) || !b.is_constant(weights))
    return false;
  const Window window(b, node, kernel);
  const auto function = function_for(group, window.strides[1]);
  memory::dims dst_shape = window.output(b, node, kernel);
  dst_shape.insert(dst_shape.begin(), {src_shape[0], channels});
  const auto ending = ending_of(b, node, dst_shape);
  if (!function || window.dilation != memory::dims{0, 0} || !is_countable(dst_shape) || !ending)
    return false;
  const memory::desc src_md = data_md(b.layout(), src_shape, kF32).value_or(b.md(src));
  if (data_layout_of(src_md) == DataLayout::any) return false;
  const memory::desc dst_md =
      with_dtype(same_layout(src_md, dst_shape), b.result_dtype(node, kF32));
  if (dst_md.get_data_type() != kF32 || !b.wants_own_kernel()) return false;

  const memory::dim vector = channel_block();
  const memory::desc arranged_md =
      plain_md({channels / vector, grouped::kKernel, group, grouped::kKernel, vector}, kF32);
  const auto arrange = [=](const memory& plain) {
    memory result(arranged_md, cpu_engine());
    grouped::arrange_weights(channels, group, vector,
                             static_cast<const float*>(plain.get_data_handle()),
                             static_cast<float*>(result.get_data_handle()));
    return result;
  };
  const int arranged = b.transformed(weights, arranged_md, {"grouped", arrange});
  const int src_value = b.require(src, src_md);
  auto [dst, operands, post_ops] = bind_ending(b, node, *ending, dst_md);
  std::vector<std::pair<int, int>> args = {
      {DNNL_ARG_SRC, src_value}, {DNNL_ARG_WEIGHTS, arranged}, {DNNL_ARG_DST, dst}};
  args.insert(args.end(), operands.begin(), operands.end());
  const grouped::Convolution convolution = {
      image_of(src_md),  image_of(dst_md),    src_shape[0],        channels / vector,
      window.strides[0], window.padding_l[0], window.padding_l[1], ending->activation};
  b.emit(node.kind,
         std::make_shared<GroupedKernel>(function, convolution, node.inputs.size() == 3,
                                         ending->addend >= 0),
         std::move(args), post_ops);
  return true;
}

}  // namespace dnnl_byoc
