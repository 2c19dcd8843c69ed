"""The report of what only Relax has: several blocks, and what none of them reads."""

import json

import pytest
from relax_helpers import const, module, ops_left, symbol, var
from relax_modules import Branches, Functions
from report_page import Page
from tvm import relax, te
from tvm.relax import op
from tvm.script import ir as I
from tvm.script import relax as R

from tvm_dnnl_byoc import explain, partition_for_dnnl
from tvm_dnnl_byoc.report.explain import GROUPING, INSIDE, LIGHT, OPAQUE, UNKNOWN

X = (4, 7)


def kinds(report):
    return {kind.name: kind for kind in report.operators}


def test_branches():
    """The blocks around it, and the branches, which TVM runs, are one graph."""
    report = explain(Branches)
    found = kinds(report)
    assert (found["matmul"].count, found["matmul"].offloaded) == (3, 2)
    for name in ("matmul", "add", "exp", "nn.relu"):
        assert found[name].stayed == {INSIDE: 1}
    assert report.share == pytest.approx(2 / 3)
    assert [node.operators for node in report.nodes] == [["matmul"], ["If"], ["matmul"]]
    assert [node.inputs for node in report.nodes] == [[], [0], [1]]
    assert [node.reason for node in report.nodes] == ["", OPAQUE, ""]
    symbols = [region.symbol for region in report.regions]
    assert [node.region for node in report.nodes] == [symbols[0], None, symbols[1]]
    assert "If" in " ".join(Page(report.to_html()).text)


def test_functions_that_call_each_other():
    report = explain(Functions)
    assert {region.symbol for region in report.regions} == {"dnnl_layer_0", "dnnl_main_0"}
    assert kinds(report)["matmul"].alone == 2
    assert kinds(report)["nn.relu"].fused == {"matmul": 1}
    assert [node.reason for node in report.nodes] == ["", OPAQUE, "", OPAQUE]
    assert [node.inputs for node in report.nodes] == [[], [], [1], [2]]


def test_a_nested_function():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 7), "float32")) -> R.Tensor((4, 7), "float32"):
            @R.function
            def inner(y: R.Tensor((4, 7), "float32")) -> R.Tensor((4, 7), "float32"):
                return R.nn.relu(y)

            return inner(x)

    report = explain(Module)
    assert kinds(report)["nn.relu"].stayed == {INSIDE: 1}
    assert [node.operators for node in report.nodes] == [["Function"], ["Call"]]
    assert report.nodes[1].inputs == [0]


def test_a_kernel_of_the_user_s():
    builder = relax.BlockBuilder()
    x = var("x", X)
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(op.matmul(x, const(7, 5)))
            z = builder.emit_te(lambda a: te.compute(a.shape, lambda i, j: a[i, j] + 1), y)
            y = builder.emit(op.matmul(z, const(5, 3)))
            result = builder.emit_output(relax.Tuple([y, op.nn.relu(x)]))
        builder.emit_func_output(result)
    mod = builder.get()
    report = explain(mod)
    assert kinds(report)["call_tir"].stayed == {UNKNOWN: 1}
    assert kinds(report)["nn.relu"].stayed == {LIGHT: 1}
    # That of the kernel's arguments, and that of the results.
    reasons = [node.reason for node in report.nodes if node.operators == ["Tuple"]]
    assert reasons == [GROUPING, GROUPING]
    left = ops_left(partition_for_dnnl(mod))
    assert len(report.regions) == left.count("call_dps_packed") == 2


def test_a_check_of_a_shape():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", "m"), "float32"), w: R.Tensor((3, 5), "float32")):
            with R.dataflow():
                v = R.match_cast(x, R.Tensor((8, 3), "float32"))
                r = R.matmul(v, w)
                R.output(r)
            return r

    report = explain(Module)
    assert [node.operators for node in report.nodes] == [["MatchCast"], ["matmul"]]
    assert report.nodes[0].reason == OPAQUE
    assert report.multiply_adds == 8 * 3 * 5


def test_symbols_are_named():
    n = symbol("n")
    report = explain(module(lambda x: op.matmul(x, const(7, 5)), (n, 7)))
    (node,) = report.nodes
    assert node.shape == "(n, 5) float32"
    assert report.multiply_adds is None
    assert json.loads(report.to_json())["nodes"][0]["shape"] == node.shape


def test_what_a_layer_becomes():
    """torch's linear between reshapes is one operator of the canonical form."""

    def linear(x):
        rows = op.matmul(op.reshape(x, (6, 7)), op.permute_dims(const(5, 7)))
        return op.nn.gelu(op.reshape(op.add(rows, const(5)), (2, 3, 5)))

    report = explain(module(linear, (2, 3, 7)))
    found = kinds(report)
    assert sorted(found) == ["add", "gelu_erf", "nn.dense"]
    assert found["gelu_erf"].fused == found["add"].fused == {"nn.dense": 1}
    assert report.multiply_adds == report.offloaded_multiply_adds == 2 * 3 * 5 * 7
