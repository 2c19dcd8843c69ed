"""Batch normalization where a 1 × 1 convolution reads it, and of parts: the same numbers."""

import numpy as np
import pytest
from engine_graph import DTYPES, Graph, binary, eltwise, one_thread, reference, relu, run, start
from networks_of_floats import between, convolution, steps_of, with_whole_numbers
from processor import AVX512, HAS_BF16

pytestmark = pytest.mark.skipif(not AVX512, reason="the kernels need AVX-512")

EPSILON = 0.5
CLIP = eltwise("clip", -6.0, 17.0)
RELU = (relu(),)


def normalized(graph, x, channels, post_ops=RELU, statistics=None):
    statistics = statistics or [graph.constant(channels) for _ in range(4)]
    return graph.node("batch_normalization", [x, *statistics], post_ops, epsilon=EPSILON)


def exact(graph):
    """Make the deviations 1 and 2: nothing is rounded then."""
    rng = np.random.default_rng(2)
    tensors = {
        tensor["id"]: array
        for tensors, data in (
            (graph.constants, graph.constant_data),
            (graph.inputs, graph.input_data),
        )
        for tensor, array in zip(tensors, data, strict=True)
    }
    for node in graph.nodes:
        if node["kind"] == "batch_normalization":
            variance = tensors[node["inputs"][4]]
            variance[...] = rng.choice([1, 4], variance.shape) - EPSILON
    return graph


def network(make, *args, **attrs):
    return exact(between(make, *args, **attrs))


def ours(graph):
    """Require the very same numbers; return what was done between the outer convolutions."""
    return [(step["kind"], step["impl"]) for step in steps_of(graph)[1:-1]]


ON_THE_WAY = ("convolution", "normalized_pointwise")
ALONE = ("batch_normalization", "normalization")

SHAPES = {
    "pixels in sixes": ((1, 32, 4, 9), 64),
    "a line of pixels": ((1, 48, 1, 2), 192),
    "images": ((3, 64, 7, 5), 64),
    "chunks of pixels": ((2, 16, 13, 29), 128),
    "many blocks of channels": ((1, 32, 3, 3), 520),
    "channels for no whole vector": ((1, 19, 6, 7), 112),
    "many channels": ((1, 514, 7, 7), 48),
}


@pytest.mark.parametrize("threads", ["one thread", "all"])
@pytest.mark.parametrize("adds", [False, True], ids=["alone", "adds"])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, adds, threads):
    shape, out = SHAPES[name]

    def make(graph, x):
        post_ops = [CLIP]
        if adds:
            post_ops.insert(0, binary("add", convolution(graph, x, shape[1], out)))
        y = normalized(graph, x, shape[1])
        return convolution(graph, y, shape[1], out, post_ops=post_ops)

    graph = network(make, shape, out, "f32")
    if threads == "all":
        steps = ours(graph)
    else:
        with one_thread():
            steps = ours(graph)
    assert steps == [("convolution", "pointwise")] * adds + [ON_THE_WAY]


@pytest.mark.parametrize("post_ops", [(), (relu(),), (relu(0.5),)], ids=["", "relu", "leaky"])
def test_post_ops(post_ops):
    def make(graph, x):
        return convolution(graph, normalized(graph, x, 32, post_ops), bias=False)

    assert ours(network(make, precision="f32")) == [ON_THE_WAY]


def test_an_empty_batch():
    graph = network(lambda g, x: convolution(g, normalized(g, x, 32)), (0, 32, 5, 5), 64, "f32")
    (got,) = run(start(graph), graph.input_data, [(0, 64, 5, 5)])
    assert got.shape == (0, 64, 5, 5)


def test_an_addend_that_is_normalized_too():
    """It is read for as long as the result is written, though no later node reads it."""

    def make(graph, x):
        x = graph.eltwise(x, "linear", 1.0, 1.0)
        return convolution(graph, normalized(graph, x, 128), 128, 128, post_ops=[binary("add", x)])

    graph = network(make, (1, 128, 9, 31), 128, "f32")
    *_, step, _ = steps_of(graph)
    assert (step["impl"], step["post_ops"]) == ("normalized_pointwise", "binary_add")


