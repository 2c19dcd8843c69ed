"""Evaluates constant expressions with NumPy."""

from collections.abc import Callable

import numpy as np
from tvm.ir import TensorType
from tvm.relay.expr import Call, Constant, Expr, Tuple
from tvm.tir import IntImm

from ..ir import array_of, constant, op_name
from .slices import slice_bounds

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
    "repeat": lambda attrs, a: np.repeat(a, int(attrs.repeats), int(attrs.axis)),
    "gather": lambda attrs, a, indices: _gather(a, indices, int(attrs.axis)),
    "strided_slice": lambda attrs, a: _strided_slice(a, attrs),
    "take": lambda attrs, a, indices: _take(a, indices, attrs),
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
    value = evaluate(expr.attrs, *arrays)
    return None if value is None else constant(np.asarray(value))


def _expand_dims(array: np.ndarray, axis: int, count: int) -> np.ndarray:
    axis = axis % (array.ndim + 1)
    return array.reshape(array.shape[:axis] + (1,) * count + array.shape[axis:])


def _shape_of(expr: Expr) -> tuple[int, ...] | None:
    """Return a tensor's shape, of any dtype; None if it is symbolic."""
    type_ = expr.checked_type
    if not isinstance(type_, TensorType) or not all(isinstance(d, IntImm) for d in type_.shape):
        return None
    return tuple(int(d) for d in type_.shape)


def _strided_slice(array: np.ndarray, attrs) -> np.ndarray | None:
    bounds = slice_bounds(attrs, array.shape)
    return bounds and array[tuple(slice(begin, end) for begin, end in bounds)]


def _gather(array: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray | None:
    """Return the elements; None where each index is not one along its own row."""
    axis %= array.ndim
    others = [np.delete(a.shape, axis).tolist() for a in (array, indices)]
    if others[0] != others[1] or not _are_within(indices, array.shape[axis]):
        return None
    return np.take_along_axis(array, indices, axis)


def _take(array: np.ndarray, indices: np.ndarray, attrs) -> np.ndarray | None:
    axis = 0 if attrs.axis is None and array.ndim == 1 else attrs.axis
    if axis is None or int(attrs.batch_dims):
        return None
    axis = int(axis) % array.ndim
    return np.take(array, indices, axis) if _are_within(indices, array.shape[axis]) else None


def _are_within(indices: np.ndarray, size: int) -> bool:
    """Whether all are indices of a row: what TVM makes of others is for TVM to say."""
    return indices.size > 0 and indices.min() >= 0 and indices.max() < size
