"""Poolings of whole numbers that lie channels-last: the same numbers, and only where it applies."""

import numpy as np
import pytest
from engine_graph import (
    DTYPES,
    Graph,
    Unsupported,
    assert_close,
    assert_numbers,
    reference,
    relu,
    run,
    start,
    with_avx2,
)
from processor import OWN_KERNELS, VECTOR

INCLUDE, EXCLUDE = "avg_include_padding", "avg_exclude_padding"
SCALE, TO_SCALE, ZERO_POINT = 0.02, 0.0117, {"u8": 5, "s8": -7}

pytestmark = pytest.mark.skipif(not OWN_KERNELS, reason="the kernels need AVX2")


def average(shape, kernel=(3, 3), alg=EXCLUDE, zero_point=0, dtype="u8", last=True, **window):
    """Return the graph of an average, of numbers that lie channels-last or not."""
    graph = Graph()
    batch, channels, *size = shape
    rank = len(shape)
    if last:
        numbers = graph.node(
            "transpose",
            [graph.input(batch, *size, channels, dtype=dtype)],
            axes=[0, rank - 1, *range(1, rank - 1)],
        )
    else:
        numbers = graph.input(*shape, dtype=dtype)
    mean = graph.pooling(graph.dequantize(numbers, SCALE, zero_point), alg, kernel, **window)
    result = graph.quantize(mean, window_scale(kernel), ZERO_POINT[dtype], dtype)
    if last:
        result = graph.node("transpose", [result], axes=[0, *range(2, rank), 1])
    return graph.output(result)


def maximum(shape, kernel=(3, 3), dtype="u8", last=True, post_ops=(), **window):
    """Return the graph of a maximum of numbers, in f32."""
    graph = Graph()
    batch, channels, *size = shape
    if last:
        numbers = graph.node(
            "transpose", [graph.input(batch, *size, channels, dtype=dtype)], axes=[0, 3, 1, 2]
        )
    else:
        numbers = graph.input(*shape, dtype=dtype)
    x = graph.dequantize(numbers, SCALE, ZERO_POINT[dtype])
    return graph.output(graph.pooling(x, "max", kernel, post_ops, **window))


def window_scale(kernel):
    """Return one that leaves some results to saturate, and gives averages many values."""
    return TO_SCALE / np.prod(kernel) ** 0.5


def steps_of(graph, dtype="u8"):
    """Compare with the reference; return the steps."""
    engine = start(graph)
    expected = reference(graph)
    got = run(engine, graph.input_data, [e.shape for e in expected], DTYPES[dtype])
    assert_numbers(got, expected)
    return engine.profile()["steps"]


SHAPES = [
    ((1, 64, 9, 11), (3, 3), {"padding_l": 1, "padding_r": 1}),
    ((2, 16, 5, 7), (3, 3), {"padding_l": 1, "padding_r": 1}),
    ((1, 83, 6, 6), (2, 3), {"strides": 2}),  # no whole vectors; one of 4, one, and a part
    ((3, 131, 8, 5), (3, 2), {"strides": [1, 2], "padding_l": [2, 0], "padding_r": [0, 1]}),
    ((1, 32, 16, 16), (16, 16), {}),  # as many pixels as have a sum of 16 bits
    ((1, 32, 1, 2), (3, 3), {"padding_l": 1, "padding_r": 1}),
    ((1, 24, 7, 7), (1, 1), {}),
]


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize(("shape", "kernel", "window"), SHAPES)
@pytest.mark.parametrize(("alg", "zero_point"), [(EXCLUDE, 3), (EXCLUDE, 0), (INCLUDE, 0)])
def test_shapes(alg, zero_point, shape, kernel, window, dtype):
    (step,) = steps_of(average(shape, kernel, alg, zero_point, dtype, **window), dtype)
    assert (step["kind"], step["impl"]) == ("pooling", "average")
    assert step["dtypes"] == {"src": dtype, "dst": dtype}


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize(("shape", "kernel", "window"), SHAPES)
def test_maxima(shape, kernel, window, dtype):
    """Exactly the same numbers: of a whole vector of channels, and of less."""
    graph = maximum(shape, kernel, dtype, **window)
    engine = start(graph)
    (expected,) = reference(graph)
    (got,) = run(engine, graph.input_data, [expected.shape])
    assert np.array_equal(np.rint(got / np.float32(SCALE)), np.rint(expected / np.float32(SCALE)))
    steps = [step for step in engine.profile()["steps"] if step["kind"] == "pooling"]
    assert [step["impl"] for step in steps] == ["maximum"]
    assert steps[0]["dtypes"] == {"src": dtype, "dst": dtype}


