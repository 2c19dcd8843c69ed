"""Other implementations than oneDNN's first, by name."""

import json

import numpy as np
import pytest
from convolution_of_numbers import convolution, steps_of
from engine_graph import Engine, Graph, check, pack, reference, relu
from networks_of_floats import between
from networks_of_floats import steps_of as steps_of_floats
from processor import HAS_BF16, WHOLE

ROWS, INPUTS, UNITS = 3, 40, 24


def dense(graph, x, units=UNITS, inputs=INPUTS, **attrs):
    weights, bias = graph.constant(units, inputs), graph.constant(units)
    return graph.node("inner_product", [x, weights, bias], **attrs)


def one_dense():
    graph = Graph()
    graph.output(dense(graph, graph.input(ROWS, INPUTS), post_ops=[relu()]))
    return graph


def one_matmul():
    graph = Graph()
    x = graph.input(2, ROWS, INPUTS)
    graph.output(graph.node("matmul", [x, graph.input(2, INPUTS, UNITS)], post_ops=[relu()]))
    return graph


def one_convolution():
    graph = Graph()
    # In groups, for which there is no kernel of our own.
    x = graph.convolution(graph.input(1, 64, 7, 9), (32, 32, 1, 1), post_ops=[relu()], groups=2)
    graph.output(graph.convolution(x, (32, 32, 1, 1)))
    return graph


GRAPHS = [one_dense, one_matmul, one_convolution]
ISAS = ["avx512_core", "avx2", "sse41"]
KINDS = ["brgemm", "brg", "brgconv_1x1", "jit_1x1", "jit"]
NAMES = [
    *(f"{kind}:{isa}" for kind in KINDS for isa in ISAS),
    *("x64:gemm:jit", "gemm:jit:f32"),
]


def implementations(graph):
    """Return oneDNN's name for each node."""
    return [step["impl"] for step in check(graph).steps]


@pytest.mark.parametrize("make", GRAPHS)
def test_each_other_implementation(make):
    """What a build may choose gives the same numbers, and is what runs."""
    first = implementations(make().tune("channels_last"))[0]
    others = set()
    for name in NAMES:
        graph = make().tune("channels_last", implementations=[[0, name]])
        ran = implementations(graph)[0]
        assert ran in (first, name)
        others |= {ran} - {first}
    assert others


def test_only_the_node_that_is_named():
    graph = Graph()
    x = dense(graph, graph.input(ROWS, INPUTS), INPUTS)
    graph.output(dense(graph, x))
    first, second = implementations(graph)
    assert first == second
    chosen = implementations(graph.tune(implementations=[[1, "x64:gemm:jit"]]))
    assert chosen == [first, "x64:gemm:jit"]


def grouped():
    """Return a convolution of groups for which there is a kernel of our own; and its node."""
    graph = Graph()
    x = graph.convolution(graph.input(1, 32, 23, 25), (32, 32, 1, 1))
    x = graph.convolution(x, (32, 4, 3, 3), groups=8, padding_l=1, padding_r=1, post_ops=[relu()])
    graph.output(graph.convolution(x, (32, 32, 1, 1)))
    return graph, 1


def average():
    """Return an average of numbers for which there is one; and its node."""
    graph = Graph()
    numbers = graph.node("transpose", [graph.input(2, 9, 8, 64, dtype="u8")], axes=[0, 3, 1, 2])
    mean = graph.pooling(graph.dequantize(numbers, 0.02), "avg_exclude_padding", (3, 3))
    graph.output(graph.dequantize(graph.quantize(mean, 0.01), 0.01))
    return graph, 2


