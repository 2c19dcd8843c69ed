"""What is wrong with a graph or a tensor is said, with what was expected; nothing crashes."""

import copy
import ctypes
import json
from collections import Counter

import numpy as np
import pytest
from engine_graph import (
    Engine,
    EngineError,
    Graph,
    InvalidArgument,
    Unsupported,
    binary,
    call,
    dltensor,
    eltwise,
    int64s,
    json_bytes,
    library,
    relu,
    run_python,
    start,
    supports,
    tensor_array,
)

DELETED = object()


def status(body):
    """Call ``body``; return "success" or the error's name. An error has a text."""
    try:
        body()
    except EngineError as error:
        return type(error).__name__ if str(error) else "no text"
    return "success"


def every_kind():
    """Return a graph with a node of every kind, and all kinds of post-ops."""
    graph = Graph()
    x = graph.input(2, 3, 7, 5)
    y = graph.convolution(x, (8, 3, 3, 3), graph.constant(8), [relu(0.5)], padding_l=1)
    y = graph.convolution(
        y, (8, 4, 1, 1), post_ops=[binary("add", y), eltwise("clip", -1.0, 1.0)], groups=2
    )
    y = graph.add(y, graph.constant(1, 8, 1, 1), [binary("mul", graph.constant(8, 1, 1))])
    y = graph.node("concat", [y, graph.eltwise(y, "tanh")], axis=1)
    statistics = [graph.constant(data=np.arange(16) + 1) for _ in range(4)]
    y = graph.node("batch_normalization", [y, *statistics], epsilon=1e-3)
    y = graph.pooling(y, "avg_exclude_padding", (3, 2), strides=2, padding_r=(0, 1))
    y = graph.reshape(y, 2, -1)
    y = graph.node("inner_product", [y, graph.constant(5, 64), graph.constant(5)], [relu()])
    return graph.output(graph.node("softmax", [y], axis=1, log=0), x)


def refusal(graph):
    """Return the text with which both a graph's creation and ``supports`` are refused."""
    with pytest.raises(InvalidArgument) as error:
        Engine(graph)
    with pytest.raises(InvalidArgument) as again:
        supports(graph)
    assert str(error.value) == str(again.value)
    assert str(error.value)
    return str(error.value)


def small(**changes):
    """Return a graph of one activation, with top-level keys replaced or DELETED."""
    document = {
        "format": "dnnl_byoc",
        "version": 3,
        "inputs": [{"id": 0, "dtype": "f32", "shape": [2, 3]}],
        "constants": [],
        "outputs": [1],
        "nodes": [{"kind": "eltwise", "inputs": [0], "output": 1, "attrs": eltwise("relu")}],
    }
    document.update(changes)
    return {key: value for key, value in document.items() if value is not DELETED}


def one_node(kind, *shapes, post_ops=(), **attrs):
    """Return a graph of one node on inputs of the given shapes."""
    graph = Graph()
    inputs = [graph.input(*shape) for shape in shapes]
    return graph.output(graph.node(kind, inputs, post_ops, **attrs)).document()


WINDOW = {"strides": [1, 1], "dilation": [1, 1], "padding_l": [0, 0], "padding_r": [0, 0]}
KINDS = {
    "convolution": ([(2, 4, 7, 5), (8, 4, 3, 3)], {**WINDOW, "groups": 1}),
    "inner_product": ([(2, 4), (3, 4)], {}),
    "pooling": ([(2, 4, 7, 5)], {**WINDOW, "kernel": [3, 3], "alg": "max"}),
    "eltwise": ([(2, 4)], {"alg": "relu", "alpha": 0.0, "beta": 0.0}),
    "binary": ([(2, 4), (4,)], {"alg": "add"}),
    "batch_normalization": ([(2, 4), (4,), (4,), (4,), (4,)], {"epsilon": 1e-5}),
    "softmax": ([(2, 4)], {"axis": 1, "log": 0}),
    "concat": ([(2, 4), (2, 3)], {"axis": 1}),
    "reshape": ([(2, 4)], {"shape": [8]}),
}


