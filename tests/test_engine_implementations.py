"""Other implementations than oneDNN's first, by name."""

import json

import numpy as np
import pytest
from engine_graph import Engine, Graph, check, pack, reference, relu

ROWS, INPUTS, UNITS = 3, 40, 24


def dense(graph, x, units=UNITS, inputs=INPUTS, **attrs):
    weights, bias = graph.constant(units, inputs), graph.constant(units)
    return graph.node("inner_product", [x, weights, bias], **attrs)


def one_dense():
    graph = Graph()
    graph.output(dense(graph, graph.input(ROWS, INPUTS), post_ops=[relu()]))
    return graph


def one_matmul():
    graph = Graph()
    x = graph.input(2, ROWS, INPUTS)
    graph.output(graph.node("matmul", [x, graph.input(2, INPUTS, UNITS)], post_ops=[relu()]))
    return graph


def one_convolution():
    graph = Graph()
    x = graph.convolution(graph.input(1, 32, 7, 9), (32, 32, 1, 1), post_ops=[relu()])
    graph.output(graph.convolution(x, (32, 32, 1, 1)))
    return graph


GRAPHS = [one_dense, one_matmul, one_convolution]
KINDS = ["brgemm", "brg", "brgconv_1x1", "jit_1x1", "jit"]
NAMES = [
    *(f"{kind}:{isa}" for kind in KINDS for isa in ("avx512_core", "avx2", "sse41")),
    *("x64:gemm:jit", "gemm:jit:f32"),
]


def implementations(graph):
    """Return oneDNN's name for each node."""
    return [step["impl"] for step in check(graph).steps]


@pytest.mark.parametrize("make", GRAPHS)
def test_each_other_implementation(make):
    """What a build may choose gives the same numbers, and is what runs."""
    first = implementations(make().tune("channels_last"))[0]
    others = set()
    for name in NAMES:
        graph = make().tune("channels_last", implementations=[[0, name]])
        ran = implementations(graph)[0]
        assert ran in (first, name)
        others |= {ran} - {first}
    assert others


def test_only_the_node_that_is_named():
    graph = Graph()
    x = dense(graph, graph.input(ROWS, INPUTS), INPUTS)
    graph.output(dense(graph, x))
    first, second = implementations(graph)
    assert first == second
    chosen = implementations(graph.tune(implementations=[[1, "x64:gemm:jit"]]))
    assert chosen == [first, "x64:gemm:jit"]


@pytest.mark.parametrize("name", ["", "no such", "ref:any"])
def test_a_name_of_none_that_is_fast(name):
    assert implementations(one_dense().tune(implementations=[[0, name]])) == implementations(
        one_dense()
    )


def test_an_implementation_in_another_layout_is_not_taken():
    """It would cost a reorder: it is not what was measured."""
    blocked = implementations(one_convolution().tune("blocked"))
    plain = [[i, "x64:gemm:jit"] for i in range(2)]
    assert implementations(one_convolution().tune("blocked", implementations=plain)) == blocked


def test_what_is_measured_is_what_runs():
    """oneDNN's first is slow to read large weights for a single row."""
    graph = Graph()
    graph.output(dense(graph, graph.input(1, 4096), 1024, 4096))
    (expected,) = reference(graph)
    text, packed = pack(graph, graph.constant_data, tune="layouts")
    chosen = dict(json.loads(text).get("tuned", {}).get("implementations", []))
    engine = Engine(text)
    engine.set_constants(packed)
    result = np.empty(expected.shape, np.float32)
    engine.run_into(graph.input_data, [result])
    np.testing.assert_allclose(result, expected, atol=1e-5 * np.abs(expected).max())
    (step,) = engine.profile()["steps"]
    assert step["impl"] == chosen.get(0, implementations(graph)[0])
