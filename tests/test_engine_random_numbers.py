"""Random graphs of convolutions of whole numbers, which read, add and join each other's results.

What runs them is mixed: our own kernels, also in the place of what they add, and oneDNN's.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from engine_graph import DTYPES, Graph, binary, eltwise, reference, relu, run, start
from processor import AMX, VNNI

SEEDS = range(120)
CHANNELS = (16, 20, 48, 64, 117, 128)
KERNELS = {"pointwise": 1, "dense": 3, "depthwise": 3}


class Numbers(NamedTuple):
    """A tensor, and what its numbers stand for."""

    tensor: int
    shape: tuple
    dtype: str
    scale: float
    zero_point: int


class Drawing:
    """Draws a graph. Whatever is computed is quantized so that few numbers are cut off."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.graph = Graph(seed)
        batch, *size = (int(self.random.integers(1, most)) for most in (4, 10, 10))
        shape = (batch, int(self.random.choice(CHANNELS)), *size)
        source = self.graph.input(*shape, dtype="u8")
        self.drawn = [Numbers(source, shape, "u8", 0.02, 7)]
        self.outputs = []

    def draw(self, operations):
        while len(self.outputs) < operations:
            kind = self.random.choice([*KERNELS, "pointwise", "pointwise", "concat", "slice"])
            source = self.any_of(self.drawn[-3:])
            made = getattr(self, kind)(source) if kind in ("concat", "slice") else None
            self.outputs.append(made or self.convolution(source, kind))
            self.drawn.append(self.outputs[-1])
        return self.graph.output(self.outputs[-1].tensor)

    def any_of(self, choices):
        return choices[int(self.random.integers(len(choices)))]

    def real(self, numbers):
        return self.graph.dequantize(numbers.tensor, numbers.scale, numbers.zero_point)

    def convolution(self, source, kind):
        kernel = KERNELS.get(kind, 1)
        groups = source.shape[1] if kind == "depthwise" else 1
        out = groups if groups > 1 else int(self.random.choice(CHANNELS))
        shape = (source.shape[0], out, *source.shape[2:])
        alike = [numbers for numbers in self.drawn if numbers.shape == shape]
        post_ops = []
        if alike and groups == 1 and self.random.random() < 0.7:
            post_ops.append(binary("add", self.real(alike[-1])))
        post_ops += self.any_of([[], [relu()], [eltwise("clip", -0.7, 1.3)]])
        weights = self.graph.constant(out, source.shape[1] // groups, kernel, kernel, dtype="s8")
        y = self.graph.convolution(
            self.real(source),
            self.graph.dequantize(weights, np.geomspace(1e-3, 1e-2, out)),
            self.graph.constant(out) if self.random.random() < 0.7 else None,
            post_ops,
            groups=groups,
            padding_l=kernel // 2,
            padding_r=kernel // 2,
        )
        self.graph.outputs = [y]
        (values,) = reference(self.graph)
        self.graph.outputs = []
        dtype, middle = self.any_of([("u8", 128), ("s8", 0)])
        scale = float(np.float32(max(values.std() / 40, 1e-3)))
        zero_point = int(
            np.clip(middle - np.rint(values.mean() / scale), middle - 128, middle + 127)
        )
        return Numbers(
            self.graph.quantize(y, scale, zero_point, dtype), shape, dtype, scale, zero_point
        )

    def concat(self, source):
        others = [
            n
            for n in self.drawn
            if n.dtype == source.dtype and n.shape[2:] == source.shape[2:] and n is not source
        ]
        if not others:
            return None
        other = self.any_of(others)
        shape = (source.shape[0], source.shape[1] + other.shape[1], *source.shape[2:])
        joint = self.graph.node("concat", [source.tensor, other.tensor], axis=1)
        return source._replace(tensor=joint, shape=shape)

    def slice(self, source):
        size = [source.shape[0], min(source.shape[1], 48), *source.shape[2:]]
        begin = [0, int(self.random.integers(source.shape[1] - size[1] + 1)), 0, 0]
        part = self.graph.node("slice", [source.tensor], begin=begin, size=size)
        return source._replace(tensor=part, shape=tuple(size))


def drawn(seed):
    """Return a random graph, tuned or not, and the data type of its result."""
    drawing = Drawing(seed)
    graph = drawing.draw(int(drawing.random.integers(2, 8)))
    if drawing.random.random() < 0.8:
        nodes = enumerate(graph.nodes)
        winograd = [[i, 4] for i, node in nodes if node["kind"] == "convolution"]
        layout = drawing.any_of(["any", "channels_last", "blocked"])
        graph.tune(layout, winograd, chunk=int(drawing.random.integers(2)))
    return graph, drawing.outputs[-1].dtype


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs(seed):
    """A tie that is decided in another way may become a few units further on."""
    graph, dtype = drawn(seed)
    expected = reference(graph)
    engine = start(graph)
    before = [data.copy() for data in graph.input_data]
    for _ in range(2):
        got = run(engine, graph.input_data, [e.shape for e in expected], DTYPES[dtype])
        difference = np.abs(got[0].astype(int) - expected[0])
        assert difference.max() <= 4
        assert (difference > 1).mean() < 0.01
    for a, b in zip(before, graph.input_data, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.skipif(not VNNI, reason="the kernels need AVX-512 with VNNI")
def test_what_random_graphs_reach():
    found = Counter()
    for seed in SEEDS:
        graph, _ = drawn(seed)
        for step in start(graph).profile()["steps"]:
            found[step["impl"]] += 1
            found[step["impl"], step["post_ops"].split("+")[0]] += 1
    products = "tiles" if AMX else "pointwise"
    for kernel in products, "winograd", "depthwise":
        assert found[kernel] >= 20
    for kernel in products, "winograd":
        assert min(found[kernel, "sum"], found[kernel, "binary_add"]) >= 3