def node_of(kind, *shapes, post_ops=(), **changes):
    """Return a graph of one valid node of a kind, with attributes replaced or DELETED."""
    default_shapes, attrs = KINDS[kind]
    attrs = {k: v for k, v in {**attrs, **changes}.items() if v is not DELETED}
    return one_node(kind, *(shapes or default_shapes), post_ops=post_ops, **attrs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_graphs_that_are_damaged_below_are_valid(kind):
    supports(node_of(kind))
    supports(small())
    start(every_kind())


# The graph as a whole ----------------------------------------------------------------------------


def test_truncated_at_every_byte():
    text = json_bytes(every_kind())
    for end in range(0, len(text), 3):
        assert "not a well-formed dnnl_byoc graph" in refusal(text[:end])


@pytest.mark.parametrize(
    "text", [b"", b"null", b"[]", b"1", b'"x"', b"{}", b"[" * 10000, b'{"format": "\xff"}']
)
def test_not_a_graph(text):
    assert refusal(text).startswith("graph: ")


@pytest.mark.parametrize("key", ["format", "version", "inputs", "constants", "outputs", "nodes"])
def test_missing_key(key):
    assert f"key '{key}' not found" in refusal(small(**{key: DELETED}))


def test_other_format():
    text = refusal(small(format="tensorrt"))
    assert 'expected format dnnl_byoc, got "tensorrt"' in text


@pytest.mark.parametrize("version", [0, 2, 4, -1, "3", None, [3]])
def test_other_version(version):
    text = refusal(small(version=version))
    assert f"expected version 3, got {json.dumps(version)}" in text
    assert "rebuild the model" in text


@pytest.mark.parametrize("key", ["inputs", "constants", "outputs", "nodes"])
@pytest.mark.parametrize("value", [1, "x", True, [1.5, "x"], [None], [[]]], ids=str)
def test_value_of_wrong_type(key, value):
    refusal(small(**{key: value}))


_DAMAGED = [
    (key, value)
    for key in ("id", "dtype", "shape")
    for value in (DELETED, None, "x", [], {}, [[]], ["x"])
    if (key, value) != ("shape", [])  # a scalar is a tensor
]


@pytest.mark.parametrize(("key", "value"), _DAMAGED, ids=str)
def test_damaged_tensor(key, value):
    tensor = {"id": 0, "dtype": "f32", "shape": [2, 3], key: value}
    tensor = {k: v for k, v in tensor.items() if v is not DELETED}
    refusal(small(inputs=[tensor]))
    refusal(small(constants=[tensor]))


def test_unknown_dtype():
    tensor = {"id": 0, "dtype": "float32", "shape": [2, 3]}
    assert "expected a oneDNN dtype, got float32" in refusal(small(inputs=[tensor]))


@pytest.mark.parametrize("shape", [[2, -2], [-3], [-(2**31)]], ids=str)
def test_negative_size(shape):
    text = refusal(small(inputs=[{"id": 0, "dtype": "f32", "shape": shape}]))
    assert "expected sizes >= 0, got (" + ", ".join(map(str, shape)) in text


def test_rank_too_high():
    text = refusal(small(inputs=[{"id": 0, "dtype": "f32", "shape": [1] * 13}]))
    assert "expected rank <= 12, got (1, 1" in text


@pytest.mark.parametrize(
    "shape",
    [[2**31 - 1] * 3, [2**31], [2**40, 2**40], [2**62], [2**63], [2**64 - 1], [2, 1.5], [2, True]],
    ids=str,
)
def test_size_that_is_none(shape):
    """Not whole, too large for oneDNN's int, or all too large to be counted in bytes.

    Refused: what is wrapped or truncated may be valid, or a division by zero inside oneDNN.
    """
    refusal(small(inputs=[{"id": 0, "dtype": "f32", "shape": shape}]))


# Tensor ids --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1, 1 << 20, 2**31 - 1])
def test_id_out_of_range(value):
    text = refusal(small(inputs=[{"id": value, "dtype": "f32", "shape": [2, 3]}]))
    assert f"expected 0 <= tensor id < 1048576, got {value}" in text


@pytest.mark.parametrize("value", [2**32, 2**63, -(2**32), 0.5, 1e300, True, "0"])
def test_id_that_is_none(value):
    """As an int, each of the numbers would be 0, which is a valid id."""
    refusal(small(inputs=[{"id": value, "dtype": "f32", "shape": [2, 3]}]))
    refusal(small(outputs=[value]))


def test_undefined_id():
    text = refusal(small(outputs=[7]))
    assert "the output list reads tensor 7, which is not defined yet" in text
    node = {"kind": "eltwise", "inputs": [7], "output": 1, "attrs": eltwise("relu")}
    assert "eltwise reads tensor 7, which is not defined yet" in refusal(small(nodes=[node]))
    node = {**node, "inputs": [0], "post_ops": [binary("add", 8)]}
    assert "eltwise reads tensor 8, which is not defined yet" in refusal(small(nodes=[node]))


def test_node_reads_itself_or_a_later_one():
    node = {"kind": "eltwise", "inputs": [1], "output": 1, "attrs": eltwise("relu")}
    assert "reads tensor 1, which is not defined yet" in refusal(small(nodes=[node]))
    nodes = [{**node, "inputs": [2]}, {**node, "inputs": [0], "output": 2}]
    assert "reads tensor 2, which is not defined yet" in refusal(small(nodes=nodes))


def test_id_defined_twice():
    tensor = {"id": 0, "dtype": "f32", "shape": [2, 3]}
    node = {"kind": "eltwise", "inputs": [0], "output": 0, "attrs": eltwise("relu")}
    for changes in (
        {"inputs": [tensor, tensor]},
        {"constants": [tensor]},
        {"nodes": [node]},
        {"nodes": [{**node, "output": 1}, {**node, "output": 1}]},
    ):
        assert "to be defined once" in refusal(small(**changes))


# Nodes -------------------------------------------------------------------------------------------


def test_unknown_kind():
    assert "unknown kind of node: attention" in refusal(one_node("attention", (2, 3)))


@pytest.mark.parametrize("kind", ["eltwise", "binary", "pooling"])
def test_unknown_alg(kind):
    text = refusal(node_of(kind, alg="gelu"))
    assert "expected " in text
    assert {"eltwise": "relu", "binary": "add, div", "pooling": "max"}[kind] in text


@pytest.mark.parametrize("key", ["kind", "inputs", "output"])
@pytest.mark.parametrize("value", [DELETED, None, "x", {}, [[]]], ids=str)
def test_damaged_node(key, value):
    document = small()
    document["nodes"][0][key] = value
    if value is DELETED:
        del document["nodes"][0][key]
    refusal(document)


def test_node_without_inputs():
    for kind in KINDS:
        assert f"{kind} has no inputs" in refusal(one_node(kind, **KINDS[kind][1]))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "concat"])
