"""Sizes by name: what ONNX computes of shapes, followed, and encoders of any batch and length."""

import itertools

import numpy as np
import onnx
import pytest
import tvm
from helpers import assert_close, in_tvm, offloaded, random, region_functions
from onnx import helper, numpy_helper
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl, profile
from tvm_dnnl_byoc.passes.dataflow import post_order
from tvm_dnnl_byoc.relay.partition import canonical
from tvm_dnnl_byoc.relay.symbolic import Product, quotient, reshape

ANY = relay.Any()
N, M = Product(1, {"n": 1}), Product(1, {"m": 1})

# --- arithmetic -----------------------------------------------------------------------------------


def test_products():
    assert N * M == M * N != N * N
    assert 12 * N == N * 12 == 3 * N * 4
    assert len({N * M * 2, M * 2 * N, N * M}) == 2
    assert quotient(N * M * 12, M * 4) == N * 3
    assert quotient(N * 12, 12 * N) == 1
    assert quotient(12, 4) == 3
    assert quotient(N, M) is None
    assert quotient(N * 3, 2) is None
    assert quotient(N, 0) is None
    assert N * 0 == 0


@pytest.mark.parametrize(
    ("sizes", "wanted", "codes"),
    [
        ((N, M, 12), (N * M, 12), [-1, 12]),
        ((N, M, 12), (N, M, 3, 4), [0, 0, -4, 3, 4]),
        ((N, 3, M, 4), (N * 3, M, 4), [-3, 0, 4]),
        ((N, M, 3, 4), (N, M, 12), [0, 0, -3]),
        ((N * M, 12), (N, M, 12), None),  # which of all the ways?
        ((N * 3, M, M), (N, 3, M, M), None),
        ((N, M, 12), (M, N, 12), None),
        ((None, M, 12), (M, M, 12), None),
    ],
)
def test_codes_of_a_reshape(sizes, wanted, codes):
    result = reshape(relay.var("x", shape=[ANY] * len(sizes)), sizes, wanted)
    assert codes == (result and [int(code) for code in result.attrs.newshape])


# --- models, as PyTorch exports them --------------------------------------------------------------

WIDTH, HEADS = 24, 4


