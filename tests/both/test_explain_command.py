"""The command that explains a model file."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tvm
from front import RELAY, const, conv2d, in_tvm, module, relay, var
from report_page import Page

from tvm_dnnl_byoc.__main__ import main
from tvm_dnnl_byoc.report.explain import UNKNOWN

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import TensorProto, helper  # noqa: E402

N, C, H, W = 2, 6, 7, 5
IR = "Relay" if RELAY else "Relax"


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


@pytest.fixture
def command(capsys):
    def call(*arguments):
        code = main(["explain", *map(str, arguments)])
        out, err = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=out, stderr=err)

    return call


def test_as_a_process(tmp_path):
    path = onnx_file(tmp_path / "m.onnx")
    done = subprocess.run(
        [sys.executable, "-m", "tvm_dnnl_byoc", "explain", path],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "1 fused into nn.conv2d" in done.stdout


def test_command(command, tmp_path):
    page, document = tmp_path / "report.html", tmp_path / "report.json"
    done = command(onnx_file(tmp_path / "m.onnx"), "--html", page, "--json", document)
    assert done.returncode == 0, done.stderr
    assert "1 fused into nn.conv2d" in done.stdout
    found = {kind["name"]: kind for kind in json.loads(document.read_text())["operators"]}
    assert found["hardswish"]["fused"] == {"nn.conv2d": 1}
    assert found["sin"]["stayed"] == {UNKNOWN: 1}
    Page(page.read_text())


def test_command_with_open_sizes(command, tmp_path):
    """Relay has to be told them, Relax may."""
    path = onnx_file(tmp_path / "m.onnx", batch="batch")
    done = command(path)
    if RELAY:
        assert done.returncode == 2
        message = "input x: expected static sizes, got (batch,6,7,5): pass --shape x=N,6,7,5"
        assert message in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert "GFLOP" not in done.stdout.splitlines()[-1]
    done = command(path, "--shape", "x=1,6,7,5")
    assert done.returncode == 0
    assert "100.0% of" in done.stdout
    for shape, message in (
        ("x=1,6,0,5", "expected name=1,3,224,224, got x=1,6,0,5"),
        ("1,6,7,5", "expected name=1,3,224,224, got 1,6,7,5"),
        ("x=1,3,7,5", "TVM's ONNX frontend does not take it"),
        ("x=1,6,b,5", "expected name=1,3,224,224, got x=1,6,b,5"),
        ("z=1,6,7,5", "expected one of the inputs x, got z"),
    ):
        done = command(path, "--shape", shape)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@pytest.mark.skipif(
    tvm.__version__.startswith("0.27"), reason="TVM 0.27's save_json crashes on any Relax module"
)
def test_command_with_a_module_of_tvm_s(command, tmp_path):
    path = tmp_path / "m.json"
    y = conv2d(in_tvm(conv2d(var("x", N, C, H, W), const(C, C, 3, 3))), const(C, C, 3, 3))
    path.write_text(tvm.ir.save_json(module(relay.nn.relu(y))))
    done = command(path)
    assert done.returncode == 0, done.stderr
    assert "2 regions" in done.stdout
    done = command(path, "--shape", f"x={N},{C},{H},{W}")
    assert done.returncode == 2
    assert "--shape: expected an ONNX model" in done.stderr


def test_command_with_other_files(command, tmp_path):
    path = tmp_path / "m.onnx"
    for content, message in (
        (b"no model", "expected an ONNX model, got other content"),
        (b'{"a": 1}', f"expected a {IR} module as JSON, got other content"),
    ):
        path.write_bytes(content)
        done = command(path)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
        assert "Traceback" not in done.stderr
    done = command(tmp_path / "none.onnx")
    assert done.returncode == 2
    assert "No such file" in done.stderr


def test_command_with_operators_that_tvm_does_not_have(command, tmp_path):
    path = onnx_file(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.node[2].op_type = "Frobnicate"
    onnx.save(model, path)
    done = command(path)
    assert done.returncode == 2
    assert "frontend does not take it" in done.stderr
    assert "Frobnicate" in done.stderr
    assert "Traceback" not in done.stderr


def test_command_with_an_input_of_any_rank(command, tmp_path):
    path = onnx_file(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(model, path)
    done = command(path)
    assert done.returncode == 2
    assert "input x: expected static sizes, got none" in done.stderr


def test_command_with_weights_beside_the_model(command, tmp_path):
    path = onnx_file(tmp_path / "m.onnx")
    onnx.save(
        onnx.load(path), str(path), save_as_external_data=True, location="w", size_threshold=0
    )
    assert command(path).returncode == 0
    (tmp_path / "w").unlink()
    done = command(path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
