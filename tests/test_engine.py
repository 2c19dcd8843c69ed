"""Every kind of node against NumPy in float64, and post-ops: right, in the primitive, and fast."""

import contextlib
import itertools
from pathlib import Path

import numpy as np
import pytest
from engine_graph import (
    Engine,
    EngineError,
    Graph,
    Unsupported,
    binary,
    build_info,
    check,
    eltwise,
    reference,
    relu,
    run,
    run_python,
    start,
    supports,
)


def check_fast(graph, tolerance=1e-5):
    """Check a graph for which oneDNN has fast implementations."""
    supports(graph)
    result = check(graph, tolerance)
    for step in result.profile["steps"]:
        assert not step["impl"].startswith("ref"), step
    return result


def check_fused(graph, post_ops, tolerance=1e-5):
    """Check a graph that is one node and must be one primitive with these post-ops."""
    result = check_fast(graph, tolerance)
    assert [step["post_ops"] for step in result.steps] == [post_ops]
    return result


def test_build_info():
    info = build_info()
    assert info["onednn"].startswith("3.")
    assert set(info) == {"onednn", "isa", "runtime"}


# Convolution -------------------------------------------------------------------------------------

CONVOLUTIONS = {
    # src, weights, bias, window
    "1d": ((2, 5, 19), (8, 5, 3), True, {}),
    "1d stride padding": (
        (3, 10, 21),
        (17, 10, 4),
        True,
        {"strides": 2, "padding_l": 2, "padding_r": 1},
    ),
    "1d depthwise": ((2, 33, 18), (33, 1, 3), True, {"groups": 33, "padding_l": 1}),
    "2d": ((2, 5, 9, 7), (16, 5, 3, 3), True, {}),
    "2d no bias": ((2, 16, 9, 7), (32, 16, 3, 3), False, {"padding_l": 1, "padding_r": 1}),
    "2d 1x1": ((3, 33, 6, 5), (17, 33, 1, 1), True, {}),
    "2d 1x1 stride": ((1, 32, 9, 7), (48, 32, 1, 1), True, {"strides": 2}),
    "2d one output": ((2, 10, 8, 6), (1, 10, 3, 3), True, {}),
    "2d one input": ((2, 1, 8, 6), (10, 1, 3, 2), True, {}),
    "2d one by one": ((1, 1, 5, 4), (1, 1, 2, 3), True, {}),
    "2d asymmetric": (
        (1, 1, 99, 12),
        (3, 1, 5, 3),
        True,
        {"strides": (2, 1), "padding_l": (1, 0), "padding_r": (0, 2)},
    ),
    "2d more padding at the end": (
        (2, 3, 11, 8),
        (10, 3, 3, 3),
        True,
        {"strides": (1, 2), "padding_l": (0, 1), "padding_r": (2, 0)},
    ),
    "2d dilation (2, 1)": ((2, 17, 13, 9), (10, 17, 3, 3), True, {"dilation": (2, 1)}),
    "2d dilation (3, 2)": (
        (1, 10, 14, 11),
        (33, 10, 3, 2),
        True,
        {"dilation": (3, 2), "padding_l": (1, 0), "padding_r": (0, 2)},
    ),
    "2d groups 2": ((2, 10, 7, 6), (34, 5, 3, 3), True, {"groups": 2}),
    "2d groups 3": ((2, 9, 7, 6), (15, 3, 3, 1), True, {"groups": 3, "padding_r": (1, 0)}),
    "2d groups 2 blocked": ((1, 64, 7, 6), (32, 32, 3, 3), False, {"groups": 2}),
    "2d depthwise": ((2, 17, 10, 7), (17, 1, 3, 3), True, {"groups": 17, "padding_l": 1}),
    "2d depthwise 32": (
        (1, 32, 10, 7),
        (32, 1, 5, 3),
        True,
        {"groups": 32, "strides": 2, "padding_l": (2, 1), "padding_r": (1, 1)},
    ),
    "2d depthwise multiplier 2": ((2, 10, 8, 7), (20, 1, 3, 3), True, {"groups": 10}),
    "2d 1000 outputs": ((1, 17, 4, 3), (1000, 17, 1, 1), True, {}),
    "3d": ((2, 3, 6, 7, 5), (10, 3, 3, 2, 3), True, {"padding_l": (1, 0, 1)}),
    "3d stride dilation": (
        (1, 17, 8, 9, 7),
        (16, 17, 2, 3, 2),
        False,
        {"strides": (2, 1, 2), "dilation": (1, 2, 2), "padding_r": (1, 2, 0)},
    ),
    "3d groups": ((1, 6, 5, 6, 7), (4, 3, 2, 2, 3), True, {"groups": 2}),
    "3d depthwise": ((1, 16, 5, 6, 7), (16, 1, 3, 3, 3), True, {"groups": 16, "padding_l": 1}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name):
    src, weights, bias, window = CONVOLUTIONS[name]
    graph = Graph()
    x = graph.input(*src)
    bias = graph.constant(weights[0]) if bias else None
    graph.output(graph.convolution(x, weights, bias, **window))
    result = check_fused(graph, "")
    assert result.steps[0]["kind"] == "convolution"


@pytest.mark.parametrize(
    ("channels", "outputs"), list(itertools.product((3, 10, 17, 33), repeat=2))
)
def test_convolution_odd_channels(channels, outputs):
    """Between two convolutions, the data has padding channels; before and after, it has none."""
    graph = Graph()
    x = graph.input(2, channels, 8, 7)
    y = graph.convolution(x, (outputs, channels, 3, 2), graph.constant(outputs), [relu()])
    z = graph.convolution(y, (channels, outputs, 1, 1), post_ops=[eltwise("logistic")])
    graph.output(z, y)
    check_fast(graph)


@pytest.mark.parametrize("what", ["weights", "bias", "both"])
def test_convolution_with_given_weights(what):
    """Weights and bias that are inputs, so that their changes must be honoured."""
    graph = Graph()
    x = graph.input(2, 10, 7, 6)
    weights = (graph.input if what != "bias" else graph.constant)(17, 10, 3, 3)
    bias = (graph.input if what != "weights" else graph.constant)(17)
    graph.output(graph.convolution(x, weights, bias, [relu()]))
    check_fused(graph, "eltwise_relu")


@pytest.mark.parametrize("layout", ["any", "channels_last", "blocked"])
@pytest.mark.parametrize(("groups", "outputs"), [(32, 4), (32, 8), (8, 4), (8, 16)])
def test_narrow_groups(groups, outputs, layout):
    """By a kernel of ours, or several as one with zeros between: oneDNN has nothing fast for less
    than a vector of channels."""
    channels = 4
    graph = Graph()
    x = graph.convolution(graph.input(2, 3, 9, 8), (groups * channels, 3, 1, 1))
    weights, bias = (groups * outputs, channels, 3, 3), graph.constant(groups * outputs)
    x = graph.convolution(x, weights, bias, [relu()], groups, padding_l=1, padding_r=1, strides=2)
    graph.output(graph.convolution(x, (8, groups * outputs, 1, 1)))
    steps = check(graph.tune(layout)).steps
    assert not any("gemm" in step["impl"] for step in steps)


def test_convolution_of_a_constant():
    graph = Graph()
    x = graph.constant(2, 10, 7, 6)
    y = graph.convolution(x, (17, 10, 3, 3), graph.constant(17))
    graph.output(graph.add(y, graph.input(2, 17, 5, 4)))
    check_fast(graph)


def test_shared_weights():
    graph = Graph()
    x = graph.input(2, 16, 7, 6)
    weights, bias = graph.constant(16, 16, 3, 3), graph.constant(16)
    window = {"padding_l": 1, "padding_r": 1}
    y = graph.convolution(x, weights, bias, [relu()], **window)
    z = graph.convolution(y, weights, bias, [eltwise("tanh")], **window)
    graph.output(z)
    result = check_fast(graph)
    assert result.profile["constant_bytes"] == 4 * (16 * 16 * 9 + 16)


# Inner product -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("size", [(1, 10, 33), (3, 17, 1), (5, 512, 1000), (2, 1, 7), (7, 33, 16)])
def test_inner_product(size, bias):
    m, k, n = size
    graph = Graph()
    inputs = [graph.input(m, k), graph.constant(n, k)] + [graph.constant(n)] * bias
    graph.output(graph.node("inner_product", inputs))
    check_fused(graph, "")


def test_inner_product_with_given_weights():
    graph = Graph()
    inputs = [graph.input(3, 17), graph.input(10, 17), graph.input(10)]
    graph.output(graph.node("inner_product", inputs, [relu()]))
    check_fused(graph, "eltwise_relu")


@pytest.mark.parametrize("shape", [(4, 16), (16,), (1, 16), (1, 1), (1,), ()])
def test_inner_product_add(shape):
    graph = inner_product_add(shape)
    check_fused(graph, "binary_add")


def test_inner_product_add_of_a_column():
    """Not fast in oneDNN 3.2, and no bias."""
    graph = inner_product_add((4, 1))
    with pytest.raises(Unsupported, match=r"inner_product: .* only a reference .* binary_add"):
        supports(graph)
    check(graph)


def inner_product_add(shape):
    graph = Graph()
    inputs = [graph.input(4, 32), graph.constant(16, 32), graph.constant(16)]
    return graph.output(graph.node("inner_product", inputs, [binary("add", graph.input(*shape))]))


# Pooling -----------------------------------------------------------------------------------------

POOLINGS = {
    "1d": ((2, 5, 19), (3,), {"strides": 2}),
    "1d padded": ((2, 16, 18), (4,), {"strides": 2, "padding_l": 1, "padding_r": 2}),
    "2d": ((2, 3, 9, 8), (2, 3), {}),
    "2d stride": ((1, 17, 12, 9), (3, 3), {"strides": 2, "padding_l": 1, "padding_r": 1}),
    "2d asymmetric": (
        (2, 33, 9, 8),
        (3, 3),
        {"strides": (2, 1), "padding_l": (2, 1), "padding_r": (0, 1)},
    ),
    "2d ceil": ((1, 16, 10, 7), (3, 2), {"strides": (2, 2), "padding_r": (1, 1)}),
    "2d global": ((2, 10, 7, 5), (7, 5), {}),
    "2d global of 1x1": ((2, 10, 1, 1), (1, 1), {}),
    "3d": ((2, 10, 6, 5, 7), (2, 3, 2), {"strides": (2, 1, 2), "padding_l": (1, 0, 1)}),
}


@pytest.mark.parametrize("name", POOLINGS)
@pytest.mark.parametrize("alg", ["max", "avg_include_padding", "avg_exclude_padding"])
def test_pooling(alg, name):
    src, kernel, window = POOLINGS[name]
    graph = Graph()
    graph.output(graph.pooling(graph.input(*src), alg, kernel, **window))
    check_fused(graph, "")


@pytest.mark.parametrize("name", [n for n in POOLINGS if n.startswith("2d") and "1x1" not in n])
@pytest.mark.parametrize("alg", ["max", "avg_include_padding", "avg_exclude_padding"])
def test_pooling_of_a_convolution(alg, name):
    """Which gives it another layout. Its data is negative too: no zero may get into a maximum."""
    src, kernel, window = POOLINGS[name]
    graph = Graph()
    x = graph.convolution(graph.input(*src), (32, src[1], 1, 1), post_ops=[eltwise("tanh", 0, 0)])
    x = graph.eltwise(x, "linear", 1.0, -1.5)
    graph.output(graph.pooling(x, alg, kernel, **window))
    result = check_fast(graph)
    assert result.profile["reorders"] <= 2  # the caller's data in, the result out


@pytest.mark.parametrize("alg", ["max", "avg_include_padding", "avg_exclude_padding"])
def test_pooling_with_dilation(alg):
    """Right, whatever the implementation."""
    graph = Graph()
    x = graph.input(2, 10, 12, 9)
    graph.output(graph.pooling(x, alg, (3, 2), dilation=(2, 3), strides=(1, 2), padding_l=(1, 0)))
    check(graph)


# Eltwise, softmax, batch normalization -----------------------------------------------------------

ELTWISES = {
    "relu": ("relu", 0.0, 0.0),
    "leaky relu": ("relu", 0.25, 0.0),
    "clip": ("clip", -0.25, 0.5),
    "relu6": ("clip", 0.0, 6.0),
    "logistic": ("logistic", 0.0, 0.0),
    "tanh": ("tanh", 0.0, 0.0),
    "linear": ("linear", 1.75, -0.5),
}
SHAPES = [(), (1,), (17,), (5, 33), (2, 3, 7), (2, 10, 5, 7), (2, 3, 4, 5, 6), (2, 1, 3, 2, 5, 4)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ELTWISES)
def test_eltwise(name, shape):
    graph = Graph()
    graph.output(graph.eltwise(graph.input(*shape), *ELTWISES[name]))
    check_fused(graph, "")


@pytest.mark.parametrize("name", ELTWISES)
def test_eltwise_of_a_convolution(name):
    """With padding channels, which logistic and linear would make other than zero."""
    graph = Graph()
    x = graph.convolution(graph.input(2, 3, 9, 8), (10, 3, 3, 3))
    y = graph.eltwise(x, *ELTWISES[name])
    graph.output(graph.convolution(y, (17, 10, 3, 2)), y)
    check_fast(graph)


@pytest.mark.parametrize("log", [0, 1])
@pytest.mark.parametrize(
    ("shape", "axis"), [(s, a) for s in SHAPES[1:-1] for a in range(len(s))], ids=str
)
def test_softmax(shape, axis, log):
    graph = Graph()
    x = graph.eltwise(graph.input(*shape), "linear", 20.0, 3.0)
    graph.output(graph.node("softmax", [x], axis=axis, log=log))
    check(graph)


@pytest.mark.parametrize("axis", range(4))
def test_softmax_of_a_convolution(axis):
    graph = Graph()
    x = graph.convolution(graph.input(2, 3, 9, 8), (10, 3, 3, 3))
    graph.output(graph.node("softmax", [x], axis=axis, log=0), x)
    check(graph)


def add_batch_normalization(graph, src, channels, epsilon=1e-3, post_ops=()):
    statistics = [graph.constant(channels) for _ in range(3)]
    variance = graph.constant(data=graph.random.uniform(0.25, 2.0, channels))
    inputs = [src, *statistics, variance]
    return graph.node("batch_normalization", inputs, post_ops, epsilon=epsilon)


@pytest.mark.parametrize(
    "shape", [(5, 17), (2, 10, 7), (2, 3, 5, 7), (3, 33, 4, 6), (1, 16, 3, 4, 5)], ids=str
)
def test_batch_normalization(shape):
    graph = Graph()
    graph.output(add_batch_normalization(graph, graph.input(*shape), shape[1]))
    check_fused(graph, "")


def test_batch_normalization_of_a_convolution():
    graph = Graph()
    x = graph.convolution(graph.input(2, 3, 9, 8), (10, 3, 3, 3))
    y = add_batch_normalization(graph, x, 10, epsilon=0.5, post_ops=[relu()])
    graph.output(graph.add(y, x))
    check_fast(graph)


# Binary ------------------------------------------------------------------------------------------

BROADCASTS = [
    ((2, 5, 3, 7), (2, 5, 3, 7)),
    ((2, 5, 3, 7), (1, 5, 1, 1)),
    ((2, 5, 3, 7), (5, 1, 1)),
    ((2, 5, 3, 7), (7,)),
    ((2, 5, 3, 7), (3, 1)),
    ((2, 5, 3, 7), (1, 1, 3, 1)),
    ((2, 5, 3, 7), (1, 1, 3, 7)),
    ((2, 5, 3, 7), (2, 1, 1, 1)),
    ((2, 5, 3, 7), (2, 5, 1, 1)),
    ((2, 5, 3, 7), (2, 1, 3, 7)),
    ((2, 5, 3, 7), (1, 5, 3, 7)),
    ((2, 5, 3, 7), (2, 5, 3, 1)),
    ((2, 5, 3, 7), (1,)),
    ((2, 5, 3, 7), ()),
    ((2, 33, 9), (33, 1)),
    ((6, 7), (7,)),
    ((6, 7), (6, 1)),
    ((9,), (9,)),
    ((9,), ()),
    ((), ()),
    ((2, 3, 4, 5, 6), (3, 1, 1, 1)),
    ((2, 3, 4, 5, 6), (2, 3, 4, 5, 6)),
    ((2, 1, 3, 2, 5, 4), (2, 1, 3, 2, 5, 4)),
]


@pytest.mark.parametrize("order", [1, -1], ids=["left", "right"])
@pytest.mark.parametrize("alg", ["add", "mul"])
@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
def test_binary(shapes, alg, order):
    graph = Graph()
    operands = [graph.input(*shape) for shape in shapes]
    graph.output(graph.node("binary", operands[::order], alg=alg))
    check(graph)


@pytest.mark.parametrize("order", [1, -1], ids=["left", "right"])
@pytest.mark.parametrize("shapes", [s for s in BROADCASTS if len(s[0]) == 4], ids=str)
def test_binary_of_a_convolution(shapes, order):
    graph = Graph()
    n, c, h, w = shapes[0]
    x = graph.convolution(graph.input(n, 3, h, w), (c, 3, 1, 1), graph.constant(c))
    operands = [x, graph.constant(*shapes[1])]
    graph.output(graph.node("binary", operands[::order], [relu(0.125)], alg="add"))
    check(graph)


@pytest.mark.parametrize(
    "shapes", [((2, 1, 3, 7), (1, 5, 1, 7)), ((3, 1), (4,)), ((2, 5, 1), (1, 3))], ids=str
)
def test_binary_of_two_broadcast_operands(shapes):
    """Neither has the shape of the result: right, or refused with the reason."""
    graph = Graph()
    graph.output(graph.add(*(graph.input(*shape) for shape in shapes)))
    with pytest.raises(Unsupported, match=r"binary: oneDNN has .* implementation for \("):
        supports(graph)
    with contextlib.suppress(Unsupported):
        check(graph)


@pytest.mark.parametrize("layout", ["channels_last", "blocked"])
@pytest.mark.parametrize("addend", [False, True])
@pytest.mark.parametrize("channels", [16, 24, 48])
def test_squeeze_and_excitation(channels, addend, layout):
    """A factor per channel is applied in the layout of the convolutions, without reorders."""
    graph = Graph()
    x = graph.convolution(graph.input(2, 16, 6, 5), (channels, 16, 1, 1))
    gate = graph.pooling(x, "avg_include_padding", [6, 5])
    gate = graph.convolution(gate, (channels, channels, 1, 1), post_ops=[eltwise("logistic")])
    x = graph.mul(x, gate, post_ops=[binary("add", x), relu()] if addend else [])
    graph.output(graph.convolution(x, (16, channels, 1, 1)))
    profile = check(graph.tune(layout)).profile
    if channels % 16 == 0:  # with a last block that is not full, oneDNN may refuse
        assert profile["reorders"] <= 2  # at the input and the output


@pytest.mark.parametrize("order", [1, -1])
def test_binary_of_two_dtypes(order):
    """The graph does not say which of them the result has: refused, and not converted silently."""
    graph = Graph()
    operands = [graph.input(2, 5), graph.input(2, 5, dtype="s8")]
    graph.output(graph.node("binary", operands[::order], alg="add"))
    with pytest.raises(EngineError, match=r"binary: .*dtype"):
        supports(graph)


# Concat and reshape ------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "shape", [(7,), (5, 3), (2, 3, 7), (2, 10, 5, 7), (2, 3, 4, 5, 6)], ids=str
)
def test_concat(shape, count):
    """On each axis, of tensors of different sizes, one of them a constant."""
    for axis in range(len(shape)):
        graph = Graph()
        tensors = []
        for i in range(count):
            size = list(shape)
            size[axis] += i
            tensors.append((graph.constant if i == 1 else graph.input)(*size))
        graph.output(graph.node("concat", tensors, axis=axis))
        check_fused(graph, "")


