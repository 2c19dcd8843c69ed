"""Whole numbers: what oneDNN adds up, what it leaves to the next step, and how it rounds."""

import numpy as np
import pytest
from engine_graph import (
    DTYPES,
    Graph,
    InvalidArgument,
    Unsupported,
    assert_close,
    assert_numbers,
    binary,
    build_info,
    eltwise,
    pack,
    reference,
    relu,
    run,
    run_python,
    start,
    supports,
)
from processor import WHOLE


def check(graph, dtype="f32", slack=1):
    """Compare with the reference: numbers to `slack` of them, others to 1e-5. Return the steps."""
    engine = start(graph)
    expected = reference(graph)
    got = run(engine, graph.input_data, [e.shape for e in expected], DTYPES[dtype])
    if dtype == "f32":
        assert_close(got, expected)
    else:
        for b in expected:
            assert len(np.unique(b)) > min(8, b.size // 2), "the expected values are no test"
        assert_numbers(got, expected, slack)
    return [s for s in engine.profile()["steps"] if s["kind"] != "reorder"]


def quantized_src(graph, shape, dtype="u8", zero_point=0, scale=0.02):
    numbers = graph.input(*shape, dtype=dtype)
    return graph.dequantize(numbers, scale, zero_point)


def quantized_weights(graph, shape, scales=None, axis=0):
    """Weights in s8, by default with a scale per channel: the largest is 100 times the least."""
    if scales is None:
        scales = np.geomspace(1e-4, 1e-2, shape[axis])
    return graph.dequantize(graph.constant(*shape, dtype="s8"), scales, axis=axis)


def convolution(graph, x, weights, groups=1, bias=True, post_ops=(), **window):
    bias = graph.constant(weights[0]) if bias else None
    return graph.convolution(x, quantized_weights(graph, weights), bias, post_ops, groups, **window)


CONVOLUTIONS = {
    "conv1d": ((2, 16, 30), (24, 16, 3), {"padding_l": 1, "padding_r": 2}),
    "conv2d": ((1, 16, 13, 11), (32, 16, 3, 3), {"padding_l": 1, "padding_r": 1}),
    "conv2d, strides": ((2, 32, 12, 9), (20, 32, 3, 3), {"strides": 2, "padding_l": 1}),
    "conv2d, 3 channels": ((1, 3, 17, 15), (16, 3, 7, 7), {"strides": 2, "padding_l": 3}),
    "conv2d, 1x1": ((2, 64, 7, 7), (48, 64, 1, 1), {}),
    "conv2d, groups": ((1, 32, 9, 9), (48, 16, 3, 3), {"groups": 2, "padding_r": 1}),
    "conv2d, few channels in a group": ((1, 32, 9, 9), (32, 4, 3, 3), {"groups": 8}),
    "conv2d, depthwise": ((1, 32, 9, 9), (32, 1, 3, 3), {"groups": 32, "padding_l": 1}),
    "conv3d": ((1, 16, 5, 6, 7), (16, 16, 3, 3, 3), {"padding_l": 1, "padding_r": 1}),
}


@pytest.mark.parametrize("zero_point", [0, 3])
@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_numbers_in_and_out(name, dtype, zero_point):
    """Zero points with asymmetric padding are right at the rim, or the convolution stays in f32."""
    shape, weights, attrs = CONVOLUTIONS[name]
    graph = Graph()
    x = quantized_src(graph, shape, dtype, zero_point)
    y = convolution(graph, x, weights, **attrs)
    graph.output(graph.quantize(y, 0.05, -zero_point, "s8"))
    (step, *rest) = check(graph, "s8")
    if WHOLE and zero_point == 0:
        assert step["kind"] == "convolution"
        assert not rest
        assert step["dtypes"] == {"src": dtype, "weights": "s8", "dst": "s8"}
        assert not step["impl"].startswith("ref")


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_numbers_in(name, dtype):
    shape, weights, attrs = CONVOLUTIONS[name]
    graph = Graph()
    y = convolution(graph, quantized_src(graph, shape, dtype), weights, post_ops=[relu()], **attrs)
    step = check(graph.output(y))[-1]
    if WHOLE:
        assert step["dtypes"] == {"src": dtype, "weights": "s8", "dst": "f32"}


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("zero_point", [0, 7])
def test_inner_product(dtype, zero_point):
    graph = Graph()
    src = quantized_src(graph, (5, 70), dtype, zero_point)
    weights, bias = quantized_weights(graph, (33, 70)), graph.constant(33)
    y = graph.node("inner_product", [src, weights, bias], [eltwise("tanh")])
    steps = check(graph.output(y))
    if WHOLE:
        assert steps[-1]["kind"] == ("matmul" if zero_point else "inner_product")
        assert steps[-1]["dtypes"] == {"src": dtype, "weights": "s8", "dst": "f32"}


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("zero_point", [0, 7])
def test_matmul(dtype, zero_point):
    graph = Graph()
    src = quantized_src(graph, (2, 5, 64), dtype, zero_point)
    weights = quantized_weights(graph, (2, 64, 9), 0.003)
    graph.output(graph.quantize(graph.node("matmul", [src, weights]), 0.05, 128, "u8"))
    steps = check(graph, "u8")
    if WHOLE:
        assert steps[-1]["dtypes"] == {"src": dtype, "weights": "s8", "dst": "u8"}


def test_sums_do_not_saturate():
    """64 products 255 · 127, which 16 bits do not hold."""
    graph = Graph()
    numbers = graph.input(4, 64, dtype="u8")
    graph.input_data[0][:] = 255
    weights = graph.constant(data=np.full((8, 64), 127), dtype="s8")
    src, weights = graph.dequantize(numbers, 1.0), graph.dequantize(weights, 1.0)
    graph.output(graph.node("inner_product", [src, weights]))
    (got,) = run(start(graph), graph.input_data, [(4, 8)])
    np.testing.assert_array_equal(got, 64 * 255 * 127)


def residual_block(other_dtype, dst_dtype, other_lives=False):
    """A convolution of numbers, to which others are added before it leaves numbers."""
    graph = Graph()
    x = quantized_src(graph, (1, 32, 10, 9))
    first = convolution(graph, x, (32, 32, 1, 1), post_ops=[relu()] * (other_dtype == "u8"))
    other = graph.quantize(first, 0.07, 0, other_dtype)
    y = graph.dequantize(other, 0.07)
    z = convolution(graph, x, (32, 32, 3, 3), post_ops=[binary("add", y), relu()], padding_l=1,
                    padding_r=1)  # fmt: skip
    graph.output(graph.quantize(z, 0.05, 0, dst_dtype))
    if other_lives:
        graph.output(other)
    return graph


@pytest.mark.parametrize("other", ["u8", "s8"])
@pytest.mark.parametrize("dst", ["u8", "s8"])
def test_a_sum_in_place(other, dst):
    graph = residual_block(other, dst)
    engine = start(graph)
    (expected,) = reference(graph)
    (got,) = run(engine, graph.input_data, [expected.shape], DTYPES[dst])
    # The summand's own rounding may be one off, which is more than one of the result.
    assert np.abs(got.astype(int) - expected).max() <= 2
    assert (got != expected).mean() < 0.01
    steps = [s for s in engine.profile()["steps"] if s["kind"] != "reorder"]
    if WHOLE:
        assert [s["kind"] for s in steps] == ["convolution", "convolution"]
        assert steps[1]["post_ops"].startswith("sum+")
        dtypes = steps[1]["dtypes"]
        assert (dtypes["src"], dtypes["weights"], dtypes["dst"]) == ("u8", "s8", dst)


def test_a_sum_that_must_not_be_in_place():
    graph = residual_block("u8", "u8", other_lives=True)
    expected = reference(graph)
    engine = start(graph)
    got = run(engine, graph.input_data, [e.shape for e in expected], np.uint8)
    for a, b in zip(got, expected, strict=True):
        assert np.abs(a.astype(int) - b).max() <= 2
        assert (a != b).mean() < 0.01
    assert not any("sum" in step["post_ops"] for step in engine.profile()["steps"])


def test_more_readers_than_the_quantize():
    """The result is needed in f32, too: the numbers are made by a step of their own."""
    graph = Graph()
    y = convolution(graph, quantized_src(graph, (1, 16, 9, 9)), (16, 16, 3, 3))
    graph.output(
        y, graph.eltwise(graph.dequantize(graph.quantize(y, 0.05, 3, "s8"), 0.05, 3), "tanh")
    )
    steps = check(graph)
    kinds = [s["kind"] for s in steps if WHOLE or s is not steps[0]]  # else the src comes first
    assert kinds == ["convolution", "quantize", "dequantize", "eltwise"]
    assert steps[-4]["dtypes"]["dst"] == "f32"


NOT_IN_WHOLE_NUMBERS = {
    "weights with zero points": lambda graph, x: graph.convolution(
        x, graph.dequantize(graph.constant(16, 16, 3, 3, dtype="s8"), 0.01, 5)
    ),
    "weights in u8": lambda graph, x: graph.convolution(
        x, graph.dequantize(graph.constant(16, 16, 3, 3, dtype="u8"), 0.01)
    ),
    "weights with scales of the input channels": lambda graph, x: graph.convolution(
        x,
        graph.dequantize(graph.constant(16, 16, 3, 3, dtype="s8"), np.geomspace(1, 9, 16), axis=1),
    ),
    "weights in f32": lambda graph, x: graph.convolution(x, (16, 16, 3, 3)),
}


@pytest.mark.parametrize("name", NOT_IN_WHOLE_NUMBERS)
def test_what_stays_in_f32(name):
    """The near misses: numbers are dequantized, constants when they are loaded."""
    graph = Graph()
    x = quantized_src(graph, (1, 16, 9, 9), zero_point=2)
    steps = check(graph.output(NOT_IN_WHOLE_NUMBERS[name](graph, x)))
    assert [s["kind"] for s in steps] == ["dequantize", "convolution"]
    assert set(steps[1]["dtypes"].values()) == {"f32"}


def test_a_view_of_dequantized_weights():
    graph = Graph()
    x = quantized_src(graph, (4, 70))
    weights = quantized_weights(graph, (70, 33), np.geomspace(1, 2, 33), axis=1)
    weights = graph.node("transpose", [weights], axes=[1, 0])
    check(graph.output(graph.node("inner_product", [x, weights])))


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("zero_point", [0, 9])
def test_quantize_alone(dtype, zero_point):
    """Ties go to even numbers, and what the dtype does not hold to its ends."""
    graph = Graph()
    x = graph.input(3, 700)
    graph.input_data[0][0] = np.arange(-350, 350) * 0.5 * 0.25
    graph.output(graph.quantize(x, 0.25, zero_point, dtype))
    (step,) = check(graph, dtype, slack=0)
    assert step["kind"] == "quantize"


@pytest.mark.parametrize("dtype", ["u8", "s8", "s32"])
def test_dequantize_alone(dtype):
    graph = Graph()
    graph.output(graph.dequantize(graph.input(3, 70, 5, dtype=dtype), 0.3, 9))
    check(graph)


def test_bf16_beside_it():
    graph = Graph()
    x = quantized_src(graph, (1, 16, 9, 9))
    y = convolution(graph, x, (16, 16, 3, 3), post_ops=[relu()])
    graph.output(graph.convolution(y, (16, 16, 1, 1)))
    graph.precision = "bf16"
    engine = start(graph)
    (expected,) = reference(graph)
    (got,) = run(engine, graph.input_data, [expected.shape])
    assert np.abs(got - expected).max() < 0.02 * np.abs(expected).max()
    steps = [s["dtypes"] for s in engine.profile()["steps"] if s["kind"] == "convolution"]
    if "AMX" in build_info()["isa"]:
        assert steps == [
            {"src": "u8", "weights": "s8", "dst": "bf16"},
            {"src": "bf16", "weights": "bf16", "dst": "f32"},
        ]


@pytest.mark.parametrize("tune", ["nothing", "all"])
@pytest.mark.parametrize("batch", [1, 4])
def test_packed(tune, batch):
    graph = Graph()
    x = quantized_src(graph, (batch, 16, 9, 9))
    y = graph.quantize(convolution(graph, x, (32, 16, 3, 3), post_ops=[relu()]), 0.05)
    y = graph.dequantize(y, 0.05)
    graph.output(graph.quantize(convolution(graph, y, (16, 32, 1, 1)), 0.05, 0, "s8"))
    (expected,) = reference(graph)
    text, packed = pack(graph, graph.constant_data, tune)
    engine = type(start(graph))(text)
    engine.set_constants(packed)
    (got,) = run(engine, graph.input_data, [expected.shape], np.int8)
    assert np.abs(got - expected).max() <= 2
    assert (got != expected).mean() < 0.01


def test_a_processor_that_would_saturate():
    process = run_python(
        "from test_engine_quantization import *\n"
        "assert not WHOLE\n"
        "test_sums_do_not_saturate()\n"
        "test_numbers_in_and_out('conv2d', 'u8', 3)\n"
        "test_numbers_in('conv2d, depthwise', 's8')\n",
        ONEDNN_MAX_CPU_ISA="AVX2",
    )
    assert process.returncode == 0, process.stderr


WRONG = {
    "no scales": ({"scales": []}, "expected scales, and as many zero points"),
    "too few zero points": ({"zero_points": []}, "expected scales, and as many zero points"),
    "a negative scale": ({"scales": [-1.0]}, "expected scales > 0"),
    "a scale of 0": ({"scales": [0.0]}, "expected scales > 0"),
    "scales of no axis": ({"scales": [1.0] * 3, "zero_points": [0] * 3}, "one for each index"),
    "no such dtype": ({"dtype": "s16"}, "expected dtype u8 or s8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_attributes(name):
    changes, message = WRONG[name]
    graph = Graph()
    graph.output(graph.quantize(graph.input(2, 5), 0.5))
    graph.nodes[0]["attrs"].update(changes)
    with pytest.raises(InvalidArgument, match=message):
        supports(graph)


@pytest.mark.parametrize("kind", ["quantize", "dequantize"])
def test_wrong_dtypes(kind):
    graph = Graph()
    x = graph.input(2, 5, dtype="u8" if kind == "quantize" else "f32")
    graph.output(getattr(graph, kind)(x, 0.5))
    with pytest.raises(InvalidArgument, match=f"{kind}: expected"):
        start(graph)


# What is done with numbers before they are dequantized --------------------------------------------


def moved_and_multiplied(move, shape, dst=(16, 16, 3, 3)):
    """Numbers that are dequantized, moved, and convolved."""
    graph = Graph()
    x = quantized_src(graph, shape, "u8", 0)
    return graph.output(convolution(graph, move(graph, x), dst))


MOVES = {
    "max pooling": lambda g, x: g.pooling(x, "max", (3, 3), strides=2, padding_l=1, padding_r=1),
    "transpose": lambda g, x: g.node("transpose", [x], axes=[0, 1, 3, 2]),
    "slice": lambda g, x: g.node("slice", [x], begin=[0, 0, 1, 2], size=[1, 16, 8, 9]),
    "reshape": lambda g, x: g.reshape(x, 1, 16, 11, 13),
    "concat": lambda g, x: g.node(
        "concat",
        [g.node("slice", [x], begin=[0, 8, 0, 0], size=[1, 8, 13, 11]),
         g.node("slice", [x], begin=[0, 0, 0, 0], size=[1, 8, 13, 11])],
        axis=1,
    ),
    "quantized again": lambda g, x: g.dequantize(g.quantize(x, 0.02, 0, "u8"), 0.02),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_numbers_are_moved(name):
    steps = check(moved_and_multiplied(MOVES[name], (1, 16, 13, 11)))
    assert not {"quantize", "dequantize"} & {s["kind"] for s in steps} or not WHOLE
    if WHOLE:
        assert steps[-1]["dtypes"] == {"src": "u8", "weights": "s8", "dst": "f32"}


NOT_MOVED = {
    "average pooling": lambda g, x: g.pooling(x, "avg_exclude_padding", (3, 3)),
    "max pooling and more": lambda g, x: g.pooling(x, "max", (3, 3), [eltwise("tanh")]),
    "other numbers in a concat": lambda g, x: g.node(
        "concat", [x, g.dequantize(g.quantize(x, 0.03, 0, "u8"), 0.03)], axis=2
    ),
    "quantized otherwise": lambda g, x: g.dequantize(g.quantize(x, 0.03, 0, "u8"), 0.03),
    "quantized in another dtype": lambda g, x: g.dequantize(g.quantize(x, 0.02, 0, "s8"), 0.02),
}


@pytest.mark.parametrize("name", NOT_MOVED)
def test_numbers_that_are_not_moved(name):
    steps = check(moved_and_multiplied(NOT_MOVED[name], (1, 16, 13, 11)))
    assert steps[0]["kind"] == "dequantize"


RIM = {"kernel": (3, 2), "strides": 2, "padding_l": 1, "padding_r": 1}
MEANS = {
    "within the image": ("avg_exclude_padding", 3, {"kernel": (3, 3)}),
    "beyond its rim": ("avg_exclude_padding", 3, RIM),
    "with zeros around it": ("avg_include_padding", 0, RIM),
    "of all of it": ("avg_exclude_padding", 3, {"kernel": (13, 11)}),
}


def quantized_mean(alg, zero_point, window, dtype="u8", post_ops=()):
    """Return a graph, a mean of what numbers stand for, and the numbers that it is rounded to."""
    graph = Graph()
    x = quantized_src(graph, (2, 24, 13, 11), "u8", zero_point)
    mean = graph.pooling(x, alg, post_ops=post_ops, **window)
    return graph, mean, graph.quantize(mean, 0.0117, 5, dtype)


@pytest.mark.parametrize("name", MEANS)
def test_a_mean_of_numbers(name):
    """It leaves those of the quantize that reads it."""
    graph, _, numbers = quantized_mean(*MEANS[name])
    (step, *rest) = check(graph.output(numbers), "u8")
    if WHOLE:
        assert not rest
        assert step["kind"] == "pooling"
        assert step["dtypes"] == {"src": "u8", "dst": "u8"}
        assert not step["impl"].startswith("ref")


NOT_MEANS = {
    "a zero point, and zeros around": ("avg_include_padding", 3, RIM, "u8", ()),
    "other numbers": ("avg_exclude_padding", 3, RIM, "s8", ()),
    "a post-op": ("avg_exclude_padding", 3, RIM, "u8", (eltwise("tanh"),)),
}


@pytest.mark.parametrize("name", NOT_MEANS)
def test_a_mean_that_is_not_of_numbers(name):
    graph, _, numbers = quantized_mean(*NOT_MEANS[name])
    steps = check(graph.output(numbers), NOT_MEANS[name][3])
    assert [s["kind"] for s in steps] == ["dequantize", "pooling", "quantize"]


def test_a_mean_that_is_read_twice():
    graph, mean, numbers = quantized_mean(*MEANS["within the image"])
    steps = check(graph.output(graph.dequantize(numbers, 0.0117, 5)).output(mean))
    assert [s["kind"] for s in steps][:3] == ["dequantize", "pooling", "quantize"]


def test_transposed_weights_keep_their_scales():
    graph = Graph()
    x = quantized_src(graph, (1, 16, 9, 9))
    weights = quantized_weights(graph, (3, 3, 16, 24), np.geomspace(1e-4, 1e-2, 24), axis=3)
    weights = graph.node("transpose", [weights], axes=[3, 2, 0, 1])
    window = {"strides": [1, 1], "dilation": [1, 1], "padding_l": [0, 0], "padding_r": [0, 0]}
    y = graph.node("convolution", [x, weights], groups=1, **window)
    steps = check(graph.output(y))
    if WHOLE:
        assert steps[-1]["dtypes"] == {"src": "u8", "weights": "s8", "dst": "f32"}


def test_weights_whose_scales_a_reshape_would_tear_apart():
    graph = Graph()
    weights = quantized_weights(graph, (16, 70), np.geomspace(1e-4, 1e-2, 16))
    graph.output(graph.reshape(weights, 8, 140))
    graph.output(graph.reshape(graph.input(2, 3), 3, 2))
    check(graph)


VIEWS = {
    "half of the channels": lambda g, x: g.node(
        "slice", [x], begin=[0, 0, 0, 0], size=[2, 32, 14, 14]
    ),
    "rows": lambda g, x: g.node("slice", [x], begin=[0, 0, 3, 0], size=[2, 64, 5, 14]),
    "columns": lambda g, x: g.node("slice", [x], begin=[0, 0, 0, 3], size=[2, 64, 14, 5]),
    "rows as columns": lambda g, x: g.node("transpose", [x], axes=[0, 1, 3, 2]),
    "the batch last": lambda g, x: g.node("transpose", [x], axes=[3, 1, 2, 0]),
    "the batch in the middle": lambda g, x: g.node("transpose", [x], axes=[1, 0, 2, 3]),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("quantizes", [False, True])
def test_the_zero_point_of_a_view(quantizes, name):
    """oneDNN 3.2 forgets it in some of the reorders that change the layout, too."""
    graph = Graph()
    dtype = "f32" if quantizes else "u8"
    x = graph.node("transpose", [graph.input(2, 14, 14, 64, dtype=dtype)], axes=[0, 3, 1, 2])
    view = VIEWS[name](graph, x)
    y = graph.quantize(view, 0.02, 30) if quantizes else graph.dequantize(view, 0.5, 8)
    check(graph.output(y), "u8" if quantizes else "f32")


@pytest.mark.parametrize("moved", [False, True])
def test_the_zero_point_of_what_is_split(moved):
    """A dequantize is moved behind the slices."""
    graph = Graph()
    y = convolution(graph, quantized_src(graph, (1, 16, 12, 12), "u8", 3), (64, 16, 3, 3))
    numbers = graph.quantize(y, 0.25, 8)
    whole = numbers if moved else graph.dequantize(numbers, 0.25, 8)
    halves = [
        graph.node("slice", [whole], begin=[0, begin, 0, 0], size=[1, 32, 10, 10])
        for begin in (0, 32)
    ]
    if moved:
        halves = [graph.dequantize(half, 0.25, 8) for half in halves]
    graph.output(graph.quantize(graph.mul(*halves), 0.5, 100))
    check(graph, "u8", slack=20)


# Traps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(5, 5), (7, 7), (8, 8)])
@pytest.mark.parametrize("channels", [16, 64, 192])
def test_zero_points_where_the_layout_changes(channels, size):
    """Channels-last numbers as a row-major result, and the other way round."""
    graph = Graph()
    x = graph.dequantize(graph.input(1, *size, channels, dtype="u8"), 0.02, 5)
    graph.output(graph.node("transpose", [x], axes=[0, 3, 1, 2]))
    check(graph)
    graph = Graph()
    x = graph.node("transpose", [graph.input(1, *size, channels)], axes=[0, 3, 1, 2])
    graph.output(graph.quantize(x, 0.02, 5, "s8"))
    check(graph, "s8")


@pytest.mark.parametrize("width", range(3, 12))
@pytest.mark.parametrize("zero_point", [0, 3])
def test_every_number_of_points(width, zero_point):
    """1 × 1 convolutions of which one implementation writes behind its result."""
    graph = Graph()
    x = quantized_src(graph, (1, 64, 3, width), "u8", zero_point)
    other = graph.eltwise(graph.input(1, 64, 3, width))
    y = convolution(graph, x, (64, 64, 1, 1), post_ops=[binary("add", other)])
    graph.output(graph.quantize(y, 0.05, 100, "u8"))
    check(graph, "u8")
    graph.precision = "bf16"
    expected = reference(graph)
    (got,) = run(start(graph), graph.input_data, [expected[0].shape], np.uint8)
    assert np.abs(got.astype(int) - expected[0]).max() <= 2


@pytest.mark.parametrize("kind", ["quantize", "dequantize"])
def test_zero_points_of_channels(kind):
    """oneDNN has one for all: it is refused, and right where they are alike or constant."""
    graph = Graph()
    points = np.arange(8)
    if kind == "quantize":
        graph.output(graph.quantize(graph.input(2, 8, 5), [0.1] * 8, points, "u8", axis=1))
    else:
        numbers = graph.input(2, 8, 5, dtype="u8")
        graph.output(graph.dequantize(numbers, [0.1] * 8, points, axis=1))
    with pytest.raises(Unsupported, match="that oneDNN can quantize or dequantize"):
        supports(graph)
    constants = Graph()
    numbers = constants.dequantize(constants.constant(2, 8, 5, dtype="u8"), [0.1] * 8, points, 1)
    check(constants.output(constants.add(constants.input(2, 8, 5), numbers)))


def test_scales_of_images_are_not_cut():
    graph = Graph()
    x = graph.dequantize(graph.input(4, 16, 5, 5, dtype="u8"), [0.1, 0.2, 0.3, 0.4], axis=0)
    graph.output(graph.convolution(x, (16, 16, 3, 3)))
    check(graph)
    check(graph.tune(chunk=1))


def test_sums_of_32_bits_beside_a_precision():
    graph = Graph()
    bias = graph.dequantize(graph.constant(16, dtype="s32"), 0.001)
    graph.output(
        graph.convolution(quantized_src(graph, (1, 16, 9, 9)), (16, 16, 3, 3), bias),
        graph.dequantize(graph.input(3, 5, dtype="s32"), 0.3),
    )
    graph.precision = "bf16"
    expected = reference(graph)
    got = run(start(graph), graph.input_data, [e.shape for e in expected])
    assert_close(got, expected, 0.01)
    assert_close(got[1:], expected[1:])


def test_a_concat_of_numbers_of_two_dtypes():
    graph = Graph()
    parts = [graph.input(1, 16, 6, 6, dtype=dtype) for dtype in ("u8", "s8")]
    parts = [
        graph.dequantize(graph.node("slice", [x], begin=[0, 0, 0, 0], size=[1, 8, 6, 6]), 0.02)
        for x in parts
    ]
    check(graph.output(graph.node("concat", parts, axis=1)))


def test_what_a_softmax_reads_is_not_rounded():
    graph = Graph()
    x = graph.dequantize(graph.input(4, 100, dtype="u8"), 0.37)
    graph.output(graph.node("softmax", [x], axis=1, log=1))
    graph.precision = "bf16"
    (expected,) = reference(graph)
    (got,) = run(start(graph), graph.input_data, [(4, 100)])
    assert_close([got], [expected], 1e-5)


NOT_QUITE = {
    "a quantize with a post-op": lambda graph, y: graph.node(
        "quantize", [y], [relu()], scales=[0.05], zero_points=[0], axis=0, dtype="s8"
    ),
    "a quantize of two": lambda graph, y: graph.node(
        "quantize", [y, y], scales=[0.05], zero_points=[0], axis=0, dtype="s8"
    ),
}


@pytest.mark.parametrize("after", ["convolution", "dequantize"])
@pytest.mark.parametrize("name", NOT_QUITE)
def test_what_is_not_quite_a_quantize(name, after):
    graph = Graph()
    x = graph.dequantize(graph.input(1, 16, 9, 9, dtype="s8"), 0.05)
    if after == "convolution":
        x = convolution(graph, x, (16, 16, 3, 3))
    graph.output(NOT_QUITE[name](graph, x))
    with pytest.raises((Unsupported, InvalidArgument)):
        start(graph)


@pytest.mark.parametrize("kind", ["reshape", "transpose", "slice", "pooling", "concat"])
def test_views_of_too_much(kind):
    graph = Graph()
    x = graph.dequantize(graph.input(1, 16, 9, 9, dtype="u8"), 0.05)
    attrs = {"shape": [16, 81], "axes": [0, 1, 3, 2], "begin": [0] * 4, "size": [1, 2, 3, 4]}
    graph.output(graph.node(kind, [x, graph.input(3)], **attrs, alg="max", axis=1))
    with pytest.raises(InvalidArgument):
        start(graph)


@pytest.mark.parametrize("axis", [1e300, -1, 9, "x", None])
def test_an_axis_that_is_none(axis):
    graph = Graph()
    weights = graph.dequantize(graph.constant(16, 8, dtype="s8"), [0.1] * 16)
    graph.nodes[-1]["attrs"]["axis"] = axis
    graph.output(graph.node("transpose", [weights], axes=[1, 0]))
    with pytest.raises(InvalidArgument):
        start(graph)
