"""Relax's ``take`` as the engine's gather: embeddings, and parts of a tensor."""

import numpy as np
import pytest
from processor import HAS_BF16
from relax_helpers import (
    assert_close,
    build,
    check,
    const,
    module,
    ops_left,
    random,
    run,
    steps,
    symbol,
    var,
)
from tvm import relax
from tvm.relax import op

from tvm_dnnl_byoc import partition_for_dnnl, profile

ROWS, WIDTH = 20, 16


def embedding(dtype="int64", mode="clip", shape=(4, 7), axis=0):
    table = const(ROWS, WIDTH) if axis == 0 else const(WIDTH, ROWS)

    def build(ids):
        rows = op.take(table, ids, axis, mode)
        if axis:
            rows = op.permute_dims(rows, (1, 2, 0))
        return op.matmul(rows, const(WIDTH, 5))

    return module(build, shape, dtype=dtype)


def ids(dtype, *shape, low=-30, high=50):
    return np.random.default_rng(0).integers(low, high, shape).astype(dtype)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_an_embedding_is_part_of_the_region(dtype, axis):
    """Indices beyond the ends are clipped; those in 64 bits, before they are narrowed."""
    mod = embedding(dtype, axis=axis)
    left = ops_left(partition_for_dnnl(mod))
    assert left == [*(["clip", "astype"] if dtype == "int64" else []), "call_dps_packed"]
    indices = ids(dtype, 4, 7)
    if dtype == "int64":
        indices[0, :2] = (1 << 32) + 1, -(1 << 32) + 1
    assert check(mod, [indices]) == ["gather", "inner_product"]


def test_indices_that_are_said_to_be_within():
    mod = embedding(mode="fast")
    assert check(mod, [ids("int64", 4, 7, low=0, high=ROWS)]) == ["gather", "inner_product"]


@pytest.mark.parametrize("mode", ["nan", "wrap"])
def test_what_is_not_clipped_stays(mode):
    mod = embedding(mode=mode)
    assert "take" in ops_left(partition_for_dnnl(mod))
    assert check(mod, [ids("int64", 4, 7, low=0, high=ROWS)]) == ["inner_product"]


@pytest.mark.skipif(not HAS_BF16, reason="the processor has no instructions for bf16")
def test_in_bf16():
    mod, indices = embedding(), ids("int64", 4, 7)
    assert check(mod, [indices], tolerance=2e-2, precision="bf16") == ["gather", "inner_product"]
    executable = build(partition_for_dnnl(mod, precision="bf16"))
    (plan,) = profile(executable).values()
    assert {step["dtypes"]["src"] for step in plan["steps"] if step["kind"] == "inner_product"} == {
        "bf16"
    }


def test_of_any_number():
    n, s = symbol("n"), symbol("s")
    builder = relax.BlockBuilder()
    x = var("ids", (n, s), "int64")
    with builder.function("main", [x]):
        with builder.dataflow():
            rows = builder.emit(op.take(const(ROWS, WIDTH), op.reshape(x, (n * s,)), 0))
            rows = builder.emit(op.reshape(rows, (n, s, WIDTH)))  # as torch writes it
            y = builder.emit(op.matmul(rows, const(WIDTH, 5)))
            result = builder.emit_output(op.take(y, relax.const(0, "int64"), 1))
        builder.emit_func_output(result)
    mod = builder.get()
    partitioned = partition_for_dnnl(mod)
    assert ops_left(partitioned) == ["clip", "astype", "call_dps_packed"]
    executable, plain = build(partitioned), build(mod)
    for shape in ((2, 7), (1, 1), (3, 4), (2, 7)):
        indices = ids("int64", *shape, low=0, high=ROWS)
        assert_close(run(executable, [indices]), run(plain, [indices]))
    assert steps(executable) == ["gather", "matmul", "gather"]
    (plan,) = profile(executable).values()
    assert (plan["plans"], plan["compiled"]) == (3, 3)


# By name: what is taken of a product (4, 6, 8), and the steps besides.
PARTS = {
    "one": (lambda x: op.take(x, relax.const(2, "int64"), 1), []),
    "the last": (lambda x: op.take(x, relax.const(7, "int32"), 2), []),
    "a few": (lambda x: op.take(x, relax.const(np.array([5, 0, 5])), 1), ["gather"]),
    "a roll": (
        lambda x: op.take(x, op.mod(op.arange(2, 8), relax.const(6, "int64")), 1),
        ["gather"],
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name):
    take, besides = PARTS[name]

    def build(x):
        return op.nn.relu(take(op.matmul(x, const(5, 8))))

    mod = module(build, (4, 6, 5))
    assert ops_left(partition_for_dnnl(mod)) == ["call_dps_packed"]
    assert check(mod) == ["inner_product", *besides, "eltwise"]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32"])
def test_indices_of_other_types_stay(dtype):
    mod = embedding(dtype)
    assert "take" in ops_left(partition_for_dnnl(mod))
    assert check(mod, [ids(dtype, 4, 7, low=0, high=ROWS)]) == ["inner_product"]


def test_an_index_that_is_not_there_stays():
    """Whatever TVM makes of it."""
    mod = module(
        lambda x: op.take(op.matmul(x, const(5, 8)), relax.const(6, "int64"), 1, "clip"), (4, 6, 5)
    )
    assert ops_left(partition_for_dnnl(mod)) == ["call_dps_packed", "take"]
    assert check(mod) == ["inner_product"]


def test_indices_that_are_read_elsewhere_too():
    def build(x):
        rows = op.take(const(ROWS, WIDTH), x, 0)
        others = op.take(const(9, WIDTH, seed=5), op.add(x, relax.const(1, "int64")), 0)
        return [op.matmul(op.add(rows, others), const(WIDTH, 5)), op.negative(x)]

    ran = check(module(build, (4, 7), dtype="int64"), [ids("int64", 4, 7, low=0, high=7)])
    assert sorted(ran) == ["binary", "gather", "gather", "inner_product"]


def test_onnx_counts_from_the_end():
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    from tvm.relax.frontend.onnx import from_onnx

    node, tensor = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    table, weights = random(ROWS, WIDTH), random(WIDTH, 5)
    graph = onnx.helper.make_graph(
        [node("Gather", ["table", "ids"], ["rows"]), node("MatMul", ["rows", "w"], ["y"])],
        *("graph", [tensor("ids", 7, (3, 4))], [tensor("y", 1, (3, 4, 5))]),
        [
            onnx.numpy_helper.from_array(array, name)
            for name, array in {"table": table, "w": weights}.items()
        ],
    )
    opset = [onnx.helper.make_opsetid("", 18)]
    mod = from_onnx(onnx.helper.make_model(graph, opset_imports=opset))
    indices = ids("int64", 3, 4, low=-ROWS, high=ROWS)
    expected = (table[indices].astype("float64") @ weights).astype("float32")
    assert check(mod, [indices], [expected]) == ["gather", "inner_product"]