class Model:
    """An ONNX model under construction; names of tensors are returned."""

    def __init__(self, **inputs):
        self.inputs = [
            helper.make_tensor_value_info(name, kind, shape)
            for name, (kind, shape) in inputs.items()
        ]
        self.nodes, self.constants = [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def __getattr__(self, op):
        def node(*inputs, **attrs):
            names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
            output = f"t{len(self.nodes)}"
            self.nodes.append(helper.make_node(op, names, [output], **attrs))
            return output

        return node

    def sizes(self, x, *sizes):
        """Return a shape: numbers, and strings for the axes of a tensor."""
        shape = self.Shape(x)
        parts = [
            self.Unsqueeze(self.Gather(shape, np.int64(size[0]), axis=0), np.int64([0]))
            if isinstance(size, tuple)
            else np.int64([size])
            for size in sizes
        ]
        return self.Concat(*parts, axis=0)

    def finish(self, output):
        graph = helper.make_graph(
            self.nodes,
            "model",
            self.inputs,
            [helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)

    def to_relay(self, output):
        model = self.finish(output)
        shapes = {
            i.name: tuple(d.dim_value or relay.Any() for d in i.type.tensor_type.shape.dim)
            for i in self.inputs
        }
        mod, _ = relay.frontend.from_onnx(model, shapes, freeze_params=True)
        return mod


def weights(*shape, seed):
    return random(*shape, seed=seed, low=-0.3, high=0.3)


def linear(m, x, rows, columns, seed):
    return m.Add(weights(columns, seed=seed), m.MatMul(x, weights(rows, columns, seed=seed + 1)))


def norm(m, x, seed):
    centred = m.Sub(x, m.ReduceMean(x, axes=[-1]))
    variance = m.ReduceMean(m.Pow(centred, np.float32(2)), axes=[-1])
    normal = m.Div(centred, m.Sqrt(m.Add(variance, np.float32(1e-5))))
    return m.Add(m.Mul(normal, weights(WIDTH, seed=seed) + 1), weights(WIDTH, seed=seed + 1))


def heads(m, x, axes):
    size = m.sizes(x, (0,), (1,), HEADS, WIDTH // HEADS)
    return m.Transpose(m.Reshape(x, size), perm=axes)


def layer(m, x, mask, seed):
    """An encoder's layer, with shapes computed of the tensors' own, as exporters do."""
    query, key, value = (linear(m, x, WIDTH, WIDTH, seed + 2 * i) for i in range(3))
    scores = m.MatMul(heads(m, query, [0, 2, 1, 3]), heads(m, key, [0, 2, 3, 1]))
    scores = m.Add(m.Div(scores, np.float32(2.5)), mask)
    mixed = m.MatMul(m.Softmax(scores, axis=-1), heads(m, value, [0, 2, 1, 3]))
    merged = m.Transpose(mixed, perm=[0, 2, 1, 3])
    merged = m.Reshape(merged, m.sizes(merged, (0,), (1,), WIDTH))
    y = norm(m, m.Add(linear(m, merged, WIDTH, WIDTH, seed + 6), x), seed + 8)
    inner = linear(m, y, WIDTH, 2 * WIDTH, seed + 10)
    erf = m.Erf(m.Div(inner, np.float32(np.sqrt(2))))
    inner = m.Mul(m.Mul(inner, m.Add(erf, np.float32(1))), np.float32(0.5))
    return norm(m, m.Add(linear(m, inner, 2 * WIDTH, WIDTH, seed + 12), y), seed + 14)


def encoder(layers=1, mask=("batch", 1, 1, "length")):
    m = Model(
        x=(onnx.TensorProto.FLOAT, ["batch", "length", WIDTH]),
        mask=(onnx.TensorProto.FLOAT, mask),
    )
    x = "x"
    for i in range(layers):
        x = layer(m, x, "mask", 20 * i)
    return m, x


class Machine:
    """A partitioned module in the VM, beside ONNX's own reference."""

    def __init__(self, model, output):
        self.model = model.finish(output)
        self.partitioned = partition_for_dnnl(model.to_relay(output))
        with tvm.transform.PassContext(opt_level=3):
            self.executable = relay.vm.compile(self.partitioned, "llvm")
        self.machine = tvm.runtime.vm.VirtualMachine(self.executable, tvm.cpu())

    def check(self, **inputs):
        from onnx.reference import ReferenceEvaluator

        expected = ReferenceEvaluator(self.model).run(None, inputs)
        got = self.machine.run(*inputs.values()).numpy()
        assert_close([got], expected, 1e-5)

    def steps(self):
        return [
            (step["kind"], step["post_ops"])
            for plan in profile(self.executable).values()
            for step in plan["steps"]
        ]


def encoder_inputs(batch, length, mask_batch=None):
    return {
        "x": random(batch, length, WIDTH, seed=length),
        "mask": random(mask_batch or batch, 1, 1, length, seed=batch),
    }


def test_an_encoder_of_any_batch_and_length():
    machine = Machine(*encoder())
    assert len(region_functions(machine.partitioned)) == 1
    assert offloaded(machine.partitioned)[1] == []
    for batch, length in ((2, 7), (1, 1), (5, 16), (1, 9), (2, 7)):
        machine.check(**encoder_inputs(batch, length))
    kinds = [kind for kind, _ in machine.steps()]
    assert kinds.count("matmul") == 8
    assert kinds.count("layer_normalization") == 2
    assert sorted(set(kinds) - {"matmul", "layer_normalization", "softmax"}) == []
    post_ops = [post_ops for _, post_ops in machine.steps()]
    assert "eltwise_linear+binary_add" in post_ops or "binary_add" in post_ops  # scale and mask
    assert "eltwise_gelu_erf" in post_ops
    assert sum("sum" in post_op or "binary_add" in post_op for post_op in post_ops) >= 3


def test_a_mask_for_all_sequences():
    """Names that have met are one, but a run in which one of them is 1 is broadcast."""
    machine = Machine(*encoder(mask=("masks", 1, 1, "length")))
    machine.check(**encoder_inputs(3, 5))
    machine.check(**encoder_inputs(3, 5, mask_batch=1))


def test_sizes_do_not_grow():
    """From layer to layer: TVM infers quotients of products, and of those others."""
    model, output = encoder(layers=2)
    mod, _ = canonical(model.to_relay(output))
    types = [expr.checked_type for expr in post_order(mod["main"].body)]
    sizes = [size for type_ in types if hasattr(type_, "shape") for size in type_.shape]
    assert any(isinstance(size, tvm.tir.Var) for size in sizes)
    assert not any(isinstance(size, tvm.tir.FloorDiv) for size in sizes)


def shapes_like(m):
    """Reshapes whose shapes are computed in other ways than an encoder's."""
    shape = m.Shape("x")
    length = m.Slice(shape, np.int64([1]), np.int64([2]))
    rows = m.ReduceProd(m.Slice(shape, np.int64([0]), np.int64([2])), keepdims=1)
    yield m.Concat(rows, np.int64([WIDTH]), axis=0)
    yield m.Concat(np.int64([0]), np.int64([-1]), axis=0)
    yield m.Concat(np.int64([-1]), m.Sub(np.int64([9]), np.int64([1])), axis=0)
    yield m.ScatterElements(np.int64([0, WIDTH]), np.int64([0]), rows)
    # No code says these.
    yield m.Concat(length, np.int64([-1]), axis=0)
    yield m.Concat(m.Mul(length, np.int64([2])), np.int64([-1]), axis=0)
    # Beyond what is followed: sums of sizes, and numbers that only a run has.
    yield m.Concat(m.Sub(m.Add(length, np.int64([3])), np.int64([3])), np.int64([-1]), axis=0)
    yield m.Concat(m.Cast(m.Cast(length, to=1), to=7), np.int64([-1]), axis=0)


@pytest.mark.parametrize("number", range(8))
def test_shapes(number):
    m = Model(x=(onnx.TensorProto.FLOAT, ["batch", "length", WIDTH]))
    y = linear(m, "x", WIDTH, WIDTH, 1)
    *_, shape = itertools.islice(shapes_like(m), number + 1)
    machine = Machine(m, m.Relu(m.Reshape(y, shape)))
    assert ("dyn.reshape" in offloaded(machine.partitioned)[1]) == (number >= 4)
    for batch, length in ((2, 4), (4, 6), (1, 1), (2, 4)):
        machine.check(x=random(batch, length, WIDTH))


@pytest.mark.parametrize("last", [5, 2**40, -1])
def test_a_slice_of_an_unknown_length(last):
    """A run may have less than that."""
    m = Model(x=(onnx.TensorProto.FLOAT, ["batch", "length", WIDTH]))
    stop = m.Mul(m.sizes("x", 1), np.int64([last]))  # a tensor that is not known to be constant
    stop = m.ScatterElements(np.int64([last]), np.int64([0]), stop)
    y = m.Slice("x", np.int64([0]), stop, np.int64([1]))
    machine = Machine(m, linear(m, y, WIDTH, WIDTH, 1))
    for batch, length in ((2, 4), (3, 5), (1, 9)):
        machine.check(x=random(batch, length, WIDTH))


def test_a_shape_that_is_data_stays():
    """What a run is given as numbers has no name."""
    m = Model(
        x=(onnx.TensorProto.FLOAT, ["batch", "length", WIDTH]), shape=(onnx.TensorProto.INT64, [3])
    )
    y = m.Reshape(linear(m, "x", WIDTH, WIDTH, 1), "shape")
    machine = Machine(m, y)
    assert "dyn.reshape" in offloaded(machine.partitioned)[1]
    machine.check(x=random(2, 6, WIDTH), shape=np.int64([4, 3, WIDTH]))


def test_control_flow_is_left_alone():
    x = relay.var("x", shape=(ANY, 8))
    y = relay.If(relay.const(True), relay.nn.relu(x), x)
    y = relay.nn.dense(y, relay.const(weights(4, 8, seed=1)))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], in_tvm(y))))
    partition_for_dnnl(mod)
