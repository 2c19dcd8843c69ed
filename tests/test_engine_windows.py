"""Convolutions of floats by our own kernel: the same numbers, and only where it applies."""

import json

import numpy as np
import pytest
from engine_graph import Graph, binary, eltwise, one_thread, pack, reference, relu, run, start
from networks_of_floats import between, convolution, steps_of, with_whole_numbers
from processor import AVX512, HAS_BF16

pytestmark = pytest.mark.skipif(not AVX512, reason="the kernel needs AVX-512")

CLIP = eltwise("clip", -6.0, 17.0)


def implementations(steps):
    return [step["impl"] for step in steps]


def in_f32(make, *args, **kwargs):
    return between(make, *args, precision="f32", **kwargs)


def windows(graph, x, channels=32, out=64, kernel=(3, 3), **kwargs):
    return convolution(graph, x, channels, out, kernel, **kwargs)


SAME = {"padding_l": 1, "padding_r": 1}
SHAPES = {
    "3 x 3": ((1, 32, 7, 9), 64, (3, 3), SAME),
    "no padding": ((2, 48, 8, 6), 64, (3, 3), {}),
    "padding at the end": ((1, 32, 8, 8), 64, (3, 3), {"padding_r": 1}),
    "padding here and there": (
        (1, 16, 9, 8),
        128,
        (2, 5),
        {"padding_l": [0, 3], "padding_r": [2, 0]},
    ),
    "much padding": ((1, 16, 3, 2), 64, (3, 3), {"padding_l": [7, 4], "padding_r": [3, 8]}),
    "strides": ((1, 32, 9, 12), 64, (3, 3), {"strides": 2, **SAME}),
    "strides that skip pixels": ((1, 32, 12, 11), 64, (1, 2), {"strides": [3, 4]}),
    "1 x 1 with strides": ((2, 32, 8, 10), 80, (1, 1), {"strides": 2}),
    "a column": ((1, 20, 9, 5), 64, (7, 1), {"padding_l": [3, 0], "padding_r": [3, 0]}),
    "a row": ((3, 20, 5, 9), 64, (1, 7), {"padding_l": [0, 3], "padding_r": [0, 3]}),
    "a vector": ((1, 32, 7, 9), 16, (3, 3), SAME),
    "a part of two vectors": ((1, 32, 7, 9), 24, (3, 3), SAME),
    "three vectors of a second block": ((1, 32, 7, 9), 64 + 48, (3, 3), SAME),
    "chains": ((1, 128, 5, 6), 64, (3, 3), SAME),
    "rows longer than a chain": ((1, 304, 4, 5), 64, (3, 3), SAME),
    "many pixels": ((1, 16, 40, 70), 64, (3, 3), SAME),
    "few channels": ((1, 5, 9, 11), 32, (3, 3), SAME),
}


@pytest.mark.parametrize("threads", ["one thread", "all"])
@pytest.mark.parametrize("adds", [False, True], ids=["alone", "adds"])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, adds, threads):
    shape, out, kernel, window = SHAPES[name]

    def make(graph, x):
        post_ops = ()
        if adds:
            other = windows(graph, x, shape[1], out, kernel, bias=False, **window)
            post_ops = [binary("add", other)]
        return windows(graph, x, shape[1], out, kernel, post_ops=post_ops, **window)

    graph = in_f32(make, shape, out)
    if threads == "all":
        steps = steps_of(graph)
    else:
        with one_thread():
            steps = steps_of(graph)
    ours = [step for step in steps if step["impl"] == "windows"]
    assert len(ours) == 1 + adds
    assert ours[-1]["post_ops"] == ("sum" if adds else "")


PLANES = {
    "a MobileNet's": ((1, 3, 32, 40), (3, 3), {"strides": 2, **SAME}),
    "a ResNet's": ((2, 3, 33, 47), (7, 7), {"strides": 2, "padding_l": 3, "padding_r": 3}),
    "an Inception's": ((1, 3, 31, 35), (3, 3), {"strides": 2}),
    "narrow": ((1, 3, 9, 5), (3, 3), SAME),
    "much padding": ((1, 3, 4, 20), (3, 3), {"padding_l": [6, 5], "padding_r": [5, 9]}),
    "1 x 1": ((1, 3, 9, 17), (1, 1), {"strides": [2, 1]}),
}


