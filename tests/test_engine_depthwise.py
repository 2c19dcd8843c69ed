"""Depthwise convolutions of whole numbers: the same numbers, and only where it applies."""

import numpy as np
import pytest
from convolution_of_numbers import CLIP, SHARED, convolution, steps_of, two_that_share
from engine_graph import (
    DTYPES,
    Graph,
    binary,
    eltwise,
    relu,
    run,
    start,
)
from processor import VNNI

pytestmark = pytest.mark.skipif(not VNNI, reason="the kernel needs AVX-512 with VNNI")


def depthwise(shape, kernel=3, *args, multiplier=1, **kwargs):
    """Return the graph of a convolution of each channel for itself."""
    weights = (shape[1] * multiplier, 1, *(kernel if isinstance(kernel, tuple) else (kernel,) * 2))
    return convolution(shape, weights, *args, groups=shape[1], **kwargs)


SHAPES = {
    "a block": ((1, 64, 9, 11), {"padding_l": 1, "padding_r": 1}),
    "half a block": ((2, 32, 8, 5), {"padding_l": 1, "padding_r": 1}),
    "less than half a block": ((1, 17, 6, 9), {"padding_l": [0, 1], "padding_r": [1, 2]}),
    "more than half a block": ((1, 45, 9, 9), {"padding_l": 2}),
    "blocks, and half a one": ((2, 144, 10, 7), {"padding_l": 1, "padding_r": 1}),
    "blocks, and more": ((1, 116, 9, 8), {"strides": 2, "padding_l": 3, "padding_r": 1}),
    "many columns": ((1, 24, 7, 150), {"padding_l": 3, "padding_r": 3}),
    "many columns, strides": ((1, 24, 8, 150), {"strides": [1, 3], "padding_r": 2}),
    "strides of rows": ((1, 64, 13, 9), {"strides": [2, 1], "padding_l": [1, 2]}),
    "strides that skip rows": ((1, 64, 23, 23), {"strides": 9, "padding_l": 1}),
    "nothing but padding": ((1, 32, 1, 1), {"padding_l": 5, "padding_r": 5}),
}


@pytest.mark.parametrize(("src", "dst"), [(("u8", 0), ("u8", 0)), (("s8", -3), ("s8", 5))])
@pytest.mark.parametrize("kernel", [3, 5, 7])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, kernel, src, dst):
    shape, window = SHAPES[name]
    if any(size + 2 < kernel for size in shape[2:]):
        window = {**window, "padding_l": 4, "padding_r": 4}
    (step,) = steps_of(depthwise(shape, kernel, src, dst, **window), dst[0])
    assert (step["kind"], step["impl"]) == ("convolution", "depthwise")
    assert step["dtypes"] == {"src": src[0], "weights": "s8", "dst": dst[0]}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("post_ops", [[], [relu()], [CLIP]], ids=["", "relu", "clip"])
@pytest.mark.parametrize("dst", [("u8", 0), ("u8", 131), ("s8", -128), ("s8", 9)])
@pytest.mark.parametrize("src", [("u8", 255), ("u8", 7), ("s8", 0), ("s8", 127)])
def test_what_numbers_stand_for(src, dst, post_ops, bias):
    """Zero points with asymmetric padding are right at the rim."""
    window = {"padding_l": [2, 0], "padding_r": [1, 2]}
    graph = depthwise((1, 83, 7, 9), 3, src, dst, bias, post_ops, **window)
    (step,) = steps_of(graph, dst[0])
    assert (step["impl"], step["dtypes"]["dst"]) == ("depthwise", dst[0])


@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("weight", [-128, 127])
@pytest.mark.parametrize("extreme", ["min", "max"])
def test_extremes(extreme, weight, src):
    """The largest sums, which have more than 16 bits, and results beyond all numbers."""
    graph = depthwise((1, 64, 9, 9), 7, (src, 0), ("s8", 0), scales=np.geomspace(1e-6, 1e6, 64))
    graph.input_data[0][...] = getattr(np.iinfo(DTYPES[src]), extreme)
    graph.constant_data[0][...] = weight
    (step,) = steps_of(graph, "s8")
    assert step["impl"] == "depthwise"


