"""Convolutions of whole numbers that stand for others, for our own kernels' tests."""

import numpy as np
from engine_graph import (
    DTYPES,
    Graph,
    assert_close,
    assert_numbers,
    binary,
    eltwise,
    reference,
    run,
    start,
)

CLIP = eltwise("clip", -0.7, 1.3)
PADDED = {"padding_l": 1, "padding_r": 1}


def convolution(
    shape,
    weights,
    src=("u8", 0),
    dst=("u8", 0),
    bias=True,
    post_ops=(),
    scales=None,
    addend=None,
    whole=True,
    **attrs,
):
    """Return the graph of a convolution of (dtype, zero point), with a scale for each channel.

    ``weights``: their shape. ``addend``: (dtype, zero point) of what is added first, in a tensor of
    the result's shape, which ``attrs`` must leave that of src. ``whole``: quantize the result.
    """
    graph = Graph()
    x = graph.dequantize(graph.input(*shape, dtype=src[0]), 0.02, src[1])
    if scales is None:
        scales = np.geomspace(1e-4, 1e-2, weights[0]) / np.sqrt(weights[1])
    numbers = graph.constant(*weights, dtype="s8")
    if addend:
        like_dst = graph.input(shape[0], weights[0], *shape[2:], dtype=addend[0])
        post_ops = [binary("add", graph.dequantize(like_dst, 0.031, addend[1])), *post_ops]
    y = graph.convolution(
        x,
        graph.dequantize(numbers, scales),
        graph.constant(weights[0]) if bias else None,
        post_ops,
        **attrs,
    )
    return graph.output(graph.quantize(y, 0.023, dst[1], dst[0]) if whole else y)


SHARED = {  # of two convolutions: src's zero points, scales and zero points of dst
    "one scale of dst and another": ((3, 3), (0.02, 0.05), (10, 10)),
    "one zero point of dst and another": ((3, 3), (0.03, 0.03), (0, 100)),
    "one zero point of src and another": ((0, 9), (0.03, 0.03), (10, 10)),
    "alike": ((3, 3), (0.03, 0.03), (10, 10)),
}


def two_that_share(name, weights, windows=({}, {}), groups=1):
    """Return the graph of two convolutions of 17 × 17 pixels with the same weights and bias."""
    graph = Graph()
    numbers = graph.dequantize(graph.constant(*weights, dtype="s8"), 0.01)
    bias = graph.constant(weights[0])
    for zero_point, scale, to, window in zip(*SHARED[name], windows, strict=True):
        x = graph.input(1, weights[1] * groups, 17, 17, dtype="u8")
        y = graph.convolution(
            graph.dequantize(x, 0.02, zero_point), numbers, bias, groups=groups, **window
        )
        graph.output(graph.quantize(y, scale, to, "u8"))
    return graph


def set_scales(graph, dst, others=1.0):
    """Have the result in units of ``dst``, and all others in one."""
    for node in graph.nodes:
        if node["kind"] == "dequantize":
            node["attrs"]["scales"] = [others] * len(node["attrs"]["scales"])
    graph.nodes[-1]["attrs"]["scales"] = [dst]


def steps_of(graph, dtype="u8"):
    """Compare with the reference; return the steps but for reorders."""
    engine = start(graph)
    expected = reference(graph)
    got = run(engine, graph.input_data, [e.shape for e in expected], DTYPES[dtype])
    (assert_close if dtype == "f32" else assert_numbers)(got, expected)
    return [step for step in engine.profile()["steps"] if step["kind"] != "reorder"]
