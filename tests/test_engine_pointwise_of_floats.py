"""1 × 1 convolutions by our own kernel, of floats: the same numbers, and only where it applies."""

import json
from functools import partial

import numpy as np
import pytest
from engine_graph import (
    Graph,
    binary,
    eltwise,
    one_thread,
    pack,
    relu,
    run,
    start,
)
from networks_of_floats import (
    between,
    implementations_that_round_once,
    steps_of,
    with_whole_numbers,
)
from networks_of_floats import convolution as pointwise
from processor import AMX, AVX512, HAS_BF16

IN_BF16 = pytest.mark.skipif(
    not HAS_BF16 or AMX, reason="the kernel needs AVX-512 with bf16, and no AMX"
)
PRECISIONS = [
    pytest.param("f32", marks=pytest.mark.skipif(not AVX512, reason="the kernel needs AVX-512")),
    pytest.param("bf16", marks=IN_BF16),
]


@pytest.fixture(params=PRECISIONS)
def precision(request):
    return request.param


CLIP = eltwise("clip", -6.0, 17.0)


def implementations(steps):
    return [step["impl"] for step in steps]


SHAPES = {
    "pixels in sixes": ((1, 32, 4, 9), 64),
    "other numbers of pixels": ((1, 64, 5, 5), 128),
    "a line of pixels": ((1, 48, 1, 2), 192),
    "images": ((3, 64, 7, 5), 64),
    "more than a chunk of pixels": ((1, 16, 13, 29), 64),
    "fewer channels than a block": ((1, 64, 6, 7), 48),
    "more channels than blocks": ((1, 20, 6, 7), 112),
    "many channels": ((1, 514, 7, 7), 256),
    "a vector": ((1, 32, 5, 11), 16),
    "half a vector": ((1, 16, 3, 9), 8),
    "two vectors, of one a part": ((2, 64, 9, 8), 24),
    "two vectors of a second block": ((1, 64, 9, 8), 96),
    "three vectors, of one a part": ((1, 64, 7, 9), 64 + 41),
    "two pixels": ((1, 64, 2, 1), 64 + 32),
}


@pytest.mark.parametrize("threads", ["one thread", "all"])
@pytest.mark.parametrize("adds", [False, True], ids=["alone", "adds"])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, adds, threads, precision):
    shape, out = SHAPES[name]

    def make(graph, x):
        post_ops = ()
        if adds:
            other = pointwise(graph, x, shape[1], out, bias=False)
            post_ops = [binary("add", other)]
        return pointwise(graph, x, shape[1], out, post_ops=post_ops)

    graph = between(make, shape, out, precision)
    if threads == "all":
        steps = steps_of(graph)
    else:
        with one_thread():
            steps = steps_of(graph)
    ours = [step for step in steps if step["impl"] == "pointwise"]
    assert len(ours) == 1 + adds
    for step in ours:
        assert {step["dtypes"][name] for name in ("src", "weights", "dst")} == {precision}
    assert ours[-1]["post_ops"] == ("sum" if adds else "")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("adds", [False, True], ids=["alone", "adds"])
@pytest.mark.parametrize("post_op", [None, relu(), CLIP], ids=["", "relu", "clip"])
def test_post_ops(post_op, adds, bias, precision):
    def make(graph, x):
        post_ops = [post_op] if post_op else []
        if adds:
            post_ops.insert(
                0, binary("add", graph.eltwise(pointwise(graph, x), "linear", 2.0, 1.0))
            )
        return pointwise(graph, x, bias=bias, post_ops=post_ops)

    assert (
        implementations(steps_of(between(make, precision=precision))).count("pointwise") == 1 + adds
    )


@IN_BF16
def test_it_rounds_once():
    assert "pointwise" in implementations_that_round_once()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number(value, precision):
    """It stays in its pixel, whatever follows."""
    for post_op in relu(), CLIP:
        graph = between(
            lambda g, x, op=post_op: pointwise(g, x, post_ops=[op]), precision=precision
        )
        graph.input_data[0][0, 3, 2, 4] = value
        weights = next(a for a in graph.constant_data if a.shape == (64, 32, 1, 1))
        weights[:, 3] = np.where(np.arange(64) % 2, 1, -1).reshape(64, 1, 1)
        engine = start(graph)
        (got,) = run(engine, graph.input_data, [(1, 64, 7, 9)])
        assert "pointwise" in implementations(engine.profile()["steps"])
        graph.input_data[0][0, 3, 2, 4] = 0
        (without,) = run(engine, graph.input_data, [(1, 64, 7, 9)])
        far = np.ones((7, 9), bool)
        far[0:5, 2:7] = False
        assert np.array_equal(got[:, :, far], without[:, :, far])


