"""Memory: what is computed in place, what stays alive, what concurrent runs share.

An in-place sum or activation is right only if nobody else needs the value that it overwrites. The
cases here are those in which somebody does, and those in which nobody does and a copy would be
waste.
"""

import threading

import numpy as np
import pytest
from engine_graph import (
    Engine,
    Graph,
    InvalidArgument,
    binary,
    check,
    eltwise,
    reference,
    relu,
    run,
    start,
    supports,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

C = 16  # channels of everything here; the sizes are N = 2, H = 6, W = 5
SHAPE = (2, C, 6, 5)
BYTES = 4 * 2 * C * 6 * 5


def convolve(graph, src, kernel=1, post_ops=(), dilation=1):
    pad = kernel // 2 * dilation
    return graph.convolution(
        src,
        (C, C, kernel, kernel),
        graph.constant(C),
        post_ops,
        padding_l=pad,
        padding_r=pad,
        dilation=dilation,
    )


def convolve_without_workspace(graph, src, kernel=1, post_ops=()):
    """For a window with holes there is no kernel of our own, whose workspace is in the arena."""
    return convolve(graph, src, kernel, post_ops, dilation=2)


def post_op_names(result):
    return [step["post_ops"] for step in result.steps]


@pytest.fixture
def graph():
    return Graph()


@pytest.fixture
def data(graph):
    return graph.input(*SHAPE)


def add(x):
    return [binary("add", x)]


def add_relu(x):
    return [binary("add", x), relu()]


# Residual sums -----------------------------------------------------------------------------------


def test_sum_into_a_value_that_dies(graph, data):
    x = convolve(graph, data, post_ops=[relu()])
    y = convolve(graph, data, 3, add_relu(x))
    graph.output(convolve(graph, y))
    assert post_op_names(check(graph)) == ["eltwise_relu", "sum+eltwise_relu", ""]


@pytest.mark.parametrize("kernel", [1, 3])
def test_operand_is_the_source_too(graph, data, kernel):
    x = convolve(graph, data, post_ops=[relu()])
    graph.output(convolve(graph, x, kernel, add_relu(x)))
    assert post_op_names(check(graph)) == ["eltwise_relu", "binary_add+eltwise_relu"]


def test_operand_is_a_view_of_the_source(graph, data):
    x = convolve(graph, data, post_ops=[relu()])
    view = graph.reshape(graph.reshape(x, 2, C, 30), *SHAPE)
    graph.output(convolve(graph, x, 3, add_relu(view)))
    check(graph)


def test_source_is_a_view_of_the_operand(graph, data):
    x = graph.eltwise(data, "tanh")
    view = graph.reshape(x, 2, C, 5, 6)
    y = convolve(graph, view, 1, [relu()])
    z = convolve(graph, graph.reshape(y, *SHAPE), 1, add(x))
    graph.output(z)
    check(graph)


@pytest.mark.parametrize("post_ops", [add, add_relu])
def test_operand_is_read_later(graph, data, post_ops):
    x = convolve(graph, data)
    y = convolve(graph, data, 3, post_ops(x))
    z = convolve(graph, y, post_ops=[relu()])
    graph.output(graph.add(z, x), x)
    check(graph)


def test_operand_is_read_later_as_a_view(graph, data):
    x = convolve(graph, data)
    view = graph.reshape(x, 2, -1)
    y = convolve(graph, data, 3, add(x))
    graph.output(graph.add(graph.reshape(y, 2, -1), view))
    assert post_op_names(check(graph)) == ["", "binary_add", ""]


def test_operand_is_a_view_of_what_is_read_later(graph, data):
    x = graph.eltwise(data, "tanh")
    view = graph.reshape(graph.reshape(x, 2, -1), *SHAPE)
    y = convolve(graph, data, 3, add(view))
    graph.output(graph.add(y, x))
    check(graph)


def test_operand_is_a_view_that_dies(graph, data):
    x = graph.eltwise(data, "tanh")
    view = graph.reshape(graph.reshape(x, 2, -1), *SHAPE)
    graph.output(convolve(graph, data, 3, add(view)))
    check(graph)


@pytest.mark.parametrize("post_ops", [add, add_relu])
def test_operand_is_an_input(graph, data, post_ops):
    graph.output(convolve(graph, data, 3, post_ops(graph.input(*SHAPE))))
    assert post_op_names(check(graph))[0].startswith("binary_add")


def test_operand_is_a_view_of_an_input(graph, data):
    view = graph.reshape(graph.input(2, C * 30), *SHAPE)
    graph.output(convolve(graph, data, 3, add(view)))
    assert post_op_names(check(graph)) == ["binary_add"]


@pytest.mark.parametrize("view", [False, True])
def test_operand_is_a_constant(graph, data, view):
    constant = graph.constant(*SHAPE)
    if view:
        constant = graph.reshape(graph.reshape(constant, -1), *SHAPE)
    x = convolve(graph, data, 3, add(constant))
    graph.output(x, convolve(graph, x, 3, add_relu(constant)))
    assert post_op_names(check(graph)) == ["binary_add", "binary_add+eltwise_relu"]


def test_operand_is_an_output(graph, data):
    x = convolve(graph, data, post_ops=[relu()])
    graph.output(convolve(graph, data, 3, add_relu(x)), x)
    assert post_op_names(check(graph)) == ["eltwise_relu", "binary_add+eltwise_relu"]


def test_a_view_of_the_operand_is_an_output(graph, data):
    x = convolve(graph, data, post_ops=[relu()])
    graph.output(convolve(graph, data, 3, add_relu(x)), graph.reshape(x, -1))
    assert post_op_names(check(graph)) == ["eltwise_relu", "binary_add+eltwise_relu"]


@pytest.mark.parametrize("alg", ["max", "avg_include_padding"])
def test_operand_is_a_pooling_result(graph, data, alg):
    x = graph.pooling(data, alg, (3, 3), padding_l=1, padding_r=1)
    graph.output(convolve(graph, data, 3, add_relu(x)))
    assert post_op_names(check(graph)) == ["", "sum+eltwise_relu"]


def test_two_convolutions_added(graph, data):
    """ResNet's downsampling block."""
    x = convolve(graph, data, 1)
    y = convolve(graph, data, 3, [relu()])
    graph.output(convolve(graph, y, 3, add_relu(x)))
    assert post_op_names(check(graph)) == ["", "eltwise_relu", "sum+eltwise_relu"]


def test_chain_of_blocks(graph, data):
    x = convolve(graph, data, post_ops=[relu()])
    for _ in range(4):
        y = convolve(graph, x, 1, [relu()])
        x = convolve_without_workspace(graph, y, 3, add_relu(x))
    graph.output(x)
    result = check(graph)
    assert post_op_names(result)[2::2] == ["sum+eltwise_relu"] * 4
    assert result.profile["arena_bytes"] < 3 * BYTES


def test_two_sums_in_one_chain(graph, data):
    """oneDNN accumulates into one destination: one of the two can be in place, not both."""
    x = convolve(graph, data)
    y = convolve(graph, data, 3)
    graph.output(convolve(graph, data, 1, [binary("add", x), relu(), binary("add", y)]))
    assert post_op_names(check(graph))[-1] in (
        "sum+eltwise_relu+binary_add",
        "binary_add+eltwise_relu+binary_add",
    )


def test_one_operand_twice_in_one_chain(graph, data):
    x = convolve(graph, data)
    graph.output(convolve(graph, data, 3, [binary("add", x), relu(), binary("add", x)]))
    assert post_op_names(check(graph))[-1] == "binary_add+eltwise_relu+binary_add"


def test_operand_is_multiplied_and_added(graph, data):
    x = convolve(graph, data)
    graph.output(convolve(graph, data, 3, [binary("mul", x), binary("add", x)]))
    assert post_op_names(check(graph))[-1] == "binary_mul+binary_add"


@pytest.mark.parametrize(
    "before", [[eltwise("clip", -0.5, 0.5)], [eltwise("linear", 0.5, -0.25)], [relu()]]
)
def test_sum_after_another_post_op(graph, data, before):
    """The order of the chain is kept: the sum does not see what comes before it."""
    x = convolve(graph, data)
    graph.output(convolve(graph, data, 3, [*before, binary("add", x), eltwise("tanh")]))
    check(graph)


def test_sum_of_an_inner_product(graph):
    data, weights = graph.input(3, C), graph.constant(C, C)
    x = graph.node("inner_product", [data, weights], [relu()])
    y = graph.node("inner_product", [data, graph.constant(C, C)], add_relu(x))
    z = graph.node("inner_product", [y, weights], add_relu(y))
    graph.output(z)
    names = post_op_names(check(graph))
    assert names == ["eltwise_relu", "sum+eltwise_relu", "binary_add+eltwise_relu"]


@pytest.mark.parametrize("order", [1, -1], ids=["left", "right"])
def test_added_to_a_max_pool_of_the_input(graph, data, order):
    x = convolve(graph, data, 3)
    y = graph.pooling(data, "max", (3, 3), padding_l=1, padding_r=1)
    graph.output(graph.node("binary", [x, y][::order], [relu()], alg="add"))
    check(graph)


@pytest.mark.parametrize("order", [1, -1], ids=["left", "right"])
def test_added_to_the_input(graph, data, order):
    x = convolve(graph, data, 3)
    graph.output(graph.node("binary", [x, data][::order], alg="add"))
    check(graph)


# Outputs -----------------------------------------------------------------------------------------


def test_output_is_fused_step(graph, data):
    graph.output(convolve(graph, data, 3, add(graph.input(*SHAPE))))
    check(graph)


def test_duplicate_outputs(graph, data):
    x = convolve(graph, data, post_ops=[relu()])
    graph.output(x, x, graph.reshape(x, -1), x)
    check(graph)


def test_output_is_an_input(graph, data):
    graph.output(data, convolve(graph, data), data, graph.reshape(data, 2, -1))
    check(graph)


def test_output_is_a_constant(graph, data):
    constant = graph.constant(3, 7)
    graph.output(constant, convolve(graph, data), graph.reshape(constant, 7, 3), constant)
    check(graph)


def test_no_nodes(graph, data):
    graph.output(data, graph.constant(2, 3), data)
    check(graph)


def test_no_outputs(graph, data):
    convolve(graph, data)
    assert check(graph).steps


@pytest.mark.parametrize("order", [1, -1])
def test_a_value_before_and_after_its_activation(graph, data, order):
    x = convolve(graph, data)
    graph.output(*[x, graph.eltwise(x)][::order])
    check(graph)


def test_every_value_is_an_output(graph, data):
    tensors = [convolve(graph, data)]
    for alg in ("relu", "tanh", "logistic", "relu"):
        tensors.append(graph.eltwise(tensors[-1], alg))
    tensors.append(graph.add(tensors[-1], tensors[0]))
    tensors.append(convolve(graph, data, 3, add_relu(tensors[-1])))
    graph.output(*tensors)
    check(graph)


def test_a_value_used_by_three(graph, data):
    x = convolve(graph, data)
    y = [graph.eltwise(x, alg) for alg in ("relu", "tanh", "logistic")]
    graph.output(graph.add(graph.add(y[0], y[1]), y[2]))
    check(graph)


@pytest.mark.parametrize("alg", ["add", "mul"])
@pytest.mark.parametrize("source", ["input", "value", "constant"])
def test_both_operands_are_one(graph, data, source, alg):
    x = {
        "input": lambda: data,
        "value": lambda: convolve(graph, data),
        "constant": lambda: graph.constant(*SHAPE),
    }[source]()
    graph.output(graph.node("binary", [x, x], alg=alg))
    check(graph)


# Other operations in place -----------------------------------------------------------------------


def in_place_nodes(graph, x):
    """One node of each kind that may take its source's memory."""
    statistics = [graph.constant(C) for _ in range(3)] + [graph.constant(data=np.arange(1, C + 1))]
    yield graph.eltwise(x, "tanh")
    yield graph.node("softmax", [x], axis=3, log=0)
    yield graph.node("batch_normalization", [x, *statistics], epsilon=1e-3)
    yield graph.add(x, graph.constant(C, 1, 1))
    yield graph.mul(graph.constant(*SHAPE), x)


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("source", ["input", "value"])
def test_source_is_read_later(graph, data, source, kind):
    x = convolve(graph, data) if source == "value" else data
    y = list(in_place_nodes(graph, x))[kind]
    graph.nodes = [node for node in graph.nodes if node["output"] in (x, y)]
    graph.output(graph.add(y, x), x)
    check(graph)


@pytest.mark.parametrize("kind", range(5))
def test_source_dies(graph, data, kind):
    """Then nothing but the destination's memory is needed."""
    x = graph.eltwise(data, "linear", 2.0, 0.5)
    y = list(in_place_nodes(graph, x))[kind]
    graph.nodes = [node for node in graph.nodes if node["output"] in (x, y)]
    graph.output(y)
    assert check(graph).profile["arena_bytes"] == 0


def test_a_view_of_the_source_is_read_later(graph, data):
    x = graph.eltwise(data, "tanh")
    view = graph.reshape(x, 2, -1)
    y = graph.eltwise(x, "logistic")
    graph.output(graph.add(graph.reshape(y, 2, -1), view))
    check(graph)


def test_a_view_is_activated_and_its_source_read_later(graph, data):
    x = graph.eltwise(data, "tanh")
    y = graph.eltwise(graph.reshape(x, 2, -1), "logistic")
    graph.output(y, graph.add(x, x))
    check(graph)


@pytest.mark.parametrize("kind", range(5))
def test_source_is_the_operand_of_a_later_post_op(graph, data, kind):
    x = graph.eltwise(data, "tanh")
    y = list(in_place_nodes(graph, x))[kind]
    graph.nodes = [node for node in graph.nodes if node["output"] in (x, y)]
    graph.output(convolve(graph, y, 3, add_relu(x)))
    check(graph)


def test_operand_is_the_operand_of_a_later_post_op(graph, data):
    x = convolve(graph, data)
    y = convolve(graph, data, 3, add_relu(x))
    graph.output(convolve(graph, y, 3, [binary("mul", x)]))
    assert post_op_names(check(graph)) == ["", "binary_add+eltwise_relu", "binary_mul"]


def test_a_broadcast_operand_is_not_overwritten(graph, data):
    """The result has another shape than the operand that dies."""
    x = graph.eltwise(graph.input(1, C, 1, 1), "tanh")
    graph.output(graph.add(x, data))
    check(graph)


# The arena ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["eltwise", "convolution", "pooling", "add input"])
def test_a_chain_needs_two_buffers(link):
    def chain(length):
        graph = Graph()
        other = graph.input(*SHAPE)
        x = graph.input(*SHAPE)
        for i in range(length):
            x = {
                "eltwise": lambda x: graph.eltwise(x, "relu", 0.5),
                "convolution": lambda x, i=i: convolve_without_workspace(
                    graph, x, 1 + 2 * (i % 2), [relu()]
                ),
                "pooling": lambda x: graph.pooling(x, "max", (3, 3), padding_l=1, padding_r=1),
                "add input": lambda x: graph.add(x, other),
            }[link](x)
        return graph.output(x)

    short, long = check(chain(6)).profile, check(chain(48)).profile
    assert long["arena_bytes"] == short["arena_bytes"] <= 2 * BYTES
    assert long["scratchpad_bytes"] == short["scratchpad_bytes"]


def test_a_long_skip_is_kept():
    graph = Graph()
    x = first = graph.eltwise(graph.input(*SHAPE), "tanh")
    for i in range(20):
        x = convolve(graph, x, 1 + 2 * (i % 2), [eltwise("tanh")])
    graph.output(convolve(graph, x, 1, add(first)))
    assert check(graph).profile["arena_bytes"] <= 3 * BYTES


def test_no_arena_for_what_lives_outside():
    graph = Graph()
    x = graph.input(7, 11)
    graph.output(graph.eltwise(graph.add(x, graph.input(7, 11))))
    profile = check(graph).profile
    assert (profile["arena_bytes"], profile["reorders"]) == (0, 0)


@st.composite
def random_graphs(draw):
    """A graph of nodes with shared operands; any of its values may be an output."""
    graph = Graph(draw(st.integers(0, 99)))
    values = [graph.input(*SHAPE), graph.input(*SHAPE), graph.constant(*SHAPE)]
    small = [graph.input(C, 1, 1), graph.constant(1, C, 1, 1)]
    kinds = ["relu", "tanh", "add", "add", "mul", "convolution", "convolution", "sum", "sum"]
    kinds += ["pooling", "view", "small", "softmax", "concat"]

    def value():
        # Recent values more often: chains, with now and then a long skip.
        reach = draw(st.sampled_from([1, 2, 4, len(values)]))
        return values[-1 - draw(st.integers(0, min(reach, len(values)) - 1))]

    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(kinds))
        x = value()
        if kind in ("relu", "tanh"):
            y = graph.eltwise(x, kind, 0.25)
        elif kind == "add":
            y = graph.add(x, value(), draw(st.sampled_from([[], [eltwise("tanh")]])))
        elif kind == "mul":
            y = graph.mul(graph.eltwise(x, "tanh"), graph.eltwise(value(), "logistic"))
        elif kind == "convolution":
            y = convolve(graph, x, draw(st.sampled_from([1, 3])), [eltwise("tanh")])
        elif kind == "sum":
            chain = [binary("add", value())]
            if draw(st.booleans()):
                chain += [relu(0.5), binary("add", value())]
            y = convolve(graph, x, draw(st.sampled_from([1, 3])), [*chain, eltwise("tanh")])
        elif kind == "pooling":
            alg = draw(st.sampled_from(["max", "avg_include_padding"]))
            y = graph.pooling(x, alg, (3, 3), padding_l=1, padding_r=1)
        elif kind == "view":
            y = graph.reshape(x, *draw(st.sampled_from([(2, C * 30), (2, C, 30)])))
            if draw(st.booleans()):
                y = graph.eltwise(y, "tanh")
            y = graph.reshape(y, *SHAPE)
        elif kind == "small":
            operands = [x, draw(st.sampled_from(small))]
            y = graph.add(*(operands if draw(st.booleans()) else operands[::-1]))
        elif kind == "softmax":
            y = graph.node("softmax", [x], axis=draw(st.sampled_from([1, 3])), log=0)
        else:
            axis = draw(st.sampled_from([0, 1]))
            y = graph.node("concat", [x, value()], axis=axis)
            if axis == 0:
                y = graph.node("slice", [y], begin=[1, 0, 0, 0], size=list(SHAPE))
            else:
                y = graph.convolution(y, (C, 2 * C, 1, 1), post_ops=[eltwise("tanh")])
        values.append(y)
    outputs = draw(st.lists(st.sampled_from(values), max_size=3))
    return graph.output(values[-1], *outputs)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(random_graphs())