def test_number_of_inputs(kind):
    shapes, attrs = KINDS[kind]
    assert "expected" in refusal(one_node(kind, *shapes, *shapes, *shapes, (4,), **attrs))
    if len(shapes) > 1:
        assert "expected" in refusal(one_node(kind, *shapes[:-1], **attrs))


ATTRIBUTES = [(kind, name) for kind in KINDS for name in KINDS[kind][1]]


@pytest.mark.parametrize(("kind", "name"), ATTRIBUTES)
@pytest.mark.parametrize("value", [DELETED, None, {}, [[1]], ["x"]], ids=str)
def test_missing_or_mistyped_attribute(kind, name, value):
    assert f"{kind}: attribute {name}: " in refusal(node_of(kind, **{name: value}))


def test_attributes_are_no_object():
    for attrs in (None, 1, "x", [1]):
        document = small()
        document["nodes"][0]["attrs"] = attrs
        refusal(document)


@pytest.mark.parametrize(
    ("kind", "name"), [a for a in ATTRIBUTES if a[1] in {**WINDOW, "kernel": 0}]
)
def test_attribute_of_wrong_rank(kind, name):
    for value in ([], [1], [1, 1, 1]):
        assert "for each spatial dimension" in refusal(node_of(kind, **{name: value}))


@pytest.mark.parametrize("name", ["strides", "dilation", "kernel"])
@pytest.mark.parametrize("value", [0, -1, -(2**31)])
def test_attribute_that_must_be_positive(name, value):
    for kind in ("convolution", "pooling"):
        if name in KINDS[kind][1]:
            text = refusal(node_of(kind, **{name: [1, value]}))
            assert f"{kind}: expected " in text
            assert "> 0" in text


