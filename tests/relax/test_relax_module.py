"""The runtime module: exported and loaded, several outputs and functions, threads, precision."""

import json
import os
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tvm
from relax_helpers import (
    add_function,
    assert_close,
    build,
    check,
    const,
    inputs_for,
    module,
    ops_left,
    random,
    run,
    run_python,
    steps,
    var,
)
from tvm import relax
from tvm.relax import op

from tvm_dnnl_byoc import build_info, partition_for_dnnl, profile

X = (2, 6, 9, 7)


def network(x):
    y = op.nn.relu(op.add(op.nn.conv2d(x, const(16, 6, 3, 3), padding=1), const(16, 1, 1)))
    return op.nn.conv2d(y, const(5, 16, 1, 1))


def test_build_info():
    assert set(build_info()) == {"onednn", "isa", "runtime"}


def test_a_fresh_process_gives_the_same_bits(tmp_path):
    mod = module(network, X)
    executable = build(partition_for_dnnl(mod))
    (x,) = inputs_for(mod)
    here = run(executable, [x])[0]
    assert_close([here], run(build(mod), [x]))
    executable.export_library(str(tmp_path / "model.so"))
    np.save(tmp_path / "x.npy", x)
    process = run_python(
        "import sys, numpy as np, tvm\n"
        "import tvm_dnnl_byoc\n"
        "from relax_helpers import run, steps\n"
        "loaded = tvm.runtime.load_module(sys.argv[1] + '/model.so')\n"
        "(result,) = run(loaded, [np.load(sys.argv[1] + '/x.npy')])\n"
        "np.save(sys.argv[1] + '/there.npy', result)\n"
        "print(*steps(loaded))\n",
        tmp_path,
    )
    assert process.returncode == 0, process.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "there.npy"), here)
    assert process.stdout.split() == ["convolution:eltwise_relu", "convolution"]


def test_a_damaged_library():
    load = tvm.get_global_func("ffi.Module.load_from_bytes.dnnl_byoc")
    region = next(iter(partition_for_dnnl(module(network, X)).attrs["external_mods"]))
    texts = [text.encode() for text in ("symbol", region["get_graph"]())]
    data = struct.pack("<Q", 1) + b"".join(struct.pack("<Q", len(t)) + t for t in texts)
    data += struct.pack("<QBBHiqq", 1, 2, 32, 1, 2, 3, 5) + bytes(3 * 5 * 4)
    assert load(data)["get_symbol"]() == "symbol"
    for end in (0, 7, 8, 20, len(data) // 2, len(data) - 1):
        with pytest.raises(ValueError, match="the file is damaged"):
            load(data[:end])
    with pytest.raises(ValueError, match="in format 1, got 258"):
        load((258).to_bytes(8, "little") + data[8:])


def test_several_outputs():
    """CASE 13: a result and what is made of it; one that is twice an output; an input."""
    builder = relax.BlockBuilder()
    x = var("x", X)
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(op.nn.conv2d(x, const(5, 6, 3, 3)))
            z = builder.emit(op.nn.relu(y))
            result = builder.emit_output(relax.Tuple([y, z, z, x]))
        builder.emit_func_output(result)
    assert "convolution" in check(builder.get())


def test_an_operator_between_two_regions():
    def build(x):
        y = op.round(op.nn.conv2d(x, const(6, 6, 3, 3), padding=1))
        return op.add(op.nn.conv2d(y, const(6, 6, 1, 1)), y)

    mod = module(build, X)
    partitioned = partition_for_dnnl(mod)
    assert ops_left(partitioned).count("round") >= 1
    assert len(profile(globals()["build"](partitioned))) == 2
    check(mod)


def test_names_that_are_almost_the_same():
    """The second region of "main" and the first of "main_1" must not be one."""
    builder = relax.BlockBuilder()
    for i, name in enumerate(("main", "main_0", "main_0_0")):
        weights = const(5, 7, seed=i)
        add_function(builder, name, lambda x, w=weights: op.matmul(x, op.permute_dims(w)), (4, 7))
    mod = builder.get()
    executable = build(partition_for_dnnl(mod))
    plain = build(mod)
    assert len(profile(executable)) == 3
    for name in ("main", "main_0", "main_0_0"):
        inputs = inputs_for(mod, name)
        assert_close(run(executable, inputs, name), run(plain, inputs, name))


def test_partitioning_again_changes_nothing():
    """CASE 32: nor is the caller's module changed."""
    mod = module(network, X)
    before = mod.script()
    once = partition_for_dnnl(mod)
    assert mod.script() == before
    twice = partition_for_dnnl(once)
    tvm.ir.assert_structural_equal(once["main"], twice["main"])
    assert len(profile(build(twice))) == 1
    (x,) = inputs_for(mod)
    np.testing.assert_array_equal(run(build(once), [x])[0], run(build(twice), [x])[0])


def test_weights_as_parameters():
    mod = module(lambda x, w: op.nn.relu(op.matmul(x, w)), (4, 7), (7, 5))
    weights = random(7, 5)
    executable = build(partition_for_dnnl(mod, {"x1": weights}))
    x = random(4, 7, seed=3)
    assert_close(run(executable, [x]), run(build(mod), [x, weights]))
    (plan,) = profile(executable).values()
    assert plan["constant_bytes"] > 0


def test_threads():
    """CASE 11: one module, many threads, the first call at once."""
    mod = module(network, X)
    executable = build(partition_for_dnnl(mod))
    inputs = [random(*X, seed=i) for i in range(16)]
    expected = [run(executable, [x])[0] for x in inputs]
    fresh = build(partition_for_dnnl(mod))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda x: run(fresh, [x])[0], inputs))
    for result, reference in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, reference)


