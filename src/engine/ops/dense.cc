#include "dense.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "../error.h"
#include "convolution_of_floats.h"
#include "ending.h"
#include "post_ops.h"

namespace dnnl_byoc {
namespace {

using Type = memory::data_type;

// Beyond it, a term alone makes a result the least or the most.
constexpr float kMostTerm = 0x1p30f;

/*! \brief How many channels an instruction multiplies at once. */
memory::dim channels_of_word(Type dtype) {
  return dense::kWord / static_cast<memory::dim>(memory::data_type_size(dtype));
}

/*! \brief Weights in blocks of channels of dst, and the channels of src by word. */
memory::desc weights_md(const memory::dims& shape, Type src_dtype) {
  switch (src_dtype) {
    case Type::f32:
      return {shape, Type::f32, memory::format_tag::Acdb64a};
    case Type::bf16:
      return {shape, Type::bf16, memory::format_tag::AcdB64a2b};
    default:
      return {shape, Type::s8, memory::format_tag::AcdB64a4b};
  }
}

/*! \brief Whether results before they are rounded stay below 2³¹, with terms up to kMostTerm. */
bool is_below_limit(const ConvolutionOfNumbers& c, memory::dim products) {
  const float most_sum = 255.f * 128.f * static_cast<float>(products);
  constexpr float kMost = 0x1p28f;  // so that two of them leave what a term makes of a result
  return std::all_of(c.factors.begin(), c.factors.end(),
                     [&](float factor) { return factor * most_sum < kMost; }) &&
         (!c.addend || c.addend->factor * 255.f < kMost);
}

std::optional<DenseConvolution> of_numbers(const PlanBuilder& b, const Node& node) {
  const auto c = convolution_of_numbers(b, node);
  const memory::dims shape = b.shape(node.inputs[1]);
  if (!c || (c->is_dst_whole() && !is_below_limit(*c, count(shape) / shape[0])))
    return std::nullopt;
  const int addend = c->addend ? c->addend->tensor : -1;
  return DenseConvolution{c->window,
                          spatial(shape),
                          c->src_md,
                          c->dst_md,
                          weights_md(shape, c->src_md.get_data_type()),
                          b.numbers_of(node.inputs[0]),
                          b.numbers_of(node.inputs[1]),
                          c->dst,
                          addend,
                          addend < 0 ? c->dst_md.get_data_type() : b.dtype(addend),
                          c->addend ? c->addend->factor : 0.f,
                          c->range,
                          c};
}

std::optional<DenseConvolution> of_floats(const PlanBuilder& b, const Node& node) {
  const auto c = convolution_of_floats(b, node);
  if (!c || data_layout_of(c->src_md) != DataLayout::channels_last) return std::nullopt;
  const memory::dims shape = b.shape(node.inputs[1]);
  return DenseConvolution{c->window,
                          spatial(shape),
                          c->src_md,
                          c->dst_md,
                          weights_md(shape, c->dtype()),
                          node.inputs[0],
                          node.inputs[1],
                          node.output,
                          c->addend,
                          c->dtype(),
                          1.f,
                          c->range,
                          std::nullopt};
}

/*! \brief What makes up for zero being `zero` in src. */
int starts_of_numbers(PlanBuilder& b, const Node& node, const DenseConvolution& c,
                      memory::dim places) {
  const memory::dims shape = b.shape(c.weights);
  const memory::dim channels = shape[0], size = count(shape) / channels;
  const int zero = c.numbers->zero();
  if (zero)
    return from_weights<int32_t>(
        b, node, places, text("dense ", zero), [=](const int8_t* weights, int32_t* starts) {
          std::fill_n(starts, places, 0);
          for (memory::dim i = 0; i < channels; ++i)
            starts[i] = -zero * std::accumulate(weights + i * size, weights + (i + 1) * size, 0);
        });
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

int64_t bytes_of_pixel(const memory::desc& md) {
  return md.get_dims()[1] * static_cast<int64_t>(memory::data_type_size(md.get_data_type()));
}

dense::DataType dense_dtype(Type dtype) {
  switch (dtype) {
    case Type::u8:
      return dense::DataType::u8;
    case Type::s8:
      return dense::DataType::s8;
    case Type::f32:
      return dense::DataType::f32;
    default:
      return dense::DataType::bf16;
  }
}

bool DenseConvolution::is_pointwise() const {
  const memory::dims once = {1, 1}, none = {0, 0};
  return kernel == once && window.strides == once && window.padding_l == none &&
         window.padding_r == none;
}

int64_t DenseConvolution::words() const { return bytes_of_pixel(src_md) / dense::kWord; }

dense::Results DenseConvolution::results() const {
  return {dst_md.get_dims()[1],
          dense_dtype(dst_md.get_data_type()),
          bytes_of_pixel(dst_md),
          addend >= 0,
          dense_dtype(addend_dtype),
          bytes_of_pixel(with_dtype(dst_md, addend_dtype)),
          addend_factor,
          range.least,
          range.most};
}

std::optional<DenseConvolution> dense_convolution(const PlanBuilder& b, const Node& node,
                                                  memory::dim fewest_channels) {
  const memory::dims shape = b.shape(node.inputs[1]);
  if (spatial(shape).size() != 2 || node.attr<memory::dim>("groups") != 1 ||
      shape[1] < fewest_channels)
    return std::nullopt;
  auto found = of_numbers(b, node);
  if (!found) found = of_floats(b, node);
  if (!found || count(found->src_md.get_dims()) == 0 || count(found->dst_md.get_dims()) == 0 ||
      shape[1] % channels_of_word(found->src_md.get_data_type()) ||
      !b.can_require(found->weights, found->weights_md))
    return std::nullopt;
  return found;
}

DenseArguments::DenseArguments(void* const* after_src, const dense::Results& results,
                               bool of_numbers, bool has_workspace, int64_t pixel) {
  const auto next = [&after_src] { return *after_src++; };
  const auto floats = [&] { return static_cast<const float*>(next()); };
  constants = {next(), next(), nullptr, nullptr};
  if (of_numbers) {
    constants.factors = floats();
    constants.terms = floats();
  }
  dst = static_cast<char*>(next()) + pixel * results.stride;
  addend = results.adds ? static_cast<char*>(next()) + pixel * results.addend_stride : nullptr;
  workspace = has_workspace ? next() : nullptr;
}

void emit_dense(PlanBuilder& b, const Node& node, const DenseConvolution& c,
                std::shared_ptr<Kernel> kernel, int64_t workspace_bytes,
                std::vector<std::pair<int, int>> args) {
  const dense::Results results = c.results();
  const memory::dim channels = results.channels, places = results.blocks() * dense::kBlock;
  const Arrangement arrangement = in_order(channels, places);
  args.emplace_back(DNNL_ARG_WEIGHTS, b.require(c.weights, c.weights_md));
  if (c.numbers) {
    args.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC,
                      starts_of_numbers(b, node, c, places));
    args.emplace_back(DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, factors(b, *c.numbers, arrangement));
    args.emplace_back(
        DNNL_ARG_BIAS,
        terms(b, node, *c.numbers,
              c.numbers->is_dst_whole() ? limited(arrangement, channels) : arrangement));
  } else {
    args.emplace_back(DNNL_ARG_BIAS, bias(b, node, channels, arrangement));
  }
  const int workspace =
      workspace_bytes > 0 ? b.temporary(plain_md({workspace_bytes}, Type::u8)) : -1;
  // Each of an addend's pixels is read before the one in its place is written.
  const BoundSum sum = bind_sum(b, c.dst, c.dst_md, c.addend, c.addend_dtype);
  args.emplace_back(DNNL_ARG_DST, sum.dst);
  if (sum.addend >= 0) args.emplace_back(DNNL_ARG_SRC_1, sum.addend);
  if (workspace >= 0) args.emplace_back(DNNL_ARG_WORKSPACE, workspace);
  b.emit(node.kind, std::move(kernel), std::move(args), post_op_names(node, sum.in_place));
}

void emit_dense(PlanBuilder& b, const Node& node, const DenseConvolution& c,
                std::shared_ptr<Kernel> kernel, int64_t workspace_bytes) {
  emit_dense(b, node, c, std::move(kernel), workspace_bytes,
             {{DNNL_ARG_SRC, b.require(c.src, c.src_md)}});
}

}  // namespace dnnl_byoc