@pytest.mark.parametrize(
    ("kind", "name"), [a for a in ATTRIBUTES if a[1] in {**WINDOW, "kernel": 0}]
)
@pytest.mark.parametrize("value", [2**31, 2**62, 2**63 - 1, -1, -(2**62)])
def test_absurd_window(kind, name, value):
    """Any refusal will do, and from all that may overflow on the way; or oneDNN takes it."""
    status(lambda: supports(node_of(kind, **{name: [value, 1]})))
    status(lambda: Engine(node_of(kind, **{name: [value, 1]})))


@pytest.mark.parametrize("groups", [0, -1, 2, 3, 2**62, 1.5])
def test_groups(groups):
    text = refusal(node_of("convolution", groups=groups))
    assert "convolution: expected weights (O, I / groups, …)" in text or "groups" in text


SHAPES = {
    "kernel does not fit": ("convolution", [(2, 4, 2, 5), (8, 4, 3, 3)], {}),
    "channels differ": ("convolution", [(2, 5, 7, 5), (8, 4, 3, 3)], {}),
    "ranks differ": ("convolution", [(2, 4, 7), (8, 4, 3, 3)], {}),
    "src of rank 2": ("convolution", [(2, 4), (8, 4)], {}),
    "src of rank 6": ("convolution", [(2, 4, 3, 3, 3, 3), (8, 4, 3, 3, 3, 3)], {}),
    "bias of another size": ("convolution", [(2, 4, 7, 5), (8, 4, 3, 3), (7,)], {}),
    "bias along W": ("convolution", [(2, 4, 7, 10), (8, 4, 3, 3), (1, 1, 1, 8)], {}),
    "K differs": ("inner_product", [(2, 4), (3, 5)], {}),
    "src of rank 3": ("inner_product", [(2, 2, 4), (3, 4)], {}),
    "dense bias": ("inner_product", [(2, 4), (3, 4), (4,)], {}),
    "pooled rank 2": ("pooling", [(2, 4)], {}),
    "pool does not fit": ("pooling", [(2, 4, 2, 5)], {}),
    "no broadcast": ("binary", [(2, 4), (2, 3)], {}),
    "no broadcast of ranks": ("binary", [(2, 4), (2,)], {}),
    "statistics": ("batch_normalization", [(2, 4), (4,), (4,), (5,), (4,)], {}),
    "statistics of rank 2": ("batch_normalization", [(2, 4), (4,), (4,), (1, 4), (4,)], {}),
    "normalized rank 1": ("batch_normalization", [(4,), (4,), (4,), (4,), (4,)], {}),
    "softmax axis": ("softmax", [(2, 4)], {"axis": 2}),
    "softmax negative axis": ("softmax", [(2, 4)], {"axis": -1}),
    "concat axis": ("concat", [(2, 4), (2, 3)], {"axis": 2}),
    "concat negative axis": ("concat", [(2, 4), (2, 3)], {"axis": -1}),
    "concat ranks": ("concat", [(2, 4), (2, 4, 1)], {}),
    "concat sizes": ("concat", [(2, 4), (3, 4)], {}),
    "reshape": ("reshape", [(2, 4)], {"shape": [7]}),
    "reshape to nothing": ("reshape", [(2, 4)], {"shape": []}),
    "reshape with a rest": ("reshape", [(2, 4)], {"shape": [3, -1]}),
    "reshape with two": ("reshape", [(2, 4)], {"shape": [-1, -1]}),
    "reshape to 0": ("reshape", [(2, 4)], {"shape": [0, -1]}),
    "reshape to negative sizes": ("reshape", [(2, 4)], {"shape": [-2, -4]}),
    "reshape to rank 13": ("reshape", [(2, 4)], {"shape": [1] * 11 + [2, 4]}),
    "reshape that overflows": ("reshape", [(2, 4)], {"shape": [2**31 - 1] * 3}),
}


@pytest.mark.parametrize("name", SHAPES)
def test_inconsistent_shapes(name):
    kind, shapes, attrs = SHAPES[name]
    text = refusal(node_of(kind, *shapes, **attrs))
    assert f"{kind}: expected " in text
    assert "got (" in text


