"""Convolutions of whole numbers by Winograd's algorithm: exact, and only where it applies."""

import json

import numpy as np
import pytest
from convolution_of_numbers import (
    CLIP,
    PADDED,
    SHARED,
    convolution,
    set_scales,
    steps_of,
    two_that_share,
)
from engine_graph import (
    DTYPES,
    Graph,
    assert_numbers,
    binary,
    eltwise,
    one_thread,
    pack,
    reference,
    relu,
    run,
    start,
)
from processor import AMX, VNNI

pytestmark = pytest.mark.skipif(not VNNI, reason="the kernel needs AVX-512 with VNNI")


def winograd(shape, out=32, kernel=(3, 3), *args, groups=1, **kwargs):
    return convolution(shape, (out, shape[1] // groups, *kernel), *args, groups=groups, **kwargs)


def tuned(graph, tile=4, chunk=0):
    nodes = enumerate(graph.nodes)
    convolutions = [i for i, node in nodes if node["kind"] == "convolution"]
    return graph.tune(winograd=[[node, tile] for node in convolutions], chunk=chunk)


def steps_by_winograd(graph, dtype="u8", tile=4):
    return steps_of(tuned(graph, tile), dtype)


def kinds(steps):
    return [step["kind"] for step in steps]


SHAPES = {
    "whole tiles": ((1, 32, 8, 12), 32, PADDED),
    "parts of tiles": ((1, 64, 9, 7), 48, PADDED),
    "images": ((3, 32, 5, 6), 16, PADDED),
    "odd numbers of channels": ((2, 17, 6, 9), 19, PADDED),
    "less than a block of channels": ((1, 40, 7, 7), 33, PADDED),
    "the most channels added up at once": ((1, 224, 6, 6), 32, PADDED),
    "channels added up in groups": ((1, 225, 6, 6), 32, PADDED),
    "three uneven groups": ((1, 510, 4, 4), 32, PADDED),
    "more than a chunk of tiles": ((1, 16, 28, 37), 32, PADDED),
    "one tile": ((1, 64, 3, 3), 64, {}),
    "no padding": ((1, 32, 11, 9), 32, {}),
    "uneven padding": ((1, 32, 8, 5), 32, {"padding_l": [2, 0], "padding_r": [1, 3]}),
    "padding beyond a tile": ((1, 32, 2, 3), 32, {"padding_l": 7, "padding_r": 9}),
    "nothing but padding": ((1, 32, 1, 1), 32, {"padding_l": 5, "padding_r": 5}),
}


@pytest.mark.parametrize("threads", ["one thread", "all"])
@pytest.mark.parametrize(("src", "dst"), [(("u8", 0), ("u8", 0)), (("s8", -3), ("s8", 5))])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, src, dst, threads):
    shape, out, window = SHAPES[name]
    graph = winograd(shape, out, src=src, dst=dst, **window)
    if threads == "all":
        (step,) = steps_by_winograd(graph, dst[0])
    else:
        with one_thread():
            (step,) = steps_by_winograd(graph, dst[0])
    assert (step["kind"], step["impl"]) == ("winograd", "winograd")
    dtypes = {key: step["dtypes"][key] for key in ("src", "dst")}
    assert dtypes == {"src": src[0], "dst": dst[0]}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("post_ops", [[], [relu()], [CLIP]], ids=["", "relu", "clip"])
@pytest.mark.parametrize("dst", [("u8", 0), ("u8", 131), ("s8", -128), ("s8", 9)])
@pytest.mark.parametrize("src", [("u8", 255), ("u8", 7), ("s8", 0), ("s8", 127)])
def test_what_numbers_stand_for(src, dst, post_ops, bias):
    """Zero points with asymmetric padding are right at the rim."""
    window = {"padding_l": [2, 0], "padding_r": [1, 2]}
    graph = winograd((1, 43, 7, 9), 37, (3, 3), src, dst, bias, post_ops, **window)
    (step,) = steps_by_winograd(graph, dst[0])
    assert (step["kind"], step["dtypes"]["dst"]) == ("winograd", dst[0])


@pytest.mark.parametrize("post_ops", [[], [relu()], [CLIP]], ids=["", "relu", "clip"])
@pytest.mark.parametrize("dst", [("u8", 131), ("s8", 9)])
@pytest.mark.parametrize("addend", [("u8", 0), ("u8", 255), ("s8", -128), ("s8", 3)])
@pytest.mark.parametrize("channels", [37, 300])
def test_additions(channels, addend, dst, post_ops):
    graph = winograd((2, channels, 7, 9), 45, dst=dst, post_ops=post_ops, addend=addend, **PADDED)
    (step,) = steps_by_winograd(graph, dst[0])
    assert step["kind"] == "winograd"
    assert step["post_ops"].startswith("binary_add")


def test_blocks_of_a_resnet():
    """Each adds the one before it, which dies: it is overwritten."""
    graph = Graph()
    x = graph.dequantize(graph.input(1, 32, 9, 9, dtype="u8"), 0.02, 5)
    for _ in range(3):
        y = x
        for addend in None, x:
            weights = graph.dequantize(graph.constant(32, 32, 3, 3, dtype="s8"), 0.0005)
            post_ops = [binary("add", addend), relu()] if addend else [relu()]
            y = graph.convolution(y, weights, graph.constant(32), post_ops, **PADDED)
            y = graph.dequantize(graph.quantize(y, 0.03, 9, "u8"), 0.03, 9)
        x = y
    graph.outputs.append(graph.nodes[-1]["inputs"][0])
    steps = steps_by_winograd(graph)
    assert kinds(steps) == ["winograd"] * 6
    assert [step["post_ops"].split("+")[0] for step in steps][3::2] == ["sum", "sum"]


@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("weight", [-128, 127])
@pytest.mark.parametrize("extreme", ["min", "max"])
@pytest.mark.parametrize("channels", [224, 256, 448])
def test_extremes(channels, extreme, weight, src):
    """The largest sums there can be, which all but fill what they are added up in."""
    size = 127.0 * 255 * channels * 9
    graph = winograd((1, channels, 9, 9), 64, src=(src, 0), dst=("s8", 0), bias=False)
    set_scales(graph, size / 120)  # so that the result tells the largest sums apart
    graph.input_data[0][...] = getattr(np.iinfo(DTYPES[src]), extreme)
    graph.constant_data[0][...] = weight
    (step,) = steps_by_winograd(graph, "s8")
    assert step["kind"] == "winograd"


@pytest.mark.parametrize("seed", range(8))
def test_sums_are_exact(seed):
    """Large products that cancel each other: every unit of what is left counts."""
    rng = np.random.default_rng(seed)
    channels = int(rng.choice([32, 224, 256, 480]))
    graph = winograd((1, channels, 8, 8), 48, src=("u8", 0), dst=("s8", 0), bias=False)
    set_scales(graph, 1.0)
    half = channels // 2
    x, weights = graph.input_data[0], graph.constant_data[0]
    x[...] = rng.choice([0, 1, 254, 255], x.shape)
    x[:, half:] = x[:, :half]
    weights[...] = rng.choice([-127, -126, 126, 127], weights.shape)
    weights[:, half:] = -weights[:, :half]
    weights[:, 0] += rng.integers(-1, 2, weights[:, 0].shape, dtype=np.int8) * (
        np.abs(weights[:, 0]) < 127
    )
    wide = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64), (3, 3), (2, 3))
    sums = np.einsum("nchwij,ocij->nohw", wide, weights.astype(np.int64))
    assert np.abs(sums).max() > 300
    engine = start(tuned(graph))
    (got,) = run(engine, graph.input_data, [sums.shape], np.int8)
    assert np.array_equal(got, np.clip(sums, -128, 127))
    assert "winograd" in kinds(engine.profile()["steps"])


