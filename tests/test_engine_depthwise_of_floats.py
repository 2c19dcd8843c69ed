"""Depthwise convolutions of floats by our own kernel: the same, and only where it applies."""

import numpy as np
import pytest
from engine_graph import Graph, binary, eltwise, one_thread, relu, run, start
from networks_of_floats import steps_of, with_whole_numbers
from processor import AVX512

pytestmark = pytest.mark.skipif(not AVX512, reason="the kernel needs AVX-512")

CLIP = eltwise("clip", -6.0, 17.0)
LAYOUTS = ["channels_last", "blocked"]


def depthwise(
    shape=(1, 32, 7, 9), layout="channels_last", kernel=3, bias=True, post_ops=(), **more
):
    """Return the graph of a convolution of each channel for itself, of exact numbers."""
    graph = Graph()
    window = {"padding_l": 1, "padding_r": 1, "groups": shape[1], **more}
    outputs = shape[1] * window.pop("multiplier", 1)
    weights = graph.constant(outputs, shape[1] // window["groups"], kernel, kernel)
    number = graph.constant(outputs) if bias else None
    graph.output(graph.convolution(graph.input(*shape), weights, number, post_ops, **window))
    with_whole_numbers(graph.tune(layout))
    # More than one tap.
    graph.constant_data[0][...] = graph.random.integers(-2, 3, graph.constant_data[0].shape)
    return graph


def implementations(graph):
    return [step["impl"] for step in steps_of(graph)]


SHAPES = {
    "pairs of rows": ((1, 32, 8, 6), {}),
    "a row more": ((2, 48, 7, 9), {}),
    "one row": ((1, 16, 1, 9), {}),
    "one column": ((1, 16, 9, 1), {}),
    "hardly more than padding": ((1, 32, 2, 1), {"padding_l": 5, "padding_r": 5}),
    "no padding": ((1, 64, 9, 11), {"padding_l": 0, "padding_r": 0}),
    "padding here and there": ((1, 32, 9, 8), {"padding_l": [0, 2], "padding_r": [3, 1]}),
    "much padding": ((1, 16, 3, 4), {"padding_l": [7, 4], "padding_r": [4, 7]}),
    "many channels": ((1, 16 * 35, 5, 6), {}),
    "strides": ((1, 32, 9, 11), {"strides": 2}),
    "strides, no rest": ((2, 48, 8, 10), {"strides": 2}),
    "strides, no padding": ((1, 32, 9, 12), {"strides": 2, "padding_l": 0, "padding_r": 0}),
    "strides, padding at the end": (
        (1, 32, 8, 8),
        {"strides": 2, "padding_l": 0, "padding_r": 1},
    ),
    "strides, much padding": ((1, 16, 4, 3), {"strides": 2, "padding_l": 6, "padding_r": 5}),
    "strides, one pixel of dst": ((1, 16, 2, 2), {"strides": 2}),
}


@pytest.mark.parametrize("threads", ["one thread", "all"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, layout, threads):
    shape, window = SHAPES[name]
    graph = depthwise(shape, layout, **window)
    if threads == "all":
        steps = steps_of(graph)
    else:
        with one_thread():
            steps = steps_of(graph)
    (step,) = steps
    assert (step["kind"], step["impl"]) == ("convolution", "depthwise")
    if min(shape[2:]) > 1:  # else layouts are the same
        assert step["layouts"]["src"] == {"channels_last": "acdb", "blocked": "aBcd16b"}[layout]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("post_op", [None, relu(), CLIP], ids=["", "relu", "clip"])
@pytest.mark.parametrize("strides", [1, 2])
def test_post_ops(post_op, strides, bias):
    graph = depthwise(bias=bias, post_ops=[post_op] if post_op else [], strides=strides)
    assert implementations(graph) == ["depthwise"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("strides", [1, 2])
def test_what_is_no_number(strides, value):
    """It stays in its channel and its windows; no number stays none, whatever follows."""
    for post_op in relu(), CLIP:
        graph = depthwise((1, 32, 8, 10), strides=strides, post_ops=[post_op])
        shape = (1, 32, 8 // strides, 10 // strides)
        graph.constant_data[0][3] = 1
        engine = start(graph)
        (without,) = run(engine, graph.input_data, [shape])
        graph.input_data[0][0, 3, 4, 6] = value
        (got,) = run(engine, graph.input_data, [shape])
        row, column = 4 // strides, 6 // strides
        if np.isnan(value):
            assert np.isnan(got[0, 3, row, column])
        far = np.ones(shape, bool)
        far[0, 3, row - 1 : row + 2, column - 1 : column + 2] = False
        assert np.array_equal(got[far], without[far])
    assert "depthwise" in [step["impl"] for step in engine.profile()["steps"]]


def test_zeros_around_an_infinite_weight():
    """Padding is left out, and not multiplied."""
    graph = depthwise((1, 16, 4, 4))
    graph.constant_data[0][:, :, 0, :] = np.inf
    graph.input_data[0][...] = 1
    (got,) = run(start(graph), graph.input_data, [(1, 16, 4, 4)])
    assert np.isfinite(got[:, :, 0]).all()
    assert np.isinf(got[:, :, 1:]).all()


def test_an_empty_batch():
    graph = depthwise((0, 32, 5, 5))
    (got,) = run(start(graph), graph.input_data, [(0, 32, 5, 5)])
    assert got.shape == (0, 32, 5, 5)


def test_a_choice_of_another_is_kept_to():
    graph = depthwise()
    graph.tune("channels_last", implementations=[[0, "jit_dw:avx512_core"]])
    assert implementations(graph) == ["jit_dw:avx512_core"]


def with_an_addend():
    graph = Graph()
    x = graph.input(1, 32, 7, 9)
    window = {"groups": 32, "padding_l": 1, "padding_r": 1}
    graph.output(graph.convolution(x, (32, 1, 3, 3), None, [binary("add", x)], **window))
    return with_whole_numbers(graph.tune("channels_last"))


NEAR_MISSES = {
    "channels not in vectors": lambda: depthwise((1, 24, 7, 9)),
    "another kernel": lambda: depthwise(kernel=5, padding_l=2, padding_r=2),
    "other strides": lambda: depthwise(strides=3),
    "two strides": lambda: depthwise(strides=[1, 2]),
    "holes in the window": lambda: depthwise(dilation=2, padding_l=2, padding_r=2),
    "more channels of dst": lambda: depthwise(multiplier=2),
    "groups of two": lambda: depthwise(groups=16),
    "a leaky ReLU": lambda: depthwise(post_ops=[relu(0.5)]),
    "two post-ops": lambda: depthwise(post_ops=[CLIP, relu()]),
    "an addend": with_an_addend,
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name):
    assert "depthwise" not in implementations(NEAR_MISSES[name]())
