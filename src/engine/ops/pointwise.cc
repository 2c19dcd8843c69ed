#include "pointwise.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "../error.h"
#include "../isa.h"
#include "../kernel.h"
#include "../kernels/pointwise.h"
#include "convolution_of_numbers.h"
#include "ending.h"
#include "post_ops.h"

namespace dnnl_byoc {
namespace {

using pointwise::DataType;
using Type = memory::data_type;

constexpr memory::dim kFewestChannels = 16;  // of src; for fewer, there is little to multiply
constexpr memory::dim kMostEmpty = 16;       // places for channels of dst, in the last block
// Beyond it, a term alone makes a result the least or the most.
constexpr float kMostTerm = 0x1p30f;

class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(pointwise::Function function, const pointwise::Convolution& convolution,
                  bool of_bytes)
      : function_(function), convolution_(convolution), of_bytes_(of_bytes) {}
  const char* impl() const override { return "pointwise"; }
  void run(void* const* data) const override {
    const auto next = [&data] { return *data++; };
    const auto floats = [&] { return static_cast<const float*>(next()); };
    const void* src = next();
    pointwise::Constants constants = {next(), next(), nullptr, nullptr};
    if (of_bytes_) {
      constants.factors = floats();
      constants.terms = floats();
    }
    void* dst = next();
    function_(convolution_, constants, src, convolution_.adds ? next() : nullptr, dst);
  }

 private:
  const pointwise::Function function_;
  const pointwise::Convolution convolution_;
  const bool of_bytes_;
};

/*! \brief A convolution that the kernel can do, of tensors that it can read. */
struct Problem {
  pointwise::Function function;
  memory::desc src_md, dst_md;
  int src, weights, dst;  // tensors
  int addend;             // a tensor, or -1
  float addend_factor;
  Range range;
  std::optional<ConvolutionOfNumbers> numbers;  // none of bf16
};

DataType data_type(Type dtype) {
  switch (dtype) {
    case Type::u8:
      return DataType::u8;
    case Type::s8:
      return DataType::s8;
    case Type::f32:
      return DataType::f32;
    default:
      return DataType::bf16;
  }
}

/*! \brief How many channels an instruction multiplies at once. */
memory::dim channels_of_word(Type dtype) {
  return pointwise::kWord / static_cast<memory::dim>(memory::data_type_size(dtype));
}

/*! \brief Weights in blocks of channels of dst, and the channels of src by word. */
memory::desc weights_md(const memory::dims& shape, Type src_dtype) {
  if (src_dtype == Type::bf16) return {shape, Type::bf16, memory::format_tag::AcdB64a2b};
  return {shape, Type::s8, memory::format_tag::AcdB64a4b};
}

bool is_pointwise(const PlanBuilder& b, const Node& node) {
  const memory::dims weights = b.shape(node.inputs[1]);
  const memory::dims none = {0, 0};
  if (spatial(weights) != memory::dims{1, 1} || node.attr<memory::dim>("groups") != 1 ||
      weights[1] < kFewestChannels)
    return false;
  const Window window(b, node, {1, 1});
  return window.strides == memory::dims{1, 1} && window.padding_l == none &&
         window.padding_r == none && count(b.shape(node.inputs[0])) > 0 &&
         kernels::parts_of_at_most(pointwise::kBlock, weights[0]).count * pointwise::kBlock -
                 weights[0] <=
             kMostEmpty;
}

/*! \brief Whether results before they are rounded stay below 2³¹, with terms up to kMostTerm. */
bool is_below_limit(const ConvolutionOfNumbers& c) {
  const float most_sum = 255.f * 128.f * static_cast<float>(c.src_md.get_dims()[1]);
  constexpr float kMost = 0x1p28f;  // so that two of them leave what a term makes of a result
  return std::all_of(c.factors.begin(), c.factors.end(),
                     [&](float factor) { return factor * most_sum < kMost; }) &&
         (!c.addend || c.addend->factor * 255.f < kMost);
}

std::optional<Problem> problem_of_numbers(const PlanBuilder& b, const Node& node) {
  const auto c = convolution_of_numbers(b, node);
  if (!c || has_amx() || c->is_src_signed() || (c->is_dst_whole() && !is_below_limit(*c)))
    return std::nullopt;
  return Problem{pointwise::avx512_vnni_function(),
                 c->src_md,
                 c->dst_md,
                 b.numbers_of(node.inputs[0]),
                 b.numbers_of(node.inputs[1]),
                 c->dst,
                 c->addend ? c->addend->tensor : -1,
                 c->addend ? c->addend->factor : 0.f,
                 c->range,
                 c};
}

std::optional<Problem> problem_of_bf16(const PlanBuilder& b, const Node& node) {
  const int src = node.inputs[0], weights = node.inputs[1];
  const memory::dims src_shape = b.shape(src);
  const memory::dim channels = b.shape(weights)[0];
  const auto is_real = [&](int tensor) {
    return b.dtype(tensor) == Type::f32 || b.dtype(tensor) == Type::bf16;
  };
  if (!b.has_own_kernels() || !computes_in(Type::bf16) || has_amx() ||
      b.dtypes_for(node, src).front() != Type::bf16 ||
      b.result_dtype(node, Type::bf16) != Type::bf16 || !is_real(src) || !is_real(weights) ||
      !b.is_constant(weights) || b.numbers_of(weights) >= 0 || channels % pointwise::kLanes)
    return std::nullopt;
  memory::dims dst_shape = src_shape;
  dst_shape[1] = channels;
  auto op = node.post_ops.begin();
  const bool adds = op != node.post_ops.end() && op->alg == dnnl::algorithm::binary_add;
  if (adds && (b.shape(op->src1) != dst_shape || b.dtype(op->src1) != Type::bf16))
    return std::nullopt;
  const int addend = adds ? op++->src1 : -1;
  const auto range = range_of({op, node.post_ops.end()});
  const memory::desc src_md =
      data_md(b.layout(), src_shape, Type::bf16).value_or(with_dtype(b.md(src), Type::bf16));
  if (!range || data_layout_of(src_md) != DataLayout::channels_last || !is_countable(dst_shape) ||
      !has_usual_bias(b, node, channels))
    return std::nullopt;
  return Problem{pointwise::avx512_bf16_function(),
                 src_md,
                 same_layout(src_md, dst_shape),
                 src,
                 weights,
                 node.output,
                 addend,
                 1.f,
                 *range,
                 std::nullopt};
}

pointwise::Convolution convolution_of(const PlanBuilder& b, const Problem& p) {
  const memory::dims src = p.src_md.get_dims(), dst = p.dst_md.get_dims();
  const auto bytes_of_pixel = [](const memory::desc& md) {
    return md.get_dims()[1] * static_cast<memory::dim>(memory::data_type_size(md.get_data_type()));
  };
  const Type src_dtype = p.src_md.get_data_type(), dst_dtype = p.dst_md.get_data_type();
  const Type addend_dtype = p.addend < 0 ? dst_dtype : b.dtype(p.addend);
  return {count(src) / src[1],
          src[1] / channels_of_word(src_dtype),
          dst[1],
          bytes_of_pixel(p.src_md),
          bytes_of_pixel(p.dst_md),
          bytes_of_pixel(with_dtype(p.dst_md, addend_dtype)),
          data_type(dst_dtype),
          data_type(addend_dtype),
          p.addend >= 0,
          p.addend_factor,
          p.range.least,
          p.range.most,
          omp_get_max_threads()};
}

/*! \brief What makes up for zero being `zero` in src. */
int starts_of_numbers(PlanBuilder& b, const Node& node, const pointwise::Convolution& c,
                      uint8_t zero) {
  const memory::dim places = c.blocks() * pointwise::kBlock;
  const memory::dim size = c.words * channels_of_word(Type::u8);
  const auto make = [=, channels = c.out_channels](const int8_t* weights, int32_t* starts) {
    std::fill_n(starts, places, 0);
    for (memory::dim i = 0; i < channels; ++i)
      starts[i] = -zero * std::accumulate(weights + i * size, weights + (i + 1) * size, 0);
  };
  if (zero) return from_weights<int32_t>(b, node, places, text("pointwise ", int{zero}), make);
  memory none(plain_md({places}, Type::s32), cpu_engine());
  std::fill_n(static_cast<int32_t*>(none.get_data_handle()), places, 0);
  return b.literal(none);
}

/*! \brief An arrangement of numbers up to kMostTerm; NaN becomes the least. */
Arrangement limited(Arrangement arrangement, memory::dim channels) {
  arrangement.name += ", limited";
  arrangement.arrange = [=, arrange = arrangement.arrange](const float* from, float* to) {
    std::vector<float> terms(from, from + channels);
    for (float& x : terms) x = Range{-kMostTerm, kMostTerm}.clip(x);
    arrange(terms.data(), to);
  };
  return arrangement;
}

}  // namespace

