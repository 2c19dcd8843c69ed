r"""The softmax that torch guards against rows which are masked altogether.

This is what torch.export writes; its ONNX exporter asks the result for NaN.

::

           x
       /       \\
   equal(-inf)  softmax
   logical_not    |
    cast(int8)    |
   max(axis)      |
    cast(bool)    |
   logical_not    |
        \\        /
      where(…, 0, …)
"""

from dataclasses import dataclass

import numpy as np

from ..ir import Call, Expr, Op, array_of, op_name, same_type
from .ranges import Ranges

_GUARD = ("logical_not", "cast", "max", "cast", "logical_not", "equal")


def unguarded_softmax(where: Expr, ranges: Ranges) -> Expr | None:
    """Return the softmax in a guarded one, or one with a ReLU.

    Its argument must be a matrix product, perhaps scaled, plus masks: a product of finite numbers
    is finite, unless it overflows, which the guard is not there for. If the masks leave a number in
    each row, the guard is not needed. Else the softmax of what is -inf altogether is NaN, and the
    ReLU of a NaN is 0 in oneDNN's generated code, which computes it as the maximum of x and 0, on
    x86 the second where there is none. So is that of a NaN in the data, which the guard would let
    through.
    """
    if op_name(where) != "where":
        return None
    guard, zero, softmax = where.args
    if op_name(softmax) != "nn.softmax" or ranges.value(zero) != 0:
        return None
    if not same_type(where, softmax):
        return None
    for name in _GUARD:
        if op_name(guard) != name:
            return None
        if name == "max" and not (guard.attrs.keepdims and _same_axis(guard, softmax)):
            return None
        guarded, *rest = guard.args
        guard = guarded
    if not rest or array_of(rest[0]) is None or not np.all(np.isneginf(array_of(rest[0]))):
        return None
    x = softmax.args[0]
    if not guarded.same_as(x):
        return None
    masks = _masks_of_product(x)
    if masks is None:
        return None
    partial = [mask for mask in masks if not _is_finite(mask.values, ranges)]
    if not partial:
        return softmax
    if len(partial) == 1 and _leaves_numbers(partial[0], x, softmax.attrs.axis):
        return softmax
    return Call(Op("nn.relu"), [softmax], checked_type=softmax.checked_type)


def softmax_without_nan(where: Expr, ranges: Ranges) -> Expr | None:
    """Return a softmax in which 0 stands for NaN as one with a ReLU.

    torch's ONNX exporter writes where(isnan(y), 0, y), for rows that are masked altogether.
    """
    if op_name(where) != "where":
        return None
    condition, zero, y = where.args
    if op_name(condition) != "isnan" or not condition.args[0].same_as(y):
        return None
    if op_name(y) != "nn.softmax" or ranges.value(zero) != 0 or not same_type(where, y):
        return None
    return Call(Op("nn.relu"), [y], checked_type=y.checked_type)


def _same_axis(reduction: Call, softmax: Call) -> bool:
    rank = len(softmax.checked_type.shape or ())
    axes = reduction.attrs.axis
    return (
        bool(rank) and axes is not None and [a % rank for a in axes] == [softmax.attrs.axis % rank]
    )


@dataclass(frozen=True)
class _Mask:
    """What is added to a product; `reshaped`: before the sum gets its last shape."""

    values: Expr
    reshaped: bool


def _masks_of_product(x: Expr) -> list[_Mask] | None:
    """Return what is added to a matrix product, which may be scaled and reshaped; None if none."""
    masks = []
    reshaped = False
    while op_name(x) != "matmul":
        name = op_name(x)
        if name == "reshape":
            x, reshaped = x.args[0], True
        elif name in ("multiply", "divide", "add"):
            which = 1 if _is_product(x.args[0]) else 0
            other = x.args[which]
            if name == "add":
                masks.append(_Mask(other, reshaped))
            elif array_of(other) is None or not np.isfinite(array_of(other)).all():
                return None
            x = x.args[1 - which]
        else:
            return None
    return masks


def _is_product(x: Expr) -> bool:
    while op_name(x) in ("reshape", "multiply", "divide", "add"):
        x = x.args[1] if array_of(x.args[0]) is not None else x.args[0]
    return op_name(x) == "matmul"


def _is_finite(mask: Expr, ranges: Ranges) -> bool:
    found = ranges.of(mask)
    return found is not None and bool(np.isfinite(found).all())


def _leaves_numbers(mask: _Mask, x: Expr, axis: int) -> bool:
    """Whether a mask is finite somewhere in each row of x."""
    array = array_of(mask.values)
    if array is None or mask.reshaped:
        return False
    array = array.reshape((1,) * (len(x.checked_type.shape) - array.ndim) + array.shape)
    return bool(np.isfinite(array).any(axis=axis).all())
