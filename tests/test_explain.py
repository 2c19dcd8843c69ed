"""The report: every operator counted once, the reasons, JSON, the page, the command."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import onnx
import pytest
import tvm
from helpers import const, conv2d, in_tvm, module, op_names, region_functions, var
from onnx import TensorProto, helper
from tvm import relay

from tvm_dnnl_byoc import explain, partition_for_dnnl
from tvm_dnnl_byoc.relay.flops import count_multiply_adds
from tvm_dnnl_byoc.report.drawing import PALETTE, TVM
from tvm_dnnl_byoc.report.explain import GROUPING, INSIDE, LIGHT, OPAQUE, UNKNOWN

N, C, H, W = 2, 6, 7, 5


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
    assert found["reverse"].stayed == {UNKNOWN: 2}
    assert found["nn.max_pool2d"].stayed == {LIGHT: 1}
    assert found["add"].stayed == {"expected float32, got float64": 1}
    assert found["cast"].stayed == {UNKNOWN: 1}
    dense = relay.nn.dense(var("x", 0, 3), const(4, 3))
    assert kinds(explain(module(dense)))["nn.dense"].stayed == {
        "expected non-empty data, got (0, 3)": 1
    }


def test_what_is_fused_into_what():
    x = conv(var("x", N, C, H, W))
    y = relay.nn.relu(relay.nn.bias_add(x, var("b", C)))
    found = kinds(explain(module(relay.nn.softmax(y) + y)))
    assert found["nn.relu"].fused == {"nn.conv2d": 1}
    assert found["nn.bias_add"].fused == {"nn.conv2d": 1}
    assert (found["nn.softmax"].alone, found["add"].alone) == (1, 1)
    assert list(found["add"].unfused) == [
        "softmax: expected eltwise post-ops only, got one with an operand"
    ]


def test_each_operator_is_counted_once():
    mod = mixed_model()
    report = explain(mod)
    partitioned = partition_for_dnnl(mod)
    inside = [n for f in region_functions(partitioned).values() for n in op_names(f)]
    found = kinds(report)
    # A composed activation is one operator here, and two in the module.
    assert "swish" in found
    assert sum(kind.offloaded for kind in report.operators) + 1 == len(inside)
    stayed = sum(sum(kind.stayed.values()) for kind in report.operators)
    assert stayed == len(op_names(partitioned["main"]))
    for kind in report.operators:
        assert kind.count == kind.offloaded + sum(kind.stayed.values())
        assert kind.offloaded == kind.alone + sum(kind.fused.values())
    assert [r.symbol for r in report.regions] == list(region_functions(partitioned))
    work = count_multiply_adds(partitioned)
    assert (report.multiply_adds, report.offloaded_multiply_adds) == (work.total, work.offloaded)
    assert report.share == 1


def test_the_module_is_not_changed_and_the_report_is_the_same():
    mod = mixed_model()
    before = tvm.ir.structural_hash(mod, map_free_vars=True)
    assert explain(mod).to_json() == explain(mod).to_json()
    assert tvm.ir.structural_hash(mod, map_free_vars=True) == before


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


def test_operators_without_arguments_and_tuples():
    x = in_tvm(var("x", N, C) + relay.zeros((N, C), "float32"))
    report = explain(module(x, relay.reverse(x, 0)))
    assert kinds(report)["zeros"].stayed == {UNKNOWN: 1}
    (reason,) = (node.reason for node in report.nodes if node.operators == ["Tuple"])
    assert reason == GROUPING


def test_symbolic_shapes():
    x = relay.var("x", shape=(relay.Any(), C, H, W), dtype="float32")
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
    assert document["regions"][0]["symbol"] == "tvmgen_default_dnnl_main_0"


class Page(HTMLParser):
    """Collects the open elements, to see that each is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert not any(name in ("src", "href") for name, _ in attrs), "a page of its own"
        if tag not in ("br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_data(self, data):
        self.text.append(data)


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
    mod = tvm.IRModule({relay.GlobalVar('f<&">'): main})
    report = explain(mod)
    assert report.regions[0].symbol.startswith('tvmgen_default_dnnl_f<&">')
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


# --- the command ----------------------------------------------------------------------------------


def onnx_file(path, batch=N):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, C, H, W])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 4, H - 2, W - 2])
    weights = np.arange(4 * C * 9, dtype="float32").reshape(4, C, 3, 3)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("HardSwish", ["c"], ["h"]),
        helper.make_node("Sin", ["h"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], [onnx.numpy_helper.from_array(weights, "w")])
    opset = [helper.make_opsetid("", 14)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=7), str(path))
    return path


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "tvm_dnnl_byoc", "explain", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_command(tmp_path):
    page, document = tmp_path / "report.html", tmp_path / "report.json"
    done = command(onnx_file(tmp_path / "m.onnx"), "--html", page, "--json", document)
    assert done.returncode == 0, done.stderr
    assert "1 fused into nn.conv2d" in done.stdout
    found = {kind["name"]: kind for kind in json.loads(document.read_text())["operators"]}
    assert found["hardswish"]["fused"] == {"nn.conv2d": 1}
    assert found["sin"]["stayed"] == {UNKNOWN: 1}
    Page(page.read_text())