@pytest.mark.parametrize("channels", [(16, 32), (16, 10), (3, 33, 17), (8, 8, 16, 1)], ids=str)
@pytest.mark.parametrize("axis", [1, 2])
def test_concat_of_convolutions(channels, axis):
    graph = Graph()
    x = graph.input(2, 5, 7, 6)
    if axis == 2:
        channels = [channels[0]] * len(channels)
    tensors = [graph.convolution(x, (c, 5, 1, 1), post_ops=[relu()]) for c in channels]
    shape = [2, channels[0], 7, 6]
    shape[axis] = 11
    tensors.insert(1, graph.constant(*shape))
    graph.output(graph.node("concat", tensors, axis=axis), tensors[0])
    check_fast(graph)


def test_concat_of_one_tensor_twice():
    graph = Graph()
    x = graph.convolution(graph.input(2, 5, 7, 6), (10, 5, 1, 1))
    y = graph.node("concat", [x, x], axis=1)
    graph.output(graph.eltwise(y), x)
    check_fast(graph)


def joined(make, kinds, batch=1):
    """Check a graph made of two results of three and five channels, and what runs."""
    graph = Graph()
    parts = [graph.eltwise(graph.input(batch, c, 5, 4), "tanh") for c in (3, 5)]
    make(graph, *parts)
    profile = check(graph).profile
    assert [step["kind"] for step in profile["steps"]] == ["eltwise", "eltwise", *kinds]
    return profile


