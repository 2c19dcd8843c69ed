#include "normalized_source.h"

#include <algorithm>
#include <memory>

#include "../isa.h"
#include "../kernel.h"
#include "../kernels/image.h"
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
    const BoundSource bound(data, channels_);
    function_(normalization_, bound.source(), bound.rest()[0]);
  }

 private:
  const normalization::Function function_;
  const normalization::Normalization normalization_;
  const std::vector<memory::dim> channels_;
};

/*! \brief Whether a tensor is there as one of the graph's constants, and does not stand for
 * another.
 */
bool is_given(const PlanBuilder& b, int tensor) {
  return b.is_constant(tensor) && b.numbers_of(tensor) < 0;
}

/*! \brief Whether a tensor is read by a 1 × 1 convolution alone, which visits each pixel once. */
bool is_read_by_pixels(const PlanBuilder& b, int tensor) {
  const Node* reader = b.only_reader(tensor);
  if (!reader || !reader->sizes.empty() || reader->kind != "convolution" ||
      reader->inputs.size() < 2 || reader->inputs[0] != tensor || !is_given(b, reader->inputs[1]))
    return false;
  const auto is = [reader](const char* name, memory::dim size) {
    return reader->attr<memory::dims>(name) == memory::dims{size, size};
  };
  const memory::dims kernel = b.shape(reader->inputs[1]);
  return kernel.size() == 4 && kernel[2] == 1 && kernel[3] == 1 &&
         reader->attr<memory::dim>("groups") == 1 && is("strides", 1) && is("padding_l", 0) &&
         is("padding_r", 0);
}

/*! \brief Whether what a node reads will be there, as it is now, when another one reads it. */
bool can_wait(const PlanBuilder& b, const Node& node) {
  const auto is_there = [&](int tensor) { return b.is_defined(tensor); };
  const auto parts = b.parts_of(node.inputs[0]);
  return std::all_of(parts.begin(), parts.end(), is_there) &&
         std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                     [&](int tensor) { return is_given(b, tensor); });
}

/*! \brief A value for a normalization's result: that of src, if each element is read only once. */
int define_result(PlanBuilder& b, const Node& node) {
  const int src = node.inputs[0];
  const memory::desc md = b.md(src);
  const bool in_place = b.parts_of(src) == std::vector<int>{src} && b.may_overwrite(src) &&
                        md.get_dims()[1] % kernels::kAvx512Vector == 0;
  return in_place ? b.define_in(node.output, md, b.require(src, md)) : b.define(node.output, md);
}

}  // namespace

NormalizedSource::NormalizedSource(const PlanBuilder& b, const Node& node)
    : node_(node), md_(b.md(node.inputs[0])), parts_(b.parts_of(node.inputs[0])) {}

normalization::Normalization NormalizedSource::normalization() const {
  const memory::dims shape = md_.get_dims();
  kernels::Activation activation;
  if (!node_.post_ops.empty()) activation = {true, node_.post_ops[0].alpha};
  return {count(shape) / shape[1], shape[1], node_.attr<float>("epsilon"), activation};
}

std::vector<std::pair<int, int>> NormalizedSource::args(PlanBuilder& b) const {
  std::vector<std::pair<int, int>> args;
  const int first = parts_.size() == 1 ? DNNL_ARG_SRC : DNNL_ARG_MULTIPLE_SRC;
  for (const int part : parts_)
    args.emplace_back(first + static_cast<int>(args.size()), b.require(part, b.md(part)));
  const memory::dim channels = md_.get_dims()[1];
  int input = 1;
  for (const int arg : {DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE})
    args.emplace_back(arg, b.require(node_.inputs[input++], plain_md({channels}, Type::f32)));
  args.emplace_back(DNNL_ARG_WORKSPACE, b.temporary(plain_md({2, channels}, Type::f32)));
  return args;
}

std::vector<memory::dim> NormalizedSource::channels(const PlanBuilder& b) const {
  std::vector<memory::dim> channels;
  for (const int part : parts_) channels.push_back(b.shape(part)[1]);
  return channels;
}

BoundSource::BoundSource(void* const* data, const std::vector<memory::dim>& channels) {
  const auto floats = [&data] { return static_cast<float*>(*data++); };
  for (const memory::dim count : channels) parts_.push_back({*data++, count});
  statistics_ = {floats(), floats(), floats(), floats()};
  factors_ = floats();
  rest_ = data;
}

normalization::Source BoundSource::source() const {
  return {parts_.data(), static_cast<int64_t>(parts_.size()), statistics_, factors_};
}

void emit_normalization(PlanBuilder& b, const Node& node, const NormalizedSource& source,
                        const normalization::Normalization& normalization,
                        normalization::Function function, int dst) {
  auto args = source.args(b);
  args.emplace_back(DNNL_ARG_DST, dst);
  b.emit(node.kind,
         std::make_shared<NormalizationKernel>(function, normalization, source.channels(b)),
         std::move(args), post_op_names(node));
}

bool is_usual(const Node& normalization) {
  const auto& ops = normalization.post_ops;
  return ops.empty() || (ops.size() == 1 && ops[0].alg == dnnl::algorithm::eltwise_relu);
}

bool can_be_normalized(const PlanBuilder& b, int tensor) {
  const memory::desc& md = b.md(tensor);
  const Type dtype = md.get_data_type();
  return (dtype == Type::f32 || dtype == Type::bf16) && is_countable(md.get_dims()) &&
         data_layout_of(md) == DataLayout::channels_last && md.get_dims()[1] >= channel_block();
}

bool leaves_floats(const PlanBuilder& b, const Node& node, Type dtype) {
  return dtype == Type::f32 && b.has_own_kernels() && channel_block() == kernels::kAvx512Vector &&
         b.precision() == Type::f32 && b.layout() != DataLayout::blocked &&
         node.kind == "batch_normalization" && is_usual(node) && node.sizes.empty();
}

bool build_normalization_of_floats(PlanBuilder& b, const Node& node) {
  const int src = node.inputs[0];
  if (!leaves_floats(b, node, b.dtype(src)) || !can_be_normalized(b, src)) return false;
  if (is_read_by_pixels(b, node.output) && can_wait(b, node)) {
    b.leave_to_reader();
    return true;
  }
  if (b.parts_of(src).size() == 1 && !b.wants_own_kernel()) return false;
  const NormalizedSource source(b, node);
  emit_normalization(b, node, source, source.normalization(),
                     normalization::avx512_function_of_floats(), define_result(b, node));
  return true;
}

void normalize_what_is_left(PlanBuilder& b, int tensor) {
  const Node* left = b.left_to_reader(tensor);
  if (!left) return;
  const NormalizedSource source(b, *left);
  emit_normalization(b, *left, source, source.normalization(),
                     normalization::avx512_function_of_floats(), b.define_what_is_left(tensor));
}

}  // namespace dnnl_byoc
