"""Evaluates constant expressions with NumPy."""

from collections.abc import Callable

import numpy as np
from tvm.ir import TensorType
from tvm.relay.expr import Call, Constant, Expr, Tuple
from tvm.tir import IntImm

from ..ir import array_of, constant, op_name

# Only what NumPy does exactly as Relay: moves, and arithmetic rounded once in the same dtype.
_EVALUATE: dict[str, Callable] = {
    "add": lambda attrs, a, b: a + b,
    "subtract": lambda attrs, a, b: a - b,
    "multiply": lambda attrs, a, b: a * b,
    "negative": lambda attrs, a: -a,
    "sqrt": lambda attrs, a: np.sqrt(a),
    "transpose": lambda attrs, a: np.transpose(a, attrs.axes and [int(i) for i in attrs.axes]),
    "squeeze": lambda attrs, a: np.squeeze(
        a, None if attrs.axis is None else tuple(int(i) for i in attrs.axis)
    ),
    "expand_dims": lambda attrs, a: _expand_dims(a, int(attrs.axis), int(attrs.num_newaxis)),
    "cast": lambda attrs, a: a.astype(attrs.dtype),
    "nn.batch_flatten": lambda attrs, a: a.reshape(a.shape[0], -1),
    "concatenate": lambda attrs, *a: np.concatenate(a, int(attrs.axis)),
    "stack": lambda attrs, *a: np.stack(a, int(attrs.axis)),
}
# The result's shape says it all.
_RESHAPES = {"reshape", "contrib_reverse_reshape"}
_DTYPES = {"float32", "float64", "int32", "int64"}


def fold_constant(expr: Expr, old: Expr) -> Constant | None:
    """Return the value of a call whose arguments are all constants.

    None if an argument is not, or if the operator is not one of those evaluated here: TVM folds
    what is left.

    Parameters
    ----------
    expr, old : Expr
        The call with rewritten inputs, and as it was, with its type.
    """
    name = op_name(expr)
    if name == "shape_of":
        shape = _shape_of(old.args[0])
        return None if shape is None else constant(np.array(shape, expr.attrs.dtype))
    if name in _RESHAPES:
        shape, array = _shape_of(old), array_of(expr.args[0])
        known = shape is not None and array is not None and str(array.dtype) in _DTYPES
        return constant(array.reshape(shape)) if known else None
    if name == "take":
        return _element(expr)
    evaluate = _EVALUATE.get(name or "")
    if evaluate is None:
        return None
    assert isinstance(expr, Call)
    args = expr.args[0].fields if isinstance(expr.args[0], Tuple) else expr.args
    arrays = [array_of(arg) for arg in args]
    if any(a is None or str(a.dtype) not in _DTYPES for a in arrays):
        return None
    if name == "cast" and expr.attrs.dtype not in _DTYPES:
        return None
    return constant(np.asarray(evaluate(expr.attrs, *arrays)))


def _expand_dims(array: np.ndarray, axis: int, count: int) -> np.ndarray:
    axis = axis % (array.ndim + 1)
    return array.reshape(array.shape[:axis] + (1,) * count + array.shape[axis:])


def _shape_of(expr: Expr) -> tuple[int, ...] | None:
    """Return a tensor's shape, of any dtype; None if it is symbolic."""
    type_ = expr.checked_type
    if not isinstance(type_, TensorType) or not all(isinstance(d, IntImm) for d in type_.shape):
        return None
    return tuple(int(d) for d in type_.shape)


def _element(call: Call) -> Constant | None:
    """Return the value of a ``take`` of one element of a constant vector."""
    vector, index = (array_of(arg) for arg in call.args)
    if vector is None or index is None or vector.ndim != 1 or index.ndim:
        return None
    if str(vector.dtype) not in _DTYPES:
        return None
    return constant(vector[int(index)]) if 0 <= int(index) < len(vector) else None
