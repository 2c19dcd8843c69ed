"""What is read as one expression, and written anew, computes the same."""

import differential
import numpy as np
import pytest
import tvm
from differential import DYNAMIC, judge, reproducer
from graph_strategies import programs, same_each_time
from hypothesis import given, note
from relax_helpers import assert_close, build, const, inputs_for, module, random, run, symbol, var
from relax_modules import Branches, Functions
from tvm import relax, te
from tvm.relax import op
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from tvm_dnnl_byoc import partition_for_dnnl
from tvm_dnnl_byoc.front import Main


def written(mod):
    main = Main.read(mod)
    return main.with_body(main.body)


def compare(mod, *inputs):
    """Return the module as it is written anew; its results, of plain TVM's, must be the same."""
    again = written(mod)
    assert_close(run(build(again), inputs), run(build(mod), inputs))
    return again


@pytest.fixture
def writing(monkeypatch):
    def partition(mod, **options):
        return partition_for_dnnl(written(mod), **options)

    monkeypatch.setattr(differential, "partition_for_dnnl", partition)


@same_each_time(25)
@given(programs())
def test_random_graphs(writing, program):
    note(reproducer(program, 0))
    judge(program.source, 0)


@same_each_time(10)
@given(programs())
def test_random_graphs_of_any_batch(writing, program):
    note(reproducer(program, DYNAMIC))
    judge(program.source, DYNAMIC)


def test_branches():
    for p in (True, False):
        compare(Branches, np.array(p), random(4, 7), random(7, 7))


def test_functions_that_are_called():
    again = compare(Functions, random(4, 7), random(7, 7))
    assert {var.name_hint for var in again.get_global_vars()} == {"layer", "main"}


def test_shapes_that_are_computed():
    """Which are no expressions of ours, but must be known before what they are the shape of."""

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 6), "float32"), w: R.Tensor((3, 5), "float32")):
            n = T.int64()
            k = T.int64()
            m = T.int64()
            with R.dataflow():
                shape = R.shape([n * 2, 3])
                y = R.reshape(x, shape)
                z = R.matmul(y, w)
                u = R.unique(z)
                c = R.match_cast(u, R.Tensor((k,), "float32"))
                e = R.match_cast(x, R.Tensor((m, 6), "float32"))
                full = R.full(R.shape([m, k]), R.const(2, "float32"))
                r = R.add(R.add(full, c), R.sum(R.nn.relu(e)))
                R.output(r)
            return r

    compare(Module, random(4, 6), random(3, 5))


def test_a_kernel_of_the_user_s_and_tuples():
    builder = relax.BlockBuilder()
    x = var("x", (4, 7))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(op.nn.relu(op.matmul(x, const(7, 6))))
            z = builder.emit_te(lambda a: te.compute(a.shape, lambda i, j: a[i, j] + 1), y)
            parts = builder.emit(op.split(z, 3, axis=1))
            parts = [builder.emit(relax.TupleGetItem(parts, i)) for i in range(3)]
            result = relax.Tuple([op.topk(y, 2)[0], relax.Tuple([parts[1], const(2)]), x])
            result = builder.emit_output(result)
        builder.emit_func_output(result)
    compare(builder.get(), random(4, 7))


def test_what_canonical_form_changes():
    """Layers of rows, products of batches, padding, normalisations in other spellings."""

    def build(x):
        y = op.nn.conv2d(op.nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1)), const(6, 4, 3, 3))
        y = op.nn.max_pool2d(
            op.nn.pad(y, (0, 0, 0, 0, 1, 0, 0, 1), "constant", -3.4028234663852886e38), (2, 2)
        )
        y = op.nn.group_norm(y, const(6, low=0.5), const(6), 3, 1, [2, 3])
        rows = op.matmul(op.reshape(y, (2 * 6 * 5, 7)), op.permute_dims(const(8, 7)))
        z = op.reshape(op.add(rows, const(8)), (2, 6, 5, 8))
        q = op.reshape(z, (12, 5, 8))
        scores = op.reshape(op.matmul(q, op.reshape(const(2, 6, 8, 5), (12, 8, 5))), (2, 6, 5, 5))
        centred = op.subtract(scores, op.mean(scores, -1, keepdims=True))
        variance = op.mean(op.multiply(centred, centred), -1, keepdims=True)
        deviation = op.sqrt(op.add(variance, relax.const(np.float32(1e-3))))
        return op.add(op.multiply(op.divide(centred, deviation), const(5)), const(5))

    mod = module(build, (2, 4, 5, 7))
    again = compare(mod, *inputs_for(mod))
    text = str(again)
    assert "nn.pad" not in text
    assert "layer_norm" in text
    assert "instance_norm" in text


def test_a_batch_norm_without_scale():
    """Which is read as one with a scale of 1."""

    def build(x):
        statistics = (const(5), const(5, seed=1), const(5, seed=2), const(5, low=0.5, high=1.5))
        attrs = {"axis": 1, "training": False, "scale": False, "center": False}
        return op.nn.batch_norm(op.sin(x), *statistics, **attrs)[0]

    mod = module(build, (2, 5, 3))
    compare(mod, *inputs_for(mod))


def test_a_module_that_is_quantized_already():
    def build(x):
        zero = relax.const(np.array(3, "uint8"))
        scale = relax.const(np.float32(0.02))
        numbers = op.quantize(op.nn.relu(x), scale, zero, axis=0, out_dtype="uint8")
        return op.matmul(op.dequantize(numbers, scale, zero, axis=0), const(7, 5))

    mod = module(build, (4, 7))
    compare(mod, *inputs_for(mod))


def test_attributes_are_kept():
    n = symbol("n")
    mod = module(lambda x: op.nn.relu(x), (n, 7))
    mod["main"] = mod["main"].with_attr("num_input", 1)
    assert int(written(mod)["main"].attrs["num_input"]) == 1


def test_what_cannot_be_read():
    @I.ir_module
    class Impure:
        @R.function(pure=False)
        def main(x: R.Tensor((4, 7), "float32")):
            _ = R.print(x, format="{}")
            return x

    with pytest.raises(ValueError, match="a pure Relax function main, got one that is not pure"):
        Main.read(Impure)
    with pytest.raises(ValueError, match="got none"):
        Main.read(tvm.IRModule())
    with pytest.raises(TypeError, match=r"expected a tvm\.IRModule, got int"):
        Main.read(3)