def test_command_with_open_sizes(tmp_path):
    path = onnx_file(tmp_path / "m.onnx", batch="batch")
    done = command(path)
    assert done.returncode == 2
    assert (
        "input x: expected static sizes, got (batch,6,7,5): pass --shape x=N,6,7,5" in done.stderr
    )
    assert command(path, "--shape", "x=1,6,7,5").returncode == 0
    for shape, message in (
        ("x=1,6,0,5", "expected name=1,3,224,224, got x=1,6,0,5"),
        ("1,6,7,5", "expected name=1,3,224,224, got 1,6,7,5"),
        ("x=1,3,7,5", "TVM's ONNX frontend does not take it"),
        ("x=1,6,b,5", "expected name=1,3,224,224, got x=1,6,b,5"),
        ("z=1,6,7,5", "expected one of the inputs x, got z"),
    ):
        done = command(path, "--shape", shape)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_command_with_a_relay_module(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(tvm.ir.save_json(mixed_model()))
    done = command(path)
    assert done.returncode == 0, done.stderr
    assert "2 regions" in done.stdout
    done = command(path, "--shape", f"x={N},{C},{H},{W}")
    assert done.returncode == 2
    assert "--shape: expected an ONNX model" in done.stderr


def test_command_with_other_files(tmp_path):
    path = tmp_path / "m.onnx"
    for content, message in (
        (b"no model", "expected an ONNX model, got other content"),
        (b'{"a": 1}', "expected a Relay module as JSON, got other content"),
    ):
        path.write_bytes(content)
        done = command(path)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
        assert "Traceback" not in done.stderr
    done = command(tmp_path / "none.onnx")
    assert done.returncode == 2
    assert "No such file" in done.stderr


def test_command_with_operators_that_tvm_does_not_have(tmp_path):
    path = onnx_file(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.node[2].op_type = "Frobnicate"
    onnx.save(model, path)
    done = command(path)
    assert done.returncode == 2
    assert "frontend does not take it" in done.stderr
    assert "Frobnicate" in done.stderr
    assert "Traceback" not in done.stderr


def test_command_with_an_input_of_any_rank(tmp_path):
    path = onnx_file(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(model, path)
    done = command(path)
    assert done.returncode == 2
    assert "input x: expected static sizes, got none" in done.stderr


def test_command_with_weights_beside_the_model(tmp_path):
    path = onnx_file(tmp_path / "m.onnx")
    onnx.save(
        onnx.load(path), str(path), save_as_external_data=True, location="w", size_threshold=0
    )
    assert command(path).returncode == 0
    (tmp_path / "w").unlink()
    done = command(path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
