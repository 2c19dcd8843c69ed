"""Formulas of one number: a NumPy function recorded once, and the places where it may bend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]


def _rounded(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32).astype(np.float64)


_DECADES = np.logspace(-38, 38, 305)
# The scales of float32, and evenly where most functions bend.
_GRID = np.unique(_rounded(np.concatenate([-_DECADES, [0], _DECADES, np.linspace(-80, 80, 641)])))
# A place that holds no float32 number but those that are looked at already.
_NARROW, _TINY = 2.0**-22, 1e-37
# Of float64's rounding in a step; what differs by less is not told apart.
_NOISE = 2.0**-50
# Of places at once; the activations have fewer than 50.
_MAX_PLACES = 1000


@dataclass(frozen=True)
class _Value:
    """The argument, 0, or the result of an earlier step, counted from 1."""

    index: int


@dataclass(frozen=True)
class Formula:
    """Operators on float64 arrays, one after the other; equal if they are the same.

    Attributes
    ----------
    steps : tuple
        A NumPy function and its operands, values or numbers, each. The last one is the result.
    """

    steps: tuple[tuple[Callable, tuple[_Value | float, ...]], ...]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the formula's value at each element."""
        return self._values(x)[-1]

    def overflows(self, x: np.ndarray) -> np.ndarray:
        """Tell where a step leaves float64's range, as exp(1000) does; a pole, 1 / 0, is none."""
        values = self._values(x)
        found = np.zeros(x.shape, bool)
        for (_, operands), result in zip(self.steps, values[1:], strict=True):
            ordinary = [np.isfinite(v) & (v != 0) for v in _operands(operands, values)]
            found |= np.isinf(result) & np.logical_and.reduce(np.broadcast_arrays(*ordinary))
        return found

    def noise(self, x: np.ndarray) -> np.ndarray:
        """Return by how much rounding in float64 may change the formula's values at a vector.

        That is the sum of the changes that follow from each step's rounding, to first order.
        """
        up_and_down = np.concatenate([np.eye(len(self.steps)), -np.eye(len(self.steps))])
        off = 1 + _NOISE * up_and_down.T[:, :, None]  # by step and by variant
        values = [np.broadcast_to(x, (len(up_and_down), len(x)))]
        for (function, operands), factors in zip(self.steps, off, strict=True):
            values.append(_apply(function, operands, values) * factors)
        changes = np.abs(values[-1] - self(x))
        # Of infinities nothing is known.
        return np.where(np.isfinite(changes), changes, 0).sum(axis=0)

    def samples(self) -> np.ndarray | None:
        """Return float32 numbers where the formula shows all that it does; None if they are many.

        A step changes its behaviour where its operands meet in size (``maximum(a, b)``, a
        comparison, ``a + b``), and where a value is 0 or turns back. Such places are looked for on
        a grid of all scales, and then within what was found before, at an eighth of its width: a
        place that follows from another one is narrow, but near to it.
        """
        found = [_GRID]
        places = self._places(_GRID[None])
        while len(places):
            if len(places) > _MAX_PLACES:
                return None
            low, middle, high = places.T
            halves = np.linspace(low, middle, 5), np.linspace(middle, high, 5)[1:]
            points = _rounded(np.concatenate(halves).T)
            found.append(points.ravel())
            places = self._places(points)
        return np.unique(np.concatenate(found))

    def _places(self, points: np.ndarray) -> np.ndarray:
        """Return (low, middle, high) of the places in rows of points."""
        values = self._values(points)
        watched = []
        for (_, operands), result in zip(self.steps, values[1:], strict=True):
            if len(operands) == 2:
                a, b = _operands(operands, values)
                slack = _NOISE * (np.abs(a) + np.abs(b))
                watched += [_sign(a - b, slack), _sign(a + b, slack)]
            else:
                watched.append(np.sign(result))
        signs = np.stack([np.broadcast_to(w, points.shape) for w in watched])
        before, after = signs[..., :-1], signs[..., 1:]
        row, left = np.nonzero(((before != after) & (before * after <= 0)).any(axis=0))
        low, high = points[row, left], points[row, left + 1]
        crossed = np.stack([low, (low + high) / 2, high])

        results = np.stack(values[1:])
        left_of, right_of = results[..., :-1], results[..., 1:]
        slack = _NOISE * np.maximum(np.abs(left_of), np.abs(right_of))
        slopes = _sign(right_of - left_of, slack)
        level = slopes[..., 1:-1] == 0
        turns = slopes[..., :-1] * slopes[..., 1:] < 0
        turns[..., 1:] |= level & (slopes[..., :-2] * slopes[..., 2:] < 0)
        row, left = np.nonzero(turns.any(axis=0))
        turned = np.stack([points[row, left + i] for i in range(3)])

        places = np.concatenate([crossed, turned], axis=1)
        low, high = places[0], places[2]
        wide = high - low > _NARROW * np.maximum(np.abs(low), np.abs(high)) + _TINY
        return np.unique(places[:, wide].T, axis=0)

    def _values(self, x: np.ndarray) -> list[np.ndarray]:
        values = [x]
        for function, operands in self.steps:
            values.append(_apply(function, operands, values))
        return values


def trace(function: Function) -> Formula | None:
    """Return what a function does to its argument; None if the result does not depend on it.

    Parameters
    ----------
    function : callable
        Made of NumPy's elementwise functions, ``clip``, ``where`` and ``full_like`` among them.
    """
    steps: list = []
    result = function(_Traced(steps, 0))
    return Formula(tuple(steps)) if isinstance(result, _Traced) and steps else None


class _Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """Stands for an array, and notes what NumPy is asked to do with it."""

    def __init__(self, steps: list, index: int):
        self._steps, self._index = steps, index

    def __array_ufunc__(self, ufunc: Callable, method: str, *operands: Any) -> _Traced:
        return self._note(ufunc, operands)

    def __array_function__(self, function: Callable, types: Any, args: Any, kwargs: Any) -> Any:
        return _OTHERS[function](self, *args, **kwargs)

    def _note(self, function: Callable, operands: Sequence) -> _Traced:
        noted = (_Value(o._index) if isinstance(o, _Traced) else float(o) for o in operands)
        self._steps.append((function, tuple(noted)))
        return _Traced(self._steps, len(self._steps))


# What NumPy does with functions that are no ufuncs.
_OTHERS: dict[Callable, Callable] = {
    np.clip: lambda self, x, low, high: np.minimum(np.maximum(x, low), high),
    np.where: lambda self, condition, x, y: self._note(np.where, (condition, x, y)),
    np.full_like: lambda self, x, value: value,
    np.ones_like: lambda self, x: 1.0,
    np.zeros_like: lambda self, x: 0.0,
}


def _operands(operands: Sequence[_Value | float], values: list[np.ndarray]) -> list:
    return [values[o.index] if isinstance(o, _Value) else o for o in operands]


def _apply(function: Callable, operands: Sequence, values: list[np.ndarray]) -> np.ndarray:
    return np.asarray(function(*_operands(operands, values)), np.float64)


def _sign(x: np.ndarray, slack: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) <= slack, 0, np.sign(x))
