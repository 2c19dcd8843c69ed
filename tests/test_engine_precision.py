"""Graphs that are computed in bf16 or f16: what is rounded, what is not, and what is where."""

import json
import pickle

import numpy as np
import pytest
from engine_graph import (
    DTYPES,
    OPERATIONS,
    Graph,
    InvalidArgument,
    Unsupported,
    assert_close,
    binary,
    check,
    compare,
    eltwise,
    pack,
    relu,
    run,
    run_python,
    start,
    supports,
)

PRECISIONS = {"bf16": 2.0**-8, "f16": 2.0**-11}  # half of the distance from 1 to the next number


def has(precision):
    graph = Graph().output()
    graph.precision = precision
    try:
        supports(graph)
    except Unsupported:
        return False
    return True


HERE = {precision: precision if has(precision) else "f32" for precision in PRECISIONS}


def rounded(array, precision):
    """Return the nearest numbers of what the processor computes in."""
    return array.astype(DTYPES[HERE[precision]]).astype(np.float64)


def reference(graph, precision):
    """Evaluate in float64; round what is read and left to others as the engine says it does."""
    heavy = ("convolution", "deconvolution", "inner_product", "matmul")
    values, softmax_reads = {}, {n["inputs"][0] for n in graph.nodes if n["kind"] == "softmax"}
    for tensors, data in (
        (graph.inputs, graph.input_data),
        (graph.constants, graph.constant_data),
    ):
        for tensor, array in zip(tensors, data, strict=True):
            values[tensor["id"]] = array.astype(np.float64)
    for node in graph.nodes:
        inputs = [values[i] for i in node["inputs"]]
        if node["kind"] in heavy:
            inputs[:2] = [rounded(value, precision) for value in inputs[:2]]
        value = OPERATIONS[node["kind"]](node["attrs"], *inputs)
        for op in node.get("post_ops", ()):
            operands = [value] if op["kind"] == "eltwise" else [value, values[op["src1"]]]
            value = OPERATIONS[op["kind"]](op, *operands)
        kept = node["output"] in graph.outputs or node["output"] in softmax_reads
        values[node["output"]] = value if kept else rounded(value, precision)
    return [values[tensor] for tensor in graph.outputs]


def check_precision(graph, precision, tolerance):
    """Run; compare with the reference; return the steps but reorders."""
    graph.precision = precision
    expected = reference(graph, precision)
    engine = start(graph)
    got = run(engine, graph.input_data, [value.shape for value in expected])
    assert_close(got, expected, tolerance)
    return [step for step in engine.profile()["steps"] if step["kind"] != "reorder"]


def convolution(shape, weights, groups=1, **attrs):
    graph = Graph()
    bias = graph.constant(weights[0])
    out = graph.convolution(graph.input(*shape), weights, bias, [relu(0.1)], groups, **attrs)
    return graph.output(out)


def inner_product():
    graph = Graph()
    src, weights, bias = graph.input(3, 70), graph.constant(33, 70), graph.constant(33)
    return graph.output(graph.node("inner_product", [src, weights, bias], [eltwise("tanh")]))


def matmul(constant):
    graph = Graph()
    src = graph.input(2, 5, 64)
    weights = graph.constant(2, 64, 9) if constant else graph.input(2, 64, 9)
    return graph.output(graph.node("matmul", [src, weights]))


HEAVY = {
    "conv1d": lambda: convolution((2, 16, 30), (24, 16, 3), padding_l=1, padding_r=2),
    "conv2d": lambda: convolution((1, 3, 17, 19), (32, 3, 3, 3), strides=2, padding_l=1),
    "conv2d, 1x1": lambda: convolution((2, 64, 7, 7), (48, 64, 1, 1)),
    "conv2d, groups": lambda: convolution((1, 32, 9, 9), (32, 8, 3, 3), groups=4),
    "conv2d, few channels in a group": lambda: convolution(
        (1, 32, 9, 9), (32, 4, 3, 3), groups=8, padding_l=1, padding_r=1
    ),
    "conv2d, depthwise": lambda: convolution((1, 20, 9, 9), (20, 1, 3, 3), groups=20),
    "conv3d": lambda: convolution((1, 8, 5, 6, 7), (16, 8, 3, 3, 3), dilation=1),
    "inner_product": inner_product,
    "matmul": lambda: matmul(constant=True),
    "matmul of inputs": lambda: matmul(constant=False),
}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", HEAVY)
def test_products_are_exact_and_sums_in_f32(name, precision):
    (step,) = check_precision(HEAVY[name](), precision, 2e-5)
    here = HERE[precision]
    # oneDNN 3.2 has no half-precision implementation but "ref" for some: those stay in f32.
    fallen_back = {"src": "f32", "weights": "f32", "dst": "f32"}
    assert step["dtypes"] in ({"src": here, "weights": here, "dst": "f32"}, fallen_back)
    if precision == "bf16":
        assert step["dtypes"]["src"] == here
        assert not step["impl"].startswith("ref")


