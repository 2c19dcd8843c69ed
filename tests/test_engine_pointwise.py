"""1 × 1 convolutions by our own kernel, of whole numbers: the same, and only where it applies."""

import numpy as np
import pytest
from convolution_of_numbers import (
    CLIP,
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
from processor import AMX, VNNI

pytestmark = pytest.mark.skipif(
    not VNNI or AMX, reason="the kernel needs AVX-512 with VNNI, no AMX"
)


def pointwise(shape, out=64, *args, kernel=(1, 1), groups=1, **kwargs):
    return convolution(shape, (out, shape[1] // groups, *kernel), *args, groups=groups, **kwargs)


def implementations(steps):
    return [step["impl"] for step in steps]


SHAPES = {
    "pixels in sixes": ((1, 32, 4, 9), 64),
    "other numbers of pixels": ((1, 64, 5, 5), 128),
    "one pixel": ((1, 48, 1, 1), 192),
    "images": ((3, 64, 7, 5), 64),
    "more than a chunk of pixels": ((1, 16, 13, 29), 64),
    "fewer channels than a block": ((1, 64, 6, 7), 48),
    "more channels than blocks": ((1, 20, 6, 7), 117),
    "a vector": ((1, 32, 5, 11), 16),
    "two vectors, of three a part": ((2, 64, 9, 8), 96 + 9),
    "three vectors": ((1, 64, 7, 9), 64 + 48),
    "many channels": ((1, 516, 7, 7), 256),
}


@pytest.mark.parametrize("threads", ["one thread", "all"])
@pytest.mark.parametrize("addend", [None, ("u8", 3), ("s8", -7)], ids=["alone", "u8", "s8"])
@pytest.mark.parametrize(("src", "dst"), [(("u8", 0), ("u8", 0)), (("u8", 130), ("s8", 5))])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, src, dst, addend, threads):
    graph = pointwise(*SHAPES[name], src, dst, addend=addend)
    if threads == "all":
        (step,) = steps_of(graph, dst[0])
    else:
        with one_thread():
            (step,) = steps_of(graph, dst[0])
    assert (step["kind"], step["impl"]) == ("convolution", "pointwise")
    assert step["dtypes"]["src"] == src[0]
    assert step["dtypes"]["weights"] == "s8"
    assert step["dtypes"]["dst"] == dst[0]
    assert step["post_ops"] == ("binary_add" if addend else "")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("post_ops", [[], [relu()], [CLIP]], ids=["", "relu", "clip"])
@pytest.mark.parametrize("dst", [("u8", 0), ("u8", 131), ("s8", -128), ("s8", 9)])
@pytest.mark.parametrize("addend", [None, ("u8", 255), ("s8", -128)], ids=["alone", "u8", "s8"])
@pytest.mark.parametrize("src", [("u8", 255), ("u8", 7)])
def test_what_numbers_stand_for(src, addend, dst, post_ops, bias):
    graph = pointwise((1, 44, 5, 9), 61, src, dst, bias, post_ops, addend=addend)
    assert implementations(steps_of(graph, dst[0])) == ["pointwise"]


@pytest.mark.parametrize("weight", [-128, 127])
@pytest.mark.parametrize("extreme", [0, 255])
def test_extremes(extreme, weight):
    """The largest sums, and results beyond all numbers."""
    graph = pointwise((1, 2048, 3, 3), 64, dst=("s8", 0), scales=np.geomspace(1e-6, 1, 64))
    graph.input_data[0][...] = extreme
    graph.constant_data[0][...] = weight
    assert implementations(steps_of(graph, "s8")) == ["pointwise"]


def test_sums_are_exact():
    """Large products that cancel each other: every unit of what is left counts."""
    rng = np.random.default_rng(0)
    graph = pointwise((1, 256, 7, 9), 64, ("u8", 0), ("s8", 0), bias=False)
    set_scales(graph, 1.0)
    x, weights = graph.input_data[0], graph.constant_data[0]
    x[...] = rng.choice([0, 1, 254, 255], x.shape)
    x[:, 128:] = x[:, :128]
    weights[...] = rng.choice([-127, -126, 126, 127], weights.shape)
    weights[:, 128:] = -weights[:, :128]
    weights[:, 5] += 1 - 2 * (weights[:, 5] > 0).astype(np.int8)
    sums = np.einsum("nchw,oc->nohw", x.astype(int), weights[:, :, 0, 0].astype(int))
    assert np.abs(sums).max() > 200
    engine = start(graph)
    (got,) = run(engine, graph.input_data, [sums.shape], np.int8)
    assert np.array_equal(got, np.clip(sums, -128, 127))
    assert "pointwise" in implementations(engine.profile()["steps"])


def test_ties_go_to_the_even_number():
    graph = pointwise((1, 64, 1, 1), bias=False, scales=[1.0])
    graph.nodes[-1]["attrs"]["scales"] = [0.04]  # two steps of src
    graph.input_data[0][...] = np.arange(64).reshape(1, 64, 1, 1)
    graph.constant_data[0][...] = np.eye(64).reshape(64, 64, 1, 1)
    (got,) = run(start(graph), graph.input_data, [(1, 64, 1, 1)], np.uint8)
    assert np.array_equal(got.ravel(), np.rint(np.arange(64) / 2))


BIASES = {
    "none": np.nan,
    "infinity": np.inf,
    "minus infinity": -np.inf,
    "much": 3e38,
    "little": -9e9,
}


@pytest.mark.parametrize("name", BIASES)
def test_biases_that_decide_alone(name):
    """One that is no number makes the least number, or what a clip leaves of that."""
    most = BIASES[name] > 0
    clip = eltwise("clip", 0.5, 1.0)
    for post_ops, expected in ([], (0, 255)), ([relu()], (9, 255)), ([clip], (31, 52)):
        for addend in None, ("u8", 3):
            graph = pointwise((1, 32, 3, 3), dst=("u8", 9), post_ops=post_ops, addend=addend)
            graph.constant_data[1][...] = BIASES[name]
            engine = start(graph)
            (got,) = run(engine, graph.input_data, [(1, 64, 3, 3)], np.uint8)
            assert (got == expected[most]).all()
            assert "pointwise" in implementations(engine.profile()["steps"])


def test_factors_that_are_too_large():
    """Then results could have more than 32 bits."""
    graph = pointwise((1, 64, 3, 3), dst=("s8", 0), scales=np.geomspace(1e-3, 1e20, 64))
    assert "pointwise" not in implementations(steps_of(graph, "s8"))


@pytest.mark.parametrize("bias", [3e38, -9e9])
def test_a_bias_beside_the_largest_of_all_else(bias):
    """The sums and the addend together do not outweigh it."""
    graph = pointwise((1, 64, 1, 1), 64, ("u8", 255 * (bias > 0)), ("s8", 0), addend=("u8", 0))
    most = 2.0**28 * (1 - 2.0**-20)
    set_scales(graph, 1.0)
    for node in graph.nodes:
        if node["kind"] == "dequantize" and len(node["attrs"]["scales"]) > 1:
            node["attrs"]["scales"] = [most / (255 * 128 * 64)] * 64
    graph.nodes[1]["attrs"]["scales"] = [most / 255]
    assert graph.nodes[1]["kind"] == "dequantize"
    graph.input_data[0][...] = 0 if bias > 0 else 255
    graph.input_data[1][...] = 255
    graph.constant_data[0][...] = -128
    graph.constant_data[1][...] = bias
    assert implementations(steps_of(graph, "s8")) == ["pointwise"]


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_an_empty_batch(is_dynamic):
    graph = pointwise((0, 64, 5, 5), addend=("u8", 3))
    if is_dynamic:
        graph.inputs = [{**tensor, "shape": [-1] * 4} for tensor in graph.inputs]
    (got,) = run(start(graph), graph.input_data, [(0, 64, 5, 5)], np.uint8)
    assert got.shape == (0, 64, 5, 5)


def residual(graph, x, addend, post_ops=(), dst=("u8", 9)):
    weights = graph.dequantize(graph.constant(64, 64, 1, 1, dtype="s8"), 0.004)
    y = graph.convolution(x, weights, graph.constant(64), [binary("add", addend), *post_ops])
    return graph.quantize(y, 0.05, dst[1], dst[0])


def test_an_addend_that_dies_is_overwritten():
    graph = Graph()
    x = graph.dequantize(graph.input(1, 64, 9, 9, dtype="u8"), 0.02, 3)
    first = graph.quantize(graph.eltwise(x, "tanh"), 0.01, 100, "u8")
    y = residual(graph, x, graph.dequantize(first, 0.01, 100), [relu()])
    graph.output(y)
    assert "pointwise" in implementations(steps_of(graph))


@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_an_addend_that_is_read_again(dtype):
    """As src of the same node, by another one, and as an output."""
    graph = Graph()
    image = graph.input(1, 64, 9, 9, dtype="u8")
    x = graph.dequantize(image, 0.02, 3)
    first = residual(graph, x, x, dst=("u8", 9))
    a = graph.dequantize(first, 0.05, 9)
    second = residual(graph, a, a, [relu()], (dtype, 5))
    b = graph.dequantize(second, 0.05, 5)
    third = residual(graph, a, b, [relu()])
    fourth = residual(graph, graph.dequantize(third, 0.05, 9), b)
    graph.output(fourth)
    steps = steps_of(graph)
    assert implementations(steps) == ["pointwise"] * 4


def test_a_sum_of_two_branches():
    """A block of a ResNet: one of the branches is overwritten."""
    graph = Graph()
    x = graph.dequantize(graph.input(2, 64, 9, 9, dtype="u8"), 0.02, 3)
    branch = graph.quantize(
        graph.convolution(x, graph.dequantize(graph.constant(64, 64, 1, 1, dtype="s8"), 0.004)),
        0.05,
        -3,
        "s8",
    )
    graph.output(residual(graph, x, graph.dequantize(branch, 0.05, -3), [relu()]))
    assert implementations(steps_of(graph)) == ["pointwise"] * 2


@pytest.mark.parametrize("name", SHARED)
def test_two_that_share_their_constants(name):
    """What is arranged for one is not taken for the other."""
    graph = two_that_share(name, (64, 64, 1, 1))
    assert implementations(steps_of(graph)) == ["pointwise"] * 2


def test_two_that_share_their_bias_with_addends_of_other_zero_points():
    graph = Graph()
    bias = graph.constant(64)
    for point in 0, 90:
        x = graph.dequantize(graph.input(1, 64, 5, 5, dtype="u8"), 0.02, 3)
        addend = graph.dequantize(graph.input(1, 64, 5, 5, dtype="u8"), 0.02, point)
        weights = graph.dequantize(graph.constant(64, 64, 1, 1, dtype="s8"), 0.004)
        y = graph.convolution(x, weights, bias, [binary("add", addend)])
        graph.output(graph.quantize(y, 0.05, 60, "u8"))
    assert implementations(steps_of(graph)) == ["pointwise"] * 2


def test_fewer_threads_than_it_was_compiled_for():
    graph = pointwise((1, 64, 28, 28))
    engine = start(graph)
    expected = reference(graph)
    with one_thread():
        got = run(engine, graph.input_data, [e.shape for e in expected], DTYPES["u8"])
    assert_numbers(got, expected)


def test_a_choice_of_another_is_kept_to():
    graph = pointwise((1, 64, 9, 11))
    node = next(i for i, node in enumerate(graph.nodes) if node["kind"] == "convolution")
    graph.tune(implementations=[[node, "brgconv_1x1:avx512_core_vnni"]])
    assert implementations(steps_of(graph)) == ["brgconv_1x1:avx512_core_vnni"]


NEAR_MISSES = {
    "signed numbers": pointwise((1, 64, 9, 11), src=("s8", 0)),
    "fewer channels": pointwise((1, 12, 9, 11)),
    "channels not in fours": pointwise((1, 66, 9, 11)),
    "another kernel": pointwise((1, 64, 9, 11), kernel=(1, 2)),
    "strides": pointwise((1, 64, 9, 11), strides=2),
    "padding": pointwise((1, 64, 9, 11), padding_l=1),
    "padding at the end": pointwise((1, 64, 9, 11), padding_r=[0, 1]),
    "groups": pointwise((1, 128, 9, 11), 128, groups=2),
    "a leaky ReLU": pointwise((1, 64, 9, 11), post_ops=[relu(0.1)]),
    "another activation": pointwise((1, 64, 9, 11), post_ops=[eltwise("tanh")]),
    "two post-ops": pointwise((1, 64, 9, 11), post_ops=[CLIP, relu()]),
    "a sum, and another activation": pointwise(
        (1, 64, 9, 11), post_ops=[eltwise("tanh")], addend=("u8", 1)
    ),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name):
    assert "pointwise" not in implementations(steps_of(NEAR_MISSES[name]))


@pytest.mark.parametrize("addend", [None, ("u8", 3), ("s8", -7)], ids=["alone", "u8", "s8"])
@pytest.mark.parametrize("post_ops", [[], [relu()], [CLIP]], ids=["", "relu", "clip"])
@pytest.mark.parametrize("name", SHAPES)
def test_results_in_floats(name, post_ops, addend):
    graph = pointwise(*SHAPES[name], ("u8", 7), post_ops=post_ops, addend=addend, whole=False)
    (step,) = steps_of(graph, "f32")
    assert (step["impl"], step["dtypes"]["dst"]) == ("pointwise", "f32")


def test_a_result_in_floats_has_no_room_in_the_place_of_bytes():
    graph = Graph()
    x = graph.dequantize(graph.input(1, 64, 9, 9, dtype="u8"), 0.02, 3)
    dies = graph.quantize(graph.eltwise(x, "tanh"), 0.01, 100, "u8")
    other = graph.quantize(graph.eltwise(x, "logistic"), 0.01, 7, "u8")
    weights = graph.dequantize(graph.constant(64, 64, 1, 1, dtype="s8"), 0.004)
    addend = graph.dequantize(dies, 0.01, 100)
    y = graph.convolution(x, weights, None, [binary("add", addend)])
    graph.output(graph.add(graph.eltwise(y, "tanh"), graph.dequantize(other, 0.01, 7)))
    (step,) = (step for step in steps_of(graph, "f32") if step["impl"] == "pointwise")
    assert step["dtypes"]["dst"] == "f32"
    assert step["post_ops"] == "binary_add"


def test_results_in_floats_that_others_read():
    """The largest are no numbers that have to fit into 32 bits."""
    graph = pointwise((1, 64, 5, 6), scales=np.geomspace(1e-3, 1e20, 64), whole=False)
    y = graph.outputs.pop()
    graph.output(graph.eltwise(y, "tanh"), y)
    graph.constant_data[1][3] = np.nan
    engine = start(graph)
    tanh, y = run(engine, graph.input_data, [(1, 64, 5, 6)] * 2)
    expected = reference(graph)[1]
    np.testing.assert_allclose(y, expected, rtol=1e-5)
    assert np.isnan(y[:, 3]).all()
    np.testing.assert_allclose(tanh, np.tanh(y), atol=1e-5)
    assert "pointwise" in implementations(engine.profile()["steps"])


ADDENDS = {
    "floats": lambda graph: graph.input(1, 64, 9, 9),
    "one number for each channel": lambda graph: graph.dequantize(
        graph.input(1, 64, 1, 1, dtype="u8"), 0.05, 3
    ),
    "a scale for each channel": lambda graph: graph.dequantize(
        graph.input(1, 64, 9, 9, dtype="u8"), np.geomspace(0.01, 0.1, 64), axis=1
    ),
    "a constant": lambda graph: graph.dequantize(graph.constant(1, 64, 9, 9, dtype="u8"), 0.05, 3),
}


@pytest.mark.parametrize("name", ADDENDS)
def test_other_addends(name):
    graph = Graph()
    x = graph.dequantize(graph.input(1, 64, 9, 9, dtype="u8"), 0.02, 3)
    graph.output(residual(graph, x, ADDENDS[name](graph)))
    assert "pointwise" not in implementations(steps_of(graph))
