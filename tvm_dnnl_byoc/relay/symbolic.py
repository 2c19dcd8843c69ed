"""Sizes as numbers, or as products of a number and names; and shapes of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from tvm import relay, tir
from tvm.relay.expr import Expr


class Product:
    """A size that is a whole number times powers of names, such as 12 · batch · length.

    Products multiply with each other and with whole numbers, and divide where nothing is left. Two
    are equal if they are for all sizes that the names may stand for.
    """

    def __init__(self, factor: int, powers: Mapping[str, int]):
        self.factor = factor
        self.powers = {name: power for name, power in sorted(powers.items()) if power}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Product) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return "·".join([str(self.factor), *(f"{n}^{p}" for n, p in self.powers.items())])

    def __mul__(self, other: Size) -> Size:
        factor, powers = _parts(other)
        return _size(self.factor * factor, Counter(self.powers) + powers)

    __rmul__ = __mul__

    def _key(self):
        return self.factor, tuple(self.powers.items())


VIEWS = {"reshape", "reshape_like"}
"""Operators that give a tensor another shape."""
Size = int | Product
Sizes = tuple[Size, ...]


def sole_name(size: Size | None) -> str | None:
    """Return the name of a size that is nothing but a name."""
    if isinstance(size, Product) and size.factor == 1 and list(size.powers.values()) == [1]:
        return next(iter(size.powers))
    return None


def quotient(a: Size | None, b: Size | None) -> Size | None:
    """Return a / b if that is a size, too."""
    if a is None or b is None or b == 0:
        return None
    (factor, powers), (divisor, others) = _parts(a), _parts(b)
    if factor % divisor or any(powers[name] < power for name, power in others.items()):
        return None
    return _size(factor // divisor, powers - others)


def size_of(expr: tir.PrimExpr) -> Size | None:
    """Return the size that a dimension of a type is; None for ``Any`` and other arithmetics."""
    if isinstance(expr, tir.IntImm):
        return int(expr)
    if isinstance(expr, tir.Var):
        return Product(1, {expr.name: 1})
    if isinstance(expr, tir.Mul | tir.FloorDiv | tir.Max):
        a, b = size_of(expr.a), size_of(expr.b)
        if isinstance(expr, tir.FloorDiv):
            return quotient(a, b)
        if isinstance(expr, tir.Max):  # of what is broadcast
            return a if a == b else None
        return None if a is None or b is None else a * b
    return None


def sizes_of(expr: Expr) -> Sizes | None:
    """Return the shape of a float32 tensor; None if it has another type, or an unnamed size."""
    type_ = expr.checked_type
    if not isinstance(type_, relay.TensorType) or type_.dtype != "float32":
        return None
    sizes = tuple(map(size_of, type_.shape))
    return None if None in sizes else sizes


def reshape(expr: Expr, sizes: Sequence[Size | None], wanted: Sequence[Size]) -> Expr | None:
    """Return a tensor of these sizes as one of others; None if ``reshape`` has no codes for it."""
    codes = _codes(sizes, wanted)
    return None if codes is None else relay.reshape(expr, codes)


def _codes(sizes: Sequence[Size | None], wanted: Sequence[Size]) -> list[int] | None:
    if sum(isinstance(size, Product) for size in wanted) <= 1:
        return [size if isinstance(size, int) else -1 for size in wanted]
    codes: list[int] = []
    sources, targets = list(sizes), list(wanted)
    while sources and targets and None not in sources:
        if sources[0] == targets[0]:
            codes.append(targets[0] if isinstance(targets[0], int) else 0)
            del sources[0], targets[0]
        elif len(sources) > 1 and sources[0] * sources[1] == targets[0]:
            codes.append(-3)
            del sources[:2], targets[0]
        elif len(targets) > 1 and sources[0] == targets[0] * targets[1]:
            # There is a code with a named one, but TVM infers a quotient then, and of that others.
            if isinstance(sources[0], Product):
                return None
            codes += [-4, *targets[:2]]
            del sources[0], targets[:2]
        else:
            return None
    return None if sources or targets else codes


def split_of_two(sizes: Sequence[Size | None], wanted: Sequence[Size]) -> int | None:
    """Return the axis that is, without a known size, divided into two; None if there is none."""
    for axis, size in enumerate(sizes):
        pair = wanted[axis : axis + 2]
        if isinstance(size, Product) and len(pair) == 2 and size == pair[0] * pair[1]:
            return axis
        if tuple(sizes[: axis + 1]) != tuple(wanted[: axis + 1]):
            return None
    return None


def count(sizes: Sequence[Size]) -> Size:
    """Return the number of elements."""
    return math.prod(sizes, start=1)


def _parts(size: Size) -> tuple[int, Counter[str]]:
    return (size, Counter()) if isinstance(size, int) else (size.factor, Counter(size.powers))


def _size(factor: int, powers: Counter[str]) -> Size:
    return Product(factor, powers) if powers and factor else factor