def test_random_graphs(graph):
    check(graph, tolerance=2e-5)


# Concurrency -------------------------------------------------------------------------------------


def concurrently(count, body):
    """Call ``body(i)`` in ``count`` threads that start together; raise what they raise."""
    barrier = threading.Barrier(count)
    errors = []

    def target(i):
        barrier.wait()
        try:
            body(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=target, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def block(graph=None):
    """Return a graph with in-place sums, reorders and a scratchpad."""
    graph = graph or Graph()
    x = convolve(graph, graph.input(*SHAPE), post_ops=[relu()])
    for _ in range(3):
        y = convolve(graph, x, 1, [relu()])
        x = convolve(graph, y, 3, add_relu(x))
    y = graph.node("softmax", [x], axis=1, log=0)
    return graph.output(graph.convolution(y, (1, C, 3, 3)), y)


THREADS = 8


def test_concurrent_runs_equal_serial_ones():
    graph = block()
    engine = start(graph)
    shapes = [value.shape for value in reference(graph)]
    random = np.random.default_rng(1)
    inputs = [random.uniform(-1, 1, SHAPE).astype(np.float32) for _ in range(THREADS)]
    serial = [run(engine, [data], shapes) for data in inputs]

    def body(i):
        for j in range(25):
            k = (i + j) % THREADS
            got = run(engine, [inputs[k]], shapes)
            for a, b in zip(got, serial[k], strict=True):
                assert a.tobytes() == b.tobytes()

    concurrently(THREADS, body)


def test_constants_raced_from_many_threads():
    """Each thread initialises the engine, as it may, and runs at once."""
    graph = block()
    expected = reference(graph)
    for _ in range(5):
        engine = Engine(graph)

        def body(_, engine=engine):
            engine.set_constants(graph.constant_data)
            got = run(engine, graph.input_data, [value.shape for value in expected])
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-4)

        concurrently(THREADS, body)


