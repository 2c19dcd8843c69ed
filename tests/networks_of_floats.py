"""Graphs of floats whose numbers are exact, for our own kernels' tests."""

import numpy as np
from engine_graph import DTYPES, Graph, reference, run, start


def between(make, shape=(1, 32, 7, 9), out=64, precision="bf16", layout="channels_last"):
    """Return a graph with `make(graph, x)` between two convolutions of each channel for itself.

    They leave it in the precision.

    All data are whole numbers so small that no sum of their products is rounded.
    """
    graph = Graph()
    graph.precision = precision
    x = graph.convolution(
        graph.input(*shape), (shape[1], 1, 3, 3), groups=shape[1], padding_l=1, padding_r=1
    )
    y = make(graph, x)
    graph.output(graph.convolution(y, (out, 1, 3, 3), groups=out, padding_l=1, padding_r=1))
    graph.tune(layout)
    return with_whole_numbers(graph)


def with_whole_numbers(graph):
    rng = np.random.default_rng(0)
    for array in graph.input_data + graph.constant_data:
        array[...] = rng.integers(-2, 3, array.shape)
    for tensor, array in zip(graph.constants, graph.constant_data, strict=True):
        if len(tensor["shape"]) == 4 and tensor["shape"][1] == 1:  # one tap of nine
            array[...] = 0
            array[:, :, 1, 1] = 1
        elif len(tensor["shape"]) == 4:  # few of them, so that sums stay below 256
            array[rng.random(array.shape) > 24 / tensor["shape"][1]] = 0
    return graph


def steps_of(graph):
    """Require the very same numbers; return the steps but for reorders."""
    engine = start(graph)
    expected = reference(graph)
    got = run(engine, graph.input_data, [e.shape for e in expected])
    for a, b in zip(got, expected, strict=True):
        assert np.array_equal(a, b)
    return [step for step in engine.profile()["steps"] if step["kind"] != "reorder"]


def convolution(graph, x, channels=32, out=64, kernel=(1, 1), bias=True, post_ops=(), **attrs):
    """Add one whose weights, and bias if there is one, are constants."""
    weights = (out, channels // attrs.get("groups", 1), *kernel)
    return graph.convolution(x, weights, graph.constant(out) if bias else None, post_ops, **attrs)


def implementations_that_round_once():
    """Require sums of floats, of factors in bf16, and as results the nearest numbers to these."""
    graph = between(lambda g, x: convolution(g, x, 256), (1, 256, 9, 9))
    rng = np.random.default_rng(1)
    weights = next(a for a in graph.constant_data if a.shape == (64, 256, 1, 1))
    weights[...] = rng.standard_normal(weights.shape).astype(DTYPES["bf16"]).astype(np.float32)
    engine = start(graph)
    (expected,) = reference(graph)
    (got,) = run(engine, graph.input_data, [expected.shape])
    error = np.abs(got - expected) / np.maximum(np.abs(expected), 1)
    assert error.max() <= 2.0**-8 * 1.01
    return [step["impl"] for step in engine.profile()["steps"]]