def test_sums_are_exact():
    """Large products that cancel each other: what is left is a small number."""
    graph = depthwise((1, 64, 3, 3), 3, ("u8", 0), ("s8", 0), bias=False, scales=[1.0])
    graph.nodes[-1]["attrs"]["scales"] = [0.02]
    graph.input_data[0][...] = 255
    weights = graph.constant_data[0]
    weights[...] = np.array([127, -127, 126, -126, 101, -101, 0, 0, 0]).reshape(1, 1, 3, 3)
    graph.input_data[0][:, :, 2, 2] = np.arange(64)
    weights[:, :, 2, 2] = 1
    engine = start(graph)
    (got,) = run(engine, graph.input_data, [(1, 64, 1, 1)], np.int8)
    assert np.array_equal(got.ravel(), np.arange(64))


def test_ties_go_to_the_even_number():
    graph = depthwise((1, 64, 3, 3), 3, dst=("u8", 0), bias=False, scales=[1.0])
    graph.nodes[-1]["attrs"]["scales"] = [0.04]  # two steps of src
    graph.input_data[0][...] = 0
    graph.input_data[0][:, :, 1, 1] = np.arange(64)
    graph.constant_data[0][...] = 1
    (got,) = run(start(graph), graph.input_data, [(1, 64, 1, 1)], np.uint8)
    assert np.array_equal(got.ravel(), np.rint(np.arange(64) / 2))


@pytest.mark.parametrize("name", SHARED)
def test_two_that_share_their_constants(name):
    """What is arranged for one is not taken for the other."""
    windows = ({"strides": 2}, {"strides": 3}) if name == "alike" else ({}, {})
    graph = two_that_share(name, (64, 1, 5, 5), windows, groups=64)
    assert [step["impl"] for step in steps_of(graph)] == ["depthwise"] * 2


def test_what_is_no_number():
    """A bias of none makes the least number, or what a clip leaves of that."""
    for post_ops, expected in ([], 0), ([relu()], 9), ([eltwise("clip", 0.5, 1.0)], 31):
        graph = depthwise((1, 32, 5, 5), dst=("u8", 9), post_ops=post_ops)
        graph.constant_data[1][...] = np.nan
        engine = start(graph)
        (got,) = run(engine, graph.input_data, [(1, 32, 3, 3)], np.uint8)
        assert (got == expected).all()
        assert "depthwise" in [step["impl"] for step in engine.profile()["steps"]]


def test_a_scale_without_an_inverse():
    graph = depthwise((1, 32, 5, 5))
    graph.nodes[-1]["attrs"]["scales"] = [float(np.float32(1e-42))]
    assert "depthwise" not in [step["impl"] for step in steps_of(graph)]


def test_a_choice_of_another_is_kept_to():
    graph = depthwise((1, 64, 9, 11), padding_l=1, padding_r=1)
    node = next(i for i, node in enumerate(graph.nodes) if node["kind"] == "convolution")
    graph.tune(implementations=[[node, "brdgmm_dw:avx512_core_vnni"]])
    (step,) = steps_of(graph)
    assert step["impl"] == "brdgmm_dw:avx512_core_vnni"


NEAR_MISSES = {
    "fewer channels": depthwise((1, 15, 9, 11)),
    "another edge": depthwise((1, 32, 9, 11), 4),
    "unequal edges": depthwise((1, 32, 9, 11), (3, 5)),
    "dilation": depthwise((1, 32, 9, 11), dilation=2),
    "a multiplier": depthwise((1, 16, 9, 11), multiplier=2),
    "a leaky ReLU": depthwise((1, 32, 9, 11), post_ops=[relu(0.1)]),
    "another activation": depthwise((1, 32, 9, 11), post_ops=[eltwise("tanh")]),
    "two post-ops": depthwise((1, 32, 9, 11), post_ops=[CLIP, relu()]),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name):
    assert "depthwise" not in [step["impl"] for step in steps_of(NEAR_MISSES[name])]


def test_results_in_single_precision():
    (step,) = steps_of(depthwise((1, 32, 9, 11), whole=False), "f32")
    assert step["impl"] != "depthwise"


def test_an_addend():
    graph = Graph()
    x = graph.dequantize(graph.input(1, 32, 9, 9, dtype="u8"), 0.02)
    addend = graph.input(1, 32, 7, 7)
    weights = graph.dequantize(graph.constant(32, 1, 3, 3, dtype="s8"), [0.01])
    y = graph.convolution(x, weights, None, [binary("add", addend)], groups=32)
    graph.output(graph.quantize(y, 0.05, 0, "u8"))
    assert "depthwise" not in [step["impl"] for step in steps_of(graph)]
