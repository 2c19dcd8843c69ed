"""Evaluates constant expressions with NumPy."""

from collections.abc import Callable

import numpy as np
from tvm.relay.expr import Call, Constant, Expr, Tuple

from ..ir import array_of, constant, op_name

# Only what NumPy does exactly as Relay: moves, and arithmetic rounded once in the same dtype.
_EVALUATE: dict[str, Callable] = {
    "add": lambda attrs, a, b: a + b,
    "subtract": lambda attrs, a, b: a - b,
    "multiply": lambda attrs, a, b: a * b,
    "negative": lambda attrs, a: -a,
    "transpose": lambda attrs, a: np.transpose(a, attrs.axes and [int(i) for i in attrs.axes]),
    "squeeze": lambda attrs, a: np.squeeze(
        a, None if attrs.axis is None else tuple(int(i) for i in attrs.axis)
    ),
    "expand_dims": lambda attrs, a: _expand_dims(a, int(attrs.axis), int(attrs.num_newaxis)),
    "cast": lambda attrs, a: a.astype(attrs.dtype),
    "nn.batch_flatten": lambda attrs, a: a.reshape(a.shape[0], -1),
    "concatenate": lambda attrs, *a: np.concatenate(a, int(attrs.axis)),
}
_DTYPES = {"float32", "float64", "int32", "int64"}


def fold_constant(expr: Expr) -> Constant | None:
    """Return the value of a call whose arguments are all constants.

    None if an argument is not, or if the operator is not one of those evaluated here: TVM folds
    what is left.
    """
    evaluate = _EVALUATE.get(op_name(expr) or "")
    if evaluate is None:
        return None
    assert isinstance(expr, Call)
    args = expr.args[0].fields if isinstance(expr.args[0], Tuple) else expr.args
    arrays = [array_of(arg) for arg in args]
    if any(a is None or str(a.dtype) not in _DTYPES for a in arrays):
        return None
    if op_name(expr) == "cast" and expr.attrs.dtype not in _DTYPES:
        return None
    return constant(np.asarray(evaluate(expr.attrs, *arrays)))


def _expand_dims(array: np.ndarray, axis: int, count: int) -> np.ndarray:
    axis = axis % (array.ndim + 1)
    return array.reshape(array.shape[:axis] + (1,) * count + array.shape[axis:])
