"""Step times of one inference, from the engine's own profile."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class StepSum:
    """Step times of one inference.

    Attributes
    ----------
    milliseconds : float
        Sum over the steps of all regions of each one's median over the runs.
    runs : int
        Number of runs that the medians are taken over.
    kinds : dict
        Number of steps and milliseconds of each kind, such as ``convolution`` or ``reorder``.
    implementations : dict
        Number of steps of each implementation, such as ``brgconv:avx512_core``.
    """

    milliseconds: float
    runs: int
    kinds: dict[str, dict[str, float]]
    implementations: dict[str, int]


def sum_of_steps(regions: dict[str, dict], runs: int) -> StepSum:
    """Sum the step times of one inference.

    Parameters
    ----------
    regions : dict
        What `tvm_dnnl_byoc.profile` returns for at least one run.
    runs : int
        The number of runs that it was asked for.

    Raises
    ------
    ValueError
        If there is no step.
    """
    steps = [step for region in regions.values() for step in region["steps"]]
    if not steps:
        raise ValueError(f"profile: expected steps, got none in {len(regions)} regions")
    kinds: dict[str, dict[str, float]] = {}
    for step in steps:
        entry = kinds.setdefault(step["kind"], {"count": 0, "milliseconds": 0.0})
        entry["count"] += 1
        entry["milliseconds"] += step["ms"]
    return StepSum(
        milliseconds=sum(step["ms"] for step in steps),
        runs=runs,
        kinds=kinds,
        implementations=dict(Counter(step["impl"] for step in steps)),
    )