def test_engines_made_and_destroyed_in_many_threads():
    graph = block()
    expected = reference(graph)

    def body(_):
        for _ in range(3):
            supports(graph)
            engine = start(graph)
            got = run(engine, graph.input_data, [value.shape for value in expected])
            np.testing.assert_allclose(got[0], expected[0], atol=1e-4)
            engine.destroy()

    concurrently(4, body)


def test_profile_during_runs():
    graph = block()
    engine = start(graph)
    expected = reference(graph)

    def body(i):
        for _ in range(5):
            if i == 0:
                assert engine.profile(1)["ms"] > 0
            else:
                got = run(engine, graph.input_data, [value.shape for value in expected])
                np.testing.assert_allclose(got[0], expected[0], atol=1e-4)

    concurrently(3, body)


def test_the_last_error_is_the_thread_s_own():
    def body(i):
        for _ in range(50):
            with pytest.raises(InvalidArgument, match=f"kind of node: kind{i}$"):
                supports(
                    {
                        "format": "dnnl_byoc",
                        "version": 3,
                        "inputs": [{"id": 0, "dtype": "f32", "shape": [1]}],
                        "constants": [],
                        "outputs": [1],
                        "nodes": [{"kind": f"kind{i}", "inputs": [0], "output": 1}],
                    }
                )

    concurrently(THREADS, body)
