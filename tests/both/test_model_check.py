"""The check of models itself: that it sees what is wrong, and says so."""

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from front import build, const, conv2d, inputs_for, module, random, relay, run, var
from rich.console import Console

from tvm_dnnl_byoc.models import catalogue, check, cli
from tvm_dnnl_byoc.models.case import Case, NotInstalledError
from tvm_dnnl_byoc.models.finding import Finding
from tvm_dnnl_byoc.models.report import print_report

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_models.py"
ENTRY = catalogue.Entry("tiny", "resnet", (1, 4, 9, 7))


def tiny(heads=0):
    """Return a network of two outputs, with its right answers."""
    x = var("x", *ENTRY.shape)
    y = conv2d(x, const(6, 4, 3, 3))
    mod = module(relay.nn.relu(y), relay.erf(y))
    inputs = inputs_for(mod)
    return Case(mod, {}, inputs, run(build(mod), inputs), "NumPy", heads)


def checked(monkeypatch, case):
    monkeypatch.setitem(check._LOADERS, ENTRY.source, lambda entry: case)
    return check.check(ENTRY)


def off_by(case, output, amount, where=...):
    """Return the case with another answer."""
    references = [reference.copy() for reference in case.references]
    references[output][where] += amount * np.abs(references[output]).max()
    return replace(case, references=references)


def test_a_right_answer(monkeypatch):
    found = checked(monkeypatch, tiny())
    assert (found.status, found.remarks) == ("ok", [])
    assert found.max_error < 1e-6
    assert (found.operators, found.regions, found.share) == (3, 1, 1.0)
    assert found.left == {"erf": 1}
    assert found.partition_seconds > 0
    assert found.build_seconds > 0


@pytest.mark.parametrize("output", [0, 1])
def test_a_wrong_answer_of_which_plain_tvm_is_no_better(monkeypatch, output):
    """Then the frontend, or the other framework, is to blame."""
    found = checked(monkeypatch, off_by(tiny(), output, 3e-4, (0, 2, 3, 1)))
    assert found.status == "ok"
    assert found.max_error == pytest.approx(3e-4, rel=0.01)
    assert "agrees with plain TVM" in found.remarks[0]
    assert "differs from NumPy by 3.0e-04" in found.remarks[0]


def test_a_wrong_answer_of_ours(monkeypatch):
    finding, case = Finding("tiny", "resnet"), tiny()
    wrong = [case.references[0], case.references[1] * np.float32(1.01)]
    check.judge(finding, case, lambda _: wrong)
    assert finding.status == "failed"
    assert "differs from plain TVM by 1.0e-02" in finding.remarks[0]


def test_a_network_that_amplifies_rounding():
    """It multiplies the difference of two nearly equal numbers by a million."""
    x = var("x", 1, 4)
    mod = module(relay.multiply(relay.subtract(x, relay.const(1.0)), relay.const(1e6)))
    inputs = {"x": np.float32([[1 + 1e-6, 1 - 2e-6, 1 + 3e-6, 1]])}
    case = Case(mod, {}, inputs, run(build(mod), inputs), "NumPy")
    finding = Finding("tiny", "resnet")
    check.judge(finding, case, lambda _: [case.references[0] + np.float32(0.1)])
    assert finding.status == "ok"
    assert "one unit in the last place" in finding.remarks[0]


@pytest.mark.parametrize("status", ["ok", "failed"])
def test_where_plain_tvm_fails_ours_tells_what_rounding_becomes(monkeypatch, status):
    def fail(*_, **__):
        raise RuntimeError("LLVM: no such instruction")

    inputs = {"x": np.float32([[1 + 1e-6, 1 - 2e-6, 1 + 3e-6, 1]])}

    def amplify(values):
        return [(values["x"] - np.float32(1)) * np.float32(1e6)]

    def ignore(_):
        return amplify(inputs)

    monkeypatch.setattr(check, "build", fail)
    references = [amplify(inputs)[0] * np.float32(1.02)]
    case, finding = Case(None, {}, inputs, references, "NumPy"), Finding("tiny", "resnet")
    check.judge(finding, case, amplify if status == "ok" else ignore)
    assert finding.status == status
    assert "plain TVM, which would tell whose fault it is, fails: LLVM" in finding.remarks[0]


@pytest.mark.parametrize(
    ("output", "status", "remark"),
    [(0, "ok", "compared before the selection of boxes; after it, "), (1, "failed", "differs")],
)
def test_only_what_comes_before_the_selection_must_agree(output, status, remark):
    case = tiny(heads=1)
    outputs = [reference.copy() for reference in case.references]
    outputs[output][0, 0] += 5.0
    finding = Finding("tiny", "resnet")
    check.judge(finding, case, lambda _: outputs)
    assert finding.status == status
    assert any(remark in line for line in finding.remarks)