def concat(graph, *parts, axis=1):
    return graph.node("concat", parts, axis=axis)


def test_producers_write_into_a_concat():
    profile = joined(lambda graph, a, b: graph.output(concat(graph, a, b)), [])
    assert profile["arena_bytes"] == 0  # even into the caller's memory


def test_parts_that_do_not_lie_one_after_the_other():
    joined(lambda graph, a, b: graph.output(concat(graph, a, b)), ["concat"], batch=2)
    joined(lambda graph, a, b: graph.output(concat(graph, a, a, axis=3), b), ["concat"])


def test_a_part_is_not_overwritten():
    """The last to read it, and the only one to do so then, might work in place."""

    def make(graph, a, b):
        y = concat(graph, a, b)
        z = graph.eltwise(a, "relu", 0.5)
        graph.output(graph.eltwise(y, "logistic"), z)

    joined(make, ["eltwise", "eltwise"])

    def accumulate(graph, a, b):
        y = concat(graph, a, b)
        z = graph.convolution(b, (3, 5, 1, 1), post_ops=[binary("add", a), relu()])
        graph.output(graph.eltwise(y, "logistic"), z)

    graph = Graph()
    parts = [graph.eltwise(graph.input(1, c, 5, 4), "tanh") for c in (3, 5)]
    accumulate(graph, *parts)
    steps = check(graph).profile["steps"]
    assert "sum" not in "".join(step["post_ops"] for step in steps)


