#include "isa.h"

namespace dnnl_byoc {

const char* isa_name() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "SSE41";
    case dnnl::cpu_isa::avx:
      return "AVX";
    case dnnl::cpu_isa::avx2:
      return "AVX2";
    case dnnl::cpu_isa::avx2_vnni:
      return "AVX2_VNNI";
    case dnnl::cpu_isa::avx2_vnni_2:
      return "AVX2_VNNI_2";
    case dnnl::cpu_isa::avx512_core:
      return "AVX512_CORE";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "AVX512_CORE_VNNI";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "AVX512_CORE_BF16";
    case dnnl::cpu_isa::avx512_core_fp16:
      return "AVX512_CORE_FP16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "AVX512_CORE_AMX";
    case dnnl::cpu_isa::avx512_core_amx_fp16:
      return "AVX512_CORE_AMX_FP16";
    default:
      return "OTHER";
  }
}

int channel_block() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
    case dnnl::cpu_isa::avx:
    case dnnl::cpu_isa::avx2:
    case dnnl::cpu_isa::avx2_vnni:
    case dnnl::cpu_isa::avx2_vnni_2:
      return 8;
    default:
      return 16;
  }
}

bool computes_in(dnnl::memory::data_type dtype) {
  using dnnl::cpu_isa;
  using Type = dnnl::memory::data_type;
  switch (dnnl::get_effective_cpu_isa()) {
    case cpu_isa::avx512_core_bf16:
      return dtype == Type::f32 || dtype == Type::bf16;
    case cpu_isa::avx512_core_fp16:
    case cpu_isa::avx512_core_amx:
    case cpu_isa::avx512_core_amx_fp16:
      return dtype == Type::f32 || dtype == Type::bf16 || dtype == Type::f16;
    default:
      return dtype == Type::f32;
  }
}

bool adds_up_whole_numbers() {
  using dnnl::cpu_isa;
  switch (dnnl::get_effective_cpu_isa()) {
    case cpu_isa::avx2_vnni:
    case cpu_isa::avx2_vnni_2:
    case cpu_isa::avx512_core_vnni:
    case cpu_isa::avx512_core_bf16:
    case cpu_isa::avx512_core_fp16:
    case cpu_isa::avx512_core_amx:
    case cpu_isa::avx512_core_amx_fp16:
      return true;
    default:
      return false;
  }
}

bool has_avx512_vnni() { return adds_up_whole_numbers() && channel_block() == 16; }

bool has_amx() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  return isa == dnnl::cpu_isa::avx512_core_amx || isa == dnnl::cpu_isa::avx512_core_amx_fp16;
}

bool has_avx2() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::isa_default:
    case dnnl::cpu_isa::sse41:
    case dnnl::cpu_isa::avx:
      return false;
    default:
      return true;
  }
}

}  // namespace dnnl_byoc
