#include "normalization_to_numbers.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "../isa.h"
#include "../kernel.h"
#include "../kernels/image.h"
#include "../kernels/normalization.h"
#include "../quantization.h"
#include "post_ops.h"

namespace dnnl_byoc {
namespace {

using Type = memory::data_type;

class NormalizationKernel final : public Kernel {
 public:
  /*! \param channels Of each part of src. */
  NormalizationKernel(normalization::Function function,
                      const normalization::Normalization& normalization,
                      std::vector<memory::dim> channels)
      : function_(function), normalization_(normalization), channels_(std::move(channels)) {}
  const char* impl() const override { return "normalization"; }
  void run(void* const* data) const override {
    std::vector<normalization::Part> parts;
    for (const memory::dim channels : channels_) parts.push_back({*data++, channels});
    const auto floats = [data](int i) { return static_cast<float*>(data[i]); };
    function_(normalization_, parts.data(), static_cast<int64_t>(parts.size()),
              {floats(0), floats(1), floats(2), floats(3)}, floats(4), data[5]);
  }

 private:
  const normalization::Function function_;
  const normalization::Normalization normalization_;
  const std::vector<memory::dim> channels_;
};

}  // namespace

bool leaves_numbers(const PlanBuilder& b, const Node& node) {
  const Node* quantizer = b.quantizer_of(node);
  if (!b.has_own_kernels() || node.kind != "batch_normalization" || !quantizer) return false;
  const auto dtype = quantization_of(*quantizer, {}).dtype;
  const bool plain = std::all_of(node.post_ops.begin(), node.post_ops.end(), [](const PostOp& op) {
    return op.alg == dnnl::algorithm::eltwise_relu;
  });
  return plain && node.post_ops.size() <= 1 && (dtype == Type::u8 || dtype == Type::s8);
}

bool can_be_normalized(const PlanBuilder& b, int tensor) {
  const memory::desc& md = b.md(tensor);
  const Type dtype = md.get_data_type();
  return (dtype == Type::f32 || dtype == Type::bf16) && is_countable(md.get_dims()) &&
         data_layout_of(md) == DataLayout::channels_last && md.get_dims()[1] >= channel_block();
}

bool build_normalization_to_numbers(PlanBuilder& b, const Node& node) {
  const int src = node.inputs[0];
  if (!leaves_numbers(b, node) || !can_be_normalized(b, src)) return false;
  const memory::desc src_md = b.md(src);
  const memory::dims shape = src_md.get_dims();
  const Node& quantizer = *b.quantizer_of(node);
  const Quantization to = quantization_of(quantizer, {});
  const bool is_bf16 = src_md.get_data_type() == Type::bf16, is_signed = to.dtype == Type::s8;
  const auto function = channel_block() == kernels::kAvx512Vector
                            ? normalization::avx512_function(is_bf16, is_signed)
                            : normalization::avx2_function(is_bf16, is_signed);
  kernels::Activation activation;
  if (!node.post_ops.empty()) activation = {true, node.post_ops[0].alpha};
  const normalization::Normalization normalization = {count(shape) / shape[1],
                                                      shape[1],
                                                      node.attr<float>("epsilon"),
                                                      activation,
                                                      to.scales[0],
                                                      static_cast<float>(to.zero_points[0])};
  std::vector<std::pair<int, int>> args;
  std::vector<memory::dim> channels;
  const auto parts = b.parts_of(src);
  const int first = parts.size() == 1 ? DNNL_ARG_SRC : DNNL_ARG_MULTIPLE_SRC;
  for (const int part : parts) {
    const memory::desc md = b.md(part);
    args.emplace_back(first + static_cast<int>(args.size()), b.require(part, md));
    channels.push_back(md.get_dims()[1]);
  }
  const auto statistics = plain_md({shape[1]}, Type::f32);
  int input = 1;
  for (const int arg : {DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE})
    args.emplace_back(arg, b.require(node.inputs[input++], statistics));
  args.emplace_back(DNNL_ARG_WORKSPACE, b.temporary(plain_md({2, shape[1]}, Type::f32)));
  args.emplace_back(DNNL_ARG_DST, b.define(quantizer.output, with_dtype(src_md, to.dtype)));
  b.emit(node.kind,
         std::make_shared<NormalizationKernel>(function, normalization, std::move(channels)),
         std::move(args), post_op_names(node));
  return true;
}

}  // namespace dnnl_byoc
