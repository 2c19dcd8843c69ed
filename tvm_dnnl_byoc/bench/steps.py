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
    kinds: dict[str, dict[str, float]] = {}
    implementations: Counter[str] = Counter()
    for region in regions.values():
        # The profile is that of one chunk of the batch, of which each thread computes as many.
        repetitions = -(-region["chunks"] // region["threads"])
        for step in region["steps"]:
            entry = kinds.setdefault(step["kind"], {"count": 0, "milliseconds": 0.0})
            entry["count"] += 1
            entry["milliseconds"] += step["ms"] * repetitions
            implementations[step["impl"]] += 1
    if not kinds:
        raise ValueError(f"profile: expected steps, got none in {len(regions)} regions")
    return StepSum(
        milliseconds=sum(entry["milliseconds"] for entry in kinds.values()),
        runs=runs,
        kinds=kinds,
        implementations=dict(implementations),
    )