def test_the_caller_s_mistakes():
    with pytest.raises(TypeError, match=r"expected a tvm\.IRModule, got int"):
        partition_for_dnnl(3)
    with pytest.raises(ValueError, match="expected one of f32, bf16, f16, got 'fp8'"):
        partition_for_dnnl(module(network, X), precision="fp8")
    region = next(iter(partition_for_dnnl(module(network, X)).attrs["external_mods"]))
    x = tvm.runtime.tensor(random(*X))
    with pytest.raises(ValueError, match="dnnl_main_0: expected 1 inputs and 1 outputs, got 1"):
        region["dnnl_main_0"](x)


def test_profile_times_each_step():
    (plan,) = profile(build(partition_for_dnnl(module(network, X))), runs=2).values()
    assert plan["ms"] > 0
    assert all(step["ms"] >= 0 and not step["impl"].startswith("ref") for step in plan["steps"])


@pytest.mark.skipif(
    not any(name in build_info()["isa"] for name in ("BF16", "FP16", "AMX")),
    reason="the processor has no instructions for bf16",
)
def test_bf16():
    mod = module(network, X)
    executable = build(partition_for_dnnl(mod, precision="bf16"))
    (x,) = inputs_for(mod)
    (result,) = run(executable, [x])
    (reference,) = run(build(mod), [x])
    error = np.abs(result - reference).max() / np.abs(reference).max()
    assert 1e-4 < error < 2e-2, "it should be rounded, and no more"
    (plan,) = profile(executable).values()
    convolutions = [step for step in plan["steps"] if step["kind"] == "convolution"]
    assert len(convolutions) == 2
    assert all("bf16" in str(step["dtypes"]) for step in convolutions)


def test_bf16_on_another_processor(tmp_path):
    """CASE 20: a warning, and f32."""
    process = run_python(
        "import warnings\n"
        "from test_relax_module import *\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    partitioned = partition_for_dnnl(module(network, X), precision='bf16')\n"
        "print(*(w.message for w in caught if 'stays in f32' in str(w.message)))\n"
        "(plan,) = profile(build(partitioned)).values()\n"
        "assert 'bf16' not in str(plan)\n",
        ONEDNN_MAX_CPU_ISA="AVX2",
    )
    assert process.returncode == 0, process.stderr
    assert "the model stays in f32" in process.stdout


def quantized(x, scale, dtype="uint8"):
    args = (relax.const(np.float32(scale)), relax.const(np.array(3, dtype)))
    return op.quantize(x, *args, axis=0, out_dtype=dtype)


def dequantized(x, scale, dtype="uint8"):
    args = (relax.const(np.float32(scale)), relax.const(np.array(3, dtype)))
    return op.dequantize(x, *args, axis=0)


@pytest.mark.skipif(
    not any(name in build_info()["isa"] for name in ("VNNI", "BF16", "FP16", "AMX")),
    reason="the processor has no VNNI: such a model is computed in f32",
)
def test_qdq():
    """A convolution of u8 with s8 weights, a scale for each output channel, in whole numbers."""
    rng = np.random.default_rng(5)
    weights = rng.integers(-127, 128, (5, 6, 3, 3), "int8")
    scales = rng.uniform(0.002, 0.01, 5).astype("float32")

    def build(x):
        w = op.dequantize(
            relax.const(weights), relax.const(scales), relax.const(np.zeros(5, "int8")), axis=0
        )
        y = op.nn.relu(op.nn.conv2d(dequantized(quantized(x, 0.01), 0.01), w))
        return dequantized(quantized(y, 0.05), 0.05)

    mod = module(build, X)
    (x,) = inputs_for(mod)
    number = np.clip(np.rint(x / np.float32(0.01)) + 3, 0, 255) - 3
    windows = np.lib.stride_tricks.sliding_window_view(number, (3, 3), (2, 3))
    sums = np.einsum("nihwkl,oikl->nohw", windows, weights.astype("float64"))
    real = np.maximum(sums * 0.01 * scales[:, None, None], 0)
    expected = (np.clip(np.rint(real / 0.05) + 3, 0, 255) - 3) * 0.05
    executable = globals()["build"](partition_for_dnnl(mod))
    (result,) = run(executable, [x])
    steps_off = np.abs(result - expected) / 0.05
    assert steps_off.max() <= 1.001
    assert (steps_off > 0.5).mean() < 0.01
    (plan,) = profile(executable).values()
    convolution = next(step for step in plan["steps"] if step["kind"] == "convolution")
    assert "u8" in str(convolution["dtypes"])
    assert "s8" in str(convolution["dtypes"])


def test_the_execution_mode_that_has_no_external_functions():
    partitioned = partition_for_dnnl(module(network, X))
    executable = relax.build(partitioned, tvm.target.Target({"kind": "llvm"}))
    assert steps(executable) == ["convolution:eltwise_relu", "convolution"]


def test_packed_weights_are_stored():
    """The graph that is exported names the layouts of its constants."""
    region = next(iter(partition_for_dnnl(module(network, X)).attrs["external_mods"]))
    graph = json.loads(region["get_graph"]())
    assert any("packed" in constant for constant in graph["constants"])
    assert os.environ["DNNL_BYOC_TUNE"] == "0"
