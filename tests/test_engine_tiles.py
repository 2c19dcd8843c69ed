"""Convolutions by AMX, of whole numbers and bf16: the same numbers, and only where it applies."""

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
    reference,
    relu,
    run,
    start,
)
from networks_of_floats import between, implementations_that_round_once
from networks_of_floats import convolution as in_bf16
from networks_of_floats import steps_of as steps_in_bf16
from processor import AMX

pytestmark = pytest.mark.skipif(not AMX, reason="the kernel needs AMX")


def implementations(steps):
    return [step["impl"] for step in steps]


def tiles(shape, out=64, kernel=(1, 1), *args, groups=1, **kwargs):
    return convolution(shape, (out, shape[1] // groups, *kernel), *args, groups=groups, **kwargs)


def window(strides=1, left=0, right=0):
    return {"strides": strides, "padding_l": left, "padding_r": right}


WINDOWS = {  # src's height and width, kernel, window
    "pixels in a line": ((8, 8), (1, 1), window()),
    "a part of a tile at the end": ((5, 9), (1, 1), window()),
    "less than a tile": ((3, 5), (1, 1), window()),
    "one pixel": ((1, 1), (1, 1), window()),
    "many chunks of pixels": ((41, 29), (1, 1), window()),
    "every other pixel": ((9, 8), (1, 1), window(2)),
    "every other column": ((5, 8), (1, 1), window([1, 2])),
    "a border around pixels": ((5, 6), (1, 1), window(1, 1, 2)),
    "three by three": ((9, 11), (3, 3), window(1, 1, 1)),
    "no border": ((9, 11), (3, 3), window()),
    "many chunks of rows": ((35, 40), (3, 3), window(1, 1, 1)),
    "strides": ((13, 12), (3, 3), window(2, 1, 1)),
    "strides, and a border at the end alone": ((12, 12), (3, 3), window(2, 0, 1)),
    "strides wider than the window": ((13, 14), (2, 2), window(3, 1, 0)),
    "other strides for rows": ((13, 14), (3, 2), window([3, 1], [2, 0], [0, 1])),
    "a wide border": ((4, 3), (3, 3), window(1, 2, [4, 3])),
    "a border wider than strides": ((3, 3), (5, 5), window(2, 4, 4)),
    "a row": ((7, 9), (1, 7), window(1, [0, 3], [0, 3])),
    "a column": ((9, 7), (7, 1), window(1, [3, 0], [3, 0])),
    "an even window": ((7, 8), (4, 2), window(1, [1, 0], [2, 1])),
    "the largest window": ((9, 9), (8, 8), window(1, 3, 3)),
    "one result": ((3, 3), (3, 3), window()),
}


@pytest.mark.parametrize("threads", ["one thread", "all"])
@pytest.mark.parametrize(("src", "dst"), [(("u8", 7), ("u8", 3)), (("s8", -9), ("s8", 5))])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name, src, dst, threads):
    size, kernel, attrs = WINDOWS[name]
    graph = tiles((2, 32, *size), 64, kernel, src, dst, **attrs)
    if threads == "all":
        (step,) = steps_of(graph, dst[0])
    else:
        with one_thread():
            (step,) = steps_of(graph, dst[0])
    assert (step["kind"], step["impl"]) == ("convolution", "tiles")
    assert {name: step["dtypes"][name] for name in ("src", "weights", "dst")} == {
        "src": src[0],
        "weights": "s8",
        "dst": dst[0],
    }


CHANNELS = {  # of src and dst
    "a part of a tile": (48, 16),
    "a tile and a part": (96, 32),
    "an odd number of tiles": (64, 48),
    "less than a vector": (64, 5),
    "blocks": (64, 192),
    "more blocks than threads share evenly": (64, 320),
    "the last block with a channel": (64, 129),
    "the last block with vectors": (160, 90),
    "many": (576, 256),
}


@pytest.mark.parametrize("addend", [None, ("u8", 3), ("s8", -7)], ids=["alone", "u8", "s8"])
@pytest.mark.parametrize(("src", "dst"), [(("u8", 130), ("s8", -5)), (("s8", 0), ("u8", 0))])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3)])
@pytest.mark.parametrize("name", CHANNELS)
def test_channels(name, kernel, src, dst, addend):
    channels, out = CHANNELS[name]
    attrs = PADDED if kernel == (3, 3) else {}
    graph = tiles((1, channels, 5, 7), out, kernel, src, dst, addend=addend, **attrs)
    (step,) = steps_of(graph, dst[0])
    assert step["impl"] == "tiles"
    assert step["post_ops"] == ("binary_add" if addend else "")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("post_ops", [[], [relu()], [CLIP]], ids=["", "relu", "clip"])
