r"""The softmax that torch guards against rows which are masked altogether.

::

           x
       /       \\
   equal(-inf)  softmax
   logical_not    |
   astype(int8)   |
   max(axis)      |
   astype(bool)   |
   logical_not    |
        \\        /
      where(…, 0, …)
"""

import numpy as np

from ..ir import Call, Expr, array_of, op_name

_GUARD = ("logical_not", "astype", "max", "astype", "logical_not", "equal")


def unguarded_softmax(where: Expr) -> Expr | None:
    """Return the softmax in a guarded one whose rows cannot be -inf altogether.

    Its argument must be a matrix product, perhaps scaled, plus a constant mask that leaves a number
    in each row: a product of finite numbers is finite, unless it overflows, which the guard is not
    there for.
    """
    if op_name(where) != "where":
        return None
    guard, zero, softmax = where.args
    if op_name(softmax) not in ("nn.softmax",) or not _is_zero(zero):
        return None
    for name in _GUARD:
        if op_name(guard) != name:
            return None
        reduction = guard if name == "max" else None
        if reduction is not None and not _same_axis(reduction, softmax):
            return None
        guarded, *rest = guard.args
        guard = guarded
    if not rest or array_of(rest[0]) is None or not np.all(np.isneginf(array_of(rest[0]))):
        return None
    x = softmax.args[0]
    return softmax if guarded.same_as(x) and _has_finite_rows(x, softmax.attrs.axis) else None


def _is_zero(expr: Expr) -> bool:
    if op_name(expr) in ("full_like", "zeros_like"):
        return op_name(expr) == "zeros_like" or _is_zero(expr.args[1])
    array = array_of(expr)
    return array is not None and not np.any(array)


def _same_axis(reduction: Call, softmax: Call) -> bool:
    rank = len(softmax.checked_type.shape or ())
    axes = reduction.attrs.axis
    return (
        bool(rank) and axes is not None and [a % rank for a in axes] == [softmax.attrs.axis % rank]
    )


def _has_finite_rows(x: Expr, axis: int) -> bool:
    while isinstance(x, Call):
        arrays = [array_of(arg) for arg in x.args]
        if op_name(x) == "matmul":
            return True
        if op_name(x) == "reshape":
            x = x.args[0]
            continue
        constants = [array for array in arrays if array is not None]
        if op_name(x) not in ("add", "multiply", "divide") or len(constants) != 1:
            return False
        if op_name(x) == "add":
            rank = len(x.checked_type.shape)
            (mask,) = constants
            mask = mask.reshape((1,) * (rank - mask.ndim) + mask.shape)
            if not np.isfinite(mask).any(axis=axis).all():
                return False
        elif not np.isfinite(constants[0]).all():
            return False
        x = x.args[0] if arrays[0] is None else x.args[1]
    return False
