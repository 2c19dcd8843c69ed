"""Evaluates constant expressions with NumPy."""

from collections.abc import Callable

import numpy as np

from ..ir import Call, Constant, Expr, array_of, constant, op_name
from ..ir.relax_expr import TensorType

# Only what NumPy does exactly as Relax: moves, and arithmetic rounded once in the same dtype.
_EVALUATE: dict[str, Callable] = {
    "add": lambda call, a, b: a + b,
    "multiply": lambda call, a, b: a * b,
    "subtract": lambda call, a, b: a - b,
    "equal": lambda call, a, b: a == b,
    "greater": lambda call, a, b: a > b,
    "greater_equal": lambda call, a, b: a >= b,
    "less": lambda call, a, b: a < b,
    "less_equal": lambda call, a, b: a <= b,
    "logical_and": lambda call, a, b: a & b,
    "logical_not": lambda call, a: ~a,
    "where": lambda call, condition, a, b: np.where(condition, a, b),
    "reshape": lambda call, a: a.reshape(call.checked_type.shape),
    "broadcast_to": lambda call, a: np.broadcast_to(a, call.checked_type.shape),
    "transpose": lambda call, a: np.transpose(a, call.attrs.axes),
    "take": lambda call, a, indices: np.take(a, indices, call.attrs.axis),
}
# An array that is stored so that others need not be computed, must not be much larger than they.
_MAX_SIZE = 1 << 24


def fold_constant(expr: Expr) -> Constant | None:
    """Return the value of a call whose arguments are all constants.

    None if an argument is not, or if the operator is not one of those evaluated here.
    """
    evaluate = _EVALUATE.get(op_name(expr) or "")
    if evaluate is None:
        return None
    assert isinstance(expr, Call)
    type_ = expr.checked_type
    arrays = [array_of(arg) for arg in expr.args]
    if any(array is None for array in arrays):
        return None
    if not isinstance(type_, TensorType) or not type_.is_static or np.prod(type_.shape) > _MAX_SIZE:
        return None
    value = np.asarray(evaluate(expr, *arrays))
    fits = value.shape == type_.shape and str(value.dtype) == type_.dtype
    return constant(value) if fits else None
