"""Between which numbers a tensor's elements are, where that does not depend on data.

torch writes masks of positions: of a length that only a run knows, arange(length) >= 0 is true
everywhere, and then where(…, 0, -inf) is zero.
"""

from collections.abc import Callable

import numpy as np

from ..ir import Call, Constant, Expr, op_name
from ..ir.relax_expr import TensorType

Range = tuple[float, float]
"""The smallest and the largest number, perhaps infinite; of bool 0 and 1. Never NaN."""

_MOVES = ("broadcast_to", "reshape", "strided_slice", "take", "transpose", "gather_elements")
_BOOL = (0.0, 1.0)


class Ranges:
    """Knows the ranges of the expressions that it was told of, each after those that it reads."""

    def __init__(self):
        self._ranges: dict[Expr, Range] = {}

    def of(self, expr: Expr) -> Range | None:
        """Return the range of an expression's elements; None if nothing is known."""
        if isinstance(expr, Constant):
            self.learn(expr)
        return self._ranges.get(expr)

    def value(self, expr: Expr) -> float | None:
        """Return the number that all elements are; None if they may differ."""
        found = self.of(expr)
        return found[0] if found is not None and found[0] == found[1] else None

    def learn(self, expr: Expr) -> None:
        """Find the range of an expression."""
        if expr in self._ranges:
            return
        found = _of_array(expr.array) if isinstance(expr, Constant) else self._of_call(expr)
        if found is not None and not any(map(np.isnan, found)):
            self._ranges[expr] = found

    def _of_call(self, call: Expr) -> Range | None:
        name = op_name(call)
        if not name or not isinstance(call, Call) or not isinstance(call.checked_type, TensorType):
            return None
        if name == "arange":
            return (
                (call.attrs.start, np.inf) if call.attrs.step > 0 else (-np.inf, call.attrs.start)
            )
        args = [self.of(arg) for arg in call.args]
        if name in _MOVES:
            return args[0]
        if name in ("full", "full_like"):
            return _cast(args[-1], call.args[-1].checked_type.dtype, call.checked_type.dtype)
        if name == "zeros_like":
            return 0.0, 0.0
        if name == "cast":
            return _cast(args[0], call.args[0].checked_type.dtype, call.checked_type.dtype)
        if name == "where":
            return _where(*args)
        rule = _RULES.get(name)
        if rule is not None and None not in args:
            found = rule(*args)
            return found if name not in _SUMS or _has(call.checked_type.dtype, found) else None
        return _BOOL if call.checked_type.dtype == "bool" else None


def _of_array(array: np.ndarray) -> Range | None:
    if not array.size or array.dtype.kind not in "biuf":
        return None
    return float(array.min()), float(array.max())


def _cast(x: Range | None, source: str, target: str) -> Range | None:
    if target == "bool":
        if x is None:
            return _BOOL
        return (1.0, 1.0) if x[0] > 0 or x[1] < 0 else (0.0, float(x != (0.0, 0.0)))
    if x is None or source == target:
        return x
    if source not in _WHOLE or target not in _WHOLE:
        return None  # it may be rounded
    if source == "int32" and target == "int64":
        return x
    if source == "float32":  # it is cut off
        if not np.isfinite(x).all():
            return None
        x = float(np.trunc(x[0])), float(np.trunc(x[1]))
    low, high = _WHOLE[target]
    return x if low <= x[0] and x[1] <= high else None


def _has(dtype: str, x: Range) -> bool:
    """Whether sums of numbers are exact; TVM assumes of int32 and int64 that none overflows."""
    if dtype in ("int32", "int64"):
        return True
    low, high = _WHOLE[dtype] if dtype in ("int8", "uint8") else (np.inf, -np.inf)
    return low <= x[0] and x[1] <= high


# By dtype: between which whole numbers it has all.
_WHOLE = {
    "bool": (0, 1),
    **{name: (np.iinfo(name).min, np.iinfo(name).max) for name in ("int8", "uint8", "int32")},
    "int64": (-np.inf, np.inf),
    "float32": (-(2**24), 2**24),
}


def _where(condition: Range | None, x: Range | None, y: Range | None) -> Range | None:
    if condition == (1.0, 1.0):
        return x
    if condition == (0.0, 0.0):
        return y
    return None if x is None or y is None else (min(x[0], y[0]), max(x[1], y[1]))


def _less(x: Range, y: Range) -> Range:
    return float(x[1] < y[0]), float(x[0] < y[1])


def _less_equal(x: Range, y: Range) -> Range:
    return float(x[1] <= y[0]), float(x[0] <= y[1])


def _not(x: Range) -> Range:
    return 1 - x[1], 1 - x[0]


def _and(x: Range, y: Range) -> Range:
    return min(x[0], y[0]), min(x[1], y[1])


_SUMS = ("add", "subtract")
_RULES: dict[str, Callable[..., Range]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "subtract": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "less": _less,
    "less_equal": _less_equal,
    "greater": lambda x, y: _less(y, x),
    "greater_equal": lambda x, y: _less_equal(y, x),
    "logical_not": _not,
    "logical_and": _and,
}