def sum_beside_a_concat():
    """The concat takes a blocked copy of a plain tensor, which the last but one node adds."""
    graph = Graph()
    plain = graph.eltwise(graph.input(1, 16, 6, 6), "tanh")
    x = graph.convolution(graph.input(1, 16, 6, 6), (32, 16, 1, 1))
    both = graph.node("concat", [plain, x], axis=1)
    y = graph.convolution(both, (16, 48, 1, 1))
    z = graph.convolution(x, (16, 32, 3, 3), None, [binary("add", plain)], padding_l=1, padding_r=1)
    # The sum comes first, the concat is read after it.
    graph.nodes.insert(3, graph.nodes.pop())
    return graph.output(y, graph.convolution(z, (16, 16, 1, 1)))


def test_a_copy_in_a_concat_is_not_overwritten():
    result = check(sum_beside_a_concat().tune("blocked"))
    assert "concat" not in [step["kind"] for step in result.steps]


def test_a_concat_into_a_concat():
    def make(graph, a, b):
        y = concat(graph, a, b)
        z = concat(graph, y, graph.eltwise(y, "relu", 0.5))
        graph.output(concat(graph, z, graph.eltwise(b, "logistic")))

    joined(make, ["eltwise", "eltwise"])


def test_parts_that_must_be_copied():
    """What is there twice, is a part elsewhere, or belongs to the caller."""
    twice = lambda graph, a, b: graph.output(concat(graph, a, b, a))  # noqa: E731
    joined(twice, ["reorder"])

    def elsewhere(graph, a, b):
        graph.output(concat(graph, a, b), concat(graph, b, graph.eltwise(b)))

    joined(elsewhere, ["eltwise", "reorder"])

    def foreign(graph, a, b):
        graph.output(concat(graph, graph.constant(1, 2, 5, 4), a, graph.input(1, 1, 5, 4), b))

    joined(foreign, ["reorder", "reorder"])


