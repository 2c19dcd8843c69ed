#include "convolution_of_numbers.h"

#include <algorithm>
#include <cmath>
#include <ios>
#include <utility>

#include "../error.h"
#include "../isa.h"
#include "ending.h"

namespace dnnl_byoc {
namespace {

using Type = memory::data_type;

const Quantization kFloats = {Type::f32, {1.f}, {0}, 0};

memory arranged(const Arrangement& arrangement, const float* by_channel) {
  memory result(plain_md({arrangement.places}, Type::f32), cpu_engine());
  arrangement.arrange(by_channel, static_cast<float*>(result.get_data_handle()));
  return result;
}

/*! \brief A node's post-ops: what is added, if anything is, and the range that is left. */
struct EndingOfNumbers {
  std::optional<AddendOfNumbers> addend;
  Range range;
};

std::optional<EndingOfNumbers> ending_of_numbers(const PlanBuilder& b, const Node& node,
                                                 const memory::dims& dst_shape, float unit) {
  auto op = node.post_ops.begin();
  std::optional<AddendOfNumbers> addend;
  if (op != node.post_ops.end() && op->alg == dnnl::algorithm::binary_add) {
    const int numbers = b.numbers_of(op->src1);
    if (numbers < 0 || b.is_constant(numbers) || b.shape(numbers) != dst_shape) return std::nullopt;
    const Quantization& how = b.quantization(op->src1);
    const Type dtype = b.dtype(numbers);
    const float factor = how.scales[0] / unit;
    if (!how.is_per_tensor() || (dtype != Type::u8 && dtype != Type::s8) || !std::isfinite(factor))
      return std::nullopt;
    addend = {numbers, factor, how.zero_points[0]};
    ++op;
  }
  const auto range = range_of({op, node.post_ops.end()});
  if (!range) return std::nullopt;
  return EndingOfNumbers{addend, *range};
}

}  // namespace

std::optional<ConvolutionOfNumbers> convolution_of_numbers(const PlanBuilder& b, const Node& node) {
  const int src = node.inputs[0], weights = node.inputs[1];
  const Node* quantizer = b.quantizer_of(node);
  const Type dtype = b.dtypes_for(node, src).front();
  const memory::dims src_shape = b.shape(src), kernel = spatial(b.shape(weights));
  if (!b.has_own_kernels() || !has_avx512_vnni() || kernel.size() != 2 ||
      !b.is_numbers(dtype, src) || (!quantizer && b.result_dtype(node, dtype) != Type::f32))
    return std::nullopt;
  const memory::dim channels = b.shape(weights)[0];
  const Quantization to = quantizer ? quantization_of(*quantizer, {}) : kFloats;
  const Window window(b, node, kernel);
  memory::dims dst_shape = window.output(b, node, kernel);
  dst_shape.insert(dst_shape.begin(), {src_shape[0], channels});
  const auto padding = zero_of(b.quantization(src), dtype);
  const auto factors =
      factors_of(b.quantization(src), b.quantization(weights), to.scales[0], channels);
  const auto ending = ending_of_numbers(b, node, dst_shape, to.scales[0]);
  if (!padding || !ending || window.dilation != memory::dims{0, 0} || !is_countable(dst_shape) ||
      count(dst_shape) == 0 || factors.empty() || !std::isfinite(1 / to.scales[0]) ||
      !has_usual_bias(b, node, channels))
    return std::nullopt;
  return ConvolutionOfNumbers{window,
                              *data_md(DataLayout::channels_last, src_shape, dtype),
                              *data_md(DataLayout::channels_last, dst_shape, to.dtype),
                              quantizer ? quantizer->output : node.output,
                              to,
                              *padding,
                              factors,
                              ending->addend,
                              quantizer ? in_numbers(ending->range, to) : ending->range};
}

Arrangement in_order(memory::dim channels, memory::dim places) {
  return {"in order", places, [=](const float* from, float* to) {
            std::fill(std::copy_n(from, channels, to), to + places, 0.f);
          }};
}

template <class T>
int from_weights(PlanBuilder& b, const Node& node, memory::dim size, std::string what,
                 std::function<void(const int8_t* weights, T* made)> make) {
  // There is no data type of 16 bits for whole numbers.
  constexpr auto bytes = static_cast<memory::dim>(sizeof(T));
  const auto md = bytes == 4 ? plain_md({size}, Type::s32) : plain_md({size * bytes}, Type::s8);
  const auto transform = [md, make = std::move(make)](const memory& weights) {
    memory result(md, cpu_engine());
    make(static_cast<const int8_t*>(weights.get_data_handle()),
         static_cast<T*>(result.get_data_handle()));
    return result;
  };
  return b.transformed(b.numbers_of(node.inputs[1]), md, {std::move(what), transform});
}

template int from_weights(PlanBuilder&, const Node&, memory::dim, std::string,
                          std::function<void(const int8_t*, int8_t*)>);
template int from_weights(PlanBuilder&, const Node&, memory::dim, std::string,
                          std::function<void(const int8_t*, int16_t*)>);
template int from_weights(PlanBuilder&, const Node&, memory::dim, std::string,
                          std::function<void(const int8_t*, int32_t*)>);

int factors(PlanBuilder& b, const ConvolutionOfNumbers& c, const Arrangement& arrangement) {
  return b.literal(arranged(arrangement, c.factors.data()));
}

int bias(PlanBuilder& b, const Node& node, memory::dim channels, const Arrangement& arrangement) {
  if (node.inputs.size() < 3)
    return b.literal(
        arranged(arrangement, std::vector<float>(static_cast<size_t>(channels)).data()));
  const auto make = [arrangement](const memory& m) {
    return arranged(arrangement, static_cast<const float*>(m.get_data_handle()));
  };
  return b.transformed(node.inputs[2], plain_md({arrangement.places}, Type::f32),
                       {arrangement.name, make});
}

int terms(PlanBuilder& b, const Node& node, const ConvolutionOfNumbers& c,
          const Arrangement& arrangement) {
  auto point = static_cast<float>(c.to.zero_points[0]);
  if (c.addend) point -= c.addend->factor * static_cast<float>(c.addend->zero_point);
  const size_t channels = c.factors.size();
  if (node.inputs.size() < 3)
    return b.literal(arranged(arrangement, std::vector<float>(channels, point).data()));
  const auto make = [=, scale = c.to.scales[0]](const memory& m) {
    const auto* bias = static_cast<const float*>(m.get_data_handle());
    std::vector<float> terms(bias, bias + channels);
    for (float& x : terms) x = x / scale + point;
    return arranged(arrangement, terms.data());
  };
  const auto what = text(arrangement.name, " terms ", std::hexfloat, c.to.scales[0], ' ', point);
  return b.transformed(node.inputs[2], plain_md({arrangement.places}, Type::f32), {what, make});
}

}  // namespace dnnl_byoc
