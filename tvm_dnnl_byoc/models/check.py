"""Partitions, builds, runs and compares one model."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ..bench.worker import relative_error
from ..front import Run, build, operators_outside, partition
from ..report.explain import report_of
from . import ocr, pytorch, zoo
from .case import Case, NotInstalledError
from .catalogue import Entry
from .finding import Finding

TOLERANCE = 1e-4

_LOADERS: dict[str, Callable[[Entry], Case]] = {
    "mxnet": zoo.load,
    "onnx": ocr.load,
    "torch": pytorch.load,
}


def check(entry: Entry) -> Finding:
    """Check one model, in this process.

    The answer must agree with that of the framework that the model comes from, to within
    `TOLERANCE` of the scale of each output. If it does not, plain TVM tells whose fault that is.
    """
    finding = Finding(entry.name, entry.family)
    try:
        case = _timed(finding, "load_seconds", lambda: _LOADERS[entry.source](entry))
    except NotInstalledError as error:
        finding.status = "skipped"
        finding.remarks.append(str(error))
        return finding
    finding.operators = sum(operators_outside(case.module).values())
    partitioned, parts = _timed(
        finding, "partition_seconds", lambda: partition(case.module, case.params)
    )
    report = report_of(parts)
    finding.regions, finding.share = len(report.regions), report.share or 0.0
    finding.left = dict(operators_outside(partitioned).most_common())
    judge(finding, case, _timed(finding, "build_seconds", lambda: build(partitioned)))
    return finding


def judge(finding: Finding, case: Case, network: Run) -> None:
    """Compare the outputs with the references; set the status, the error and the remarks."""
    outputs = network(case.inputs)
    errors = _errors(outputs, case.references)
    finding.max_error = max(errors[i] for i in case.comparable)
    for i in case.comparable:
        if not np.isfinite(case.references[i]).all():
            finding.remarks.append(f"{case.framework}'s output {i} is not finite everywhere")
    if case.heads:
        finding.remarks.append(_remark_on_selection(case, outputs, errors))
    finding.status = "ok"
    if finding.max_error > TOLERANCE:
        _ask_plain_tvm(finding, case, network, outputs)


def _remark_on_selection(case: Case, outputs: list[np.ndarray], errors: list[float]) -> str:
    """Say how far the boxes that were selected agree; no rounding error may decide the status."""
    selected = range(len(outputs) - case.heads)
    if max(errors[i] for i in selected) <= TOLERANCE:
        return "the boxes before and after their selection agree"
    shares = [_share_that_agrees(outputs[i], case.references[i]) for i in selected]
    after = ", ".join(f"{share:.1%}" for share in shares)
    return f"compared before the selection of boxes; after it, {after} of the outputs agree"


def _share_that_agrees(output: np.ndarray, reference: np.ndarray) -> float:
    scale = np.abs(reference[np.isfinite(reference)]).max(initial=0) or 1.0
    close = np.isclose(output, reference, rtol=0, atol=TOLERANCE * scale, equal_nan=True)
    return float(close.mean())


def _ask_plain_tvm(finding: Finding, case: Case, network: Run, outputs: list[np.ndarray]) -> None:
    """Tell a wrong answer of ours from TVM's reading of the model and from amplified rounding."""
    # Without optimising the graph, where that is a choice, to tell frontend and kernels alone; with
    # LLVM's optimisations, or a run takes minutes.
    try:
        plain_network = build(case.module, case.params, optimised=False)
    except Exception as error:  # of many classes: TVM's own, those of passes in Python
        last = str(error).strip().splitlines()[-1].strip()
        amplified = _amplified(case, network, outputs)
        finding.remarks.append(
            f"plain TVM, which would tell whose fault it is, fails: {last}; one unit in the last "
            f"place of the input moves the output by {amplified:.1e}"
        )
        _judge_amplified(finding, finding.max_error, amplified)
        return
    plain = plain_network(case.inputs)
    ours = max(_errors(outputs, plain)[i] for i in case.comparable)
    theirs = max(_errors(plain, case.references)[i] for i in case.comparable)
    if ours <= TOLERANCE:
        finding.remarks.append(
            f"agrees with plain TVM to {ours:.1e}, which differs from {case.framework} by "
            f"{theirs:.1e}"
        )
        return
    amplified = _amplified(case, plain_network, plain)
    finding.remarks.append(
        f"differs from plain TVM by {ours:.1e}, which differs from {case.framework} by "
        f"{theirs:.1e}; one unit in the last place of the input moves the output by {amplified:.1e}"
    )
    _judge_amplified(finding, ours, amplified)


def _judge_amplified(finding: Finding, error: float, amplified: float) -> None:
    # The input is rounded once, a network of a hundred layers a hundred times.
    if error > 10 * amplified:
        finding.status = "failed"


def _amplified(case: Case, network: Run, outputs: list[np.ndarray]) -> float:
    """What becomes of one unit in the last place of each input."""
    moved = network({name: _one_ulp_off(value) for name, value in case.inputs.items()})
    return max(_errors(moved, outputs)[i] for i in case.comparable)


def _one_ulp_off(value: np.ndarray) -> np.ndarray:
    upwards = np.random.default_rng(0).integers(0, 2, value.shape).astype(bool)
    return np.nextafter(value, np.where(upwards, np.inf, -np.inf).astype(value.dtype))


def _errors(outputs: list[np.ndarray], references: list[np.ndarray]) -> list[float]:
    return [relative_error(o, r) for o, r in zip(outputs, references, strict=True)]


def _timed(finding: Finding, attribute: str, action: Callable):
    begin = time.perf_counter()
    result = action()
    setattr(finding, attribute, time.perf_counter() - begin)
    return result
