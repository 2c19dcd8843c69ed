"""The quantization of images of three channels: the same numbers, and only where it applies."""

import numpy as np
import pytest
from engine_graph import DTYPES, Graph, run, start
from processor import HAS_BF16, VNNI

pytestmark = pytest.mark.skipif(not VNNI, reason="the kernel needs AVX-512 with VNNI")

SCALE = 0.0071
CHANNELS = 16  # of the result: each of them is one of the image's


def convolved(shape, dtype="u8", zero_point=0, between=None):
    """Return the graph of a convolution that leaves the numbers of images as they are."""
    graph = Graph()
    x = graph.input(*shape)
    if between:
        x = between(graph, x)
    numbers = graph.dequantize(graph.quantize(x, SCALE, zero_point, dtype), SCALE, zero_point)
    kernel = (3,) * (len(shape) - 2)
    weights = np.zeros((CHANNELS, shape[1], *kernel), np.int8)
    for channel in range(CHANNELS):
        weights[(channel, channel % shape[1], *[1] * len(kernel))] = 1
    constant = graph.constant(data=weights, dtype="s8")
    y = graph.convolution(numbers, graph.dequantize(constant, 1.0), padding_l=1, padding_r=1)
    return graph.output(y)


def numbers_of(x, dtype, zero_point):
    """Return what the numbers are, and those that rounding to f32 may make of them."""
    limits = np.iinfo(DTYPES[dtype])
    exact = np.asarray(x, np.float64) / np.float32(SCALE) + zero_point
    near = (exact * (1 - 1e-6), exact * (1 + 1e-6))
    return [np.clip(np.rint(numbers), limits.min, limits.max) - zero_point for numbers in near]


def quantizers(graph, dtype="u8", zero_point=0):
    """Compare the numbers; return the implementations of what made them."""
    engine = start(graph)
    (x,) = graph.input_data
    (got,) = run(engine, graph.input_data, [(x.shape[0], CHANNELS, *x.shape[2:])])
    got = np.rint(got[:, : x.shape[1]] / np.float32(SCALE))
    low, high = numbers_of(x, dtype, zero_point)
    assert ((got == low) | (got == high)).all()
    return [step["impl"] for step in engine.profile()["steps"] if step["kind"] == "quantize"]


@pytest.mark.parametrize(("dtype", "zero_point"), [("u8", 0), ("s8", 0), ("u8", 97), ("s8", -11)])
@pytest.mark.parametrize(
    "shape",
    [
        (1, 3, 224, 224),
        (2, 3, 4, 4),  # one vector
        (3, 3, 5, 7),  # more than two, with pixels in common
        (1, 3, 33, 65),  # more than a thread does at once
    ],
)
def test_images(shape, dtype, zero_point):
    graph = convolved(shape, dtype, zero_point)
    graph.input_data[0] *= 3  # beyond all numbers
    assert quantizers(graph, dtype, zero_point) == ["pixels"]


@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_ties_and_what_is_no_number(dtype):
    limits = np.iinfo(DTYPES[dtype])
    graph = convolved((1, 3, 4, 8), dtype)
    for node in graph.nodes:
        if node["kind"] in ("quantize", "dequantize") and node["attrs"]["scales"] != [1.0]:
            node["attrs"]["scales"] = [0.5]
    x = np.arange(32, dtype=np.float32).reshape(4, 8) / 4
    graph.input_data[0][...] = x
    graph.input_data[0][0, 1, 0, :4] = np.nan, np.inf, -np.inf, 1e38
    (got,) = run(start(graph), graph.input_data, [(1, CHANNELS, 4, 8)])
    assert np.array_equal(got[0, 0] * 2, np.rint(x * 2))
    expected = [limits.min, limits.max, limits.min, limits.max]
    assert np.array_equal(got[0, 1, 0, :4] * 2, expected)


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("shape", [(1, 3, 224, 224), (2, 3, 4, 4), (3, 3, 5, 7), (1, 3, 33, 65)])
def test_floats(shape, precision):
    """A convolution that leaves the images as they are, so that it is seen how they are rounded."""
    if precision == "bf16" and not HAS_BF16:
        pytest.skip("the processor does not compute in bf16")
    graph = Graph()
    graph.precision = precision
    weights = np.zeros((CHANNELS, 3, 3, 3), np.float32)
    for channel in range(CHANNELS):
        weights[channel, channel % 3, 1, 1] = 1
    weights = graph.constant(data=weights)
    # Where its window has no holes, our own kernel for f32 reads the images as they are.
    window = {"padding_l": 2, "padding_r": 2, "dilation": 2}
    graph.output(graph.convolution(graph.input(*shape), weights, **window))
    graph.tune(layout="channels_last")
    (x,) = graph.input_data
    x[0, 0, 0, :4] = 1 + 2.0**-8, 1 + 3 * 2.0**-8, -1 - 2.0**-8, 3e38  # ties, and a large one
    engine = start(graph)
    (got,) = run(engine, graph.input_data, [(shape[0], CHANNELS, *shape[2:])])
    assert np.array_equal(got[:, :3], x.astype(DTYPES[precision]).astype(np.float32))
    first = engine.profile()["steps"][0]
    assert (first["kind"], first["impl"]) == ("reorder", "pixels")
    assert first["dtypes"] == {"src": "f32", "dst": precision}


def test_an_empty_batch():
    graph = convolved((0, 3, 8, 8))
    (got,) = run(start(graph), graph.input_data, [(0, CHANNELS, 8, 8)])
    assert got.shape == (0, CHANNELS, 8, 8)


NEAR_MISSES = {
    "one channel": convolved((1, 1, 9, 9)),
    "four channels": convolved((1, 4, 9, 9)),
    "fewer pixels than a vector": convolved((1, 3, 1, 7)),
    "columns before rows": convolved(
        (1, 3, 9, 9), between=lambda g, x: g.node("transpose", [x], axes=[0, 1, 3, 2])
    ),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name):
    graph = NEAR_MISSES[name]
    if name == "columns before rows":
        x = graph.input_data[0]
        x[...] = x + x.transpose(0, 1, 3, 2)  # so that they are the same
    assert "pixels" not in quantizers(graph)
