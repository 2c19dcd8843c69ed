#include "pointwise.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "../error.h"
#include "../kernel.h"
#include "../kernels/pointwise.h"
#include "convolution_of_numbers.h"
#include "post_ops.h"

namespace dnnl_byoc {
namespace {

using Type = memory::data_type;

constexpr memory::dim kFewestChannels = 16;  // of src; for fewer, there is little to multiply
constexpr memory::dim kMostEmpty = 16;       // places for channels of dst, in the last block

class PointwiseKernel final : public Kernel {
 public:
  explicit PointwiseKernel(const pointwise::Convolution& convolution) : convolution_(convolution) {}
  const char* impl() const override { return "pointwise"; }
  void run(void* const* data) const override {
    const auto floats = [data](int i) { return static_cast<const float*>(data[i]); };
    const bool adds = convolution_.addend != pointwise::Addend::none;
    function_(convolution_,
              {static_cast<const int8_t*>(data[1]), static_cast<const int32_t*>(data[2]), floats(3),
               floats(4)},
              data[0], adds ? data[6] : nullptr, data[5]);
  }

 private:
  const pointwise::Function function_ = pointwise::avx512_vnni_function();
  const pointwise::Convolution convolution_;
};

bool is_pointwise(const PlanBuilder& b, const Node& node) {
  const memory::dims weights = b.shape(node.inputs[1]);
  const memory::dim blocks = (weights[0] + pointwise::kBlock - 1) / pointwise::kBlock;
  return spatial(weights) == memory::dims{1, 1} && node.attr<memory::dim>("groups") == 1 &&
         weights[1] >= kFewestChannels && weights[1] % pointwise::kTogether == 0 &&
         blocks * pointwise::kBlock - weights[0] <= kMostEmpty;
}

/*! \brief Whether results before they are rounded stay below 2³¹, with terms up to kMostTerm. */
bool is_below_limit(const ConvolutionOfNumbers& c, memory::dim in_channels) {
  const float most_sum = 255.f * 128.f * static_cast<float>(in_channels);
  constexpr float kMost = 0x1p29f;
  return std::all_of(c.factors.begin(), c.factors.end(),
                     [&](float factor) { return factor * most_sum < kMost; }) &&
         (!c.addend || c.addend->factor * 255.f < kMost);
}

/*! \brief Beyond it, a term alone makes all results the least or the most. */
constexpr float kMostTerm = 0x1p30f;

pointwise::Addend addend_of(const PlanBuilder& b, const ConvolutionOfNumbers& c) {
  if (!c.addend) return pointwise::Addend::none;
  return b.dtype(c.addend->tensor) == Type::s8 ? pointwise::Addend::s8 : pointwise::Addend::u8;
}

}  // namespace

bool build_pointwise(PlanBuilder& b, const Node& node) {
  if (!is_pointwise(b, node)) return false;
  const auto problem = convolution_of_numbers(b, node);
  if (!problem || problem->is_src_signed() || problem->window.strides != memory::dims{1, 1} ||
      problem->window.padding_l != memory::dims{0, 0} ||
      problem->window.padding_r != memory::dims{0, 0} ||
      !is_below_limit(*problem, problem->src_md.get_dims()[1]) || !b.wants_own_kernel())
    return false;

  const memory::dims src_shape = problem->src_md.get_dims(), dst_shape = problem->dst_md.get_dims();
  const memory::dim in_channels = src_shape[1], out_channels = dst_shape[1];
  const auto& addend = problem->addend;
  // As its bits.
  const auto byte = [](float number) { return static_cast<uint8_t>(static_cast<int>(number)); };
  const pointwise::Convolution c = {count(src_shape) / in_channels,
                                    in_channels,
                                    out_channels,
                                    in_channels,
                                    out_channels,
                                    out_channels,
                                    addend_of(b, *problem),
                                    addend ? addend->factor : 0.f,
                                    problem->is_dst_signed(),
                                    byte(problem->range.least),
                                    byte(problem->range.most),
                                    omp_get_max_threads()};
  const memory::dim places = c.blocks() * pointwise::kBlock;
  const Arrangement arrangement = {"pointwise", places, [c](const float* from, float* to) {
                                     std::vector<float> limited(from, from + c.out_channels);
                                     for (float& x : limited)
                                       x = Range{-kMostTerm, kMostTerm}.clip(x);
                                     pointwise::arrange(c, limited.data(), to);
                                   }};
  const uint8_t zero = problem->padding;
  const int weights = from_weights<int8_t>(
      b, node, c.blocks() * c.block_bytes(), "pointwise",
      [c](const int8_t* from, int8_t* to) { pointwise::arrange_weights(c, from, to); });
  const int starts = from_weights<int32_t>(
      b, node, places, text("pointwise starts ", int{zero}),
      [c, zero](const int8_t* from, int32_t* to) { pointwise::arrange_starts(c, zero, from, to); });
  std::vector<std::pair<int, int>> args = {
      {DNNL_ARG_SRC, b.require(b.numbers_of(node.inputs[0]), problem->src_md)},
      {DNNL_ARG_WEIGHTS, weights},
      {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, starts},
      {DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, factors(b, *problem, arrangement)},
      {DNNL_ARG_BIAS, terms(b, node, *problem, arrangement)}};
  const int result = problem->quantizer->output;
  if (addend) {
    const memory::desc addend_md = with_dtype(problem->dst_md, b.dtype(addend->tensor));
    // Each of its pixels is read before the one in its place is written.
    const bool in_place = b.may_overwrite(addend->tensor);
    const int value = b.require(addend->tensor, addend_md);
    args.emplace_back(DNNL_ARG_DST, in_place ? b.define_in(result, problem->dst_md, value)
                                             : b.define(result, problem->dst_md));
    args.emplace_back(DNNL_ARG_SRC_1, value);
  } else {
    args.emplace_back(DNNL_ARG_DST, b.define(result, problem->dst_md));
  }
  b.emit(node.kind, std::make_shared<PointwiseKernel>(c), args, post_op_names(node));
  return true;
}

}  // namespace dnnl_byoc
