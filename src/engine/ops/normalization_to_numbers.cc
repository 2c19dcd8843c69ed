#include "normalization_to_numbers.h"

#include "../isa.h"
#include "../kernels/image.h"
#include "../quantization.h"
#include "normalized_source.h"

namespace dnnl_byoc {
namespace {

using Type = memory::data_type;

normalization::Function function_for(const memory::desc& src_md, Type dst_dtype) {
  const bool is_bf16 = src_md.get_data_type() == Type::bf16, is_signed = dst_dtype == Type::s8;
  return channel_block() == kernels::kAvx512Vector
             ? normalization::avx512_function(is_bf16, is_signed)
             : normalization::avx2_function(is_bf16, is_signed);
}

}  // namespace

bool leaves_numbers(const PlanBuilder& b, const Node& node) {
  const Node* quantizer = b.quantizer_of(node);
  if (!b.has_own_kernels() || node.kind != "batch_normalization" || !quantizer) return false;
  const auto dtype = quantization_of(*quantizer, {}).dtype;
  return is_usual(node) && (dtype == Type::u8 || dtype == Type::s8);
}

bool build_normalization_to_numbers(PlanBuilder& b, const Node& node) {
  if (!leaves_numbers(b, node) || !can_be_normalized(b, node.inputs[0])) return false;
  const NormalizedSource source(b, node);
  const Node& quantizer = *b.quantizer_of(node);
  const Quantization to = quantization_of(quantizer, {});
  normalization::Normalization normalization = source.normalization();
  normalization.number_scale = to.scales[0];
  normalization.zero_point = static_cast<float>(to.zero_points[0]);
  emit_normalization(b, node, source, normalization, function_for(source.md(), to.dtype),
                     b.define(quantizer.output, with_dtype(source.md(), to.dtype)));
  return true;
}

}  // namespace dnnl_byoc
