#include "one_row.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "../isa.h"
#include "../kernel.h"
#include "../kernels/dot.h"
#include "../kernels/image.h"
#include "post_ops.h"
#include "sums.h"
#include "weights.h"

namespace dnnl_byoc {
namespace {

using Type = memory::data_type;

// Of fewer weights, the sums take longer than to read them.
constexpr size_t kLeastBytes = 1 << 16;
// Of whole numbers: a sum has 32 bits.
constexpr memory::dim kMostInputs = 1 << 16;

/*! \brief Rounds to the nearest, of two to the even one; what is no number stays none. */
uint16_t bf16_bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  return static_cast<uint16_t>((std::isnan(x) ? bits | 0x400000 : rounded) >> 16);
}

/*! \brief The layer: a result is sum · factor + bias · inverse_unit, in a range. */
struct Layer {
  memory::dim inputs, outputs;
  size_t weight_bytes;  // of one
  Type dst;
  bool has_bias, has_starts;
  float inverse_unit;
  Range range;
};

class OneRowKernel final : public Kernel {
 public:
  OneRowKernel(dot::Function function, const Layer& layer) : function_(function), layer_(layer) {}
  const char* impl() const override { return "one_row"; }

  void run(void* const* data) const override {
    const void* src = *data++;
    const auto* weights = static_cast<const char*>(*data++);
    void* dst = *data++;
    const auto* factors = static_cast<const float*>(*data++);
    const auto* bias = layer_.has_bias ? static_cast<const float*>(*data++) : nullptr;
    const auto* starts = layer_.has_starts ? static_cast<const int32_t*>(*data++) : nullptr;
    const auto row_bytes = static_cast<memory::dim>(layer_.weight_bytes) * layer_.inputs;
#pragma omp parallel for schedule(static)
    for (memory::dim first = 0; first < layer_.outputs; first += dot::kRows) {
      // The last rows may have some in common with those before.
      const memory::dim begin = std::min(first, layer_.outputs - dot::kRows);
      union {
        float floats[dot::kRows];
        int32_t numbers[dot::kRows];
      } sums;
      function_(src, weights + begin * row_bytes, layer_.inputs, &sums);
      for (memory::dim i = first; i < begin + dot::kRows; ++i) {
        const memory::dim row = i - begin;
        const float sum = layer_.weight_bytes == 1
                              ? static_cast<float>(sums.numbers[row] + (starts ? starts[i] : 0))
                              : sums.floats[row];
        const float added = bias ? bias[i] * layer_.inverse_unit : 0.f;
        store(dst, i, layer_.range.clip(sum * factors[i] + added));
      }
    }
  }

 private:
  void store(void* dst, memory::dim i, float y) const {
    if (layer_.dst == Type::f32)
      static_cast<float*>(dst)[i] = y;
    else if (layer_.dst == Type::bf16)
      static_cast<uint16_t*>(dst)[i] = bf16_bits(y);
    else  // a byte, signed or not
      static_cast<uint8_t*>(dst)[i] = static_cast<uint8_t>(static_cast<int>(std::nearbyint(y)));
  }

  const dot::Function function_;
  const Layer layer_;
};

dot::Function function_for(Type dtype) {
  const bool wide = channel_block() == kernels::kAvx512Vector;
  switch (dtype) {
    case Type::f32:
      return wide ? dot::avx512_function(false) : dot::avx2_function();
    case Type::bf16:
      return wide ? dot::avx512_function(true) : nullptr;
    case Type::u8:
    case Type::s8:
      return has_avx512_vnni() ? dot::avx512_vnni_function(dtype == Type::s8) : nullptr;
    default:
      return nullptr;
  }
}

/*! \brief By output: what makes up for each of src counting for 128 more. */
memory starts_of(const memory& weights) {
  const memory::dims shape = weights.get_desc().get_dims();
  memory result(plain_md({shape[0]}, Type::s32), cpu_engine());
  const auto* row = static_cast<const int8_t*>(weights.get_data_handle());
  auto* starts = static_cast<int32_t*>(result.get_data_handle());
  for (memory::dim i = 0; i < shape[0]; ++i, row += shape[1])
    starts[i] = -128 * std::accumulate(row, row + shape[1], int32_t{0});
  return result;
}

}  // namespace