def network():
    """A convolution, a pooling, two branches that are added, a dense layer and a softmax."""
    graph = Graph()
    x = graph.convolution(graph.input(2, 3, 32, 32), (32, 3, 3, 3), post_ops=[relu()])
    x = graph.pooling(x, "max", (2, 2), strides=2)
    y = graph.convolution(x, (32, 32, 1, 1), post_ops=[relu()])
    x = graph.convolution(y, (32, 32, 3, 3), post_ops=[binary("add", x)], padding_l=1, padding_r=1)
    x = graph.node("concat", [x, y], axis=1)
    x = graph.pooling(x, "avg_exclude_padding", (15, 15))
    x = graph.node("inner_product", [graph.reshape(x, 2, 64), graph.constant(10, 64)])
    return graph.output(graph.node("softmax", [x], axis=1, log=1))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_nodes_leave_to_each_other(precision):
    here = HERE[precision]
    steps = check_precision(network(), precision, 4 * PRECISIONS[precision])
    dense, softmax = steps[-2:]
    assert [step["kind"] for step in (dense, softmax)] == ["inner_product", "softmax"]
    assert dense["dtypes"] == {"src": here, "weights": here, "dst": "f32"}
    assert softmax["dtypes"] == {"src": "f32", "dst": "f32"}
    convolutions = [step["dtypes"] for step in steps if step["kind"] == "convolution"]
    assert len(convolutions) == 3
    assert all(set(dtypes.values()) == {here} for dtypes in convolutions)
    assert not any(step["impl"].startswith("ref") for step in steps)


def residual(reader, last):
    """A sum whose operand dies there, and is in another data type than the result."""
    graph = Graph()
    y = graph.convolution(graph.input(1, 16, 9, 9), (16, 16, 1, 1), post_ops=[relu()])
    z = graph.convolution(y, (16, 16, 1, 1), post_ops=[relu()])
    if reader == "softmax":  # which keeps y in f32
        graph.output(graph.node("softmax", [y], axis=1, log=0))
    z = graph.convolution(z, (16, 16, 3, 3), post_ops=[binary("add", y)], padding_l=1, padding_r=1)
    return graph.output(z if last else graph.convolution(z, (8, 16, 1, 1)))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("reader", [None, "softmax"])
@pytest.mark.parametrize("last", [True, False])
def test_a_sum_in_another_data_type_is_not_in_place(last, reader, precision):
    graph = residual(reader, last)
    steps = check_precision(graph, precision, 4 * PRECISIONS[precision])
    (names,) = [s["post_ops"] for s in steps if "add" in s["post_ops"] or "sum" in s["post_ops"]]
    summand, dst = ("f32" if kept else HERE[precision] for kept in (reader, last))
    in_place = summand == dst
    assert names == ("sum" if in_place else "binary_add")


@pytest.mark.parametrize("precision", PRECISIONS)
def test_prelu_reads_its_weights_in_f32(precision):
    graph = Graph()
    weights = graph.convolution(graph.input(1, 8, 1, 1), (16, 8, 1, 1))
    post_op = {"kind": "prelu", "src1": weights}
    y = graph.convolution(graph.input(1, 16, 9, 9), (16, 16, 3, 3), post_ops=[post_op])
    graph.precision = precision
    engine = start(graph.output(y))
    (got,) = run(engine, graph.input_data, [(1, 16, 7, 7)])
    graph.precision = None
    (expected,) = run(start(graph), graph.input_data, [(1, 16, 7, 7)])
    assert_close([got], [expected], 4 * PRECISIONS[precision])


@pytest.mark.parametrize("precision", PRECISIONS)
def test_packed_constants(precision):
    graph = network()
    graph.precision = precision
    text, packed = pack(graph, graph.constant_data)
    dtypes = [c["packed"]["dtype"] for c in json.loads(text)["constants"] if "packed" in c]
    assert HERE[precision] in dtypes
    shapes = [(2, 10)]
    engine = start(graph)
    expected = run(engine, graph.input_data, shapes)[0]
    loaded = type(engine)(text)
    loaded.set_constants(packed)
    assert run(loaded, graph.input_data, shapes)[0].tobytes() == expected.tobytes()
    assert loaded.profile()["repacked_bytes"] == 0


@pytest.mark.parametrize("layout", ["any", "channels_last", "blocked"])
@pytest.mark.parametrize("chunk", [0, 1])
def test_all_choices(layout, chunk):
    graph = network().tune(layout, chunk=chunk)
    check_precision(graph, "bf16", 4 * PRECISIONS["bf16"])