@pytest.mark.parametrize("dst", [("u8", 131), ("s8", -128), ("s8", 9)])
@pytest.mark.parametrize("src", [("u8", 255), ("s8", -128), ("s8", 127)])
def test_what_numbers_stand_for(src, dst, post_ops, bias):
    graph = tiles((1, 64, 5, 9), 61, (3, 3), src, dst, bias, post_ops, **PADDED)
    assert implementations(steps_of(graph, dst[0])) == ["tiles"]


@pytest.mark.parametrize("post_ops", [[], [relu()], [CLIP]], ids=["", "relu", "clip"])
@pytest.mark.parametrize("addend", [None, ("u8", 3), ("s8", -7)], ids=["alone", "u8", "s8"])
@pytest.mark.parametrize("src", [("u8", 7), ("s8", 7)])
def test_results_in_floats(src, addend, post_ops):
    graph = tiles(
        (1, 64, 5, 9), 77, (3, 3), src, post_ops=post_ops, addend=addend, whole=False, **PADDED
    )
    (step,) = steps_of(graph, "f32")
    assert (step["impl"], step["dtypes"]["dst"]) == ("tiles", "f32")


@pytest.mark.parametrize("weight", [-128, 127])
@pytest.mark.parametrize("src", [("u8", 0), ("u8", 255), ("s8", -128), ("s8", 127)])
def test_extremes(src, weight):
    """The largest sums, and results beyond all numbers."""
    scales = np.geomspace(1e-6, 1, 64)
    graph = tiles((1, 256, 3, 3), 64, (3, 3), src, ("s8", 0), scales=scales, **PADDED)
    graph.input_data[0][...] = 255 - src[1] if src[0] == "u8" else -1 - src[1]
    graph.constant_data[0][...] = weight
    assert implementations(steps_of(graph, "s8")) == ["tiles"]


@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_sums_are_exact(dtype):
    """Large products that cancel each other: every unit of what is left counts."""
    rng = np.random.default_rng(0)
    graph = tiles((1, 256, 7, 9), 64, (1, 1), (dtype, 0), ("s8", 0), bias=False)
    set_scales(graph, 1.0)
    x, weights = graph.input_data[0], graph.constant_data[0]
    x[...] = rng.choice([0, 1, 254, 255] if dtype == "u8" else [-128, -127, 126, 127], x.shape)
    x[:, 128:] = x[:, :128]
    weights[...] = rng.choice([-127, -126, 126, 127], weights.shape)
    weights[:, 128:] = -weights[:, :128]
    weights[:, 5] += 1 - 2 * (weights[:, 5] > 0).astype(np.int8)
    sums = np.einsum("nchw,oc->nohw", x.astype(int), weights[:, :, 0, 0].astype(int))
    assert np.abs(sums).max() > 100
    engine = start(graph)
    (got,) = run(engine, graph.input_data, [sums.shape], np.int8)
    assert np.array_equal(got, np.clip(sums, -128, 127))
    assert "tiles" in implementations(engine.profile()["steps"])


def test_factors_that_are_too_large():
    """Then results could have more than 32 bits."""
    graph = tiles((1, 64, 3, 3), dst=("s8", 0), scales=np.geomspace(1e-3, 1e20, 64))
    assert "tiles" not in implementations(steps_of(graph, "s8"))


