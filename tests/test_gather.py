"""Gathers: rows of a table in the engine, and Relay's ``take`` as one of them."""

import numpy as np
import pytest
from engine_graph import (
    Engine,
    Graph,
    InvalidArgument,
    Unsupported,
    assert_close,
    pack,
    reference,
    relu,
    run,
    start,
)
from engine_graph import check as check_graph
from helpers import check, const, fused, module, offloaded, random, var
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl

# --- the engine -----------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(5,), (1,), (2, 4), (3, 1, 2)])
def test_along_an_axis(axis, shape):
    """The indices drawn go beyond the ends, and are clipped."""
    graph = Graph()
    src = graph.input(4, 9, 6)
    graph.output(graph.node("gather", [src, graph.input(*shape, dtype="s32")], axis=axis))
    graph.input_data[1][...] = graph.random.integers(-3, 12, shape)
    assert [step["kind"] for step in check_graph(graph).steps] == ["gather"]


def test_of_a_blocked_tensor_and_of_a_view():
    graph = Graph()
    y = graph.convolution(graph.input(1, 32, 7, 6), (48, 32, 3, 3), padding_l=1, padding_r=1)
    indices = graph.constant(data=[40, 3, 3, 17], dtype="s32")
    picked = graph.node("gather", [y, indices], axis=1)
    graph.output(graph.convolution(picked, (16, 4, 1, 1), post_ops=[relu()]))
    turned = graph.node("transpose", [y], axes=[0, 2, 3, 1])
    graph.output(graph.node("gather", [turned, graph.constant(data=[[5, 0]], dtype="s32")], axis=2))
    check_graph(graph)


def test_of_a_large_table_by_all_threads():
    graph = Graph()
    table, ids = graph.constant(3000, 96), graph.input(6, 128, dtype="s32")
    graph.input_data[0][...] = graph.random.integers(0, 3000, (6, 128))
    graph.output(graph.node("gather", [table, ids], axis=0))
    check_graph(graph)
    profile = start(graph.tune(chunk=2)).profile()
    assert profile["chunks"] == 3  # of sequences, whose rows are found where they are


def test_is_not_taken_for_winograds_algorithm():
    """The other step that is a kernel of this package's."""
    graph = Graph()
    y = graph.convolution(graph.input(1, 32, 9, 8), (32, 32, 3, 3), padding_l=1, padding_r=1)
    graph.output(graph.node("gather", [y, graph.constant(data=[7, 0], dtype="s32")], axis=3))
    text, constants = pack(graph, graph.constant_data, tune="all")
    engine = Engine(text)
    engine.set_constants(constants)
    (got,) = run(engine, graph.input_data, [(1, 32, 9, 2)])
    assert_close([got], reference(graph))


def test_of_numbers():
    """Bytes are copied, whatever they stand for."""
    graph = Graph()
    table, ids = graph.constant(20, 32, dtype="s8"), graph.input(7, dtype="s32")
    graph.input_data[0][...] = graph.random.integers(0, 20, 7)
    rows = graph.node("gather", [table, ids], axis=0)
    graph.output(graph.node("dequantize", [rows], scales=[0.5], zero_points=[3], axis=0))
    check_graph(graph)


def gather(ids_dtype="s32", axis=0, **attrs):
    graph = Graph()
    table, ids = graph.input(4, 9), graph.input(5, dtype=ids_dtype)
    graph.output(graph.node("gather", [table, ids], axis=axis, **attrs))
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (gather(axis=2), "expected axis from 0 to the rank of src"),
        (gather(axis=-1), "expected axis from 0 to the rank of src"),
        (gather(ids_dtype="u8"), "expected indices of 32 bits"),
    ],
    ids=["axis", "negative axis", "dtype"],
)
def test_says_what_it_expects(graph, message):
    with pytest.raises(InvalidArgument, match=f"gather: {message}"):
        start(graph).profile()


def test_of_nothing():
    graph = Graph()
    table, ids = graph.input(0, 9), graph.input(5, dtype="s32")
    graph.output(graph.node("gather", [table, ids], axis=0))
    with pytest.raises((InvalidArgument, Unsupported), match="gather: expected"):
        start(graph).profile()


# --- Relay ----------------------------------------------------------------------------------------

TABLE = random(30, 8)


def embedding(ids, **attrs):
    """Rows of a table, and a layer that reads them."""
    attrs = {"axis": 0, **attrs}
    rows = relay.take(relay.const(TABLE), ids, **attrs)
    return module(relay.nn.relu(relay.nn.dense(rows, const(16, 8, seed=1))))