@pytest.mark.parametrize("out", [64, 32, 24])
@pytest.mark.parametrize("name", PLANES)
def test_images_of_three_channels(name, out):
    """They are read as they are."""
    shape, kernel, window = PLANES[name]
    graph = Graph()
    x = windows(graph, graph.input(*shape), 3, out, kernel, post_ops=[relu()], **window)
    graph.output(graph.convolution(x, (out, 1, 3, 3), None, groups=out, **SAME))
    steps = steps_of(with_whole_numbers(graph.tune("channels_last")))
    assert [step["impl"] for step in steps].count("windows") == 1
    (first,) = (step for step in steps if step["impl"] == "windows")
    assert (first["layouts"]["src"], first["layouts"]["dst"]) == ("abcd", "acdb")
    assert steps[0] is first


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("adds", [False, True], ids=["alone", "adds"])
@pytest.mark.parametrize("post_op", [None, relu(), CLIP], ids=["", "relu", "clip"])
def test_post_ops(post_op, adds, bias):
    def make(graph, x):
        post_ops = [post_op] if post_op else []
        if adds:
            other = graph.eltwise(windows(graph, x, **SAME), "linear", 2.0, 1.0)
            post_ops.insert(0, binary("add", other))
        return windows(graph, x, bias=bias, post_ops=post_ops, **SAME)

    assert implementations(steps_of(in_f32(make))).count("windows") == 1 + adds


def test_long_sums():
    """No more digits are lost than where a few hundred products are added up apart."""
    graph = in_f32(lambda g, x: windows(g, x, 512, **SAME), (1, 512, 7, 9))
    rng = np.random.default_rng(1)
    for array in graph.input_data + graph.constant_data:
        if array.ndim == 4 and array.shape[1] > 1:
            array[...] = rng.random(array.shape)
    engine = start(graph)
    (expected,) = reference(graph)
    (got,) = run(engine, graph.input_data, [expected.shape])
    assert "windows" in implementations(engine.profile()["steps"])
    assert np.abs(got - expected).max() <= 2e-6 * np.abs(expected).max()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number(value):
    """It stays in its windows, whatever follows."""
    for post_op in relu(), CLIP:
        graph = in_f32(lambda g, x, op=post_op: windows(g, x, post_ops=[op], **SAME), (1, 32, 9, 9))
        engine = start(graph)
        (without,) = run(engine, graph.input_data, [(1, 64, 9, 9)])
        graph.input_data[0][0, 3, 2, 2] = value
        (got,) = run(engine, graph.input_data, [(1, 64, 9, 9)])
        assert "windows" in implementations(engine.profile()["steps"])
        far = np.ones((9, 9), bool)
        far[:6, :6] = False
        assert np.array_equal(got[:, :, far], without[:, :, far])


def test_an_empty_batch():
    graph = in_f32(lambda g, x: windows(g, x, **SAME), (0, 32, 5, 5))
    (got,) = run(start(graph), graph.input_data, [(0, 64, 5, 5)])
    assert got.shape == (0, 64, 5, 5)


def test_weights_are_packed_at_build():
    """They are the caller's memory then, not a copy."""
    graph = in_f32(lambda g, x: windows(g, x, **SAME))
    text, packed = pack(graph, graph.constant_data, tune="nothing")
    tags = [c.get("packed", {}).get("tag") for c in json.loads(text)["constants"]]
    assert "Acdb64a" in tags
    assert len(packed) == len(graph.constants)


def test_a_choice_of_another_is_kept_to():
    graph = in_f32(lambda g, x: windows(g, x, **SAME))
    node = next(i for i, n in enumerate(graph.nodes) if n["attrs"].get("groups", 1) == 1)
    graph.tune("channels_last", implementations=[[node, "brgconv:avx512_core"]])
    assert implementations(steps_of(graph))[node] == "brgconv:avx512_core"


NEAR_MISSES = {
    "two channels": lambda: in_f32(lambda g, x: windows(g, x, 2, **SAME), (1, 2, 7, 9)),
    "holes in the window": lambda: in_f32(
        lambda g, x: windows(g, x, dilation=2, padding_l=2, padding_r=2)
    ),
    "groups": lambda: in_f32(lambda g, x: windows(g, x, groups=2, **SAME)),
    "a leaky ReLU": lambda: in_f32(lambda g, x: windows(g, x, post_ops=[relu(0.5)], **SAME)),
    "two post-ops": lambda: in_f32(lambda g, x: windows(g, x, post_ops=[CLIP, relu()], **SAME)),
    "an addend for each channel": lambda: in_f32(
        lambda g, x: windows(g, x, post_ops=[binary("add", g.constant(1, 64, 1, 1))], **SAME)
    ),
    "weights from outside": lambda: in_f32(
        lambda g, x: g.convolution(x, g.input(64, 32, 3, 3), g.constant(64), **SAME)
    ),
    "a single pixel": lambda: in_f32(lambda g, x: windows(g, x, kernel=(1, 1))),
    "another layout": lambda: in_f32(lambda g, x: windows(g, x, **SAME), layout="blocked"),
}


if HAS_BF16:  # else it is computed in f32
    NEAR_MISSES["bf16"] = lambda: between(lambda g, x: windows(g, x, **SAME), precision="bf16")


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name):
    assert "windows" not in implementations(steps_of(NEAR_MISSES[name]()))