def test_not_a_number_is_an_error():
    case = tiny()
    outputs = [reference.copy() for reference in case.references]
    outputs[0][0, 0, 0, 0] = np.nan
    finding = Finding("tiny", "resnet")
    check.judge(finding, case, lambda _: outputs)
    assert finding.status == "failed"


def test_the_same_infinity_is_none_but_is_told():
    case = tiny()
    references = [case.references[0].copy(), case.references[1]]
    references[0][0, 0, 0, 0] = np.inf
    finding = Finding("tiny", "resnet")
    check.judge(finding, replace(case, references=references), lambda _: references)
    assert finding.status == "ok"
    assert finding.remarks == ["NumPy's output 0 is not finite everywhere"]


def test_a_missing_framework_is_told(monkeypatch):
    def load(entry):
        raise NotInstalledError("numpy is not installed")

    monkeypatch.setitem(check._LOADERS, ENTRY.source, load)
    found = check.check(ENTRY)
    assert (found.status, found.remarks) == ("skipped", ["numpy is not installed"])


def test_selection():
    names = [entry.name for entry in catalogue.select(["resnet18_*", "alexnet"])]
    assert names == ["resnet18_v1", "resnet18_v1b", "resnet18_v2", "alexnet"]
    assert [e.name for e in catalogue.select(["*50*"], ["segmentation"])] == [
        "fcn_resnet50_ade", "deeplab_resnet50_ade", "psp_resnet50_ade"
    ]  # fmt: skip
    assert len({entry.name for entry in catalogue.select([])}) == len(catalogue.ENTRIES)
    assert sum(entry.source == "mxnet" for entry in catalogue.ENTRIES) == 58
    with pytest.raises(ValueError, match="got 'resnet19'"):
        catalogue.select(["resnet19"])
    with pytest.raises(ValueError, match=r"expected one of resnet, vgg, .*, got 'cat'"):
        catalogue.select([], ["cat"])


def test_every_model_of_the_catalogue_is_in_gluoncv():
    models = pytest.importorskip(
        "tvm_dnnl_byoc.bench.models", reason="MXNet 1.9.1 needs Python 3.10 or 3.11"
    )
    pytest.importorskip("mxnet", reason="MXNet 1.9.1 needs Python 3.10 or 3.11")
    known = models.model_names()
    assert not [e.name for e in catalogue.ENTRIES if e.source == "mxnet" and e.name not in known]


def test_table():
    findings = [
        Finding("good", "a", "ok", [], 3, 1, 0.999, 2e-6, 1.0, 2.0, 3.0, {"erf": 2, "add": 1}),
        Finding("bad", "a", remarks=["worker ended (killed by SIGSEGV)"]),
        Finding("absent", "a", "skipped", ["torch is not installed"]),
    ]
    text = io.StringIO()
    print_report(findings, Console(file=text, width=120))
    good, *_ = (line for line in text.getvalue().splitlines() if "good" in line)
    for cell in ("99.9%", "2.0e-06", "2.0", "3.0", "2 erf, 1 add", "ok"):
        assert cell in good
    assert "bad: worker ended (killed by SIGSEGV)" in text.getvalue()
    assert "1 ok, 1 failed, 1 skipped" in text.getvalue()


def test_list():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--list", "--family", "pose"],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"COLUMNS": "200"},
    )
    assert done.returncode == 0
    assert "simple_pose_resnet18_v1b" in done.stdout
    assert "1×3×256×192" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet19"], "got 'resnet19'"),
        (["--family", "cat"], "got 'cat'"),
        (["resnet18_v1", "--family", "vgg"], "got none"),
        (["--timeout", "0"], "expected a positive integer"),
    ],
)
def test_wrong_options(arguments, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_a_process_that_dies_or_hangs_is_a_row(monkeypatch, capsys, tmp_path):
    """The worker does not know this model; and it cannot answer in no time."""
    unknown = replace(ENTRY, name="unheard_of")
    monkeypatch.setattr(catalogue, "ENTRIES", (unknown, catalogue.find("vgg19")))
    assert cli.main(["unheard_of", "--json", str(tmp_path / "found.json")]) == 1
    (row,) = json.loads((tmp_path / "found.json").read_text())["models"]
    assert row["status"] == "failed"
    assert "unheard_of" in row["remarks"][0]
    assert cli.main(["vgg19", "--timeout", "1"]) == 1
    assert "vgg19: no answer within 1 s" in capsys.readouterr().out


def test_random_inputs_move_by_one_unit():
    value = random(3, 5)
    moved = check._one_ulp_off(value)
    assert (moved != value).all()
    np.testing.assert_allclose(moved, value, rtol=2e-7)