def test_a_processor_without_it(tmp_path):
    """It is refused, but what was built elsewhere runs, in single precision."""
    graph = network()
    graph.precision = "bf16"
    text, packed = pack(graph, graph.constant_data)
    expected = run(start(graph), graph.input_data, [(2, 10)])[0]
    path = tmp_path / "model"
    path.write_bytes(pickle.dumps((text, packed, graph.input_data, expected)))
    process = run_python(
        """
import pickle, sys
import numpy as np
from engine_graph import Engine, Graph, Unsupported, run, supports
text, packed, inputs, expected = pickle.load(open(sys.argv[1], 'rb'))
graph = Graph().output()
graph.precision = 'bf16'
try:
    supports(graph)
except Unsupported as error:
    assert 'expected a processor that computes in bf16, got AVX2' in str(error), error
else:
    raise AssertionError('expected to be refused')
engine = Engine(text)
engine.set_constants(packed)
got = run(engine, inputs, [expected.shape])[0]
assert abs(got - expected).max() < 0.05 * abs(expected).max()
for step in engine.profile()['steps']:
    assert set(step['dtypes'].values()) <= {'f32'}, step
""",
        str(path),
        ONEDNN_MAX_CPU_ISA="AVX2",
    )
    assert process.returncode == 0, process.stderr


WINOGRAD = pytest.mark.skipif(HERE["bf16"] == "f32", reason="the processor has no bf16")


def by_winograd(kernel, tile, layout="blocked", in_place=None):
    """Return a graph of one convolution by the algorithm, its data and weights exact in bf16.

    ``in_place``: it adds a tensor, which dies there, or does not; None: it adds none.
    """
    graph, channels = Graph(), 32
    x = graph.input(2, channels, 9, 11)
    graph.input_data[0] = rounded(graph.input_data[0], "bf16").astype(np.float32)
    post_ops = [relu(0.1)]
    if in_place is not None:
        other = graph.eltwise(x, "linear", 0.5)  # exact as well
        post_ops.insert(0, binary("add", other))
        if not in_place:
            graph.output(other)
    weights = np.random.default_rng(0).uniform(-1, 1, (48 if in_place is None else 32, 32, *kernel))
    weights = graph.constant(*weights.shape, data=rounded(weights, "bf16").astype(np.float32))
    half = [size // 2 for size in kernel]
    bias = graph.constant(graph.constants[-1]["shape"][0])
    y = graph.convolution(x, weights, bias, post_ops, padding_l=half, padding_r=half)
    graph.output(y)
    return graph.tune(layout, [[len(graph.nodes) - 1, tile]]), y


@WINOGRAD
@pytest.mark.parametrize("layout", ["blocked", "channels_last"])
@pytest.mark.parametrize("in_place", [None, True, False])
@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("kernel", [(3, 3), (5, 5), (1, 3), (7, 1)])
def test_winograd_reads_it_and_computes_in_f32(kernel, tile, in_place, layout):
    graph, _ = by_winograd(kernel, tile, layout, in_place)
    steps = check_precision(graph, "bf16", 8e-6)
    by_kind = {step["kind"]: step["dtypes"] for step in steps}
    assert by_kind["winograd_src"] == {"src": "bf16", "dst": "f32"}
    assert by_kind["winograd_dst"]["dst"] == "f32"  # the caller's


@WINOGRAD
@pytest.mark.parametrize("layout", ["blocked", "channels_last"])
@pytest.mark.parametrize("in_place", [None, True, False])
@pytest.mark.parametrize("tile", [2, 4])
def test_winograd_leaves_it_to_others(tile, in_place, layout):
    """The nearest number; the next one where the sum was close to the middle."""
    graph, y = by_winograd((3, 3), tile, layout, in_place)
    graph.outputs[-1] = graph.eltwise(y, "linear", 1.0)
    graph.precision = "bf16"
    expected = reference(graph, "bf16")
    engine = start(graph)
    got = run(engine, graph.input_data, [value.shape for value in expected])
    np.testing.assert_array_equal(got[-1], rounded(got[-1], "bf16"))
    distance = np.abs(got[-1] - expected[-1])
    assert (distance <= 2.0**-7 * np.abs(expected[-1]) + 1e-5).all()
    assert (distance > 1e-5).mean() < 0.01
    (step,) = [s for s in engine.profile()["steps"] if s["kind"] == "winograd_dst"]
    assert step["dtypes"]["dst"] == "bf16"
    assert step["post_ops"].startswith("sum") == bool(in_place)


@WINOGRAD
def test_winograd_rounds_what_is_special():
    """Too large a number becomes infinite; what is none stays none."""
    graph, y = by_winograd((3, 3), 2)
    graph.outputs[-1] = graph.eltwise(y, "linear", 1.0)
    graph.precision = "bf16"
    graph.input_data[0][0] = 0
    graph.input_data[0][0, 3, 1, 1] = np.nan
    graph.input_data[0][1] *= np.float32(3e38)
    (got,) = run(start(graph), graph.input_data, [(2, 48, 9, 11)])
    assert np.isnan(got[0, :, :2, :2]).all()
    assert np.isfinite(got[0, :, 4:, 4:]).all()
    assert not np.isfinite(got[1]).all()


def test_single_precision_is_not_rounded():
    """The near miss: the same network without a precision."""
    graph = network()
    result = check(graph, 1e-5)
    compare(result.engine, graph, 1e-5)
    assert all(set(step["dtypes"].values()) == {"f32"} for step in result.steps)


def test_not_a_precision():
    graph = inner_product()
    for name in ("s8", "u8", "s32"):
        graph.precision = name
        with pytest.raises(InvalidArgument, match="expected precision f32, bf16 or f16"):
            start(graph)