def test_a_choice_of_another_is_kept_to():
    """Then the normalization is a step of its own, of the same node's."""
    graph = network(lambda g, x: convolution(g, normalized(g, x, 32)), precision="f32")
    node = next(i for i, n in enumerate(graph.nodes) if n["kind"] == "batch_normalization") + 1
    other = "brgconv_1x1:avx512_core"
    graph.tune("channels_last", implementations=[[node, other]])
    assert ours(graph) == [ALONE, ("convolution", other)]


def pooled(graph, x, size=2):
    ones, zeros = [1, 1], [0, 0]
    window = {"kernel": [size, size], "strides": ones, "dilation": ones}
    return graph.node("pooling", [x], alg="max", padding_l=zeros, padding_r=zeros, **window)


def overwritten_later(graph, x):
    """Convolve what is normalized by computed numbers, whose memory others take before that."""
    scale = graph.eltwise(graph.input(32), "linear", 1.0, 1.0)
    y = normalized(graph, x, 32, statistics=[scale, *(graph.constant(32) for _ in range(3))])
    for _ in range(2):
        scale = graph.eltwise(scale, "linear", 2.0, 5.0)
    graph.output(scale)
    return convolution(graph, y)


def numbers_of(graph, x):
    return graph.quantize(x, 1.0, 0, "s8")


def of_numbers(graph, x):
    """Convolve what stands for numbers, to which others are added in their place before that."""
    numbers = graph.dequantize(numbers_of(graph, x), 1.0)
    y = normalized(graph, numbers, 32)
    weights = graph.dequantize(graph.constant(32, 32, 1, 1, dtype="s8"), 1.0)
    z = graph.dequantize(numbers_of(graph, pooled(graph, x, 1)), 1.0)
    z = graph.convolution(z, weights, post_ops=[binary("add", numbers)])
    graph.output(graph.dequantize(graph.quantize(z, 4.0, 0, "s8"), 4.0))
    return convolution(graph, y)


def of_numbers_in_another_layout(graph, x):
    """Convolve what stands for numbers, which others want channels-first before that."""
    numbers = graph.input(1, 7, 9, 32, dtype="s8")
    numbers = graph.dequantize(graph.node("transpose", [numbers], axes=[0, 3, 1, 2]), 1.0)
    y = normalized(graph, numbers, 32)
    graph.output(graph.node("concat", [graph.input(1, 64, 7, 9), numbers], axis=1))
    return convolution(graph, y)


NEAR_MISSES = {
    "statistics from outside": lambda g, x: convolution(
        g, normalized(g, x, 32, statistics=[g.input(32) for _ in range(4)])
    ),
    "statistics that are computed": overwritten_later,
    "src that stands for numbers": of_numbers,
    "src that stands for numbers in another layout": of_numbers_in_another_layout,
    "weights that stand for numbers": lambda g, x: g.convolution(
        normalized(g, x, 32), g.dequantize(g.constant(64, 32, 1, 1, dtype="s8"), 1.0)
    ),
    "another kernel": lambda g, x: convolution(g, normalized(g, x, 32), kernel=(1, 2)),
    "strides": lambda g, x: convolution(g, normalized(g, x, 32), strides=2),
    "padding": lambda g, x: convolution(g, normalized(g, x, 32), padding_l=1),
    "groups": lambda g, x: convolution(g, normalized(g, x, 32), groups=2),
    "weights from outside": lambda g, x: g.convolution(
        normalized(g, x, 32), g.input(64, 32, 1, 1), g.constant(64)
    ),
    "an activation that the kernel lacks": lambda g, x: convolution(
        g, normalized(g, x, 32), post_ops=[eltwise("linear", 2.0, 1.0)]
    ),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name):
    steps = ours(network(NEAR_MISSES[name], precision="f32"))
    assert ALONE in steps
    assert ON_THE_WAY not in steps


def test_fewer_channels():
    def make(graph, x):
        return convolution(graph, normalized(graph, x, 12), 12)

    assert not {ON_THE_WAY, ALONE} & set(ours(network(make, (1, 12, 9, 11), precision="f32")))


