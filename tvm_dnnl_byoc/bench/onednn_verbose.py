"""Primitive times from oneDNN's verbose output (``ONEDNN_VERBOSE=1``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

ITERATION_MARK = "bench: iteration"


@dataclass(frozen=True)
class Execution:
    """One execution of a primitive.

    Attributes
    ----------
    kind : str
        Such as ``convolution`` or ``reorder``.
    implementation : str
        Such as ``brgconv:avx512_core``.
    milliseconds : float
        As measured by oneDNN.
    """

    kind: str
    implementation: str
    milliseconds: float


@dataclass(frozen=True)
class PrimitiveSum:
    """Primitive times of one inference.

    Attributes
    ----------
    milliseconds : float
        Sum over the primitives of each one's median over the iterations.
    iterations : int
        Number of iterations that the medians are taken over.
    kinds : dict
        Number of primitives and milliseconds of each kind.
    implementations : dict
        Number of primitives of each implementation.
    """

    milliseconds: float
    iterations: int
    kinds: dict[str, dict[str, float]]
    implementations: dict[str, int]


def parse_executions(lines: Iterable[str]) -> Iterator[Execution]:
    """Yield the executions on CPU; anything else among the lines is skipped.

    A line reads ``onednn_verbose,[timestamp,]exec,cpu,kind,implementation,…,milliseconds``.
    """
    for line in lines:
        fields = line.strip().split(",")
        if fields[0] not in ("onednn_verbose", "dnnl_verbose"):
            continue
        if "exec" not in fields[1:4]:
            continue
        fields = fields[fields.index("exec") :]
        if len(fields) < 5 or fields[1] != "cpu":
            continue
        try:
            milliseconds = float(fields[-1])
        except ValueError:  # a line that another thread's output has cut
            continue
        yield Execution(fields[2], fields[3], milliseconds)


def sum_of_primitives(text: str) -> PrimitiveSum:
    """Sum the primitive times of one inference.

    Parameters
    ----------
    text : str
        Output of several inferences, each preceded by a line `ITERATION_MARK`, the last one
        followed by it as well.

    Raises
    ------
    ValueError
        If no iteration ran a primitive.
    """
    # What precedes the first mark and follows the last belongs to no iteration.
    iterations = [
        list(parse_executions(part.splitlines())) for part in text.split(ITERATION_MARK)[1:-1]
    ]
    lengths = Counter(len(iteration) for iteration in iterations)
    usual = lengths.most_common(1)[0][0] if lengths else 0
    if not usual:
        raise ValueError("oneDNN's verbose output: expected executed primitives, got none")
    # Only iterations of equal length can be compared place by place.
    iterations = [iteration for iteration in iterations if len(iteration) == usual]
    times = np.array([[step.milliseconds for step in iteration] for iteration in iterations])
    medians = np.median(times, axis=0)

    kinds: dict[str, dict[str, float]] = {}
    for step, milliseconds in zip(iterations[0], medians, strict=True):
        entry = kinds.setdefault(step.kind, {"count": 0, "milliseconds": 0.0})
        entry["count"] += 1
        entry["milliseconds"] += float(milliseconds)
    return PrimitiveSum(
        milliseconds=float(medians.sum()),
        iterations=len(iterations),
        kinds=kinds,
        implementations=dict(Counter(step.implementation for step in iterations[0])),
    )