def test_few_producers_that_can_write_into_a_concat():
    def make(graph, a, b):
        graph.output(concat(graph, a, b, graph.input(1, 9, 5, 4)))

    joined(make, ["concat"])


@pytest.mark.parametrize("channels", [(16, 32, 48), (16, 32, 3), (32, 3, 16)], ids=str)
def test_convolutions_write_into_a_concat(channels):
    """In blocks of channels, if each part but the last fills its blocks."""
    graph = Graph()
    x = graph.convolution(graph.input(1, 16, 7, 6), (16, 16, 1, 1))
    y = concat(graph, *(graph.convolution(x, (c, 16, 3, 3)) for c in channels))
    graph.output(graph.convolution(y, (5, sum(channels), 1, 1)))
    document = graph.document()
    document["tuned"] = {"layout": "blocked", "isa": build_info()["isa"]}
    engine = Engine(document)
    engine.set_constants(graph.constant_data)
    (expected,) = reference(graph)
    (got,) = run(engine, graph.input_data, [expected.shape])
    np.testing.assert_allclose(got, expected, atol=1e-4 * np.abs(expected).max())
    kinds = [step["kind"] for step in engine.profile()["steps"]]
    assert ("concat" in kinds) == (channels[1] == 3)


RESHAPES = {
    "flatten": ((2, 3, 4, 5), (2, -1)),
    "same": ((2, 3, 4), (2, 3, 4)),
    "split": ((6, 4), (2, 3, 4)),
    "merge first": ((2, 3, 4), (-1, 4)),
    "neither split nor merge": ((2, 3), (3, 2)),
    "ones": ((2, 3), (1, 2, 1, 3, 1)),
    "drop ones": ((2, 1, 3, 1), (2, 3)),
    "all": ((2, 3, 4, 5, 6), (-1,)),
    "one": ((1,), (1, 1)),
    "scalar": ((), (1, 1, -1)),
    "rank 12": ((2, 3), (1, 2) + (1,) * 9 + (3,)),
}


