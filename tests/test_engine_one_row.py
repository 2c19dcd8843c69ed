"""Inner products of one row by our own kernel: the same numbers, and only where it applies."""

import ml_dtypes
import numpy as np
import pytest
from engine_graph import (
    DTYPES,
    OPERATIONS,
    Graph,
    assert_close,
    assert_numbers,
    binary,
    eltwise,
    reference,
    relu,
    run,
    start,
    with_avx2,
)
from processor import HAS_BF16, OWN_KERNELS, VNNI

CLIP = eltwise("clip", -0.7, 1.3)

pytestmark = pytest.mark.skipif(not OWN_KERNELS, reason="the kernels need AVX2")
needs_vnni = pytest.mark.skipif(not VNNI, reason="whole numbers need AVX-512 with VNNI")


def layer(inputs, outputs, bias=True, post_ops=(), rows=1):
    """Return the graph of a layer in f32."""
    graph = Graph()
    tensors = [graph.input(rows, inputs), graph.constant(outputs, inputs)]
    if bias:
        tensors.append(graph.constant(outputs))
    return graph.output(graph.node("inner_product", tensors, post_ops))


def whole_layer(inputs, outputs, src=("u8", 0), dst=("u8", 0), bias=True, post_ops=(), scales=None):
    """Return the graph of a layer of numbers, (dtype, zero point) each; dst may be None for f32."""
    graph = Graph()
    x = graph.dequantize(graph.input(1, inputs, dtype=src[0]), 0.02, src[1])
    if scales is None:
        scales = np.geomspace(1e-5, 1e-3, outputs)
    tensors = [x, graph.dequantize(graph.constant(outputs, inputs, dtype="s8"), scales)]
    if bias:
        tensors.append(graph.constant(outputs))
    y = graph.node("inner_product", tensors, post_ops)
    return graph.output(graph.quantize(y, 0.023, dst[1], dst[0]) if dst else y)


def impls_of(graph, dtype="f32"):
    """Compare with the reference; return the implementations, but of reorders."""
    engine = start(graph)
    expected = reference(graph)
    got = run(engine, graph.input_data, [e.shape for e in expected], DTYPES[dtype])
    if dtype == "f32":
        assert_close(got, expected)
    else:
        assert_numbers(got, expected)
    return [step["impl"] for step in engine.profile()["steps"] if step["kind"] != "reorder"]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("post_ops", [[], [relu()], [CLIP]], ids=["", "relu", "clip"])
@pytest.mark.parametrize(
    "size", [(1024, 1000), (16, 1024), (2048, 8), (1003, 123), (7, 4001), (513, 129)]
)
def test_floats(size, post_ops, bias):
    assert impls_of(layer(*size, bias, post_ops)) == ["one_row"]


def rounded(x):
    return x.astype(ml_dtypes.bfloat16).astype(np.float64)


@pytest.mark.skipif(not HAS_BF16, reason="the processor does not compute in bf16")
@pytest.mark.parametrize("size", [(1024, 1000), (16, 2048), (1003, 123)])
def test_bf16(size):
    """The layer between two others leaves its result in bf16; the last one's is in f32."""
    inputs, outputs = size
    graph = Graph()
    graph.precision = "bf16"
    y = graph.input(1, inputs)
    for m, n, post_ops in [(inputs, outputs, [relu()]), (outputs, 517, [CLIP]), (517, 256, [])]:
        tensors = [y, graph.constant(n, m, data=graph.random.normal(0, m**-0.5, (n, m)))]
        y = graph.node("inner_product", [*tensors, graph.constant(n)], post_ops)
    graph.output(y)
    engine = start(graph)
    expected = graph.input_data[0].astype(np.float64)
    weights, biases = graph.constant_data[::2], graph.constant_data[1::2]
    for node, w, b in zip(graph.nodes, weights, biases, strict=True):
        expected = OPERATIONS["inner_product"]({}, rounded(expected), rounded(w), b)
        for op in node.get("post_ops", ()):
            expected = OPERATIONS["eltwise"](op, expected)
    (got,) = run(engine, graph.input_data, [expected.shape])
    assert_close([got], [expected], 3e-3)  # of a sum by an ulp, bf16 may be another number
    steps = [step for step in engine.profile()["steps"] if step["kind"] == "inner_product"]
    assert [step["impl"] for step in steps] == ["one_row"] * 3
    assert [step["dtypes"]["dst"] for step in steps] == ["bf16", "bf16", "f32"]
    assert {step["dtypes"]["weights"] for step in steps} == {"bf16"}


