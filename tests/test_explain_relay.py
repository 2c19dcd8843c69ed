"""The report of what only Relay has; the rest is in both/."""

import pytest
from helpers import const, conv2d, in_tvm, module, op_names, region_functions, var
from report_page import Page
from tvm import relay

from tvm_dnnl_byoc import explain, partition_for_dnnl
from tvm_dnnl_byoc.relay.flops import count_multiply_adds
from tvm_dnnl_byoc.report.explain import INSIDE, LIGHT, OPAQUE

N, C, H, W = 2, 6, 7, 5


def conv(x, seed=1):
    return conv2d(x, const(C, C, 3, 3, seed=seed), padding=(1, 1, 1, 1))


def kinds(report):
    return {kind.name: kind for kind in report.operators}


def test_the_report_is_of_what_partitioning_makes():
    x = relay.nn.relu(relay.nn.bias_add(conv(var("x", N, C, H, W)), const(C)))
    x = x * relay.sigmoid(x)
    mod = module(relay.nn.softmax(conv(in_tvm(x), seed=2), axis=1))
    report = explain(mod)
    partitioned = partition_for_dnnl(mod)
    inside = [n for f in region_functions(partitioned).values() for n in op_names(f)]
    # A composed activation is one operator here, and two in the module.
    assert sum(kind.offloaded for kind in report.operators) + 1 == len(inside)
    assert [r.symbol for r in report.regions] == list(region_functions(partitioned))
    work = count_multiply_adds(partitioned)
    assert (report.multiply_adds, report.offloaded_multiply_adds) == (work.total, work.offloaded)


def test_reason_against_no_rows():
    dense = relay.nn.dense(var("x", 0, 3), const(4, 3))
    assert kinds(explain(module(dense)))["nn.dense"].stayed == {
        "expected non-empty data, got (0, 3)": 1
    }


def test_control_flow():
    x = conv(var("x", N, C, H, W))
    # The branches read x, which is counted once all the same.
    branch = relay.If(var("c", dtype="bool"), conv(x, seed=2), relay.reverse(x, 1))
    report = explain(module(relay.nn.relu(conv(branch, seed=3)), x))
    found = kinds(report)
    assert (found["nn.conv2d"].count, found["nn.conv2d"].offloaded) == (3, 2)
    assert found["nn.conv2d"].stayed == found["reverse"].stayed == {INSIDE: 1}
    assert sorted(found) == ["nn.conv2d", "nn.relu", "reverse"]
    assert report.share == pytest.approx(2 / 3)
    (number,) = (i for i, node in enumerate(report.nodes) if node.operators == ["If"])
    assert report.nodes[number].reason == OPAQUE
    assert any(number in node.inputs and node.region for node in report.nodes)
    assert "If" in " ".join(Page(report.to_html()).text)


def test_control_flow_alone():
    x = var("x", N, C, H, W)
    report = explain(module(relay.If(var("c", dtype="bool"), conv(x), x)))
    assert kinds(report)["nn.conv2d"].stayed == {INSIDE: 1}
    assert [node.reason for node in report.nodes] == [OPAQUE]
    assert report.share == 0


def test_call_of_a_function():
    p = relay.var("p", shape=(3,), dtype="float32")
    y = var("y", 3)
    call = relay.Call(relay.Function([p], relay.nn.relu(p)), [y * relay.sigmoid(y)])
    report = explain(module(call))
    assert {name: kind.stayed for name, kind in kinds(report).items()} == {
        "nn.relu": {INSIDE: 1},
        "swish": {LIGHT: 1},
    }
    assert [node.reason for node in report.nodes] == [LIGHT, OPAQUE]
