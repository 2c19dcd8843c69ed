"""partition_for_dnnl(precision=…), and models that come in bf16 or f16."""

import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tvm
from helpers import (
    assert_close,
    build,
    build_plainly,
    const,
    conv2d,
    in_tvm,
    module,
    offloaded,
    random,
    region_functions,
    run,
    run_python,
    steps_of,
    var,
)
from tvm import relay
from tvm.relay import testing

from tvm_dnnl_byoc import partition_for_dnnl, profile

TOLERANCES = {"bf16": 3e-2, "f16": 4e-3}
SHAPES = {"x": (1, 3, 5, 6), "w": (4, 3, 3, 3)}
NUMPY = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def precision_here(precision):
    """Return the precision, or f32 if the processor does not compute in it."""
    return (
        "f32" if tvm.get_global_func("tvm_dnnl_byoc.refusal_of_precision")(precision) else precision
    )


@pytest.fixture(autouse=True)
def no_warning_of_the_processor():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "precision: expected a processor", RuntimeWarning)
        yield


def resnet18():
    return testing.resnet.get_workload(num_layers=18, image_shape=(3, 64, 64))


def heavy_dtypes(lib):
    steps = steps_of(lib)
    heavy = [step for step in steps if step["kind"] in ("convolution", "inner_product", "matmul")]
    return {step["dtypes"]["src"] for step in heavy}


@pytest.mark.parametrize("precision", TOLERANCES)
def test_a_network(precision, tmp_path):
    mod, params = resnet18()
    inputs = {"data": random(1, 3, 64, 64)}
    plain = build(partition_for_dnnl(mod, params), params)
    assert heavy_dtypes(plain) == {"f32"}  # the near miss
    lib = build(partition_for_dnnl(mod, params, precision=precision), params)
    assert heavy_dtypes(lib) == {precision_here(precision)}
    expected, got = run(plain, inputs), run(lib, inputs)
    assert_close(got, expected, TOLERANCES[precision])

    path, plain_path = tmp_path / "narrow.so", tmp_path / "plain.so"
    lib.export_library(str(path))
    plain.export_library(str(plain_path))
    loaded = tvm.runtime.load_module(str(path))
    assert run(loaded, inputs)[0].tobytes() == got[0].tobytes()
    if precision_here(precision) == precision:
        assert got[0].tobytes() != expected[0].tobytes()
        # All weights are in the narrow type, but those of the first convolution's 3 channels.
        assert path.stat().st_size < 0.6 * plain_path.stat().st_size
        assert sum(plan["repacked_bytes"] for plan in profile(loaded).values()) < 1 << 16


@pytest.mark.parametrize("dtype", NUMPY)
def test_mixed_precision_of_tvm(dtype):
    """What ToMixedPrecision makes runs like the model that it was made from."""
    mod, params = resnet18()
    inputs = {"data": random(1, 3, 64, 64)}
    mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    mixed = relay.transform.ToMixedPrecision(dtype, missing_op_mode=1)(
        relay.transform.InferType()(mod)
    )
    partitioned = partition_for_dnnl(mixed)
    precision = {"bfloat16": "bf16", "float16": "f16"}[dtype]
    lib = build(partitioned)
    assert heavy_dtypes(lib) == {precision_here(precision)}
    assert offloaded(partitioned)[0] == offloaded(partition_for_dnnl(mod))[0]
    assert partitioned["main"].checked_type.ret_type == mixed["main"].checked_type.ret_type
    narrow = run(lib, inputs)[0]
    narrow = narrow.view(NUMPY[dtype]) if narrow.dtype != np.float32 else narrow
    expected = run(build_plainly(mod), inputs)
    assert_close([narrow.astype(np.float32)], expected, TOLERANCES[precision])


def narrow_model(dtype):
    """Return a model that is narrow outside and inside, with much that is not a plain call."""
    x = var("x", 2, 8, 9, 9, dtype=dtype)
    n = var("n", 2, 8, 1, 1, dtype="int32")
    w = relay.const(random(8, 8, 3, 3).astype(NUMPY[dtype]), dtype)
    y = conv2d(x, w, padding=(1, 1, 1, 1), out_dtype=dtype)
    y = relay.nn.relu(y + relay.cast(n, dtype))
    y = y + relay.zeros((1,), dtype)
    parts = relay.split(relay.cast(relay.cast(y, "float32"), dtype), 2, axis=1)
    z = relay.concatenate([parts[1], parts[0]], axis=1)
    branch = relay.If(relay.const(True), x, relay.negative(x))
    whole = relay.cast(relay.cast(in_tvm(z), "float32") * relay.const(4.0), "int32")
    return module(z, whole, parts[0], relay.nn.relu(branch))


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("precision", [None, "f32"])
def test_the_types_outside_stay(dtype, precision):
    mod = relay.transform.InferType()(narrow_model(dtype))
    partitioned = partition_for_dnnl(mod, precision=precision)
    assert partitioned["main"].checked_type == mod["main"].checked_type
    x = random(2, 8, 9, 9).astype(NUMPY[dtype])
    n = np.arange(16, dtype="int32").reshape(2, 8, 1, 1)
    lib = build(partitioned)
    z, whole, part, branch = run(lib, {"x": x, "n": n})
    z, part, branch = (a.view(NUMPY[dtype]).astype("float32") for a in (z, part, branch))
    np.testing.assert_array_equal(branch, np.maximum(x.astype("float32"), 0))
    # In single precision, only the results are rounded, or cut off: TVM's cast may do that.
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x.astype("float64"), [(0, 0), (0, 0), (1, 1), (1, 1)]), (3, 3), (2, 3)
    )
    w = random(8, 8, 3, 3).astype(NUMPY[dtype]).astype("float64")
    y = np.maximum(np.einsum("nchwij,ocij->nohw", windows, w) + n, 0)
    expected = np.concatenate([y[:, 4:], y[:, :4]], axis=1)
    tolerance = (2.0**-7 if dtype == "bfloat16" else 2.0**-10) * (1 if precision else 2)
    assert_close([z, part], [expected.astype("float32"), y[:, :4].astype("float32")], tolerance)
    scale = 4 * np.abs(expected).max()
    assert np.abs(whole - 4 * expected[..., ::-1]).max() <= 1 + tolerance * scale