NO_MAXIMA = {
    "channels first": maximum((1, 32, 9, 11), last=False),
    "fewer channels than a vector": maximum((1, VECTOR - 1, 9, 11)),
    "more pixels than there is room for": maximum((1, 32, 17, 16), (17, 16)),
    "dilation": maximum((1, 32, 9, 11), dilation=2),
    "a post-op": maximum((1, 32, 9, 11), post_ops=[relu(0.1)]),
}


@pytest.mark.parametrize("name", NO_MAXIMA)
def test_near_misses_of_maxima(name):
    graph = NO_MAXIMA[name]
    engine = start(graph)
    expected = reference(graph)
    assert_close(run(engine, graph.input_data, [e.shape for e in expected]), expected)
    assert "maximum" not in [step["impl"] for step in engine.profile()["steps"]]


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("extreme", ["min", "max"])
def test_extremes(extreme, dtype):
    """The largest sums, and results beyond the range of the numbers."""
    graph = average((1, 48, 16, 17), (16, 16), dtype=dtype)
    (data,) = graph.input_data
    data[...] = getattr(np.iinfo(data.dtype), extreme)
    (step,) = steps_of(graph, dtype)
    assert step["impl"] == "average"


def test_scales_of_no_finite_ratio():
    graph = Graph()
    numbers = graph.node("transpose", [graph.input(1, 4, 4, 32, dtype="u8")], axes=[0, 3, 1, 2])
    graph.input_data[0][...] = 0
    mean = graph.pooling(graph.dequantize(numbers, 1e20), EXCLUDE, (2, 2))
    graph.output(graph.quantize(mean, 1e-20, 7))
    (got,) = run(start(graph), graph.input_data, [(1, 32, 3, 3)], np.uint8)
    assert (got == 7).all()


def test_an_empty_image():
    graph = average((1, 32, 0, 8), padding_l=1, padding_r=2)
    with pytest.raises(Unsupported, match="no implementation"):
        start(graph)


def test_ties_go_to_the_even_number():
    graph = Graph()
    x = graph.input(1, 1, 8, 16, dtype="u8")
    graph.input_data[0][...] = np.arange(128).reshape(1, 1, 8, 16)
    numbers = graph.node("transpose", [x], axes=[0, 3, 1, 2])
    mean = graph.pooling(graph.dequantize(numbers, 0.5), EXCLUDE, (1, 2), strides=[1, 2])
    graph.output(graph.quantize(mean, 1.0))  # numbers of 8 … 120 / 2
    engine = start(graph)
    (expected,) = reference(graph)
    (got,) = run(engine, graph.input_data, [expected.shape], np.uint8)
    assert np.array_equal(got, expected)
    assert engine.profile()["steps"][0]["impl"] == "average"


NEAR_MISSES = {
    "channels first": average((1, 32, 9, 11), last=False),
    "fewer channels than a vector": average((1, VECTOR - 1, 9, 11)),
    "more pixels than a sum has bits for": average((1, 32, 17, 16), (17, 16)),
    "one dimension": average((1, 32, 30), (3,)),
    "three dimensions": average((1, 32, 5, 6, 7), (3, 3, 3)),
    "dilation": average((1, 32, 9, 11), dilation=2),
    "a maximum": average((1, 32, 9, 11), alg="max"),
    "zeros that are no zero point": average((1, 32, 9, 11), alg=INCLUDE, zero_point=3),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name):
    assert "average" not in [step["impl"] for step in steps_of(NEAR_MISSES[name])]


@pytest.mark.parametrize("what", ["shapes", "extremes", "ties", "near_misses", "maxima"])
def test_avx2(what):
    with_avx2(__file__, what)
