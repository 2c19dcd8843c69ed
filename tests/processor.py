"""What the processor has instructions for."""

from engine_graph import build_info

WHOLE = build_info()["isa"] in (
    *("AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE_VNNI", "AVX512_CORE_BF16"),
    *("AVX512_CORE_FP16", "AVX512_CORE_AMX", "AVX512_CORE_AMX_FP16"),
)
"""Exact sums of products of whole numbers; without them, such layers are computed in f32."""