def test_an_addend_that_is_read_again(precision):
    """As src of the same node, and by a later one."""
    graph = Graph()
    graph.precision = precision
    x = graph.convolution(
        graph.input(1, 64, 6, 6), (64, 1, 3, 3), groups=64, padding_l=1, padding_r=1
    )
    first = pointwise(graph, x, 64, post_ops=[binary("add", x), CLIP])
    second = pointwise(graph, first, 64, post_ops=[binary("add", first), CLIP])
    third = pointwise(graph, first, 64, post_ops=[binary("add", second), CLIP])
    last = pointwise(graph, third, 64, post_ops=[binary("add", second), CLIP])
    graph.output(graph.convolution(last, (64, 1, 3, 3), groups=64, padding_l=1, padding_r=1))
    steps = steps_of(with_whole_numbers(graph.tune("channels_last")))
    assert implementations(steps).count("pointwise") == 4


def test_an_empty_batch(precision):
    graph = between(pointwise, (0, 32, 5, 5), precision=precision)
    (got,) = run(start(graph), graph.input_data, [(0, 64, 5, 5)])
    assert got.shape == (0, 64, 5, 5)


def test_weights_are_packed_at_build(precision):
    """They are the caller's memory then, not a copy."""
    graph = between(pointwise, precision=precision)
    text, packed = pack(graph, graph.constant_data, tune="nothing")
    tags = [c.get("packed", {}).get("tag") for c in json.loads(text)["constants"]]
    assert {"f32": "Acdb64a", "bf16": "AcdB64a2b"}[precision] in tags
    assert len(packed) == len(graph.constants)


def test_another_layout(precision):
    steps = steps_of(between(pointwise, precision=precision, layout="blocked"))
    assert "pointwise" not in implementations(steps)


def test_a_choice_of_another_is_kept_to(precision):
    graph = between(pointwise, precision=precision)
    node = next(i for i, n in enumerate(graph.nodes) if n["attrs"].get("groups", 1) == 1)
    other = {"f32": "brgconv_1x1:avx512_core", "bf16": "brgconv_1x1:avx512_core_bf16"}[precision]
    graph.tune("channels_last", implementations=[[node, other]])
    assert implementations(steps_of(graph))[node] == other


NEAR_MISSES = {
    "fewer channels": lambda between: between(lambda g, x: pointwise(g, x, 12), (1, 12, 9, 11)),
    "another kernel": lambda between: between(lambda g, x: pointwise(g, x, kernel=(1, 2))),
    "strides": lambda between: between(lambda g, x: pointwise(g, x, strides=2)),
    "padding": lambda between: between(lambda g, x: pointwise(g, x, padding_l=1)),
    "groups": lambda between: between(lambda g, x: pointwise(g, x, groups=2)),
    "a leaky ReLU": lambda between: between(lambda g, x: pointwise(g, x, post_ops=[relu(0.5)])),
    "another activation": lambda between: between(
        lambda g, x: pointwise(g, x, post_ops=[eltwise("linear", 2.0, 1.0)])
    ),
    "two post-ops": lambda between: between(lambda g, x: pointwise(g, x, post_ops=[CLIP, relu()])),
    "a product": lambda between: between(
        lambda g, x: pointwise(g, x, post_ops=[binary("mul", g.constant(1, 64, 1, 1))])
    ),
    "an addend for each channel": lambda between: between(
        lambda g, x: pointwise(g, x, post_ops=[binary("add", g.constant(1, 64, 1, 1))])
    ),
    "weights from outside": lambda between: between(
        lambda g, x: g.convolution(x, g.input(64, 32, 1, 1), g.constant(64))
    ),
    "a bias from outside": lambda between: between(
        lambda g, x: g.convolution(x, (64, 32, 1, 1), g.input(64))
    ),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name, precision):
    graph = NEAR_MISSES[name](partial(between, precision=precision))
    assert "pointwise" not in implementations(steps_of(graph))