def test_ties_go_to_the_even_number():
    graph = winograd((1, 64, 3, 3), 64, bias=False, scales=[1.0])
    graph.nodes[-1]["attrs"]["scales"] = [0.04]  # two steps of src
    graph.input_data[0][...] = 0
    graph.input_data[0][:, :, 1, 1] = np.arange(64)
    graph.constant_data[0][...] = 0
    graph.constant_data[0][np.arange(64), np.arange(64), 1, 1] = 1
    (got,) = run(start(tuned(graph)), graph.input_data, [(1, 64, 1, 1)], np.uint8)
    assert np.array_equal(got.ravel(), np.rint(np.arange(64) / 2))


def test_what_is_no_number():
    """A bias of none makes the least number, or what a clip leaves of that."""
    for post_ops, expected in ([], 0), ([relu()], 9), ([eltwise("clip", 0.5, 1.0)], 31):
        graph = winograd((1, 32, 5, 5), dst=("u8", 9), post_ops=post_ops)
        graph.constant_data[1][...] = np.nan
        engine = start(tuned(graph))
        (got,) = run(engine, graph.input_data, [(1, 32, 3, 3)], np.uint8)
        assert (got == expected).all()
        assert "winograd" in kinds(engine.profile()["steps"])


def test_results_beyond_all_numbers():
    graph = winograd((1, 32, 6, 6), dst=("s8", 0), scales=np.geomspace(1e-20, 1e20, 32))
    assert kinds(steps_by_winograd(graph, "s8")) == ["winograd"]


@pytest.mark.parametrize("name", SHARED)
def test_two_that_share_their_constants(name):
    """What is arranged for one is not taken for the other."""
    windows = (PADDED, {"padding_l": 2}) if name == "alike" else (PADDED, PADDED)
    graph = two_that_share(name, (32, 32, 3, 3), windows)
    assert kinds(steps_by_winograd(graph)) == ["winograd"] * 2