# Post-ops ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("post_op", "message"),
    [
        ({"kind": "sum"}, "expected post-op kind eltwise, binary or prelu, got sum"),
        ({"kind": "eltwise"}, "alg"),
        ({"kind": "prelu"}, "src1"),
        (eltwise("gelu"), "expected eltwise alg to be one of .*relu.*, got gelu"),
        (binary("pow", 0), "expected binary alg to be one of add, .*mul.*, got pow"),
        ({"kind": "eltwise", "alg": "relu", "alpha": 0.0}, "beta"),
        ({"kind": "eltwise", "alg": "relu", "alpha": "x", "beta": 0.0}, "number"),
        ({"kind": "binary", "alg": "add"}, "src1"),
        ({"kind": "binary", "alg": "add", "src1": [0]}, "number|integer"),
        ("relu", "string"),
        (None, "null"),
    ],
    ids=str,
)
def test_damaged_post_op(post_op, message):
    document = small()
    document["nodes"][0]["post_ops"] = [post_op]
    with pytest.raises(InvalidArgument, match=message):
        supports(document)


@pytest.mark.parametrize("shape", [(3, 1, 1), (2, 8, 5, 2), (1, 1, 1, 1, 1), (5,), (8,)], ids=str)
def test_post_op_operand_that_does_not_broadcast(shape):
    graph = Graph()
    operand = graph.input(*shape)
    x = graph.input(2, 4, 7, 5)
    graph.output(graph.convolution(x, (8, 4, 3, 3), post_ops=[binary("add", operand)]))
    with pytest.raises(InvalidArgument) as error:
        supports(graph)
    assert "expected an operand that broadcasts to (2, 8, 5, 3), got (" in str(error.value)


@pytest.mark.parametrize("kind", ["concat", "reshape"])
def test_post_ops_that_a_kind_does_not_have(kind):
    """Not dropped, at least."""
    with pytest.raises(EngineError, match=kind):
        supports(node_of(kind, post_ops=[relu()]))


def test_more_post_ops_than_onednn_takes():
    supports(node_of("convolution", post_ops=[relu()] * 32))
    with pytest.raises(Unsupported):
        supports(node_of("convolution", post_ops=[relu()] * 33))


# Tensors at run ----------------------------------------------------------------------------------


@pytest.fixture
def engine():
    """One input (2, 3, 4), one constant (3, 1), one output (2, 3, 4)."""
    graph = Graph()
    graph.output(graph.mul(graph.input(2, 3, 4), graph.constant(3, 1)))
    return Engine(graph)


def arrays(*shapes):
    return [np.zeros(shape, np.float32) for shape in shapes]


@pytest.mark.parametrize("axes", [[-1, 0, 1], [7, 0, 1], [0, 0, 1]])
@pytest.mark.parametrize("kind", ["matmul", "eltwise"])
def test_axes_that_are_no_permutation(kind, axes):
    """A matmul looks at those of the transpose that reads it."""
    graph = Graph()
    x = graph.input(2, 4, 8)
    y = graph.node("matmul", [x, graph.constant(8, 16)]) if kind == "matmul" else graph.eltwise(x)
    graph.output(graph.node("transpose", [y], axes=axes))
    with pytest.raises(InvalidArgument, match="transpose: expected axes that are a permutation"):
        start(graph)


@pytest.mark.parametrize(("weights", "groups"), [((0, 4, 3, 3), 2), ((8, 0, 3, 3), 2)])
def test_groups_of_nothing(weights, groups):
    graph = Graph()
    x = graph.input(1, weights[1] * groups, 8, 8)
    graph.output(graph.convolution(x, weights, groups=groups))
    with pytest.raises(Unsupported, match="convolution: oneDNN has no implementation"):
        start(graph)


def test_run_before_constants(engine):
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="expected the graph's 1 constants to be set"):
            engine.run_into(arrays((2, 3, 4)), arrays((2, 3, 4)))
    with pytest.raises(InvalidArgument, match="constants to be set"):
        engine.profile()
    engine.set_constants(arrays((3, 1)))
    engine.run_into(arrays((2, 3, 4)), arrays((2, 3, 4)))