def run_embedding(mod, indices):
    rows = TABLE[np.clip(indices, 0, len(TABLE) - 1)].astype("float64")
    expected = (rows @ random(16, 8, seed=1).T.astype("float64")).clip(0)
    return fused(check(mod, inputs={"ids": indices}, reference=[expected]))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("mode", ["clip", "fast"])
def test_embedding(dtype, mode):
    mod = embedding(relay.var("ids", shape=(7,), dtype=dtype), mode=mode)
    indices = np.array([3, 29, 0, 3, 17, 8, 1], dtype)
    assert run_embedding(mod, indices) == ["gather", "inner_product:eltwise_relu"]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_indices_outside_are_clipped(dtype):
    """Also those that would be within, if 32 of their bits were taken."""
    mod = embedding(relay.var("ids", shape=(5,), dtype=dtype))
    indices = np.array([-1, 30, 1000, -(2**31), 2**31 - 1], dtype)
    if dtype == "int64":
        indices[2:] = 2**32 + 5, -(2**40) + 7, 2**63 - 1
    assert run_embedding(mod, indices) == ["gather", "inner_product:eltwise_relu"]


@pytest.mark.parametrize("axis", [1, -1, 2])
def test_take_along_an_axis(axis):
    x = random(3, 4, 5)
    indices = np.array([[2, 0], [1, 3], [3, 3]], "int32")
    y = relay.take(var("x", 3, 4, 5), relay.const(indices), axis=axis, mode="clip")
    reference = np.take(x.astype("float64"), indices, axis=axis)
    flat = relay.reshape(y, (1, reference.size))
    w = random(3, reference.size, seed=1)
    mod = module(y, relay.nn.dense(flat, relay.const(w)))
    expected = [reference, reference.reshape(1, -1) @ w.T.astype("float64")]
    assert "gather" in fused(check(mod, inputs={"x": x}, reference=expected))


@pytest.mark.parametrize(
    "take",
    [
        lambda x, i: relay.take(x, i, axis=1, mode="wrap"),
        lambda x, i: relay.take(x, i),  # of all elements
        lambda x, i: relay.take(x, relay.reshape(i, (3, 2)), axis=1, batch_dims=1),
        lambda x, i: relay.take(x, relay.cast(i, "int16"), axis=1),
    ],
    ids=["wrap", "flat", "batch", "int16"],
)
def test_other_takes_stay(take):
    i = relay.const(np.array([0, 3, 2, 1, 3, 3], "int32"))
    y = relay.nn.relu(take(relay.nn.dense(var("x", 3, 6), const(4, 6)), i))
    mod = module(relay.nn.dense(relay.reshape(y, (6, -1)), const(5, int(y_size(y)) // 6)))
    check(mod)
    assert "take" in offloaded(partition_for_dnnl(mod))[1]


def y_size(y):
    return np.prod([int(size) for size in relay.transform.InferTypeLocal(y).shape])


def test_an_embedding_alone_stays():
    """A region needs something that is worth its border."""
    rows = relay.take(relay.const(TABLE), relay.var("ids", shape=(7,), dtype="int32"), axis=0)
    mod = module(relay.add(rows, const(7, 8)))
    assert "take" in offloaded(partition_for_dnnl(mod))[1]


@pytest.mark.parametrize("indices", ["take", "gather", "slice"])
def test_constant_positions_are_folded(indices):
    """As BERT's: of a table, rows that no input says."""
    ids = np.arange(12)[None]
    if indices == "gather":
        ids = relay.gather(relay.const(ids), 1, relay.const(np.arange(2, 9)[None]))
    elif indices == "slice":
        ids = relay.strided_slice(relay.const(ids), [0, 2], [1, 9])
    else:
        ids = relay.take(relay.const(ids), relay.const(np.arange(2, 9)), axis=1)
    ids = relay.repeat(relay.cast(ids, "int32"), 1, 0)
    rows = relay.take(relay.const(TABLE), ids, axis=0)
    x = random(1, 7, 8)
    y = relay.nn.dense(relay.reshape(relay.add(var("x", 1, 7, 8), rows), (7, 8)), const(16, 8))
    expected = (x + TABLE[2:9].astype("float64"))[0] @ random(16, 8).T.astype("float64")
    steps = check(module(y), inputs={"x": x}, reference=[expected])
    assert "gather" not in fused(steps)
