#include "depthwise.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../error.h"
#include "../isa.h"
#include "../kernel.h"
#include "../kernels/depthwise.h"
#include "../kernels/depthwise_of_floats.h"
#include "convolution_of_floats.h"
#include "convolution_of_numbers.h"
#include "ending.h"
#include "post_ops.h"

namespace dnnl_byoc {
namespace {

constexpr memory::dim kFewestChannels = 16;  // for fewer, the most of a vector is empty

class DepthwiseKernel final : public Kernel {
 public:
  DepthwiseKernel(depthwise::Function function, const depthwise::Convolution& convolution)
      : function_(function), convolution_(convolution) {}
  const char* impl() const override { return "depthwise"; }
  void run(void* const* data) const override {
    const auto floats = [data](int i) { return static_cast<const float*>(data[i]); };
    const depthwise::Constants constants = {static_cast<const int8_t*>(data[1]),
                                            static_cast<const int32_t*>(data[2]), floats(3),
                                            floats(4)};
    function_(convolution_, constants, data[0], data[5]);
  }

 private:
  const depthwise::Function function_;
  const depthwise::Convolution convolution_;
};

class DepthwiseOfFloatsKernel final : public RowKernel {
 public:
  DepthwiseOfFloatsKernel(depthwise_of_floats::Function function,
                          const depthwise_of_floats::Convolution& convolution)
      : function_(function), convolution_(convolution) {}
  const char* impl() const override { return "depthwise"; }
  void run(void* const* data) const override { run(convolution_, data, 0); }

  std::optional<Rows> rows() const override {
    const kernels::Image &src = convolution_.src, &dst = convolution_.dst;
    const auto is_in_rows = [this](const kernels::Image& image) {
      return image.column_stride == convolution_.channel_vectors * channel_block();
    };
    if (convolution_.batch != 1 || !is_in_rows(src) || !is_in_rows(dst)) return std::nullopt;
    return Rows{src.height, dst.height, convolution_.rows,
                dst.row_stride * static_cast<int64_t>(sizeof(float))};
  }
  void run_rows(void* const* data, int64_t first, int64_t last) const override {
    depthwise_of_floats::Convolution part = convolution_;
    part.rows.padding -= first * part.rows.stride;
    part.dst.height = last - first;
    run(part, data, first * part.dst.row_stride);
  }

 private:
  /*! \param element Of dst, the first. */
  void run(const depthwise_of_floats::Convolution& convolution, void* const* data,
           int64_t element) const {
    const auto floats = [data](int i) { return static_cast<float*>(data[i]); };
    function_(convolution, floats(0), floats(1), floats(2), floats(3) + element);
  }

  const depthwise_of_floats::Function function_;
  const depthwise_of_floats::Convolution convolution_;
};

bool is_depthwise(const PlanBuilder& b, const Node& node) {
  const memory::dims src = b.shape(node.inputs[0]), weights = b.shape(node.inputs[1]);
  return src.size() == 4 && weights[1] == 1 && weights[0] == src[1] &&
         node.attr<memory::dim>("groups") == src[1] && src[1] >= kFewestChannels &&
         weights[2] == weights[3];
}

bool build_of_numbers(PlanBuilder& b, const Node& node) {
  const auto problem = convolution_of_numbers(b, node);
  if (!problem || !problem->is_dst_whole() || problem->addend) return false;
  const memory::dims shape = problem->src_md.get_dims();
  const memory::dims kernel = spatial(b.shape(node.inputs[1]));
  const auto function = depthwise::avx512_vnni_function(kernel[0], problem->is_dst_signed());
  if (!function || !b.wants_own_kernel()) return false;

  // As its bits.
  const auto byte = [](float number) { return static_cast<uint8_t>(static_cast<int>(number)); };
  const depthwise::Convolution c = {image_of(problem->src_md),
                                    image_of(problem->dst_md),
                                    shape[0],
                                    shape[1],
                                    window_side(problem->window, kernel, 0),
                                    window_side(problem->window, kernel, 1),
                                    problem->is_src_signed(),
                                    problem->padding,
                                    byte(problem->range.least),
                                    byte(problem->range.most)};
  const memory::dim places = c.blocks() * depthwise::kBlock;
  const Arrangement arrangement = {
      "depthwise", places, [c](const float* from, float* to) { depthwise::arrange(c, from, to); }};
  const int weights = from_weights<int8_t>(
      b, node, c.blocks() * c.block_bytes(), text("depthwise ", c.rows.stride),
      [c](const int8_t* from, int8_t* to) { depthwise::arrange_weights(c, from, to); });
  const int starts = from_weights<int32_t>(
      b, node, places, text("depthwise starts ", int{c.padding}),
      [c](const int8_t* from, int32_t* to) { depthwise::arrange_starts(c, from, to); });
  const std::vector<std::pair<int, int>> args = {
      {DNNL_ARG_SRC, b.require(b.numbers_of(node.inputs[0]), problem->src_md)},
      {DNNL_ARG_WEIGHTS, weights},
      {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, starts},
      {DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, factors(b, *problem, arrangement)},
      {DNNL_ARG_BIAS, terms(b, node, *problem, arrangement)},
      {DNNL_ARG_DST, b.define(problem->dst, problem->dst_md)}};
  b.emit(node.kind, std::make_shared<DepthwiseKernel>(function, c), args, post_op_names(node));
  return true;
}

/*! \brief (kernel, kernel, channels). */
memory::desc weights_md(const memory::dims& shape) {
  return {shape, memory::data_type::f32, memory::format_tag::cdba};
}

bool build_of_floats(PlanBuilder& b, const Node& node) {
  const int src = node.inputs[0], weights = node.inputs[1];
  const auto problem = convolution_of_floats(b, node);
  const memory::dims shape = b.shape(weights), kernel = spatial(shape);
  if (!problem || problem->dtype() != memory::data_type::f32 || problem->addend >= 0 ||
      kernel[0] != depthwise_of_floats::kKernel || shape[0] % channel_block() ||
      !b.can_require(weights, weights_md(shape)))
    return false;
  const memory::dims strides = problem->window.strides;
  const auto function = depthwise_of_floats::avx512_function(strides[0]);
  if (strides[0] != strides[1] || !function || !b.wants_own_kernel()) return false;

  const depthwise_of_floats::Convolution c = {image_of(problem->src_md),
                                              image_of(problem->dst_md),
                                              b.shape(src)[0],
                                              shape[0] / channel_block(),
                                              window_side(problem->window, kernel, 0),
                                              window_side(problem->window, kernel, 1),
                                              problem->range.least,
                                              problem->range.most};
  const std::vector<std::pair<int, int>> args = {
      {DNNL_ARG_SRC, b.require(src, problem->src_md)},
      {DNNL_ARG_WEIGHTS, b.require(weights, weights_md(shape))},
      {DNNL_ARG_BIAS, bias(b, node, shape[0], in_order(shape[0], shape[0]))},
      {DNNL_ARG_DST, b.define(node.output, problem->dst_md)}};
  b.emit(node.kind, std::make_shared<DepthwiseOfFloatsKernel>(function, c), args,
         post_op_names(node));
  return true;
}

}  // namespace

bool build_depthwise(PlanBuilder& b, const Node& node) {
  return is_depthwise(b, node) && (build_of_numbers(b, node) || build_of_floats(b, node));
}

}  // namespace dnnl_byoc