bool build_pointwise(PlanBuilder& b, const Node& node) {
  if (!is_pointwise(b, node)) return false;
  auto p = problem_of_numbers(b, node);
  if (!p) p = problem_of_bf16(b, node);
  if (!p) return false;
  const Type dtype = p->src_md.get_data_type();
  const memory::desc blocked_md = weights_md(b.shape(p->weights), dtype);
  if (p->src_md.get_dims()[1] % channels_of_word(dtype) || !b.can_require(p->weights, blocked_md) ||
      !b.wants_own_kernel())
    return false;

  const pointwise::Convolution c = convolution_of(b, *p);
  const Arrangement arrangement = in_order(c.out_channels, c.blocks() * pointwise::kBlock);
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, b.require(p->src, p->src_md)},
                                           {DNNL_ARG_WEIGHTS, b.require(p->weights, blocked_md)}};
  if (p->numbers) {
    args.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC,
                      starts_of_numbers(b, node, c, p->numbers->padding));
    args.emplace_back(DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, factors(b, *p->numbers, arrangement));
    args.emplace_back(
        DNNL_ARG_BIAS,
        terms(b, node, *p->numbers,
              p->numbers->is_dst_whole() ? limited(arrangement, c.out_channels) : arrangement));
  } else {
    args.emplace_back(DNNL_ARG_BIAS, bias(b, node, c.out_channels, arrangement));
  }
  // Each of an addend's pixels is read before the one in its place is written.
  const BoundSum sum =
      bind_sum(b, p->dst, p->dst_md, p->addend, p->addend < 0 ? Type::undef : b.dtype(p->addend));
  args.emplace_back(DNNL_ARG_DST, sum.dst);
  if (sum.addend >= 0) args.emplace_back(DNNL_ARG_SRC_1, sum.addend);
  b.emit(node.kind, std::make_shared<PointwiseKernel>(p->function, c, p->numbers.has_value()), args,
         post_op_names(node, sum.in_place));
  return true;
}

}  // namespace dnnl_byoc
