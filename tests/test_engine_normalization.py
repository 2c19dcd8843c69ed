"""Batch normalization that leaves numbers: the same ones, from parts, and only where it applies."""

import pytest
from engine_graph import Graph, check, relu, with_avx2
from processor import OWN_KERNELS, VECTOR
from test_engine import add_batch_normalization
from test_engine_quantization import check as check_numbers

pytestmark = pytest.mark.skipif(not OWN_KERNELS, reason="the kernels need AVX2")


def normalized(graph, x, channels, post_ops=(), dtype="u8", zero_point=3, scale=0.011):
    """Return the numbers that a batch normalization of x leaves."""
    y = add_batch_normalization(graph, x, channels, post_ops=post_ops)
    return graph.quantize(y, scale, zero_point, dtype)


def last(graph, *shape):
    """Return an input (N, C, …) that lies channels-last."""
    batch, channels, *sizes = shape
    axes = [0, len(shape) - 1, *range(1, len(shape) - 1)]
    return graph.node("transpose", [graph.input(batch, *sizes, channels)], axes=axes)


def finish(graph, numbers, rank=4):
    return graph.output(graph.node("transpose", [numbers], axes=[0, *range(2, rank), 1]))


def impls(steps):
    return [step["impl"] for step in steps if step["kind"] == "batch_normalization"]


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("post_ops", [(), (relu(),), (relu(0.25),)])
@pytest.mark.parametrize(
    "shape",
    [(1, 64, 5, 7), (2, 16, 9, 1), (3, 83, 2, 3), (1, 19, 30), (2, 33, 3, 2, 3), (1, 128, 4, 4)],
)
def test_shapes(shape, post_ops, dtype):
    graph = Graph()
    numbers = normalized(graph, last(graph, *shape), shape[1], post_ops, dtype)
    (step,) = check_numbers(finish(graph, numbers, len(shape)), dtype)
    assert step["impl"] == "normalization"
    assert step["dtypes"] == {"src": "f32", "dst": dtype}
    assert step["post_ops"] == "+".join(["eltwise_relu"] * len(post_ops))


@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_numbers_saturate(dtype):
    graph = Graph()
    numbers = normalized(graph, last(graph, 1, 48, 9, 9), 48, dtype=dtype, scale=0.004)
    (step,) = check_numbers(finish(graph, numbers), dtype)
    assert step["impl"] == "normalization"


def test_what_lies_in_bf16():
    graph = Graph()
    graph.precision = "bf16"
    x = graph.convolution(last(graph, 1, 32, 9, 8), (32, 32, 1, 1))
    graph.output(graph.dequantize(normalized(graph, x, 32, [relu()]), 0.011, 3))
    steps = check(graph.tune("channels_last"), 4e-2).steps
    assert impls(steps) == ["normalization"]
    has_bf16 = [step["dtypes"]["dst"] for step in steps if step["kind"] == "convolution"]
    assert has_bf16 in (["bf16"], ["f32"])  # without instructions for it


NEAR_MISSES = {
    "channels first": lambda g: normalized(g, g.input(1, 32, 9, 11), 32),
    "fewer channels than a vector": lambda g: normalized(
        g, last(g, 1, VECTOR - 1, 9, 11), VECTOR - 1
    ),
    "two dimensions": lambda g: normalized(g, g.input(5, 32), 32),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name):
    graph = Graph()
    steps = check_numbers(graph.output(NEAR_MISSES[name](graph)), "u8")
    assert "normalization" not in impls(steps)


def test_a_result_that_is_read_as_it_is():
    graph = Graph()
    y = add_batch_normalization(graph, last(graph, 1, 32, 9, 8), 32)
    graph.output(graph.dequantize(graph.quantize(y, 0.02, 3), 0.02, 3)).output(y)
    (step,) = (
        step
        for step in check(graph.tune("channels_last"), 2e-2).steps
        if step["kind"] == "batch_normalization"
    )
    assert step["dtypes"]["dst"] == "f32"


# Parts --------------------------------------------------------------------------------------------


def grown(graph, x, channels, layers=3, growth=32, **attrs):
    """Return a DenseNet's block, in which a layer reads all before it, and its channels."""
    for _ in range(layers):
        numbers = normalized(graph, x, channels, [relu()], zero_point=0)
        y = graph.dequantize(numbers, 0.011)
        y = graph.convolution(y, (growth, channels, 1, 1), **attrs)
        x = graph.node("concat", [x, y], axis=1)
        channels += growth
    return x, channels