def test_number_of_tensors(engine):
    for count in (0, 2):
        with pytest.raises(InvalidArgument, match=f"expected 1 constants, got {count}"):
            engine.set_constants(arrays((3, 1)) * count)
    engine.set_constants(arrays((3, 1)))
    for count in (0, 2):
        with pytest.raises(InvalidArgument, match=f"expected 1 inputs, got {count}"):
            engine.run_into(arrays((2, 3, 4)) * count, arrays((2, 3, 4)))
        with pytest.raises(InvalidArgument, match=f"expected 1 outputs, got {count}"):
            engine.run_into(arrays((2, 3, 4)), arrays((2, 3, 4)) * count)


GOOD = np.zeros((2, 3, 4), np.float32)
TENSORS = {
    "null": (lambda: None, "expected a tensor, got NULL"),
    "size": (
        lambda: np.zeros((2, 3, 5), np.float32),
        r"expected shape \(2, 3, 4\), got \(2, 3, 5\)",
    ),
    "rank": (lambda: np.zeros((6, 4), np.float32), r"expected shape \(2, 3, 4\), got \(6, 4\)"),
    "scalar": (lambda: np.zeros((), np.float32), r"expected shape \(2, 3, 4\), got \(\)"),
    "float64": (lambda: np.zeros((2, 3, 4)), "expected dtype f32, got .* code 2 with 64 bits"),
    "float16": (lambda: np.zeros((2, 3, 4), np.float16), "expected dtype f32, got .* 16 bits"),
    "int32": (lambda: np.zeros((2, 3, 4), np.int32), "expected dtype f32, got .* code 0"),
    "no rank": (lambda: dltensor(GOOD, ndim=-1), "expected a rank, got -1"),
    "lanes": (lambda: dltensor(GOOD, lanes=4), "expected dtype f32, got .* × 4"),
    "device": (lambda: dltensor(GOOD, device_type=2), "expected a tensor on the CPU, got .* 2"),
    "transposed": (
        lambda: np.zeros((4, 3, 2), np.float32).T,
        "expected compact row-major data, got strides",
    ),
    "sliced": (
        lambda: np.zeros((2, 3, 8), np.float32)[:, :, ::2],
        "expected compact row-major data, got strides",
    ),
    "padded": (
        lambda: np.zeros((2, 4, 4), np.float32)[:, :3],
        "expected compact row-major data, got strides",
    ),
    "broadcast": (
        lambda: np.broadcast_to(np.zeros((3, 4), np.float32), (2, 3, 4)),
        "expected compact row-major data, got strides",
    ),
}


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("role", ["constant", "input", "output"])
def test_unfit_tensor(role, name):
    make, message = TENSORS[name]
    graph = Graph()
    tensors = {"constant": [GOOD], "input": [GOOD, GOOD], "output": [GOOD, GOOD]}
    tensors[role] = [*tensors[role][1:], make()]
    x, y, c = graph.input(2, 3, 4), graph.input(2, 3, 4), graph.constant(2, 3, 4)
    graph.output(graph.add(x, c), graph.mul(y, c))
    engine = Engine(graph)

    def attempt():
        engine.set_constants(tensors["constant"])
        engine.run_into(tensors["input"], tensors["output"])

    with pytest.raises(InvalidArgument, match=f"{role} {len(tensors[role]) - 1}: {message}"):
        attempt()
    # The engine is as good as before.
    engine.set_constants([GOOD])
    engine.run_into([GOOD, GOOD], [GOOD.copy(), GOOD.copy()])


def test_a_shape_without_data():
    graph = Graph()
    graph.output(graph.eltwise(graph.input(2, 4)))
    shape = dltensor(np.array([2, 4], np.int64), data=None)
    result = tensor_array([np.zeros(2, np.int64)])
    engine = start(graph)
    with pytest.raises(InvalidArgument, match="input shape 0: expected a vector of 2 int64"):
        call("infer_shapes", engine.handle, tensor_array([shape]), 1, result, 1)


def test_fit_tensors(engine):
    """Explicit strides of compact data, an offset, an address of little alignment."""
    engine.set_constants([np.array([[1], [2], [3]], np.float32)])
    data = np.arange(25, dtype=np.float32)
    buffer = np.empty(25, np.float32)
    first, second = data[:24].reshape(2, 3, 4), data[1:].reshape(2, 3, 4)
    for tensor, expected in (
        (dltensor(first, strides=int64s([12, 4, 1])), first),
        (dltensor(first, byte_offset=4), second),
        (second, second),
    ):
        for output in (buffer[:24], buffer[1:]):
            output.fill(np.nan)
            engine.run_into([tensor], [output.reshape(2, 3, 4)])
            np.testing.assert_array_equal(output.reshape(2, 3, 4), expected * [[1], [2], [3]])


