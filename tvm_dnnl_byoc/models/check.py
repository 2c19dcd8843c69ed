"""Partitions, builds, runs and compares one model."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import numpy as np
import tvm
from tvm import relay
from tvm.contrib.graph_executor import GraphModule

from .. import partition_for_dnnl
from ..bench.backends import host_target
from ..bench.worker import relative_error
from ..relay.flops import count_multiply_adds, count_regions
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
    partitioned = _timed(
        finding, "partition_seconds", lambda: partition_for_dnnl(case.module, case.params)
    )
    finding.regions = count_regions(partitioned)
    finding.share = count_multiply_adds(partitioned).share
    finding.left = dict(operators_outside(partitioned).most_common())
    library = _timed(finding, "build_seconds", lambda: _build(partitioned, host_target(), 3))
    judge(finding, case, _network(library))
    return finding


# From the inputs to the outputs.
Network = Callable[[dict[str, np.ndarray]], list[np.ndarray]]


def judge(finding: Finding, case: Case, network: Network) -> None:
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


def _ask_plain_tvm(
    finding: Finding, case: Case, network: Network, outputs: list[np.ndarray]
) -> None:
    """Tell a wrong answer of ours from TVM's reading of the model and from amplified rounding."""
    # No graph optimisation, to tell frontend and kernels alone; LLVM's, or a run takes minutes.
    try:
        library = _build(case.module, host_target(), 0, case.params)
    except tvm.TVMError as error:
        last = str(error).strip().splitlines()[-1].strip()
        amplified = _amplified(case, network, outputs)
        finding.remarks.append(
            f"plain TVM, which would tell whose fault it is, fails: {last}; one unit in the last "
            f"place of the input moves the output by {amplified:.1e}"
        )
        _judge_amplified(finding, finding.max_error, amplified)
        return
    plain_network = _network(library)
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


def _amplified(case: Case, network: Network, outputs: list[np.ndarray]) -> float:
    """What becomes of one unit in the last place of each input."""
    moved = network({name: _one_ulp_off(value) for name, value in case.inputs.items()})
    return max(_errors(moved, outputs)[i] for i in case.comparable)


def _one_ulp_off(value: np.ndarray) -> np.ndarray:
    upwards = np.random.default_rng(0).integers(0, 2, value.shape).astype(bool)
    return np.nextafter(value, np.where(upwards, np.inf, -np.inf).astype(value.dtype))


def _errors(outputs: list[np.ndarray], references: list[np.ndarray]) -> list[float]:
    return [relative_error(o, r) for o, r in zip(outputs, references, strict=True)]


def operators_outside(module: tvm.IRModule) -> Counter[str]:
    """Count the operators of the function main by name; regions are not looked into."""
    names: Counter[str] = Counter()

    def visit(expr):
        if isinstance(expr, relay.Call) and isinstance(expr.op, tvm.ir.Op):
            names[expr.op.name] += 1

    relay.analysis.post_order_visit(module["main"], visit)
    return names


def _timed(finding: Finding, attribute: str, action: Callable):
    begin = time.perf_counter()
    result = action()
    setattr(finding, attribute, time.perf_counter() - begin)
    return result


def _build(module: tvm.IRModule, target: str, opt_level: int, params: dict | None = None):
    with tvm.transform.PassContext(opt_level=opt_level):
        return relay.build(module, target, params=params)


def _network(library) -> Network:
    executor = GraphModule(library["default"](tvm.cpu()))

    def run(inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        executor.set_input(**{name: tvm.nd.array(value) for name, value in inputs.items()})
        executor.run()
        return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]

    return run
