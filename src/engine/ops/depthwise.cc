#include "depthwise.h"

#include <cmath>
#include <ios>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../error.h"
#include "../isa.h"
#include "../kernel.h"
#include "../kernels/depthwise.h"
#include "ending.h"
#include "post_ops.h"
#include "spatial.h"
#include "sums.h"
#include "weights.h"

namespace dnnl_byoc {
namespace {

using Type = memory::data_type;

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

bool is_depthwise(const PlanBuilder& b, const Node& node) {
  const memory::dims src = b.shape(node.inputs[0]), weights = b.shape(node.inputs[1]);
  return src.size() == 4 && weights[1] == 1 && weights[0] == src[1] &&
         node.attr<memory::dim>("groups") == src[1] && src[1] >= kFewestChannels &&
         weights[2] == weights[3];
}

/*! \brief What makes constants for all of a convolution's blocks: see kernels/depthwise.h. */
class Arranger {
 public:
  Arranger(PlanBuilder* b, const Node& node, const depthwise::Convolution& convolution)
      : b_(*b), node_(node), c_(convolution) {}

  int weights() const {
    return from_weights<int8_t>(c_.blocks() * c_.block_bytes(), Type::s8,
                                text("depthwise ", c_.rows.stride), depthwise::arrange_weights);
  }

  int starts() const {
    return from_weights<int32_t>(places(), Type::s32, text("starts ", int{c_.padding}),
                                 depthwise::arrange_starts);
  }

  int floats(const std::vector<float>& by_channel) const {
    return b_.literal(arranged(c_, by_channel));
  }

  /*! \brief The bias as what is added to dst's numbers, with their zero point. */
  int terms(const Quantization& dst) const {
    const auto point = static_cast<float>(dst.zero_points[0]);
    const auto channels = static_cast<size_t>(c_.channels);
    if (node_.inputs.size() < 3) return floats(std::vector<float>(channels, point));
    const auto md = plain_md({places()}, Type::f32);
    const auto make = [=, c = c_, scale = dst.scales[0]](const memory& m) {
      const auto* bias = static_cast<const float*>(m.get_data_handle());
      std::vector<float> terms(bias, bias + channels);
      for (float& x : terms) x = x / scale + point;
      return arranged(c, terms);
    };
    const auto what = text("terms ", std::hexfloat, dst.scales[0], ' ', point);
    return b_.transformed(node_.inputs[2], md, {what, make});
  }

 private:
  memory::dim places() const { return c_.blocks() * depthwise::kBlock; }

  static memory arranged(const depthwise::Convolution& c, const std::vector<float>& by_channel) {
    memory result(plain_md({c.blocks() * depthwise::kBlock}, Type::f32), cpu_engine());
    depthwise::arrange(c, by_channel.data(), static_cast<float*>(result.get_data_handle()));
    return result;
  }

  template <class T>
  int from_weights(memory::dim size, Type dtype, std::string what,
                   void (*arrange)(const depthwise::Convolution&, const int8_t*, T*)) const {
    const auto md = plain_md({size}, dtype);
    const auto make = [=, c = c_](const memory& weights) {
      memory result(md, cpu_engine());
      arrange(c, static_cast<const int8_t*>(weights.get_data_handle()),
              static_cast<T*>(result.get_data_handle()));
      return result;
    };
    return b_.transformed(b_.numbers_of(node_.inputs[1]), md, {std::move(what), make});
  }

  PlanBuilder& b_;
  const Node& node_;
  const depthwise::Convolution& c_;
};

}  // namespace

bool build_depthwise(PlanBuilder& b, const Node& node) {
  const int src = node.inputs[0], weights = node.inputs[1];
  const Node* quantizer = b.quantizer_of(node);
  const auto range = range_of(node);
  const Type dtype = b.dtypes_for(node, src).front();
  if (!b.has_own_kernels() || !has_avx512_vnni() || !is_depthwise(b, node) || !quantizer ||
      !range || !b.is_numbers(dtype, src))
    return false;
  const bool has_bias = node.inputs.size() == 3;
  const memory::dims src_shape = b.shape(src), kernel = spatial(b.shape(weights));
  const memory::dim channels = src_shape[1];
  const Quantization to = quantization_of(*quantizer, {});
  const Window window(b, node, kernel);
  memory::dims dst_shape = window.output(b, node, kernel);
  dst_shape.insert(dst_shape.begin(), {src_shape[0], channels});
  const auto padding = zero_of(b.quantization(src), dtype);
  const auto factors =
      factors_of(b.quantization(src), b.quantization(weights), to.scales[0], channels);
  const auto function = depthwise::avx512_vnni_function(kernel[0], to.dtype == Type::s8);
  if (!function || !padding || window.dilation != memory::dims{0, 0} || !is_countable(dst_shape) ||
      factors.empty() || !std::isfinite(1 / to.scales[0]) ||
      (has_bias && (!b.is_constant(node.inputs[2]) || b.dtype(node.inputs[2]) != Type::f32 ||
                    b.shape(node.inputs[2]) != memory::dims{channels})) ||
      !b.wants_own_kernel())
    return false;

  const Range numbers = in_numbers(*range, to);
  // As its bits.
  const auto byte = [](float number) { return static_cast<uint8_t>(static_cast<int>(number)); };
  const memory::desc src_md = *data_md(DataLayout::channels_last, src_shape, dtype);
  const memory::desc dst_md = *data_md(DataLayout::channels_last, dst_shape, to.dtype);
  const depthwise::Convolution c = {image_of(src_md),
                                    image_of(dst_md),
                                    src_shape[0],
                                    channels,
                                    window_side(window, kernel, 0),
                                    window_side(window, kernel, 1),
                                    dtype == Type::s8,
                                    *padding,
                                    byte(numbers.least),
                                    byte(numbers.most)};
  const Arranger arranger(&b, node, c);
  const std::vector<std::pair<int, int>> args = {
      {DNNL_ARG_SRC, b.require(b.numbers_of(src), src_md)},
      {DNNL_ARG_WEIGHTS, arranger.weights()},
      {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, arranger.starts()},
      {DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, arranger.floats(factors)},
      {DNNL_ARG_BIAS, arranger.terms(to)},
      {DNNL_ARG_DST, b.define(quantizer->output, dst_md)}};
  b.emit(node.kind, std::make_shared<DepthwiseKernel>(function, c), args, post_op_names(node));
  return true;
}

}  // namespace dnnl_byoc