def kinds(graph, dtype="u8"):
    return [step["kind"] for step in check_numbers(graph.tune("channels_last"), dtype, slack=2)]


@pytest.mark.parametrize("shape", [(1, 64, 5, 7), (2, 19, 9, 3)])
def test_parts_are_read_where_they_lie(shape):
    graph = Graph()
    x, channels = grown(graph, last(graph, *shape), shape[1])
    finish(graph, normalized(graph, x, channels))
    assert kinds(graph) == [*["batch_normalization", "dequantize", "convolution"] * 3,
                            "batch_normalization"]  # fmt: skip


def test_a_list_of_parts():
    """As PyTorch's DenseNet puts them together: all of them, each time."""
    graph = Graph()
    parts = [last(graph, 1, channels, 6, 5) for channels in (16, 40, 32)]
    for count in (2, 3):
        x = graph.node("concat", parts[:count], axis=1)
        finish(graph, normalized(graph, x, sum((16, 40, 32)[:count])))
    assert kinds(graph) == ["batch_normalization"] * 2


def test_a_part_twice():
    graph = Graph()
    x = last(graph, 1, 32, 6, 5)
    both = graph.node("concat", [x, x], axis=1)
    finish(graph, normalized(graph, graph.node("concat", [both, x], axis=1), 96))
    assert kinds(graph) == ["batch_normalization"]


def test_a_part_is_not_overwritten_before_it_is_read():
    graph = Graph()
    x = graph.convolution(last(graph, 1, 32, 6, 5), (32, 32, 1, 1))
    y = graph.convolution(x, (32, 32, 1, 1))
    z = graph.node("concat", [x, y], axis=1)
    other = graph.eltwise(y, "tanh")  # the last to read it by its own name
    third = graph.convolution(other, (32, 32, 1, 1))
    z = graph.node("concat", [z, third], axis=1)
    finish(graph, normalized(graph, z, 96))
    assert "concat" not in kinds(graph)


WHOLE = {
    "of two dtypes": lambda g, x: g.node(
        "concat", [x, g.dequantize(g.quantize(last(g, 1, 32, 6, 5), 0.02, 7), 0.02, 7)], axis=1
    ),
    "channels first": lambda g, x: g.node("concat", [x, g.input(1, 32, 6, 5)], axis=1),
    "read as it is": lambda g, x: g.node("concat", [last(g, 1, 32, 6, 5), x], axis=1),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_concat_of_parts(name):
    """The first concat is left in parts, of which the second makes a whole."""
    graph = Graph()
    x, channels = grown(graph, last(graph, 1, 32, 6, 5), 32, layers=1)
    y = WHOLE[name](graph, x)
    if name == "read as it is":
        graph.output(graph.eltwise(y, "tanh"))
    graph.output(graph.dequantize(normalized(graph, x, channels, scale=0.02), 0.02, 3))
    graph.output(graph.dequantize(normalized(graph, y, channels + 32, scale=0.02), 0.02, 3))
    steps = check(graph.tune("channels_last"), 3e-2).steps
    assert [step["kind"] for step in steps].count("concat") <= 1


OTHERS = {
    "a concat of rows": lambda g, x: g.output(g.node("concat", [x, x], axis=2)),
    "an output": lambda g, x: g.output(g.node("transpose", [x], axes=[0, 2, 3, 1])),
    "an activation": lambda g, x: g.output(g.eltwise(x, "tanh")),
    "a convolution": lambda g, x: g.output(g.convolution(x, (16, 64, 1, 1))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_who_else_reads_them(name):
    graph = Graph()
    x, channels = grown(graph, last(graph, 1, 32, 6, 5), 32, layers=1)
    OTHERS[name](graph, x)
    graph.output(graph.dequantize(normalized(graph, x, channels), 0.011, 3))
    steps = check(graph.tune("channels_last"), 2e-2).steps
    assert "concat" in [step["kind"] for step in steps]


@pytest.mark.parametrize("what", ["shapes", "saturate", "parts or part", "near_misses"])
def test_avx2(what):
    with_avx2(__file__, what)
