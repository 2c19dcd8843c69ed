"""What is remembered of a tensor, to choose the range of the numbers that stand for it.

What is outside of the range is clipped to its ends; the narrower it is, the finer are the steps.
"""

from __future__ import annotations

import numpy as np

from .recipe import LEAST_SCALE

_BINS = 2048


class MinMax:
    """All that was ever seen: nothing is clipped."""

    def __init__(self):
        self.negative = False
        self._limit = 0.0

    def update(self, values: np.ndarray) -> None:
        """Look at the tensor for one more input."""
        if not np.isfinite(values).all():
            raise ValueError("calibrate: expected finite values in all tensors, got inf or nan")
        self.negative = self.negative or bool((values < 0).any())
        self._limit = max(self._limit, float(np.abs(values).max(initial=0)))

    def limit(self, levels: int) -> float:
        """Return the largest absolute value that `levels` steps from 0 should reach."""
        return self._limit


class MovingAverage(MinMax):
    """An average of each input's largest value, in which the last ones count most."""

    _WEIGHT = 0.1

    def update(self, values: np.ndarray) -> None:
        """Look at the tensor for one more input."""
        before, first = self._limit, self._limit == 0
        self._limit = 0.0
        super().update(values)
        if not first:
            self._limit = (1 - self._WEIGHT) * before + self._WEIGHT * self._limit


class _Histogram(MinMax):
    """Counts of absolute values, in bins that double their width when a larger value comes."""

    def __init__(self):
        super().__init__()
        self._counts = np.zeros(_BINS)
        self._width = 0.0

    def update(self, values: np.ndarray) -> None:
        """Look at the tensor for one more input."""
        super().update(values)
        if self._limit == 0:
            return
        if self._width == 0:
            self._width = max(self._limit / _BINS, LEAST_SCALE)
        while self._limit > self._width * _BINS * (1 + 1e-9):
            self._counts = np.concatenate(
                [self._counts.reshape(-1, 2).sum(1), np.zeros(_BINS // 2)]
            )
            self._width *= 2
        values = values[values != 0]  # for which every scale is right: a ReLU leaves many
        places = np.minimum(np.abs(values) / self._width, _BINS - 1).astype(np.int64)
        self._counts += np.bincount(places, minlength=_BINS)

    def _best_end(self, levels: int, loss) -> float:
        """Return the end, in bins, for which a loss is least: loss(counts, end, levels)."""
        used = int(np.flatnonzero(self._counts).max(initial=0)) + 1
        ends = np.unique(np.linspace(min(levels, used), used, 200).astype(int))
        return min(ends, key=lambda end: loss(self._counts[:used], end, levels))


class Percentile(_Histogram):
    """All but one value of 10,000."""

    _SHARE = 0.9999

    def limit(self, levels: int) -> float:
        """Return the largest absolute value that `levels` steps from 0 should reach."""
        total = self._counts.cumsum()
        if total[-1] == 0:
            return self._limit
        end = int(np.searchsorted(total, self._SHARE * total[-1])) + 1
        return min(self._limit, end * self._width)


class Entropy(_Histogram):
    """The least Kullback-Leibler divergence of the distribution of the numbers from the values'.

    As in S. Migacz: 8-bit Inference with TensorRT, 2017.
    """

    def limit(self, levels: int) -> float:
        """Return the largest absolute value that `levels` steps from 0 should reach."""
        return min(self._limit, self._best_end(levels, _divergence) * self._width)


class MeanSquaredError(_Histogram):
    """The least mean of the squares of what clipping and rounding change."""

    def limit(self, levels: int) -> float:
        """Return the largest absolute value that `levels` steps from 0 should reach."""
        return min(self._limit, self._best_end(levels, _squared_error) * self._width)


class _ByChannel:
    """What is remembered of each channel.

    Parameters
    ----------
    axis : int
        That of the channels.
    """

    def __init__(self, axis: int):
        self._axis = axis

    def _others(self, values: np.ndarray) -> tuple[int, ...]:
        return tuple(i for i in range(values.ndim) if i != self._axis)


class Means(_ByChannel):
    """The mean of each channel."""

    def __init__(self, axis: int):
        super().__init__(axis)
        self._values = 0  # of each channel
        self._sum: np.ndarray | float = 0.0

    def update(self, values: np.ndarray) -> None:
        """Look at the tensor for one more input."""
        self._sum = self._sum + values.sum(self._others(values), dtype=np.float64)
        self._values += values.size // values.shape[self._axis]

    def of_channels(self) -> list[float]:
        """Return them, over all values of all inputs, to six digits."""
        return to_six_digits(self._sum / self._values)


class Ranges(_ByChannel):
    """The largest absolute value of each channel."""

    def __init__(self, axis: int):
        super().__init__(axis)
        self.largest: np.ndarray | float = 0.0

    def update(self, values: np.ndarray) -> None:
        """Look at the tensor for one more input."""
        largest = np.abs(values).max(self._others(values)).astype(np.float64)
        self.largest = np.maximum(self.largest, largest)


Observer = MinMax | Means | Ranges


def to_six_digits(values: np.ndarray) -> list[float]:
    """Return values as a recipe has them."""
    return [float(f"{value:.6g}") for value in values]


def _divergence(counts: np.ndarray, end: int, levels: int) -> float:
    p = counts[:end].copy()
    p[-1] += counts[end:].sum()
    step = np.minimum(np.arange(end) * levels // end, levels - 1)
    occupied = counts[:end] > 0
    sums = np.bincount(step, counts[:end], levels)
    sizes = np.bincount(step, occupied, levels)
    q = np.where(occupied, (sums / np.maximum(sizes, 1))[step], 0)
    both = (p > 0) & (q > 0)
    if not both.any():
        return np.inf
    p, q = p / p.sum(), q / q.sum()
    lost = p[(p > 0) & ~both].sum()  # a clipped value where no other was: counts as far away
    return float((p[both] * np.log(p[both] / q[both])).sum() + 20 * lost)


def _squared_error(counts: np.ndarray, end: int, levels: int) -> float:
    values = np.arange(len(counts)) + 0.5
    step = end / levels
    rounded = np.minimum(np.rint(values / step), levels) * step
    return float((counts * (values - rounded) ** 2).sum())


OBSERVERS = {
    "minmax": MinMax,
    "moving_average": MovingAverage,
    "percentile": Percentile,
    "entropy": Entropy,
    "mse": MeanSquaredError,
}