def impl_of(graph, node, steps):
    """Return the implementation of the only node of its kind, or of the second of three."""
    impls = [step["impl"] for step in steps if step["kind"] == graph.nodes[node]["kind"]]
    return impls[len(impls) // 2]


@pytest.mark.parametrize("make", [grouped, average])
def test_kernels_of_our_own_are_the_first_of_all(make):
    """oneDNN's come after them, and are taken by their names."""
    graph, node = make()

    def impl(name=None):
        implementations = [[node, name]] if name else []
        tuned = graph.tune("channels_last", implementations=implementations)
        return impl_of(graph, node, check(tuned, 1e-2 if make is average else 1e-5).steps)

    assert impl() == make.__name__
    others = {impl(f"{kind}:{isa}") for kind in ("brgconv", "jit", "jit_int") for isa in ISAS}
    assert make.__name__ not in others
    assert not any(name.startswith("ref") for name in others)


@pytest.mark.parametrize("name", ["", "no such", "ref:any"])
def test_a_name_of_none_that_is_fast(name):
    assert implementations(one_dense().tune(implementations=[[0, name]])) == implementations(
        one_dense()
    )


def whole_layer():
    graph = Graph()
    weights = graph.dequantize(graph.constant(128, 1024, dtype="s8"), 0.001)
    x = graph.dequantize(graph.input(2, 1024, dtype="u8"), 0.02)
    graph.input_data[0][...] |= 0x80  # large numbers, of which pairs have more than 16 bits
    graph.constant_data[0][...] |= 0x60
    return graph.output(graph.node("inner_product", [x, weights])), 2


def whole_convolution(groups=1):
    graph = Graph()
    weights = graph.dequantize(graph.constant(64, 64 // groups, 3, 3, dtype="s8"), 0.001)
    x = graph.dequantize(graph.input(1, 64, 9, 9, dtype="u8"), 0.02)
    graph.input_data[0][...] |= 0x80
    graph.constant_data[0][...] |= 0x60
    return graph.output(graph.convolution(x, weights, groups=groups)), 2


def whole_groups():
    return whole_convolution(64)


@pytest.mark.skipif(not WHOLE, reason="nothing is computed in whole numbers")
@pytest.mark.parametrize("isa", ["sse41", "avx2", "avx512_core"])
@pytest.mark.parametrize("make", [whole_layer, whole_convolution, whole_groups])
def test_sums_that_saturate(make, isa):
    """What oneDNN has for older processors is not taken, whether it is fast or asked for."""
    for name in ("brgemm", "brgconv", "jit_int8", "jit_uni_int8", "jit_uni_int8_1x1", "brdgmm_dw"):
        graph, node = make()
        graph.tune(implementations=[[node, f"{name}:{isa}"]])
        impl = impl_of(graph, node, check(graph).steps)
        assert not impl.endswith(f":{isa}")


def test_an_implementation_in_another_layout_is_not_taken():
    """It would cost a reorder: it is not what was measured."""
    blocked = implementations(one_convolution().tune("blocked"))
    plain = [[i, "x64:gemm:jit"] for i in range(2)]
    assert implementations(one_convolution().tune("blocked", implementations=plain)) == blocked


def wide_dense():
    """oneDNN's first is slow to read large weights for a single row."""
    graph = Graph()
    graph.output(dense(graph, graph.input(1, 4096), 1024, 4096))
    return graph, 0


@pytest.mark.parametrize("make", [wide_dense, grouped])
def test_what_is_measured_is_what_runs(make):
    graph, node = make()
    (expected,) = reference(graph)
    text, packed = pack(graph, graph.constant_data, tune="layouts")
    chosen = dict(json.loads(text).get("tuned", {}).get("implementations", []))
    engine = Engine(text)
    engine.set_constants(packed)
    result = np.empty(expected.shape, np.float32)
    engine.run_into(graph.input_data, [result])
    np.testing.assert_allclose(result, expected, atol=1e-5 * np.abs(expected).max())
    ran = impl_of(graph, node, engine.profile()["steps"])
    assert ran == chosen.get(node, "grouped" if make is grouped else implementations(graph)[0])


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("holes", [4, 8, 24])
def test_windows_that_reach_beyond_both_ends(holes, dtype):
    """oneDNN 3.2's convolution by AMX reads beyond src there, or adds up something else."""
    attrs = {"dilation": holes, "padding_l": holes, "padding_r": holes}
    graph = convolution((1, 16, 5, 2), (64, 16, 3, 3), (dtype, 7), ("u8", 3), **attrs)
    assert "jit:avx512_core_amx" not in [step["impl"] for step in steps_of(graph)]


PADDED = {
    "wide images": ((2, 64, 9, 48), (16, 64, 2, 1), {"padding_r": [1, 0]}),
    "images of 16 channels": (
        (3, 16, 18, 43),
        (65, 16, 3, 1),
        {"padding_l": [1, 0], "padding_r": [1, 0]},
    ),
    "a row above": ((1, 136, 2, 42), (61, 136, 2, 2), {"padding_l": [1, 0]}),
    "skipped columns": (
        (5, 136, 2, 43),
        (1, 136, 1, 7),
        {"strides": [1, 9], "padding_l": [1, 6], "padding_r": [2, 1]},
    ),
    "skipped pixels": (
        (2, 136, 8, 6),
        (65, 136, 1, 1),
        {"strides": [3, 2], "padding_l": [0, 1], "padding_r": [0, 1]},
    ),
    "skipped columns, rows below": (
        (3, 136, 15, 16),
        (77, 136, 4, 16),
        {"strides": [1, 1000], "padding_r": [2, 0]},
    ),
    "a window as wide as the image": (
        (3, 64, 15, 27),
        (192, 64, 1, 40),
        {"padding_l": [0, 19], "padding_r": [0, 20]},
    ),
}


@pytest.mark.parametrize("src", [("u8", 0), ("u8", 7), ("s8", -128)])
@pytest.mark.parametrize("name", PADDED)
def test_padding_of_numbers(name, src):
    """Some of oneDNN 3.2's implementations are wrong there."""
    shape, weights, window = PADDED[name]
    steps_of(convolution(shape, weights, src, ("s8", 5), scales=[5e-4], **window), "s8")


@pytest.mark.skipif(not HAS_BF16, reason="oneDNN needs AVX-512 with bf16 for such blocks")
@pytest.mark.parametrize("pixels", [(1, 1), (1, 3), (2, 2)])
def test_additions_in_blocks_of_four_halves(pixels):
    """oneDNN 3.2's writes behind its result, and what it writes is wrong."""
    groups = 4

    def make(graph, x):
        y = graph.convolution(x, (48, 48 // groups, 1, 1), groups=groups)
        return graph.add(y, x)

    steps_of_floats(between(make, (1, 48, *pixels), 48, layout="blocked"))