@pytest.mark.parametrize("dtype", NUMPY)
def test_weights_that_are_arguments(dtype):
    x, w = var("x", 1, 3, 5, 6, dtype=dtype), var("w", 4, 3, 3, 3, dtype=dtype)
    partitioned = partition_for_dnnl(module(conv2d(x, w, out_dtype=dtype)))
    assert offloaded(partitioned) == (["nn.conv2d"], ["cast", "cast", "cast"])
    narrow = {n: random(*s).astype(NUMPY[dtype]) for n, s in SHAPES.items()}
    wide = {name: array.astype("float32") for name, array in narrow.items()}
    expected = run(
        build_plainly(module(conv2d(var("x", *SHAPES["x"]), var("w", *SHAPES["w"])))), wide
    )
    got = run(build(partitioned), narrow)[0].view(NUMPY[dtype]).astype("float32")
    assert_close([got], expected, 2.0**-7 if dtype == "bfloat16" else 2.0**-10)


def test_a_model_in_single_precision_keeps_its_narrow_parts():
    """The near miss: where the convolutions are in f32, what is rounded between them stays so."""
    y = relay.cast(conv2d(var("x", 1, 3, 5, 6), const(4, 3, 3, 3)), "float16")
    y = conv2d(relay.cast(relay.nn.relu(y), "float32"), const(4, 4, 1, 1))
    partitioned = partition_for_dnnl(module(y))
    assert offloaded(partitioned) == (["nn.conv2d", "nn.conv2d"], ["cast", "nn.relu", "cast"])


@pytest.mark.parametrize("dtype", NUMPY)
def test_what_looks_at_the_bits(dtype):
    x, w = var("x", 1, 3, 5, 6, dtype=dtype), var("w", 4, 3, 3, 3, dtype=dtype)
    y = conv2d(x, w, out_dtype=dtype)
    mod = relay.transform.InferType()(module(relay.reinterpret(y, "int16"), y))
    partitioned = partition_for_dnnl(mod)
    assert offloaded(partitioned)[0] == ["nn.conv2d"]
    bits = partitioned["main"].body.fields[0]
    assert bits.op.name == "reinterpret"
    assert bits.args[0].checked_type.dtype == dtype
    assert partitioned["main"].checked_type == mod["main"].checked_type


def test_twice_is_once():
    mod, params = resnet18()
    once = partition_for_dnnl(mod, params, precision="bf16")
    assert tvm.ir.structural_equal(partition_for_dnnl(once, precision="bf16"), once)


def test_every_region_has_it():
    x = var("x", 1, 8, 9, 9)
    y = conv2d(in_tvm(conv2d(x, const(8, 8, 3, 3))), const(8, 8, 3, 3))
    for precision in (None, "f32", "bf16"):
        functions = region_functions(partition_for_dnnl(module(y), precision=precision))
        assert len(functions) == 2
        for function in functions.values():
            here = precision_here(precision or "f32")
            assert function.attrs.get("precision", "f32") == here


def test_not_a_precision():
    with pytest.raises(ValueError, match="precision: expected one of f32, bf16, f16, got 'int4'"):
        partition_for_dnnl(module(relay.nn.relu(var("x", 2))), precision="int4")


def test_a_processor_without_it():
    """A warning says what is missing; the numbers are those of single precision."""
    code = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
import numpy as np
from helpers import build, const, conv2d, module, random, run, var
from tvm_dnnl_byoc import partition_for_dnnl
mod = module(conv2d(var("x", 1, 8, 9, 9), const(8, 8, 3, 3)))
inputs = {"x": random(1, 8, 9, 9)}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    narrow = partition_for_dnnl(mod, precision="bf16")
messages = [str(w.message) for w in caught if w.category is RuntimeWarning]
assert messages == [
    "precision: expected a processor that computes in bf16, got AVX2: the model stays in f32"
], messages
assert caught[0].filename == "<string>", caught[0].filename
a, b = run(build(narrow), inputs)[0], run(build(partition_for_dnnl(mod)), inputs)[0]
assert np.abs(a - b).max() <= 1e-5 * np.abs(b).max()
"""
    process = run_python(code, Path(__file__).parent, ONEDNN_MAX_CPU_ISA="AVX2")
    assert process.returncode == 0, process.stderr