@pytest.mark.parametrize("constant", [False, True], ids=["input", "constant"])
@pytest.mark.parametrize("name", RESHAPES)
def test_reshape(name, constant):
    src, shape = RESHAPES[name]
    graph = Graph()
    x = (graph.constant if constant else graph.input)(*src)
    y = graph.reshape(x, *shape)
    graph.output(y, graph.eltwise(y, "linear", 2.0, 1.0))
    check(graph)


@pytest.mark.parametrize(
    "shape",
    [(2, -1), (2, 32, -1), (-1,), (2, 2, 16, 5, 7), (64, 5, 7), (2, 32, 7, 5), (2, 7, 5, 32)],
    ids=str,
)
@pytest.mark.parametrize("last", ["convolution", "pooling"])
def test_reshape_of_a_blocked_tensor(last, shape):
    """The elements are those of the row-major tensor, in whatever layout oneDNN keeps it."""
    graph = Graph()
    x = graph.input(2, 5, 5, 7)
    y = graph.convolution(x, (32, 5, 3, 3), padding_l=1, padding_r=1)
    if last == "pooling":
        y = graph.pooling(y, "max", (3, 3), padding_l=1, padding_r=1)
    z = graph.reshape(y, *shape)
    graph.output(z, graph.eltwise(z, "linear", 2.0, 1.0), y)
    check(graph)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("channels", [32, 33, 2048])
def test_reshape_after_global_pooling(channels, batch):
    """As classifiers have it: no reorder but that of the caller's data and of padding channels."""
    graph = Graph()
    x = graph.convolution(graph.input(batch, 3, 5, 4), (channels, 3, 3, 3))
    x = graph.reshape(graph.pooling(x, "avg_include_padding", (3, 2)), batch, -1)
    inputs = [x, graph.constant(10, channels), graph.constant(10)]
    graph.output(graph.node("inner_product", inputs))
    result = check_fast(graph)
    assert result.profile["reorders"] <= 1 + (channels == 33)


def test_reshape_of_a_reshape():
    graph = Graph()
    x = graph.eltwise(graph.input(2, 3, 4, 5), "tanh")
    y = graph.reshape(graph.reshape(x, 6, 20), 4, 30)
    graph.output(graph.eltwise(graph.reshape(y, 2, 3, 4, 5)), y)
    check_fast(graph)


def test_reshape_of_a_weight():
    graph = Graph()
    weights = graph.reshape(graph.constant(12, 10), 8, 5, 3, 1)
    node = graph.node(
        "convolution",
        [graph.input(2, 5, 7, 6), weights],
        strides=[1, 1],
        dilation=[1, 1],
        padding_l=[0, 0],
        padding_r=[0, 0],
        groups=1,
    )
    graph.output(node)
    check_fast(graph)


# Post-ops ----------------------------------------------------------------------------------------

DST = (2, 17, 6, 5)  # what the convolution below makes


def convolution_with(make_post_ops, inputs=(), constants=(), bias=True, channels=17):
    """Return a graph of one convolution whose post-ops are made from the operands' ids."""
    graph = Graph()
    x = graph.input(2, 10, 8, 5)
    operands = [graph.input(*shape) for shape in inputs]
    operands += [graph.constant(*shape) for shape in constants]
    bias = graph.constant(channels) if bias else None
    y = graph.convolution(
        x, (channels, 10, 3, 1), bias, [] if not make_post_ops else make_post_ops(*operands)
    )
    return graph.output(y)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", ELTWISES)
def test_post_op_eltwise(name, bias):
    graph = convolution_with(lambda: [eltwise(*ELTWISES[name])], bias=bias)
    check_fused(graph, f"eltwise_{ELTWISES[name][0]}")


OPERANDS = [DST, (1, 17, 1, 1), (17, 1, 1), (1,), (), (1, 1, 1, 1)]


@pytest.mark.parametrize("place", ["inputs", "constants"])
@pytest.mark.parametrize("alg", ["add", "mul"])
@pytest.mark.parametrize("shape", OPERANDS, ids=str)
def test_post_op_binary(shape, alg, place):
    graph = convolution_with(lambda a: [binary(alg, a), relu()], **{place: [shape]})
    check_fused(graph, f"binary_{alg}+eltwise_relu")


