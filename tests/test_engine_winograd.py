"""Convolutions by Winograd's algorithm: the same numbers, and only where it applies."""

import json

import numpy as np
import pytest
from engine_graph import (
    Engine,
    Graph,
    InvalidArgument,
    addition_and_relu,
    binary,
    build_info,
    check,
    eltwise,
    one_thread,
    pack,
    reference,
    relu,
    run,
    run_python,
    start,
)
from processor import AVX512, OWN_KERNELS
from test_engine import sum_beside_a_concat

pytestmark = pytest.mark.skipif(not OWN_KERNELS, reason="the kernels need AVX2")

# By tile, of the largest result. The usual points of m = 4 and 3 × 3, 0, ±1, ±2, ∞, come to 7e-6.
TOLERANCE = {
    (3, 3): {2: 1e-6, 4: 3e-6},
    (5, 5): {2: 2e-6, 4: 8e-6},
    (1, 3): {2: 1e-6, 4: 1e-6},
    (3, 1): {2: 1e-6, 4: 1e-6},
    (1, 7): {2: 2e-6, 4: 4e-6},
    (7, 1): {2: 2e-6, 4: 4e-6},
}
KERNELS = list(TOLERANCE)
CHANNELS = 32


def kernel_of(graph, node):
    (weights,) = (c for c in graph.constants if c["id"] == graph.nodes[node]["inputs"][1])
    return tuple(weights["shape"][2:])


def check_winograd(graph, node, tile, layout="blocked", stripes=1):
    """Require the node's convolution by the algorithm, in so many stripes, and the right result."""
    tolerance = TOLERANCE[kernel_of(graph, node)][tile]
    result = check(graph.tune(layout, [[node, tile]]), tolerance)
    kinds = [step["kind"] for step in result.steps]
    for kind in ("winograd_src", "matmul", "winograd_dst"):
        assert kinds.count(kind) == stripes
    return result.steps


def check_direct(graph, node):
    for tile in (2, 4):
        steps = check(graph.tune("blocked", [[node, tile]])).steps
        assert "winograd_src" not in [step["kind"] for step in steps]


def between(make, shape=(1, CHANNELS, 9, 11), channels=CHANNELS):
    """Return a graph with `make(graph, x)` between two convolutions, and that node's number."""
    graph = Graph()
    x = graph.convolution(graph.input(*shape), (shape[1], shape[1], 1, 1))
    y = make(graph, x)
    number = len(graph.nodes) - 1
    graph.output(graph.convolution(y, (16, channels, 1, 1)))
    return graph, number


