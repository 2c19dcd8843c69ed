"""Statistics of timings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Percentiles:
    """Percentiles of a set of timings, in milliseconds."""

    p50: float
    p90: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Percentiles:
        """From timings in seconds, interpolated linearly."""
        return cls(*(float(value) for value in np.percentile(seconds, (50, 90, 99)) * 1e3))


@dataclass(frozen=True)
class Spread:
    """Median, smallest and largest of one value per round."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """From one value per round."""
        return cls(float(np.median(values)), float(min(values)), float(max(values)))


def ratio_over_rounds(
    numerator: Sequence[Sequence[float]], denominator: Sequence[Sequence[float]]
) -> Spread:
    """Ratio of the medians of two sets of timings, round by round.

    The rounds are close in time, so drift of the machine cancels in each ratio.
    """
    pairs = zip(numerator, denominator, strict=True)
    return Spread.of([np.median(a) / np.median(b) for a, b in pairs])


def images_per_second(instances: Sequence[Sequence[float]], batch_size: int) -> float:
    """Throughput of instances that started together, in images/s.

    Counts up to the moment at which the first instance finishes: later, the others run on an
    emptier machine.

    Parameters
    ----------
    instances : sequence of sequences of float
        Seconds of the consecutive inferences of each instance.
    batch_size : int
        Images per inference.
    """
    window = min(sum(seconds) for seconds in instances)
    inferences = 0.0
    for seconds in instances:
        ends = np.cumsum(seconds)
        inside = int(np.searchsorted(ends, window, side="right"))
        inferences += inside
        if inside < len(seconds):  # the part done of the inference under way
            begin = ends[inside - 1] if inside else 0.0
            inferences += (window - begin) / seconds[inside]
    return inferences * batch_size / window
