"""Modules that come in bf16 or f16."""

import warnings

import ml_dtypes
import numpy as np
import pytest
import tvm
from relax_helpers import assert_close, build, module, ops_left, random, run, steps, symbol, var
from tvm import relax
from tvm.relax import op

from tvm_dnnl_byoc import partition_for_dnnl, profile

NUMPY = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
PRECISION = {"bfloat16": "bf16", "float16": "f16"}
EPSILON = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def precision_here(precision):
    """Return the precision, or f32 if the processor does not compute in it."""
    refusal = tvm.get_global_func("tvm_dnnl_byoc.refusal_of_precision")
    return "f32" if refusal(precision) else precision


@pytest.fixture(autouse=True)
def no_warning_of_the_processor():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "precision: expected a processor", RuntimeWarning)
        yield


def narrow(dtype, *shape, seed=0):
    return random(*shape, seed=seed).astype(NUMPY[dtype])


def const(dtype, *shape, seed=0):
    return relax.const(narrow(dtype, *shape, seed=seed), dtype)


def heavy_dtypes(executable):
    return {
        step["dtypes"]["src"]
        for plan in profile(executable).values()
        for step in plan["steps"]
        if step["kind"] in ("convolution", "inner_product", "matmul")
    }


def network(dtype):
    """Return a module that is narrow outside and inside, and what it computes in float64."""

    def function(x):
        y = op.nn.conv2d(x, const(dtype, 8, 3, 3, 3), padding=1)
        y = op.nn.relu(op.add(y, const(dtype, 8, 1, 1, seed=1)))
        y = op.astype(op.astype(y, "float32"), dtype)
        y = op.add(op.matmul(y, const(dtype, 7, 5, seed=2)), relax.const(0.5, dtype))
        return op.concat([y, op.nn.relu(y)], 1)

    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(
            narrow(dtype, 2, 3, 9, 7, seed=5).astype("float64"), [(0, 0), (0, 0), (1, 1), (1, 1)]
        ),
        *((3, 3), (2, 3)),
    )
    weights, bias, matrix = (
        narrow(dtype, *shape, seed=seed).astype("float64")
        for seed, shape in enumerate([(8, 3, 3, 3), (8, 1, 1), (7, 5)])
    )
    y = np.maximum(np.einsum("nchwij,ocij->nohw", windows, weights) + bias, 0) @ matrix + 0.5
    return module(function, (2, 3, 9, 7), dtype=dtype), np.concatenate([y, np.maximum(y, 0)], 1)


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("precision", [None, "f32"])
def test_what_comes_narrow(dtype, precision):
    """The types outside stay; the region is in its precision, or in f32 if that is asked for."""
    mod, expected = network(dtype)
    partitioned = partition_for_dnnl(mod, precision=precision)
    assert ops_left(partitioned) == ["astype", "call_dps_packed", "astype"]
    executable = build(partitioned)
    assert heavy_dtypes(executable) == {precision_here(precision or PRECISION[dtype])}
    assert steps(executable) == ["convolution:eltwise_relu", "inner_product", "eltwise", "concat"]
    (y,) = run(executable, [narrow(dtype, 2, 3, 9, 7, seed=5)])
    assert y.dtype == NUMPY[dtype]
    # In f32 only the result is rounded.
    tolerance = EPSILON[dtype] * (1 if precision else 3)
    assert_close([y.astype("float32")], [expected.astype("float32")], tolerance)


def test_a_module_in_f32_keeps_its_narrow_parts():
    """The near miss: where the products are in f32, what is rounded between them stays so."""

    def function(x):
        y = op.astype(op.matmul(x, relax.const(random(5, 6))), "float16")
        return op.matmul(op.astype(op.nn.relu(y), "float32"), relax.const(random(6, 3)))

    mod = module(function, (4, 5))
    partitioned = partition_for_dnnl(mod)
    left = ["call_dps_packed", "astype", "nn.relu", "astype", "call_dps_packed"]
    assert ops_left(partitioned) == left
    x = random(4, 5)
    assert_close(run(build(partitioned), [x]), run(build(mod), [x]))


@pytest.mark.parametrize("dtype", NUMPY)
def test_what_stays_in_tvm_keeps_its_types(dtype):
    """Between regions; what reads a region's result, and what a region reads twice."""

    def function(x):
        y = op.matmul(x, const(dtype, 5, 6))
        z = op.tan(y)  # of TVM's
        w = op.add(op.matmul(z, const(dtype, 6, 6, seed=1)), z)
        return [w, op.astype(y, "float32"), y, op.astype(w, "float32")]

    mod = module(function, (4, 5), dtype=dtype)
    partitioned = partition_for_dnnl(mod, precision="f32")
    assert ops_left(partitioned).count("call_dps_packed") == 2
    x = narrow(dtype, 4, 5) / NUMPY[dtype](8)
    got = run(build(partitioned), [x])
    assert [y.dtype for y in got] == [NUMPY[dtype], "float32", NUMPY[dtype], "float32"]
    y = x.astype("float64") @ narrow(dtype, 5, 6).astype("float64")
    z = np.tan(y)
    w = z @ narrow(dtype, 6, 6, seed=1).astype("float64") + z
    wide = [result.astype("float32") for result in got]
    assert_close(wide, [e.astype("float32") for e in (w, y, y, w)], 8 * EPSILON[dtype])


def test_of_any_batch():
    n = symbol("n")
    builder = relax.BlockBuilder()
    x = var("x", (n, 5), "bfloat16")
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(op.nn.gelu(op.matmul(x, const("bfloat16", 5, 6))))
            result = builder.emit_output(op.matmul(y, const("bfloat16", 6, 3, seed=1)))
        builder.emit_func_output(result)
    partitioned = partition_for_dnnl(builder.get())
    assert ops_left(partitioned) == ["astype", "call_dps_packed", "astype"]
    executable, plain = build(partitioned), build(builder.get())
    for batch in (3, 1, 3):
        arrays = [narrow("bfloat16", batch, 5)]
        got, expected = (run(e, arrays)[0].astype("float32") for e in (executable, plain))
        assert_close([got], [expected], 4 * EPSILON["bfloat16"])


def test_onnx():
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    from tvm.relax.frontend.onnx import from_onnx

    node, tensor = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    kind = onnx.TensorProto.BFLOAT16
    arrays = {"w": (8, 3, 3, 3), "b": (8,), "m": (14, 5)}
    initializers = [
        onnx.helper.make_tensor(name, kind, shape, narrow("bfloat16", *shape).tobytes(), raw=True)
        for name, shape in arrays.items()
    ]
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("MatMul", ["r", "m"], ["y"]),
    ]
    values = [tensor("x", kind, (2, 3, 9, 14))], [tensor("y", kind, (2, 8, 9, 5))]
    graph = onnx.helper.make_graph(nodes, "graph", *values, initializers)
    opset = [onnx.helper.make_opsetid("", 22)]
    mod = from_onnx(onnx.helper.make_model(graph, opset_imports=opset))
    partitioned = partition_for_dnnl(mod)
    assert ops_left(partitioned) == ["astype", "call_dps_packed", "astype"]
    executable = build(partitioned)
    assert heavy_dtypes(executable) == {precision_here("bf16")}
    arrays = [narrow("bfloat16", 2, 3, 9, 14)]
    got, expected = (run(e, arrays)[0].astype("float32") for e in (executable, build(mod)))
    assert_close([got], [expected], 4 * EPSILON["bfloat16"])
