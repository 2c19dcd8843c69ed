"""3 × 3 convolutions of groups narrower than a vector: the same numbers, and only where it applies.

In each layout they stand between two convolutions that agree on it.
"""

import pytest
from engine_graph import (
    Graph,
    addition_and_relu,
    binary,
    check,
    eltwise,
    relu,
    with_avx2,
)
from processor import OWN_KERNELS, VECTOR

GROUPS = [4] if VECTOR == 8 else [4, 8]
CHANNELS = 32

pytestmark = pytest.mark.skipif(not OWN_KERNELS, reason="the kernels need AVX2")


def grouped(graph, x, group=4, channels=CHANNELS, kernel=(3, 3), bias=True, out=None, **attrs):
    out = out or channels
    return graph.convolution(
        x,
        (out, group, *kernel),
        graph.constant(out) if bias else None,
        groups=channels // group,
        **{"padding_l": [size // 2 for size in kernel], **attrs},
    )


def between(make, shape=(1, CHANNELS, 9, 11), out=None):
    """Return a graph with `make(graph, x)` between two convolutions."""
    graph = Graph()
    x = graph.convolution(graph.input(*shape), (shape[1], shape[1], *(1 for _ in shape[2:])))
    y = make(graph, x)
    graph.output(graph.convolution(y, (16, out or shape[1], *(1 for _ in shape[2:]))))
    return graph


def step_of(graph, layout="blocked"):
    """Check a graph, and return the step of its grouped convolution."""
    tuned = graph.tune(layout) if layout else graph
    (step,) = (step for step in check(tuned).steps if step["impl"] == "grouped")
    assert step["kind"] == "convolution"
    return step


@pytest.mark.parametrize("layout", ["blocked", "channels_last"])
@pytest.mark.parametrize("strides", [[1, 1], [2, 2], [1, 2], [3, 1]])
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(
    ("shape", "padding_l", "padding_r"),
    [
        ((1, 32, 8, 8), 1, 1),
        ((1, 48, 9, 11), 1, 1),
        ((3, 32, 7, 27), 1, 1),  # a batch; rows of more than a tile
        ((2, 32, 10, 6), 0, 0),
        ((1, 32, 5, 19), [2, 0], [0, 2]),
        ((1, 32, 4, 4), 3, 4),  # results of nothing but padding
        ((1, 32, 3, 3), 0, 0),  # one result
        ((1, 32, 1, 2), 1, 1),
    ],
)
def test_shapes(shape, padding_l, padding_r, group, strides, layout):
    def make(graph, x):
        return grouped(
            graph, x, group, shape[1], strides=strides, padding_l=padding_l, padding_r=padding_r
        )

    step_of(between(make, shape), layout)


@pytest.mark.parametrize("layout", ["blocked", "channels_last"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("alpha", [None, 0.0, 0.25])
@pytest.mark.parametrize("addend", [None, "dies", "lives"])
@pytest.mark.parametrize("group", GROUPS)
def test_post_ops(group, addend, alpha, bias, layout):
    def make(graph, x):
        post_ops = addition_and_relu(graph, x, CHANNELS, addend, alpha)
        return grouped(graph, x, group, bias=bias, padding_r=1, post_ops=post_ops)

    expected = {None: [], "dies": ["sum"], "lives": ["binary_add"]}[addend]
    expected += [] if alpha is None else ["eltwise_relu"]
    assert step_of(between(make), layout)["post_ops"] == "+".join(expected)


def test_results_go_into_a_concat():
    graph = Graph()
    x = graph.convolution(graph.input(1, CHANNELS, 9, 8), (CHANNELS, CHANNELS, 1, 1))
    other = graph.convolution(x, (CHANNELS, CHANNELS, 1, 1))
    y = grouped(graph, x, padding_r=1, post_ops=[binary("add", other)])
    z = graph.node("concat", [graph.convolution(x, (16, CHANNELS, 1, 1)), y], axis=1)
    graph.output(graph.convolution(z, (16, CHANNELS + 16, 1, 1)))
    assert step_of(graph)["post_ops"] == "sum"
    steps = check(graph.tune("blocked")).steps
    assert "concat" not in [step["kind"] for step in steps]


def test_batches_in_chunks_and_sizes_unknown():
    graph = Graph()
    x = graph.convolution(graph.input(3, CHANNELS, 6, 6), (CHANNELS, CHANNELS, 1, 1))
    graph.output(grouped(graph, x))
    step_of(graph, layout=None)


@pytest.mark.parametrize("strides", [1, 2])
def test_the_caller_s_tensors(strides):
    """Inputs and outputs, channels last here, are bound anew for each run."""
    graph = Graph()
    x = graph.node("transpose", [graph.input(2, 6, 9, CHANNELS)], axes=[0, 3, 1, 2])
    y = grouped(graph, x, strides=strides)
    graph.output(graph.node("transpose", [y], axes=[0, 2, 3, 1]))
    steps = check(graph.tune("channels_last"))
    assert "grouped" in [step["impl"] for step in steps.steps]
    assert steps.profile["reorders"] == 0


def test_shared_weights():
    """They are arranged for the one, and put together with zeros for the other."""
    graph = Graph()
    weights = graph.constant(CHANNELS, 4, 3, 3)
    x = graph.convolution(graph.input(1, CHANNELS, 9, 8), (CHANNELS, CHANNELS, 1, 1))
    for dilation in (1, 2):
        x = graph.convolution(x, weights, groups=8, padding_l=1, padding_r=1, dilation=dilation)
    graph.output(graph.convolution(x, (16, CHANNELS, 1, 1)))
    step_of(graph)


NEAR_MISSES = {
    "groups of 2": lambda g, x: grouped(g, x, 2),
    "groups of a vector": lambda g, x: grouped(g, x, VECTOR),
    "groups of 16": lambda g, x: grouped(g, x, 16),
    "no groups": lambda g, x: grouped(g, x, CHANNELS),
    "depthwise": lambda g, x: grouped(g, x, 1),
    "more results than data": lambda g, x: grouped(g, x, out=2 * CHANNELS),
    "5 x 5": lambda g, x: grouped(g, x, kernel=(5, 5)),
    "1 x 1": lambda g, x: grouped(g, x, kernel=(1, 1)),
    "3 x 1": lambda g, x: grouped(g, x, kernel=(3, 1)),
    "strides of 3": lambda g, x: grouped(g, x, strides=3),
    "dilation": lambda g, x: grouped(g, x, dilation=2),
    "another post-op": lambda g, x: grouped(g, x, post_ops=[eltwise("clip", 0.0, 6.0)]),
    "an addition after": lambda g, x: grouped(
        g, x, padding_r=1, post_ops=[relu(), binary("add", x)]
    ),
    "a broadcast addition": lambda g, x: grouped(
        g, x, post_ops=[binary("add", g.constant(1, CHANNELS, 1, 1))]
    ),
    "given weights": lambda g, x: g.convolution(
        x, g.input(CHANNELS, 4, 3, 3), groups=CHANNELS // 4
    ),
}


@pytest.mark.parametrize("layout", ["blocked", "channels_last"])
@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name, layout):
    out = 2 * CHANNELS if "more" in name else CHANNELS
    steps = check(between(NEAR_MISSES[name], out=out).tune(layout)).steps
    assert "grouped" not in [step["impl"] for step in steps]


@pytest.mark.parametrize("channels", [20, 24] if VECTOR == 16 else [20])
def test_channels_that_are_no_whole_vectors(channels):
    graph = between(lambda g, x: grouped(g, x, channels=channels), (1, channels, 9, 11))
    assert "grouped" not in [step["impl"] for step in check(graph.tune("blocked")).steps]


def test_other_dimensions():
    for size in ((9,), (5, 5, 5)):
        kernel = (3,) * len(size)
        graph = between(lambda g, x, k=kernel: grouped(g, x, kernel=k), (1, CHANNELS, *size))
        assert "grouped" not in [step["impl"] for step in check(graph.tune("blocked")).steps]


@pytest.mark.parametrize("what", ["shapes", "post_ops", "near_misses"])
def test_avx2(what):
    with_avx2(__file__, what)


def test_a_lower_precision_is_for_onednn():
    graph = between(lambda g, x: grouped(g, x))
    graph.precision = "bf16"
    steps = check(graph.tune("blocked"), 3e-2).steps
    assert "grouped" not in [step["impl"] for step in steps]