@needs_vnni
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("post_ops", [[], [relu()], [CLIP]], ids=["", "relu", "clip"])
@pytest.mark.parametrize("dst", ["u8", "s8", None])
@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("size", [(1024, 256), (1003, 123)])
def test_whole_numbers(size, src, dst, post_ops, bias):
    graph = whole_layer(*size, (src, 0), dst and (dst, 0), bias, post_ops)
    assert impls_of(graph, dst or "f32") == ["one_row"]


@needs_vnni
@pytest.mark.parametrize(
    ("src", "dst"),
    [(("u8", 7), None), (("s8", -5), ("u8", 0)), (("u8", 0), ("u8", 131)), (("s8", 0), ("s8", 9))],
)
def test_zero_points(src, dst):
    """oneDNN's: such a layer is a matmul."""
    graph = whole_layer(1024, 256, src, dst)
    assert "one_row" not in impls_of(graph, dst[0] if dst else "f32")


@needs_vnni
@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("weight", [-128, 127])
@pytest.mark.parametrize("extreme", ["min", "max"])
def test_the_largest_sums(extreme, weight, src):
    graph = whole_layer(1 << 16, 24, (src, 0), None, scales=[1e-6])
    graph.input_data[0][...] = getattr(np.iinfo(DTYPES[src]), extreme)
    graph.constant_data[0][...] = weight
    assert impls_of(graph) == ["one_row"]


@needs_vnni
def test_sums_are_exact():
    graph = whole_layer(4096, 64, ("u8", 0), ("s8", 0), bias=False, scales=[1.0])
    graph.nodes[-1]["attrs"]["scales"] = [0.02]
    graph.input_data[0][...] = 255
    graph.input_data[0][0, -1] = 1
    weights = graph.constant_data[0]
    weights[:, ::2], weights[:, 1::2] = 127, -127
    weights[:, -2], weights[:, -1] = 0, np.arange(64)
    (got,) = run(start(graph), graph.input_data, [(1, 64)], np.int8)
    assert np.array_equal(got.ravel(), np.arange(64))


def test_what_is_no_number():
    """It stays none, but a ReLU makes 0 of it; infinity stays."""
    for post_ops, expected in ([], np.nan), ([relu()], 0.0):
        graph = layer(1024, 64, post_ops=post_ops)
        graph.input_data[0][0, 5] = np.nan
        (got,) = run(start(graph), graph.input_data, [(1, 64)])
        assert np.array_equal(got, np.full((1, 64), expected), equal_nan=True)
    graph = layer(1024, 64)
    graph.input_data[0][0, 5] = np.inf
    (got,) = run(start(graph), graph.input_data, [(1, 64)])
    assert np.array_equal(got[0], np.sign(graph.constant_data[0][:, 5]) * np.inf)


def test_a_choice_of_another_is_kept_to():
    graph = layer(1024, 256).tune(implementations=[[0, "x64:gemm:jit"]])
    assert impls_of(graph) == ["x64:gemm:jit"]


def with_weights_of_an_input():
    graph = Graph()
    return graph.output(graph.node("inner_product", [graph.input(1, 1024), graph.input(256, 1024)]))


def with_an_addend():
    graph = Graph()
    tensors = [graph.input(1, 1024), graph.constant(256, 1024)]
    post_ops = [binary("add", graph.input(1, 256))]
    return graph.output(graph.node("inner_product", tensors, post_ops))


NEAR_MISSES = {
    "two rows": layer(1024, 256, rows=2),
    "few weights": layer(128, 64),
    "few rows of weights": layer(8192, 7),
    "weights that are an input": with_weights_of_an_input(),
    "an addend": with_an_addend(),
    "a leaky ReLU": layer(1024, 256, post_ops=[relu(0.1)]),
    "another activation": layer(1024, 256, post_ops=[eltwise("tanh")]),
    "two post-ops": layer(1024, 256, post_ops=[CLIP, relu()]),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name):
    assert "one_row" not in impls_of(NEAR_MISSES[name])


@needs_vnni
def test_more_products_than_a_sum_has_bits_for():
    graph = whole_layer((1 << 16) + 1, 8, dst=None, scales=[1e-6])
    assert "one_row" not in impls_of(graph)


@pytest.mark.parametrize("what", ["floats", "no_number", "near_misses"])
def test_avx2(what):
    with_avx2(__file__, what)