@pytest.mark.parametrize("alg", ["add", "mul"])
@pytest.mark.parametrize(
    "shape",
    [(5,), (6, 1), (1, 1, 6, 5), (2, 1, 1, 1), (2, 17, 1, 1), (2, 1, 6, 5), (1, 17, 6, 5)],
    ids=str,
)
def test_post_op_binary_of_unusual_shape(shape, alg):
    """Fast for some, a reference implementation for others; a bias for none of them."""
    graph = convolution_with(lambda a: [binary(alg, a), relu()], inputs=[shape])
    result = check(graph)
    assert [step["post_ops"] for step in result.steps] == [f"binary_{alg}+eltwise_relu"]


def test_post_op_chain():
    graph = convolution_with(
        lambda a, b, c: [
            binary("mul", b),
            binary("add", a),
            eltwise("clip", -0.5, 0.75),
            eltwise("linear", 0.5, -0.25),
            binary("mul", c),
            eltwise("tanh"),
        ],
        inputs=[DST],
        constants=[(17, 1, 1), ()],
    )
    check_fused(graph, "binary_mul+binary_add+eltwise_clip+eltwise_linear+binary_mul+eltwise_tanh")


def test_post_op_swish_needs_the_result_twice():
    """x * logistic(x) is not a chain: two nodes."""
    graph = convolution_with(None)
    x = graph.outputs.pop()
    graph.output(graph.mul(x, graph.eltwise(x, "logistic")))
    check_fast(graph)


def softmax_with(post_ops):
    graph = Graph()
    x = graph.input(2, 16, 6, 5)
    graph.constant(1, 16, 1, 1)
    graph.output(graph.node("softmax", [x], post_ops, axis=1, log=0))
    return graph


@pytest.mark.parametrize("kind", ["inner_product", "pooling", "binary", "eltwise", "softmax"])
def test_post_ops_of_other_kinds(kind):
    graph = Graph()
    x = graph.input(2, 16, 6, 5)
    a = graph.constant(*((1, 10) if kind == "inner_product" else (1, 16, 1, 1)))
    post_ops = [binary("mul", a), eltwise("linear", 2.0, -0.25)]
    if kind == "inner_product":
        y = graph.node(kind, [graph.input(3, 17), graph.constant(10, 17)], post_ops)
    elif kind == "pooling":
        y = graph.pooling(x, "avg_include_padding", (3, 2), post_ops)
    elif kind == "binary":
        y = graph.add(x, graph.input(2, 16, 6, 5), post_ops)
    elif kind == "eltwise":
        y = graph.eltwise(x, "tanh", post_ops=post_ops)
    else:  # oneDNN 3.2 misreads the operand of a softmax's binary post-op: it is refused
        with pytest.raises(Unsupported, match="softmax: expected eltwise post-ops only"):
            supports(softmax_with(post_ops))
        check_fused(softmax_with(post_ops[1:]), "eltwise_linear")
        return
    graph.output(y)
    if kind == "eltwise":  # oneDNN 3.2 has only a reference implementation
        with pytest.raises(Unsupported, match=r"eltwise: .* binary_mul\+eltwise_linear"):
            supports(graph)
        check(graph)
    else:
        check_fused(graph, "binary_mul+eltwise_linear")


@pytest.mark.parametrize("kind", ["concat", "reshape"])
def test_post_ops_are_refused_or_applied(kind):
    graph = Graph()
    x = graph.input(2, 16, 6, 5)
    attrs = {"axis": 1} if kind == "concat" else {"shape": [2, -1]}
    graph.output(graph.node(kind, [x], [relu()], **attrs))
    with pytest.raises(Exception, match=kind):
        check(graph)


def test_post_op_operand_is_any_tensor():
    """A full operand in a layout of its own, or a reshape of something, is brought into shape."""
    graph = Graph()
    x = graph.input(2, 10, 6, 5)
    pooled = graph.pooling(x, "max", (3, 3), padding_l=1, padding_r=1)
    view = graph.reshape(graph.input(2, 5, 60), 2, 10, 6, 5)
    y = graph.convolution(x, (10, 10, 1, 1), post_ops=[binary("add", pooled), binary("mul", view)])
    graph.output(y, pooled)
    check_fast(graph)


# Instruction sets --------------------------------------------------------------------------------


def residual_block(channels=17):
    """Return conv → relu → conv + bias + sum → relu → pool → 1×1 conv, with odd channels."""
    graph = Graph()
    window = {"padding_l": 1, "padding_r": 1}
    x = graph.convolution(graph.input(2, 3, 9, 8), (channels, 3, 3, 3), post_ops=[relu()])
    z = graph.convolution(
        x, (channels, channels, 3, 3), graph.constant(channels), [relu()], **window
    )
    y = graph.convolution(
        z, (channels, channels, 1, 1), graph.constant(channels), [binary("add", x), relu()]
    )
    p = graph.pooling(y, "avg_exclude_padding", (3, 3), strides=2, padding_l=1)
    return graph.output(graph.convolution(p, (10, channels, 1, 1), post_ops=[eltwise("tanh")]))