@pytest.mark.parametrize("bias", [np.nan, np.inf, -np.inf, 3e38, -9e9])
def test_biases_that_decide_alone(bias):
    """One that is no number makes the least number."""
    graph = tiles((1, 64, 4, 4), dst=("u8", 9))
    graph.constant_data[1][...] = bias
    engine = start(graph)
    (got,) = run(engine, graph.input_data, [(1, 64, 4, 4)], np.uint8)
    assert (got == (255 if bias > 0 else 0)).all()
    assert "tiles" in implementations(engine.profile()["steps"])


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_an_empty_batch(is_dynamic):
    graph = tiles((0, 64, 5, 5), 64, (3, 3), addend=("u8", 3), **PADDED)
    if is_dynamic:
        graph.inputs = [{**tensor, "shape": [-1] * 4} for tensor in graph.inputs]
    (got,) = run(start(graph), graph.input_data, [(0, 64, 5, 5)], np.uint8)
    assert got.shape == (0, 64, 5, 5)


def residual(graph, x, addend, post_ops=(), dst=("u8", 9)):
    weights = graph.dequantize(graph.constant(64, 64, 3, 3, dtype="s8"), 0.004)
    y = graph.convolution(
        x, weights, graph.constant(64), [binary("add", addend), *post_ops], **PADDED
    )
    return graph.quantize(y, 0.05, dst[1], dst[0])


@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_an_addend_that_is_read_again(dtype):
    """As src of the same node, by another one, and as an output."""
    graph = Graph()
    x = graph.dequantize(graph.input(1, 64, 9, 9, dtype="u8"), 0.02, 3)
    first = residual(graph, x, x, dst=("u8", 9))
    a = graph.dequantize(first, 0.05, 9)
    second = residual(graph, a, a, [relu()], (dtype, 5))
    b = graph.dequantize(second, 0.05, 5)
    third = residual(graph, a, b, [relu()])
    graph.output(residual(graph, graph.dequantize(third, 0.05, 9), b))
    steps = steps_of(graph)
    assert implementations(steps) == ["tiles"] * 4
    assert [step["post_ops"] for step in steps[2:]] == ["binary_add+eltwise_relu", "sum"]


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("kernel", [1, 3])
def test_two_that_share_their_constants(name, kernel):
    """What is arranged for one is not taken for the other."""
    graph = two_that_share(name, (64, 64, kernel, kernel), ({}, PADDED))
    assert implementations(steps_of(graph)) == ["tiles"] * 2


def test_fewer_threads_than_it_was_compiled_for():
    graph = tiles((1, 64, 28, 28), 64, (3, 3), **PADDED)
    engine = start(graph)
    expected = reference(graph)
    with one_thread():
        got = run(engine, graph.input_data, [e.shape for e in expected], DTYPES["u8"])
    assert_numbers(got, expected)


def test_a_choice_of_another_is_kept_to():
    graph = tiles((1, 64, 9, 11))
    node = next(i for i, node in enumerate(graph.nodes) if node["kind"] == "convolution")
    graph.tune(implementations=[[node, "brgconv_1x1:avx512_core_amx"]])
    assert implementations(steps_of(graph)) == ["brgconv_1x1:avx512_core_amx"]


NEAR_MISSES = {
    "fewer channels": tiles((1, 12, 9, 11)),
    "channels not in fours": tiles((1, 66, 9, 11)),
    "channels that no tiles divide": tiles((1, 4 * 37, 9, 11)),
    "holes in the window": tiles((1, 64, 9, 11), 64, (3, 3), dilation=2),
    "too large a window": tiles((1, 32, 9, 11), 64, (9, 9), padding_l=4, padding_r=4),
    "groups": tiles((1, 128, 9, 11), 128, groups=2),
    "a leaky ReLU": tiles((1, 64, 9, 11), post_ops=[relu(0.1)]),
    "another activation": tiles((1, 64, 9, 11), post_ops=[eltwise("tanh")]),
    "two post-ops": tiles((1, 64, 9, 11), post_ops=[CLIP, relu()]),
    "a sum, and another activation": tiles(
        (1, 64, 9, 11), post_ops=[eltwise("tanh")], addend=("u8", 1)
    ),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name):
    assert "tiles" not in implementations(steps_of(NEAR_MISSES[name]))


CLIP_OF_WHOLE = eltwise("clip", -6.0, 17.0)