def convolution(graph, x, out=CHANNELS, channels=CHANNELS, kernel=(3, 3), bias=True, **attrs):
    half = [size // 2 for size in kernel]
    attrs = {"padding_l": half, "padding_r": half, **attrs}
    return graph.convolution(
        x, (out, channels, *kernel), graph.constant(out) if bias else None, **attrs
    )


@pytest.mark.parametrize("layout", ["blocked", "channels_last"])
@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("shape", "padding_l", "padding_r"),
    [
        ((1, 32, 8, 8), 1, 1),
        ((1, 32, 9, 11), 1, 1),
        ((3, 32, 7, 5), 1, 1),  # a batch; tiles that the image does not fill
        ((2, 32, 10, 6), 0, 0),
        ((1, 32, 5, 9), [2, 0], [0, 2]),
        ((1, 32, 4, 4), 3, 4),  # a tile with nothing of the image in it
        ((1, 32, 3, 3), 0, 0),  # one result
        ((1, 32, 1, 2), 1, 1),
    ],
)
def test_shapes(shape, padding_l, padding_r, kernel, tile, layout):
    """The padding is that of a 3 x 3 kernel; a longer side gets more, one of 1 less."""

    def padding(widths):
        widths = np.broadcast_to(widths, 2)
        return [max(int(w) + k // 2 - 1, 0) for w, k in zip(widths, kernel, strict=True)]

    def make(graph, x):
        paddings = {"padding_l": padding(padding_l), "padding_r": padding(padding_r)}
        return convolution(graph, x, 48, kernel=kernel, **paddings)

    check_winograd(*between(make, shape, 48), tile, layout)


STRIPES = [
    ((3, 3), 2, 5),
    ((3, 3), 4, 3),
    ((5, 5), 2, 11),
    ((5, 5), 4, 5),
    ((1, 7), 2, 5),
    ((1, 7), 4, 3),
    ((7, 1), 2, 5),
    ((7, 1), 4, 3),
]


@pytest.mark.parametrize(("kernel", "tile", "stripes"), STRIPES)
def test_stripes(kernel, tile, stripes):
    """What does not fit into the cache is computed in parts, of which the last may be smaller."""
    graph, node = between(lambda g, x: convolution(g, x, kernel=kernel), (2, CHANNELS, 75, 60))
    check_winograd(graph, node, tile, stripes=stripes)


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_rounding(kernel, tile):
    """The error is at most what the README says, and a few times oneDNN's own convolution's.

    How many times depends on the processor: the longer its vectors, the better that one adds up.
    """
    errors = {"convolution": [], "winograd_dst": []}
    for seed in range(4):
        graph = Graph(seed=seed)
        graph.output(convolution(graph, graph.input(1, 64, 12, 12), 64, 64, kernel))
        (expected,) = reference(graph)
        for kind, winograd in (("convolution", []), ("winograd_dst", [[0, tile]])):
            engine = start(graph.tune("blocked", winograd))
            assert kind in [step["kind"] for step in engine.profile()["steps"]]
            (got,) = run(engine, graph.input_data, [expected.shape])
            errors[kind].append(np.abs(got - expected).max() / np.abs(expected).max())
    assert max(errors["winograd_dst"]) <= {2: 2e-6, 4: 8e-6}[tile]
    limit = {2: 8, 4: 20}[tile]
    assert np.mean(errors["winograd_dst"]) <= limit * np.mean(errors["convolution"])


@pytest.mark.parametrize("layout", ["blocked", "channels_last"])
@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("alpha", [None, 0.0, 0.25])
@pytest.mark.parametrize("addend", [None, "dies", "lives"])
@pytest.mark.parametrize("kernel", [(3, 3), (5, 5), (1, 3), (7, 1)])
def test_post_ops(kernel, addend, alpha, bias, tile, layout):
    def make(graph, x):
        post_ops = addition_and_relu(graph, x, CHANNELS, addend, alpha)
        return convolution(graph, x, kernel=kernel, bias=bias, post_ops=post_ops)

    check_winograd(*between(make), tile, layout)


@pytest.mark.parametrize(("kernel", "tile", "stripes"), STRIPES)
@pytest.mark.parametrize("lives", [False, True])
def test_additions_in_stripes(lives, kernel, tile, stripes):
    def make(graph, x):
        other = graph.convolution(x, (CHANNELS, CHANNELS, 1, 1))
        if lives:
            graph.output(other)
        return convolution(graph, x, kernel=kernel, post_ops=[binary("add", other), relu()])

    graph, node = between(make, (2, CHANNELS, 75, 60))
    check_winograd(graph, node, tile, stripes=stripes)


def test_an_addition_is_done_in_place():
    def make(graph, x):
        other = graph.convolution(x, (CHANNELS, CHANNELS, 1, 1))
        return convolution(graph, x, post_ops=[binary("add", other), relu()])

    steps = check_winograd(*between(make), 4)
    (step,) = (step for step in steps if step["kind"] == "winograd_dst")
    assert step["post_ops"] == "sum+eltwise_relu"
    assert step["impl"] == "winograd"


def test_results_go_into_a_concat():
    graph = Graph()
    x = graph.convolution(graph.input(1, CHANNELS, 9, 8), (CHANNELS, CHANNELS, 1, 1))
    y = convolution(graph, x)
    node = len(graph.nodes) - 1
    z = graph.node("concat", [y, graph.convolution(x, (16, CHANNELS, 1, 1))], axis=1)
    graph.output(graph.convolution(z, (16, CHANNELS + 16, 1, 1)))
    steps = check_winograd(graph, node, 2)
    assert "concat" not in [step["kind"] for step in steps]


@pytest.mark.parametrize("tile", [2, 4])
def test_a_copy_in_a_concat_is_not_overwritten(tile):
    check_winograd(sum_beside_a_concat(), 3, tile)


def test_the_caller_s_tensors():
    """Inputs and outputs are bound anew for each run."""
    graph = Graph()
    graph.output(convolution(graph, graph.input(1, CHANNELS, 6, 6)))
    check_winograd(graph, 0, 4, "channels_last")


NEAR_MISSES = {
    "strides": lambda g, x: convolution(g, x, strides=2),
    "a stride": lambda g, x: convolution(g, x, strides=[1, 2]),
    "a stride along a side of 1": lambda g, x: convolution(g, x, kernel=(1, 7), strides=[2, 1]),
    "dilation": lambda g, x: convolution(g, x, dilation=2),
    "dilation of 7 x 1": lambda g, x: convolution(g, x, kernel=(7, 1), dilation=[2, 1]),
    "dilation of 5 x 5": lambda g, x: convolution(g, x, kernel=(5, 5), dilation=2),
    **{
        f"{height} x {width}": lambda g, x, kernel=(height, width): convolution(g, x, kernel=kernel)
        for height, width in [
            (1, 1),
            (2, 2),
            (2, 3),
            (1, 5),
            (5, 1),
            (3, 5),
            (7, 3),
            (7, 7),
            (1, 9),
        ]
    },
    "groups": lambda g, x: convolution(g, x, channels=CHANNELS // 2, groups=2),
    "groups of 1 x 3": lambda g, x: convolution(
        g, x, channels=CHANNELS // 2, kernel=(1, 3), groups=2
    ),
    "channels": lambda g, x: convolution(
        g, g.convolution(x, (20, CHANNELS, 1, 1)), channels=20, out=CHANNELS
    ),
    "another post-op": lambda g, x: convolution(g, x, post_ops=[eltwise("clip", 0.0, 6.0)]),
    "an addition after": lambda g, x: convolution(g, x, post_ops=[relu(), binary("add", x)]),
    "two additions": lambda g, x: convolution(g, x, post_ops=[binary("add", x)] * 2),
    "a broadcast addition": lambda g, x: convolution(
        g, x, post_ops=[binary("add", g.constant(1, CHANNELS, 1, 1))]
    ),
    "a multiplication": lambda g, x: convolution(g, x, post_ops=[binary("mul", x)]),
    "given weights": lambda g, x: g.convolution(
        x, g.input(CHANNELS, CHANNELS, 3, 3), padding_l=1, padding_r=1
    ),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name):
    check_direct(*between(NEAR_MISSES[name]))


def test_out_channels_that_are_no_whole_vectors():
    check_direct(*between(lambda g, x: convolution(g, x, out=20), channels=20))


def test_three_dimensions():
    graph = Graph()
    x = graph.convolution(graph.input(1, CHANNELS, 5, 5, 5), (CHANNELS, CHANNELS, 1, 1, 1))
    graph.output(graph.convolution(x, (CHANNELS, CHANNELS, 3, 3, 3)))
    check_direct(graph, 1)


def test_one_dimension():
    graph = Graph()
    x = graph.convolution(graph.input(1, CHANNELS, 9), (CHANNELS, CHANNELS, 1))
    graph.output(graph.convolution(x, (CHANNELS, CHANNELS, 3)))
    check_direct(graph, 1)


@pytest.mark.parametrize(("kernel", "channels", "size"), [((3, 3), 64, 56), ((7, 1), 128, 17)])
def test_it_is_chosen_by_measurement(kernel, channels, size):
    """64 channels of 56 × 56 are where it wins most: 2 to 4 times; InceptionV3's 7 × 1: twice."""
    graph, node = between(
        lambda g, x: convolution(g, x, channels, channels, kernel),
        (1, channels, size, size),
        channels,
    )
    (expected,) = reference(graph)
    with one_thread():
        text, packed = pack(graph, graph.constant_data, tune="all")
    chosen = [number for number, _ in json.loads(text)["tuned"]["winograd"]]
    if build_info()["isa"] == "AVX2" or kernel == (3, 3):  # with AVX-512, 7 × 1 was not measured
        assert chosen == [node]
    engine = Engine(text)
    engine.set_constants(packed)
    result = np.empty(expected.shape, np.float32)
    engine.run_into(graph.input_data, [result])
    np.testing.assert_allclose(result, expected, atol=TOLERANCE[kernel][4] * np.abs(expected).max())
    kinds = [step["kind"] for step in engine.profile()["steps"]]
    assert ("winograd_src" in kinds) == bool(chosen)


def test_only_layouts_are_chosen():
    graph, _ = between(lambda g, x: convolution(g, x, 64, 64), (1, 64, 56, 56), 64)
    text, _ = pack(graph, graph.constant_data, tune="layouts")
    assert json.loads(text)["tuned"]["winograd"] == []


def test_an_instruction_set_without_kernels():
    code = (
        "from test_engine_winograd import between, check_direct, convolution\n"
        "from engine_graph import build_info\n"
        "assert build_info()['isa'] == 'SSE41'\n"
        "check_direct(*between(convolution))\n"
    )
    process = run_python(code, ONEDNN_MAX_CPU_ISA="SSE41")
    assert process.returncode == 0, process.stderr


def test_wrong_tile():
    graph, node = between(convolution)
    with pytest.raises(InvalidArgument, match="expected a Winograd tile of 2 or 4, got 3"):
        Engine(graph.tune("blocked", [[node, 3]]))


def test_a_number_of_no_convolution():
    graph, _ = between(lambda g, x: g.pooling(convolution(g, x), "max", [3, 3]))
    check_direct(graph, len(graph.nodes) - 2)
    check_direct(graph, 77)


@pytest.mark.skipif(not AVX512, reason="oneDNN multiplies elsewhere")
@pytest.mark.parametrize(
    ("out", "ours"),
    [(64, True), (48, True), (112, True), (32, False), (80, False)],
)
def test_who_multiplies(out, ours):
    """Our own kernel, where blocks of 64 channels are not much larger than what there is."""
    steps = check_winograd(*between(lambda g, x: convolution(g, x, out), channels=out), 4)
    (step,) = (step for step in steps if step["kind"] == "matmul")
    assert (step["impl"] == "winograd") == ours