def test_strides_of_no_meaning():
    """Those of dimensions of size 1."""
    graph = Graph()
    graph.output(graph.eltwise(graph.input(1, 3, 1), "linear", 2.0))
    array, output = np.arange(3, dtype=np.float32).reshape(1, 3, 1), np.empty((1, 3, 1), np.float32)
    Engine(graph).run_into([dltensor(array, strides=int64s([99, 1, 77]))], [output])
    np.testing.assert_array_equal(output, 2 * array)


def test_scalars():
    """A 0-d tensor and a vector of one are both right for a result of one element."""
    graph = Graph()
    graph.output(graph.eltwise(graph.input(), "linear", 2.0, 1.0))
    engine = Engine(graph)
    for shape in ((), (1,)):
        output = np.zeros(shape, np.float32)
        engine.run_into([np.array(3, np.float32)], [output])
        assert float(output) == 7


# NULL --------------------------------------------------------------------------------------------


def test_null_engine():
    one, text = ctypes.c_size_t(), ctypes.c_char_p()
    for name, args in {
        "set_constants": (None, 0),
        "run": (None, 0, None, 0),
        "arity": (ctypes.byref(one), ctypes.byref(one)),
        "profile": (0, ctypes.byref(text)),
    }.items():
        with pytest.raises(InvalidArgument, match="expected an engine, got NULL"):
            call(name, None, *args)
    library().dnnl_byoc_destroy(None)


def test_null_json():
    with pytest.raises(InvalidArgument):
        call("supports", None)
    handle = ctypes.c_void_p()
    with pytest.raises(InvalidArgument):
        call("create", None, ctypes.byref(handle))
    assert not handle


@pytest.mark.parametrize("what", ["constants", "inputs", "outputs", "data"])
def test_null_tensors(what):
    """In a process of its own, lest a crash takes the other tests with it."""
    code = (
        "import sys, numpy\n"
        "from engine_graph import Engine, Graph, InvalidArgument, call, dltensor, start\n"
        "from engine_graph import tensor_array\n"
        "graph = Graph()\n"
        "graph.output(graph.add(graph.input(2, 3), graph.constant(3)))\n"
        "what, good = sys.argv[1], numpy.zeros((2, 3), numpy.float32)\n"
        "try:\n"
        "    if what == 'constants':\n"
        "        engine = Engine(graph)\n"
        "        call('set_constants', engine.handle, None, 1)\n"
        "    engine, one = start(graph), tensor_array([good])\n"
        "    if what == 'data':\n"
        "        engine.run_into([dltensor(good, data=None)], [good])\n"
        "    inputs, outputs = [None if what == k else one for k in ('inputs', 'outputs')]\n"
        "    call('run', engine.handle, inputs, 1, outputs, 1)\n"
        "except InvalidArgument as error:\n"
        "    print(error)\n"
    )
    process = run_python(code, what)
    assert process.returncode == 0, process.stderr or process.returncode
    assert "got NULL" in process.stdout


# Fuzzing -----------------------------------------------------------------------------------------

VALUES = [0, -1, 1, 2, 7, 33, 2**31, 2**32, 2**32 + 1, 2**63 - 1, 2**63, -(2**63), 1e300, 0.5]
VALUES += [None, True, "x", "relu", "add", [], {}, [1], [2, 3], [0], {"id": 0}]


def places(value):
    """Yield (container, key) for everything in a parsed JSON text."""
    items = enumerate(value) if isinstance(value, list) else value.items()
    for key, item in list(items):
        yield value, key
        if isinstance(item, (list, dict)):
            yield from places(item)


