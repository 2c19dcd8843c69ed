"""A batch in chunks: the results of the whole, and only where no image sees another."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from engine_graph import (
    Engine,
    Graph,
    InvalidArgument,
    assert_close,
    binary,
    check,
    pack,
    reference,
    relu,
    run,
    start,
)

BATCH = 6


def check_chunks(graph, chunk=1, chunks=BATCH):
    """Require the right results in so many chunks, 1 for none."""
    result = check(graph.tune(chunk=chunk))
    assert result.profile["chunks"] == chunks
    return result


def network():
    """Return a graph with one node of most kinds; two inputs, two outputs."""
    graph = Graph()
    x, scale = graph.input(BATCH, 16, 9, 7), graph.input(BATCH, 16, 1, 1)
    bias = graph.reshape(graph.constant(1, 16, 1, 1), 16)
    x = graph.convolution(x, (16, 16, 3, 3), bias, padding_l=1, padding_r=1)
    statistics = [graph.constant(data=graph.random.uniform(0.5, 1, 16)) for _ in range(4)]
    y = graph.node("batch_normalization", [x, *statistics], epsilon=1e-3)
    y = graph.pooling(y, "max", [3, 3], padding_l=1, padding_r=1)
    z = graph.convolution(y, (16, 16, 1, 1), post_ops=[binary("add", x), relu()])
    z = graph.node("concat", [z, graph.mul(y, scale)], axis=1)
    part = graph.node("slice", [z], begin=[0, 8, 0, 0], size=[BATCH, 16, 9, 7])
    part = graph.node("transpose", [part], axes=[0, 2, 3, 1])
    part = graph.node("softmax", [part], axis=3, log=0)
    flat = graph.reshape(graph.pooling(z, "avg_include_padding", [9, 7]), BATCH, 32)
    dense = graph.node("inner_product", [flat, graph.constant(10, 32), graph.constant(10)])
    return graph.output(part, dense)


@pytest.mark.parametrize(("chunk", "chunks"), [(1, 6), (2, 3), (3, 2), (4, 1), (6, 1), (0, 1)])
def test_network(chunk, chunks):
    check_chunks(network(), chunk, chunks)


def test_each_thread_has_its_memory_and_each_image_its_result():
    engine = start(network().tune(chunk=1))
    profile, whole = engine.profile(2), start(network()).profile()
    assert profile["arena_bytes"] < whole["arena_bytes"] / 3
    assert all(step["ms"] > 0 for step in profile["steps"])
    assert profile["ms"] > 0


def test_calls_at_the_same_time():
    graph = network().tune(chunk=1)
    engine, shapes = start(graph), [value.shape for value in reference(graph)]
    inputs = [
        [np.asarray(data * scale, np.float32) for data in graph.input_data]
        for scale in np.linspace(-1, 1, 12)
    ]
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda data: run(engine, data, shapes), inputs)
        for data, result in zip(inputs, results, strict=True):
            assert_close(result, reference(graph, data))


def test_by_winograd_s_algorithm():
    graph = Graph()
    x = graph.convolution(graph.input(BATCH, 32, 9, 11), (32, 32, 1, 1))
    x = graph.convolution(x, (32, 32, 3, 3), padding_l=1, padding_r=1)
    graph.output(graph.convolution(x, (16, 32, 1, 1))).tune("blocked", [[1, 2]], chunk=2)
    assert check(graph).profile["chunks"] == 3


def test_matrices():
    graph = Graph()
    a, b = graph.input(BATCH, 3, 5), graph.input(BATCH, 5, 4)
    x = graph.node("matmul", [a, b])
    y = graph.node("matmul", [x, graph.constant(1, 4, 7)])
    check_chunks(graph.output(graph.eltwise(graph.add(y, graph.constant(7)), "tanh")))
    graph = Graph()
    graph.output(graph.node("matmul", [graph.input(BATCH, 5), graph.constant(5, 4)]))
    check_chunks(graph)


def test_an_input_for_all_images():
    graph = Graph()
    x, offset = graph.input(BATCH, 8, 5), graph.input(1, 8, 1)
    check_chunks(graph.output(graph.add(x, offset), graph.mul(x, graph.input(5))))


def _all_images(graph, x):
    """Return what `x`, (BATCH, BATCH, 4), becomes by each operation that mixes its images."""
    slices = {"begin": [1, 0, 0], "size": [BATCH - 1, BATCH, 4]}
    return {
        "softmax": lambda: graph.node("softmax", [x], axis=0, log=0),
        "concat": lambda: graph.node("concat", [x, x], axis=0),
        "concat with a constant": lambda: graph.node(
            "concat", [graph.constant(BATCH, 2, 4), x], axis=1
        ),
        "reshape": lambda: graph.reshape(x, BATCH * BATCH, 4),
        "reshape that leaves the size": lambda: graph.reshape(
            graph.reshape(x, BATCH * BATCH, 4), BATCH, 4 * BATCH
        ),
        "transpose": lambda: graph.node("transpose", [x], axes=[1, 0, 2]),
        "slice": lambda: graph.node("slice", [x], **slices),
        "a constant per image": lambda: graph.add(x, graph.constant(BATCH, 1, 4)),
        "an operand per image": lambda: graph.eltwise(
            x, "tanh", post_ops=[binary("add", graph.constant(BATCH, BATCH, 4))]
        ),
        "another rank": lambda: graph.add(x, graph.input(BATCH, 4)),
        "matrices per image": lambda: graph.node("matmul", [x, graph.constant(BATCH, 4, 3)]),
        "weights that are an input": lambda: graph.node(
            "inner_product", [graph.reshape(x, BATCH, 4 * BATCH), graph.input(BATCH, 4 * BATCH)]
        ),
        "matrices of the batch": lambda: graph.node(
            "matmul", [graph.reshape(x, BATCH, 4 * BATCH), graph.input(4 * BATCH, BATCH)]
        ),
        "an output for all": lambda: graph.output(graph.eltwise(graph.input(1, 3))) and x,
    }


MIXING = list(_all_images(Graph(), 0))


@pytest.mark.parametrize("name", MIXING)
def test_operations_that_see_other_images(name):
    graph = Graph()
    x = graph.eltwise(graph.input(BATCH, BATCH, 4), "linear", 0.5, 0.25)
    result = _all_images(graph, x)[name]()
    chunks = BATCH if name == "matrices of the batch" else 1
    check_chunks(graph.output(result), chunks=chunks)


@pytest.mark.parametrize("size", [[0, 0], [0, 1]])
def test_a_size_that_is_that_of_the_batch(size):
    """The batch of a chunk is smaller: only a size along another axis stays what it is."""
    graph = Graph()
    x = graph.input(BATCH, BATCH, 8)
    tensor, axis = x, size[1]
    part = graph.node("slice", [x], begin=[0, 0, 0], size=[BATCH, BATCH, [tensor, axis]])
    graph.output(graph.node("reduction", [part], alg="sum", axes=[2]))
    expected = graph.input_data[0][:, :, :BATCH].sum(2, keepdims=True)
    engine = start(graph.tune(chunk=1))
    (got,) = run(engine, graph.input_data, [expected.shape])
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert engine.profile()["chunks"] == (BATCH if axis else 1)


def test_wrong_chunk():
    with pytest.raises(InvalidArgument, match="expected a chunk of 0 or more, got -1"):
        Engine(network().tune(chunk=-1))


def test_it_is_chosen_by_measurement():
    """An image of 400 KB stays in a core's cache between the operations, all 25 MB do not."""
    graph = Graph()
    x = graph.convolution(graph.input(64, 8, 56, 56), (32, 8, 1, 1))
    for _ in range(10):
        x = graph.eltwise(graph.eltwise(x, "linear", 1.5, 0.25), "clip", -1.0, 1.0)
    graph.output(graph.convolution(x, (8, 32, 1, 1)))
    text, packed = pack(graph, graph.constant_data, tune="layouts")
    assert json.loads(text)["tuned"]["chunk"] in (1, 4)
    engine = Engine(text)
    engine.set_constants(packed)
    (expected,) = reference(graph)
    assert_close(run(engine, graph.input_data, [expected.shape]), [expected])


def test_one_image_has_no_chunks():
    graph = Graph()
    x = graph.convolution(graph.input(1, 16, 8, 8), (32, 16, 3, 3))
    text, _ = pack(graph.output(x), graph.constant_data, tune="layouts")
    assert json.loads(text).get("tuned", {"chunk": 0})["chunk"] == 0


def test_a_batch_of_which_the_operations_see_all():
    graph = Graph()
    x = graph.node("softmax", [graph.input(4, 8)], axis=0, log=0)
    text, _ = pack(graph.output(x), graph.constant_data, tune="all")
    assert "tuned" not in json.loads(text)