def test_another_layout():
    graph = network(
        lambda g, x: convolution(g, normalized(g, x, 32)), precision="f32", layout="blocked"
    )
    assert not {ON_THE_WAY, ALONE} & set(ours(graph))


@pytest.mark.skipif(not HAS_BF16, reason="the network is computed in f32 without bf16")
def test_another_precision():
    graph = network(lambda g, x: convolution(g, normalized(g, x, 32)), precision="bf16")
    assert not {ON_THE_WAY, ALONE} & set(ours(graph))


@pytest.mark.skipif(not HAS_BF16, reason="nothing is read in bf16 without it")
def test_src_in_bf16_in_a_network_of_f32():
    graph = Graph()
    x = graph.node("transpose", [graph.input(1, 5, 6, 32, dtype="bf16")], axes=[0, 3, 1, 2])
    graph.output(pooled(graph, normalized(graph, x, 32)))
    exact(with_whole_numbers(graph.tune("channels_last")))
    engine = start(graph)
    (expected,) = reference(graph)
    (got,) = run(engine, graph.input_data, [expected.shape], DTYPES["bf16"])
    assert np.array_equal(got.astype(np.float64), expected)
    impls = [step["impl"] for step in engine.profile()["steps"]]
    assert "normalization" not in impls


@pytest.mark.parametrize("reader", ["a convolution", "the caller"])
def test_two_readers(reader):
    """Both read what one step leaves, in the place of src where that can be."""

    def make(graph, x):
        y = normalized(graph, x, 32)
        if reader == "the caller":
            graph.output(y)
            return convolution(graph, y)
        return convolution(graph, y, post_ops=[binary("add", convolution(graph, y))])

    steps = ours(network(make, precision="f32"))
    assert steps[0] == ALONE
    assert ON_THE_WAY not in steps


# By itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_read_again", [False, True])
@pytest.mark.parametrize("channels", [64, 24, 19])
@pytest.mark.parametrize("post_ops", [(), (relu(),), (relu(0.5),)], ids=["", "relu", "leaky"])
def test_alone(post_ops, channels, is_read_again):
    def make(graph, x):
        y = pooled(graph, normalized(graph, x, channels, post_ops))
        return graph.node("binary", [y, pooled(graph, x)], alg="add") if is_read_again else y

    graph = network(make, (2, channels, 9, 8), channels, "f32")
    assert ours(graph)[:2] == [ALONE, ("pooling", "jit:avx512_core")]


# Parts --------------------------------------------------------------------------------------------


def grown(graph, x, channels, layers=3, growth=32):
    """Return a DenseNet's block, in which a layer reads all before it, and its channels."""
    for _ in range(layers):
        y = convolution(graph, normalized(graph, x, channels), channels, 40)
        y = convolution(graph, y, 40, growth, (3, 3), padding_l=1, padding_r=1, post_ops=[CLIP])
        x = graph.node("concat", [x, y], axis=1)
        channels += growth
    return x, channels


@pytest.mark.parametrize("shape", [(1, 64, 5, 7), (2, 19, 9, 13)])
def test_parts_are_read_where_they_lie(shape):
    def make(graph, x):
        x, channels = grown(graph, x, shape[1])
        return pooled(graph, normalized(graph, x, channels))

    out = shape[1] + 96
    steps = ours(network(make, shape, out, "f32"))
    assert steps[:-2] == [ON_THE_WAY, ("convolution", "windows")] * 3
    assert steps[-2] == ALONE
    assert steps[-1][0] == "pooling"


def test_parts_that_another_reads():
    """Then they are put together."""

    def make(graph, x):
        x, channels = grown(graph, x, 32, layers=1)
        y = convolution(graph, normalized(graph, x, channels), channels)
        return graph.node("binary", [pooled(graph, y), pooled(graph, x)], alg="add")

    kinds = [kind for kind, _ in ours(network(make, (1, 32, 6, 5), 64, "f32"))]
    assert kinds == [*["convolution"] * 2, "concat", "convolution", "pooling", "pooling", "binary"]