# A single pixel is in all layouts at once.
@pytest.mark.parametrize("name", [name for name in WINDOWS if name != "one pixel"])
def test_windows_in_bf16(name):
    size, kernel, attrs = WINDOWS[name]
    graph = between(lambda g, x: in_bf16(g, x, kernel=kernel, **attrs), (2, 32, *size))
    (step,) = (step for step in steps_in_bf16(graph) if step["impl"] == "tiles")
    assert {step["dtypes"][name] for name in ("src", "weights", "dst")} == {"bf16"}


@pytest.mark.parametrize("kernel", [(1, 1), (3, 3)])
@pytest.mark.parametrize("adds", [False, True], ids=["alone", "adds"])
@pytest.mark.parametrize(("channels", "out"), [(24, 16), (48, 48), (80, 80), (96, 208), (512, 64)])
def test_channels_in_bf16(channels, out, adds, kernel):
    attrs = PADDED if kernel == (3, 3) else {}

    def make(graph, x):
        post_ops = [binary("add", in_bf16(graph, x, channels, out, bias=False))] if adds else ()
        return in_bf16(graph, x, channels, out, kernel, post_ops=post_ops, **attrs)

    graph = between(make, (1, channels, 7, 6), out)
    ours = [step for step in steps_in_bf16(graph) if step["impl"] == "tiles"]
    assert len(ours) == 1 + adds
    assert ours[-1]["post_ops"] == ("sum" if adds else "")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("post_op", [None, relu(), CLIP_OF_WHOLE], ids=["", "relu", "clip"])
def test_post_ops_in_bf16(post_op, bias):
    def make(graph, x):
        return in_bf16(graph, x, bias=bias, post_ops=[post_op] if post_op else [])

    assert "tiles" in implementations(steps_in_bf16(between(make)))


def test_it_rounds_once():
    assert "tiles" in implementations_that_round_once()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number(value):
    """It stays in its pixel's window, whatever follows."""
    for post_op in relu(), CLIP_OF_WHOLE:
        graph = between(
            lambda g, x, op=post_op: in_bf16(g, x, kernel=(3, 3), post_ops=[op], **PADDED),
            (1, 32, 12, 9),
        )
        graph.input_data[0][0, 3, 2, 4] = value
        engine = start(graph)
        (got,) = run(engine, graph.input_data, [(1, 64, 12, 9)])
        assert "tiles" in implementations(engine.profile()["steps"])
        graph.input_data[0][0, 3, 2, 4] = 0
        (without,) = run(engine, graph.input_data, [(1, 64, 12, 9)])
        far = np.ones((12, 9), bool)
        far[0:6, 1:8] = False
        assert np.array_equal(got[:, :, far], without[:, :, far])


NEAR_MISSES_IN_BF16 = {
    "fewer channels": lambda: between(lambda g, x: in_bf16(g, x, 12), (1, 12, 9, 11)),
    "channels that no tiles divide": lambda: between(
        lambda g, x: in_bf16(g, x, 2 * 37), (1, 2 * 37, 9, 11)
    ),
    "holes in the window": lambda: between(
        lambda g, x: in_bf16(g, x, kernel=(3, 3), dilation=2, padding_l=2, padding_r=2)
    ),
    "groups": lambda: between(lambda g, x: in_bf16(g, x, groups=2)),
    "a leaky ReLU": lambda: between(lambda g, x: in_bf16(g, x, post_ops=[relu(0.5)])),
    "two post-ops": lambda: between(lambda g, x: in_bf16(g, x, post_ops=[CLIP_OF_WHOLE, relu()])),
    "an addend for each channel": lambda: between(
        lambda g, x: in_bf16(g, x, post_ops=[binary("add", g.constant(1, 64, 1, 1))])
    ),
    "weights from outside": lambda: between(
        lambda g, x: g.convolution(x, g.input(64, 32, 1, 1), g.constant(64))
    ),
    "in f32": lambda: between(in_bf16, precision="f32"),
    "another layout": lambda: between(in_bf16, layout="blocked"),
}


@pytest.mark.parametrize("name", NEAR_MISSES_IN_BF16)
def test_near_misses_in_bf16(name):
    assert "tiles" not in implementations(steps_in_bf16(NEAR_MISSES_IN_BF16[name]()))