bool build_one_row(PlanBuilder& b, const Node& node) {
  if (!b.has_own_kernels()) return false;
  const int src = node.inputs[0], weights = node.inputs[1];
  const memory::dims shape = b.shape(weights);
  const Type dtype = b.dtypes_for(node, src).front();
  const bool numbers = b.is_numbers(dtype, src);
  const int read = weights_tensor(b, node, dtype);
  const bool has_bias = node.inputs.size() == 3;
  const auto bias = bias_md(b, node, shape[0]);
  const auto dst_dtype = b.result_dtype(node, dtype);
  const bool is_float = dtype == Type::f32 || dtype == Type::bf16;
  const auto function = numbers || is_float ? function_for(dtype) : nullptr;
  const memory::desc weights_md = plain_md(shape, numbers ? Type::s8 : dtype);
  const auto range = range_of(node.post_ops);
  if (!function || !range || b.shape(src)[0] != 1 || shape[0] < dot::kRows ||
      !b.is_constant(read) || weights_md.get_size() < kLeastBytes ||
      (numbers && shape[1] > kMostInputs) || (has_bias && bias.get_data_type() != Type::f32))
    return false;
  const Node* quantizer = numbers ? b.quantizer_of(node) : nullptr;
  const bool can_store = dst_dtype == Type::f32 || dst_dtype == Type::bf16 || quantizer;
  // With zero points it would be a matmul, see dequantize_later.h.
  if (!can_store || (numbers && b.quantization(src).has_zero_points()) ||
      (quantizer && quantization_of(*quantizer, {}).has_zero_points()))
    return false;

  Layer layer = {shape[1],  shape[0], memory::data_type_size(weights_md.get_data_type()),
                 dst_dtype, has_bias, dtype == Type::s8,
                 1.f,       *range};
  std::vector<float> factors(static_cast<size_t>(shape[0]), 1.f);
  if (numbers) {
    float unit = 1.f;
    if (quantizer) {
      const Quantization to = quantization_of(*quantizer, {});
      unit = to.scales[0];
      layer.range = in_numbers(*range, to);
    }
    layer.inverse_unit = 1 / unit;
    factors = factors_of(b.quantization(src), b.quantization(weights), unit, shape[0]);
    if (factors.empty() || !std::isfinite(layer.inverse_unit)) return false;
  }
  if (!b.wants_own_kernel()) return false;

  memory factors_memory(plain_md({shape[0]}, Type::f32), cpu_engine());
  std::copy(factors.begin(), factors.end(), static_cast<float*>(factors_memory.get_data_handle()));
  const memory::dims dst_shape = {1, shape[0]};
  std::vector<std::pair<int, int>> args = {
      {DNNL_ARG_SRC, b.require(numbers ? b.numbers_of(src) : src, plain_md({1, shape[1]}, dtype))},
      {DNNL_ARG_WEIGHTS, b.require(read, weights_md)},
      {DNNL_ARG_DST,
       b.define(quantizer ? quantizer->output : node.output, plain_md(dst_shape, dst_dtype))},
      {DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, b.literal(factors_memory)}};
  if (has_bias) args.emplace_back(DNNL_ARG_BIAS, b.require(node.inputs[2], bias));
  if (layer.has_starts)
    args.emplace_back(
        DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC,
        b.transformed(read, plain_md({shape[0]}, Type::s32), {"starts of one row", starts_of}));
  b.emit(node.kind, std::make_shared<OneRowKernel>(function, layer), args, post_op_names(node));
  return true;
}

}  // namespace dnnl_byoc