def test_a_bias_that_is_shared_with_a_depthwise_convolution():
    graph = Graph()
    bias = graph.constant(64)
    for shape, groups in (((64, 64, 3, 3), 1), ((64, 1, 3, 3), 64)):
        x = graph.dequantize(graph.input(1, 64, 9, 9, dtype="u8"), 0.02, 3)
        weights = graph.dequantize(graph.constant(*shape, dtype="s8"), 0.002)
        graph.output(
            graph.quantize(graph.convolution(x, weights, bias, groups=groups), 0.03, 9, "u8")
        )
    assert [step["impl"] for step in steps_by_winograd(graph)] == ["winograd", "depthwise"]


def test_a_part_of_a_concat():
    """It reads and writes channels that lie beside others."""
    graph = Graph()
    x = graph.input(1, 64, 9, 9, dtype="u8")
    half = graph.node("slice", [x], begin=[0, 32, 0, 0], size=[1, 32, 9, 9])
    parts = []
    for _ in range(2):
        weights = graph.dequantize(graph.constant(48, 32, 3, 3, dtype="s8"), 0.004)
        y = graph.convolution(graph.dequantize(half, 0.02, 5), weights, **PADDED)
        parts.append(graph.quantize(y, 0.03, 9, "u8"))
    graph.output(graph.node("concat", parts, axis=1))
    assert kinds(steps_by_winograd(graph)).count("winograd") == 2


def test_in_chunks():
    """A thread computes the images of a chunk alone."""
    graph = tuned(winograd((8, 32, 9, 9), **PADDED), chunk=1)
    engine = start(graph)
    (expected,) = reference(graph)
    (got,) = run(engine, graph.input_data, [expected.shape], np.uint8)
    assert_numbers([got], [expected])
    profile = engine.profile()
    assert (profile["chunks"], kinds(profile["steps"]).count("winograd")) == (8, 1)


def test_fewer_threads_than_it_was_compiled_for():
    graph = winograd((1, 32, 28, 28), **PADDED)
    engine = start(tuned(graph))
    expected = reference(graph)
    with one_thread():
        got = run(engine, graph.input_data, [e.shape for e in expected], np.uint8)
    assert_numbers(got, expected)


def test_an_empty_batch():
    graph = tuned(winograd((0, 32, 5, 5), **PADDED))
    (got,) = run(start(graph), graph.input_data, [(0, 32, 5, 5)], np.uint8)
    assert got.shape == (0, 32, 5, 5)


@pytest.mark.skipif(AMX, reason="products of tiles may be faster")
def test_it_is_chosen_by_measurement():
    """64 channels of 56 × 56 take two thirds of the time."""
    graph = winograd((1, 64, 56, 56), 64, **PADDED)
    with one_thread():
        text, _ = pack(graph, graph.constant_data, tune="all")
    assert [tile for _, tile in json.loads(text)["tuned"]["winograd"]] == [4]


NEAR_MISSES = {
    "fewer channels of src": winograd((1, 15, 9, 11)),
    "fewer channels of dst": winograd((1, 32, 9, 11), 15),
    "another kernel": winograd((1, 32, 9, 11), kernel=(5, 5)),
    "unequal edges": winograd((1, 32, 9, 11), kernel=(3, 1)),
    "strides": winograd((1, 32, 9, 11), strides=[1, 2]),
    "dilation": winograd((1, 32, 9, 11), dilation=2),
    "groups": winograd((1, 64, 9, 11), 64, groups=2),
    "a leaky ReLU": winograd((1, 32, 9, 11), post_ops=[relu(0.1)]),
    "another activation": winograd((1, 32, 9, 11), post_ops=[eltwise("tanh")]),
    "two post-ops": winograd((1, 32, 9, 11), post_ops=[CLIP, relu()]),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name):
    assert "winograd" not in [step["impl"] for step in steps_by_winograd(NEAR_MISSES[name])]


def test_a_smaller_tile():
    assert "winograd" not in kinds(steps_by_winograd(winograd((1, 32, 9, 11)), tile=2))


def test_a_result_in_floats():
    steps = steps_by_winograd(winograd((1, 32, 9, 11), whole=False), "f32")
    assert "winograd" not in [step["impl"] for step in steps]


def test_a_scale_without_an_inverse():
    graph = winograd((1, 32, 5, 5))
    graph.nodes[-1]["attrs"]["scales"] = [float(np.float32(1e-42))]
    assert "winograd" not in kinds(steps_by_winograd(graph))


def test_weights_with_a_zero_point():
    """These are no numbers to multiply; nor are they taken for floats of the same algorithm."""
    graph = Graph()
    x = graph.dequantize(graph.input(1, 32, 9, 9, dtype="u8"), 0.02, 5)
    weights = graph.dequantize(graph.constant(32, 32, 3, 3, dtype="s8"), 0.004, 7)
    graph.output(graph.quantize(graph.convolution(x, weights, **PADDED), 0.03, 9, "u8"))
    assert "winograd" not in kinds(steps_by_winograd(graph))
