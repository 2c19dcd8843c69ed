"""What the processor has instructions for."""

from engine_graph import build_info

OWN_KERNELS = build_info()["isa"] not in ("SSE41", "AVX")
"""The package's own, for AVX2 and AVX-512; elsewhere oneDNN's run, and their tests say nothing."""

VECTOR = 8 if build_info()["isa"].startswith("AVX2") else 16
"""Floats of a vector of theirs."""

WHOLE = build_info()["isa"] in (
    *("AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE_VNNI", "AVX512_CORE_BF16"),
    *("AVX512_CORE_FP16", "AVX512_CORE_AMX", "AVX512_CORE_AMX_FP16"),
)
"""Exact sums of products of whole numbers; without them, such layers are computed in f32."""

VNNI = WHOLE and VECTOR == 16
"""The package's own kernels for whole numbers in vectors of 64 bytes."""

AVX512 = OWN_KERNELS and VECTOR == 16
"""Those of floats in vectors of 64 bytes."""

AMX = "AMX" in build_info()["isa"]
"""Products of tiles of bytes and bf16."""

HAS_BF16 = any(name in build_info()["isa"] for name in ("BF16", "FP16", "AMX"))
"""Products of bf16."""