def mutations(document, count, seed):
    """Yield texts: a third of them with damaged bytes, the others valid JSON with other values."""
    random = np.random.default_rng(seed)
    text = json.dumps(document).encode()
    for i in range(count):
        changes = random.integers(1, 4) if i % 2 else 1
        if i % 3 == 0:
            damaged = bytearray(text)
            for _ in range(changes):
                at = int(random.integers(len(damaged)))
                byte = random.choice(list(b'0123456789-.,:"[]{}e x\x00\xff'))
                how = random.integers(3)
                damaged[at : at + int(how > 0)] = [byte] if how < 2 else []
            yield bytes(damaged)
        else:
            damaged = copy.deepcopy(document)
            for _ in range(changes):
                found = list(places(damaged))
                container, key = found[random.integers(len(found))]
                donor, donor_key = found[random.integers(len(found))]
                action = random.integers(8)
                if action == 0:
                    del container[key]
                elif action == 1:
                    container[key] = copy.deepcopy(donor[donor_key])
                elif action < 6 and type(container[key]) in (int, float):
                    container[key] += int(random.choice([-2, -1, 1, 2, 5]))
                else:
                    container[key] = copy.deepcopy(VALUES[random.integers(len(VALUES))])
            yield json.dumps(damaged).encode()


def constants_for(text, default):
    """Return arrays of the shapes that a damaged text asks for, where it asks for any."""
    try:
        shapes = [tensor["shape"] for tensor in json.loads(text)["constants"]]
        small = [
            np.zeros(shape, np.float32) for shape in shapes if np.prod(shape, dtype=float) < 1e6
        ]
    except Exception:
        return default
    return small


def fuzz(path, count, seed):
    """Run in a process of its own. The file has what was tried last, for the post-mortem."""
    if not _sanitized():  # a sanitizer reserves terabytes
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    graph = every_kind()
    outputs = [np.zeros((2, 5), np.float32), np.zeros((2, 3, 7, 5), np.float32)]
    statuses = Counter()
    with open(path, "wb", buffering=0) as file:
        for text in mutations(graph.document(), count, seed):
            file.seek(0)
            file.truncate()
            file.write(text)
            statuses[f"supports: {status(lambda text=text: supports(text))}"] += 1

            def life(text=text):
                engine = Engine(text)
                engine.set_constants(constants_for(text, graph.constant_data))
                engine.profile(1)
                statuses["profiled"] += 1
                engine.run_into(graph.input_data, outputs)

            statuses[status(life)] += 1
    print(json.dumps(statuses))


def _sanitized():
    with open("/proc/self/maps") as maps:
        return "libasan" in maps.read()


@pytest.mark.parametrize("seed", [1, 2])
def test_fuzz(tmp_path, seed):
    path = tmp_path / "last.json"
    code = "import sys, test_engine_errors as t\nt.fuzz(sys.argv[1], 3000, int(sys.argv[2]))\n"
    process = run_python(code, str(path), str(seed))
    assert process.returncode == 0, f"{path.read_bytes()}\n{process.stderr}"
    statuses = json.loads(process.stdout)
    assert not [key for key in statuses if "no text" in key], statuses
    assert statuses["success"] > 100, statuses  # the damage is not all of it in the JSON's syntax


def test_sizes_beyond_int():
    """inner_product with K = 2^32 divides by zero inside oneDNN 3.2, should it get there."""
    code = (
        "import sys\n"
        "from engine_graph import InvalidArgument, supports\n"
        "try:\n"
        "    supports(sys.argv[1])\n"
        "except InvalidArgument as error:\n"
        "    print(error)\n"
    )
    document = node_of("inner_product")
    for tensor in document["inputs"]:
        tensor["shape"][1] = 2**32
    process = run_python(code, json.dumps(document))
    assert process.returncode == 0, process.stderr or process.returncode
    assert "4294967296" in process.stdout


@pytest.mark.parametrize("place", ["attribute", "format", "inputs"])
def test_deeply_nested(place):
    """The reader of JSON does not recurse, and neither may what copies or prints its result."""
    code = (
        "import sys\n"
        "from engine_graph import EngineError, supports\n"
        "deep = '[' * 200000 + ']' * 200000\n"
        "try:\n"
        "    supports(sys.argv[1].replace('DEEP', deep))\n"
        "except EngineError as error:\n"
        "    assert str(error)\n"
    )
    if place == "attribute":
        document = node_of("eltwise", unknown="DEEP")
    else:
        document = small(**{place: "DEEP"})
    process = run_python(code, json.dumps(document).replace('"DEEP"', "DEEP"))
    assert process.returncode == 0, process.stderr[-1000:] or process.returncode
