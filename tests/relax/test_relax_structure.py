"""Whatever else a Relax function may hold: it stays as it is, and nothing crashes."""

import numpy as np
import pytest
import tvm
from relax_helpers import (
    assert_close,
    build,
    check,
    const,
    flatten,
    module,
    ops_left,
    random,
    run,
    var,
)
from relax_modules import Branches, Functions
from tvm import relax
from tvm.relax import op
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from tvm_dnnl_byoc import partition_for_dnnl, profile
from tvm_dnnl_byoc.ir import op_name
from tvm_dnnl_byoc.passes import fuse

X = (4, 7)


def compare(mod, *inputs, name="main"):
    """Return the partitioned module, built, whose results must be plain TVM's."""
    executable = build(partition_for_dnnl(mod))
    plain = build(mod)
    assert_close(run(executable, inputs, name), run(plain, inputs, name))
    return executable


def test_branches():
    for p in (True, False):
        executable = compare(Branches, np.array(p), random(*X), random(7, 7))
    assert len(profile(executable)) == 2


def test_functions_that_call_each_other():
    executable = compare(Functions, random(*X), random(7, 7))
    assert len(profile(executable)) == 2


def test_tuples_in_and_out():
    @I.ir_module
    class Module:
        @R.function
        def main(
            pair: R.Tuple(R.Tensor((4, 7), "float32"), R.Tensor((7, 5), "float32")),
        ) -> R.Tuple(R.Tensor((4, 5), "float32"), R.Tuple(R.Tensor((4, 7), "float32"))):
            with R.dataflow():
                x = pair[0]
                w = pair[1]
                y = R.matmul(x, w)
                r = (y, (x,))
                R.output(r)
            return r

    x, w = map(tvm.runtime.tensor, (random(*X), random(7, 5)))
    results = [
        flatten(relax.VirtualMachine(build(mod), tvm.cpu())["main"]((x, w)))
        for mod in (partition_for_dnnl(Module), Module)
    ]
    assert_close(*results)


def test_a_kernel_of_the_user_s():
    from tvm import te

    builder = relax.BlockBuilder()
    x = var("x", X)
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(op.matmul(x, const(7, 5)))
            z = builder.emit_te(lambda a: te.compute(a.shape, lambda i, j: a[i, j] + 1), y)
            result = builder.emit_output(op.matmul(z, const(5, 3)))
        builder.emit_func_output(result)
    mod = builder.get()
    assert len(profile(compare(mod, random(*X)))) == 2


@pytest.mark.parametrize("shape", [(5,), (3,), ()])
def test_a_kernel_of_the_user_s_of_two_tensors(shape):
    """Of shapes that no operator of TVM's has, too."""
    from tvm import te

    def kernel(a, b):
        first = (lambda: b()) if not b.shape else (lambda: b[0])
        return te.compute(a.shape, lambda i, j: a[i, j] - first())

    builder = relax.BlockBuilder()
    x, y = var("x", X), var("y", shape)
    with builder.function("main", [x, y]):
        with builder.dataflow():
            z = builder.emit(op.matmul(x, const(7, 5)))
            z = builder.emit_te(kernel, z, y)
            result = builder.emit_output(op.matmul(z, const(5, 3)))
        builder.emit_func_output(result)
    mod = builder.get()
    assert len(profile(compare(mod, random(*X), random(*shape)))) == 2


def test_shapes_that_are_computed():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 6), "float32"), w: R.Tensor((3, 5), "float32")):
            n = T.int64()
            with R.dataflow():
                y = R.reshape(x, R.shape([n * 2, 3]))
                z = R.matmul(y, w)
                v = R.match_cast(z, R.Tensor((8, 5), "float32"))
                r = R.matmul(v, R.permute_dims(v))
                R.output(r)
            return r

    executable = compare(Module, random(4, 6), random(3, 5))
    assert len(profile(executable)) == 2


def test_results_that_are_inputs_or_constants():
    builder = relax.BlockBuilder()
    x = var("x", X)
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(op.matmul(x, const(7, 5)))
            z = builder.emit(op.reshape(const(2, 6), (3, 4)))
            result = builder.emit_output(relax.Tuple([x, y, z, y, const(2)]))
        builder.emit_func_output(result)
    assert check(builder.get()) == ["inner_product"]


def test_a_chain_deeper_than_python_s_stack():
    builder = relax.BlockBuilder()
    x = var("x", X)
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(op.matmul(x, const(7, 7)))
            for _ in range(1500):
                y = builder.emit(op.tan(op.nn.relu(y)))
            result = builder.emit_output(y)
        builder.emit_func_output(result)
    partitioned = partition_for_dnnl(builder.get())
    assert ops_left(partitioned).count("tan") == 1500


def pieces(x):
    """A convolution that much can be folded into, a layer between reshapes, attention."""
    variance = const(6, low=0.5, high=2.0)
    y = op.multiply(x, const(5, 1, 1, low=0.5))
    y = op.nn.conv2d(y, const(6, 5, 3, 3), padding=1)
    norm = (const(6, seed=1), const(6, seed=2), const(6, seed=3), variance)
    y = op.nn.relu(op.nn.batch_norm(y, *norm, axis=1, training=False)[0])
    y = op.add(y, op.nn.conv2d(x, const(6, 5, 1, 1)))
    y = op.multiply(y, op.clip(op.add(y, relax.const(np.float32(3))), 0, 6))
    rows = op.matmul(op.reshape(y, (12, 63)), op.permute_dims(const(8, 63)))
    z = op.reshape(op.add(const(8), rows), (2, 6, 8))
    heads = op.permute_dims(op.reshape(z, (2, 6, 2, 4)), (0, 2, 1, 3))
    q = op.reshape(op.multiply(heads, relax.const(np.float32(0.5))), (4, 6, 4))
    scores = op.reshape(op.matmul(q, op.reshape(const(2, 2, 4, 6), (4, 4, 6))), (2, 2, 6, 6))
    return op.matmul(op.nn.softmax(op.add(scores, const(2, 1, 6, 6))), const(2, 2, 6, 3))


REFUSABLE = (
    "nn.conv2d nn.dense matmul nn.softmax nn.relu add multiply activation reshape transpose "
    "nn.batch_norm"
)


@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("name", ["nothing", *REFUSABLE.split()])
def test_whatever_onednn_refuses(monkeypatch, name, light):
    """What is folded into an operator before oneDNN refuses it is computed all the same."""
    asked = fuse.refusal

    def refusal(chain):
        names = [op_name(expr) or "activation" for expr in chain]
        return f"{name}: refused" if name in names else asked(chain)

    monkeypatch.setattr(fuse, "refusal", refusal)
    ran = check(module(pieces, (2, 5, 9, 7)), keep_light_regions=light)
    assert ran
