"""The report: every operator counted once, the reasons, JSON, the page."""

import json
import xml.etree.ElementTree as ET

import pytest
import tvm
from front import (
    RELAY,
    any_size,
    const,
    conv2d,
    fingerprint,
    in_tvm,
    module,
    offloaded,
    relay,
    var,
)
from report_page import Page

from tvm_dnnl_byoc import explain, partition_for_dnnl
from tvm_dnnl_byoc.report.drawing import PALETTE, TVM
from tvm_dnnl_byoc.report.explain import GROUPING, LIGHT, UNKNOWN

N, C, H, W = 2, 6, 7, 5
CONV = N * H * W * C * C * 9  # multiply-adds
REVERSE = "reverse" if RELAY else "flip"
SYMBOL = "tvmgen_default_dnnl_main_0" if RELAY else "dnnl_main_0"


def conv(x, seed=1):
    return conv2d(x, const(C, C, 3, 3, seed=seed), padding=(1, 1, 1, 1))


def mixed_model():
    """Two regions, with every kind of reason between and after them."""
    x = relay.nn.relu(relay.nn.bias_add(conv(var("x", N, C, H, W)), const(C)))
    x = x * relay.sigmoid(x)
    y = in_tvm(x)  # unknown
    y = relay.nn.relu(relay.nn.max_pool2d(in_tvm(y), (2, 2)))  # dissolved
    y = in_tvm(y)
    y = relay.nn.relu(conv(y, seed=2))
    z = relay.nn.batch_norm(y, *[const(6, low=0.2)] * 4, axis=2)[0]  # refused
    return module(relay.nn.softmax(relay.reverse(z, axis=1), axis=1))


def kinds(report):
    return {kind.name: kind for kind in report.operators}


def test_reasons():
    x = conv(var("x", N, C, H, W))
    y = relay.nn.max_pool2d(in_tvm(x), (2, 2))
    y = relay.add(relay.cast(in_tvm(y), "float64"), relay.const(1.0, "float64"))
    report = explain(module(y))
    found = kinds(report)
    assert found["nn.conv2d"].offloaded == found["nn.conv2d"].alone == 1
    assert found[REVERSE].stayed == {UNKNOWN: 2}
    assert found["nn.max_pool2d"].stayed == {LIGHT: 1}
    assert found["add"].stayed == {"expected float32, got float64": 1}
    assert found["cast"].stayed == {UNKNOWN: 1}


def test_what_is_fused_into_what():
    x = conv(var("x", N, C, H, W))
    y = relay.nn.relu(relay.nn.bias_add(x, var("b", C)))
    found = kinds(explain(module(relay.nn.softmax(y) + y)))
    assert found["nn.relu"].fused == {"nn.conv2d": 1}
    assert found["nn.bias_add" if RELAY else "add"].fused == {"nn.conv2d": 1}
    assert (found["nn.softmax"].alone, found["add"].alone) == (1, 1)
    assert list(found["add"].unfused) == [
        "softmax: expected eltwise post-ops only, got one with an operand"
    ]


def test_each_operator_is_counted_once():
    mod = mixed_model()
    report = explain(mod)
    partitioned = partition_for_dnnl(mod)
    assert "swish" in kinds(report)
    stayed = sum(sum(kind.stayed.values()) for kind in report.operators)
    outside = [name for name in offloaded(partitioned)[1] if name != "nn.pad"]
    assert stayed == len(outside)
    for kind in report.operators:
        assert kind.count == kind.offloaded + sum(kind.stayed.values())
        assert kind.offloaded == kind.alone + sum(kind.fused.values())
    assert len({region.symbol for region in report.regions}) == 2
    assert (
        report.offloaded_multiply_adds
        == report.multiply_adds
        == sum(region.multiply_adds for region in report.regions)
    )
    assert report.regions[0].multiply_adds == CONV
    assert report.share == 1


def test_the_module_is_not_changed_and_the_report_is_the_same():
    mod = mixed_model()
    before = fingerprint(mod)
    assert explain(mod).to_json() == explain(mod).to_json()
    assert fingerprint(mod) == before


def test_operators_without_arguments_and_tuples():
    x = in_tvm(var("x", N, C) + relay.zeros((N, C), "float32"))
    report = explain(module(x, relay.reverse(x, 0)))
    if RELAY:  # under Relax, they are a constant
        assert kinds(report)["zeros"].stayed == {UNKNOWN: 1}
    (reason,) = (node.reason for node in report.nodes if node.operators == ["Tuple"])
    assert reason == GROUPING


def test_symbolic_shapes():
    x = var("x", any_size(), C, H, W)
    report = explain(module(conv(x)))
    assert report.multiply_adds is None
    assert report.share is None
    assert kinds(report)["nn.conv2d"].offloaded == 1
    assert "None" not in report.to_html()


def test_json():
    report = explain(mixed_model())
    document = json.loads(report.to_json())
    assert document["schema_version"] == 1
    assert [kind["name"] for kind in document["operators"]] == [k.name for k in report.operators]
    assert len(document["nodes"]) == len(report.nodes)
    assert document["regions"][0]["symbol"] == SYMBOL


def test_page():
    report = explain(mixed_model())
    page = report.to_html()
    text = " ".join(Page(page).text)
    assert LIGHT in text
    assert "2 regions" in text
    svg = ET.fromstring(page[page.index("<svg") : page.index("</svg>") + len("</svg>")])
    space = "{http://www.w3.org/2000/svg}"
    boxes = svg.findall(f"{space}g")
    assert len(boxes) == len(report.nodes)
    fills = [box.find(f"{space}rect").get("fill") for box in boxes]
    for node, fill in zip(report.nodes, fills, strict=True):
        index = [r.symbol for r in report.regions].index(node.region) if node.region else None
        assert fill == (TVM if index is None else PALETTE[index])
    edges = sum(len(set(node.inputs)) for node in report.nodes)
    assert len(svg.findall(f"{space}path")) == edges
    view = [float(v) for v in svg.get("viewBox").split()]
    for rect in svg.iter(f"{space}rect"):
        x, y = float(rect.get("x")), float(rect.get("y"))
        assert view[0] <= x <= x + float(rect.get("width")) <= view[0] + view[2]
        assert view[1] <= y <= y + float(rect.get("height")) <= view[1] + view[3]


def test_page_escapes_names():
    mod = mixed_model()
    main = mod["main"]
    mod = tvm.IRModule({tvm.ir.GlobalVar('f<&">'): main})
    report = explain(mod)
    assert report.regions[0].symbol.startswith(SYMBOL.replace("main_0", 'f<&">'))
    page = report.to_html()
    Page(page)
    assert "f<&" not in page


def test_empty_module():
    report = explain(tvm.IRModule())
    assert report.operators == report.regions == report.nodes == []
    Page(report.to_html())


def test_table(capsys):
    explain(mixed_model()).print()
    out = capsys.readouterr().out
    assert "nn.conv2d" in out
    assert "1 fused into nn.conv2d" in out
    assert "2 regions, 100.0% of" in out
    y = relay.nn.relu(conv(var("x", N, C, H, W)))
    explain(module(relay.nn.softmax(y) + y)).print()
    assert "1 not fused: softmax: expected eltwise" in " ".join(capsys.readouterr().out.split())


def test_not_a_module():
    with pytest.raises(TypeError, match=r"expected a tvm\.IRModule, got int"):
        explain(3)