def test_residual_block():
    result = check_fast(residual_block())
    assert [step["post_ops"] for step in result.steps] == [
        "eltwise_relu",
        "eltwise_relu",
        "sum+eltwise_relu",
        "",
        "eltwise_tanh",
    ]


ISA_CASES = (
    "reshape or concat or pooling or eltwise or softmax or normalization or binary_of or odd or "
    "winograd"
)


@pytest.mark.parametrize("isa", ["SSE41", "AVX2"])
def test_older_instruction_sets(isa):
    """There oneDNN chooses other layouts: blocks of 4 or 8 channels, with padding."""
    code = (
        "import sys, pytest\n"
        "from engine_graph import build_info, check\n"
        "from test_engine import residual_block\n"
        "result = check(residual_block())\n"
        "print(build_info()['isa'], [step['impl'] for step in result.steps])\n"
        "sys.exit(pytest.main(sys.argv[1:]))\n"
    )
    tests = Path(__file__).parent
    options = [
        "-q",
        "--noconftest",
        "-p",
        "no:cacheprovider",
        "-k",
        ISA_CASES,
    ]
    names = ["test_engine.py", "test_engine_memory.py", "test_engine_winograd.py"]
    files = [str(tests / name) for name in names]
    process = run_python(code, *options, *files, ONEDNN_MAX_CPU_ISA=isa)
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stdout.startswith(isa + " ")
    assert "avx512" not in process.stdout.splitlines()[0]


# supports ----------------------------------------------------------------------------------------


def test_supports_needs_no_constants():
    supports(residual_block())


def test_supports_refuses_reference_implementations():
    graph = Graph()
    graph.output(graph.add(graph.input(2, 5, dtype="s32"), graph.input(2, 5, dtype="s32")))
    with pytest.raises(Unsupported, match=r"binary: .* only a reference implementation .*\(2, 5\)"):
        supports(graph)


def test_supports_refuses_a_dilated_pooling():
    """Which is computed all the same, by the reference implementation: see above."""
    graph = Graph()
    graph.output(graph.pooling(graph.input(2, 5, 9, 8), "max", (3, 3), dilation=2))
    with pytest.raises(Unsupported, match=r"pooling: .* only a reference implementation"):
        supports(graph)
    assert check(graph).steps[0]["impl"].startswith("ref")


@pytest.mark.parametrize("kind", ["eltwise", "softmax", "binary", "convolution"])
def test_supports_refuses_empty_tensors(kind):
    graph = Graph()
    x = graph.input(0, 5, 9, 8)
    graph.output(
        {
            "eltwise": lambda: graph.eltwise(x),
            "softmax": lambda: graph.node("softmax", [x], axis=1, log=0),
            "binary": lambda: graph.add(x, graph.constant(5, 1, 1)),
            "convolution": lambda: graph.convolution(x, (3, 5, 1, 1)),
        }[kind]()
    )
    with pytest.raises(Unsupported, match=rf"{kind}: expected non-empty .*\(0, 5, 9, 8\)"):
        supports(graph)
    expected = reference(graph)
    got = run(start(graph), graph.input_data, [value.shape for value in expected])
    assert [value.size for value in got] == [0]


def test_supports_refuses_what_onednn_refuses():
    graph = Graph()
    graph.output(graph.eltwise(graph.input(2, 5), post_ops=[relu()] * 40))
    with pytest.raises(Unsupported):
        supports(graph)


# Parts of the ABI --------------------------------------------------------------------------------


def test_arity():
    graph = Graph()
    x, y = graph.input(2, 3), graph.input(3)
    graph.output(graph.add(x, y), x, y)
    assert Engine(graph).arity() == (2, 3)


def test_unused_inputs_and_constants():
    graph = Graph()
    graph.input(4, 4)
    graph.constant(3)
    graph.output(graph.eltwise(graph.input(2, 3)))
    assert check(graph).profile["constant_bytes"] == 0


def test_constants_are_set_once():
    graph = Graph()
    graph.output(graph.convolution(graph.input(1, 3, 5, 4), (8, 3, 1, 1), graph.constant(8)))
    engine = start(graph)
    expected = reference(graph)
    first = engine.constants
    engine.set_constants([np.full_like(data, 7) for data in first])  # harmless, without effect
    got = np.empty(expected[0].shape, np.float32)
    engine.run_into(graph.input_data, [got])
    np.testing.assert_allclose(got, expected[0], atol=1e-5)


def test_profile_counts_bytes():
    graph = Graph()
    graph.output(graph.add(graph.input(2, 3, 5), graph.constant(3, 1)))
    (step,) = start(graph).profile()["steps"]
    assert step["bytes"] == 4 * (2 * 3 * 5 + 3 + 2 * 3 * 5)


def test_profile_with_times():
    engine = start(residual_block())
    profile = engine.profile(3)
    assert profile["ms"] > 0
    assert all(step["ms"] >= 0 for step in profile["steps"])
    assert profile["steps"][-1]["layouts"]["dst"] == "abcd"  # row-major, as the caller gets it
    # A run after it is not disturbed.
    check_again = residual_block()
    got = np.empty(reference(check_again)[0].shape, np.float32)
    engine.run_into(check_again.input_data, [got])
    np.testing.assert_allclose(got, reference(check_again)[0], atol=1e-5)
