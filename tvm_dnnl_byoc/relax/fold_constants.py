"""Evaluates constant expressions with NumPy."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

from ..ir import Call, Constant, Expr, Tuple, array_of, constant, op_name
from ..ir.relax_expr import TensorType

# Only what NumPy does exactly as Relax: moves, and arithmetic rounded once in the same dtype.
_EVALUATE: dict[str, Callable] = {
    "add": lambda call, *args: _of_numbers(np.add, *args),
    "multiply": lambda call, *args: _of_numbers(np.multiply, *args),
    "subtract": lambda call, *args: _of_numbers(np.subtract, *args),
    "divide": lambda call, a, b: a / b if a.dtype.kind == "f" and b.all() else None,
    "sqrt": lambda call, a: np.sqrt(a) if (a >= 0).all() else None,
    "mod": lambda call, a, b: _of_integers(np.fmod, a, b),
    "floor_divide": lambda call, a, b: _of_integers(np.floor_divide, a, b),
    "clip": lambda call, a: _of_ordered(
        lambda a: np.clip(a, call.attrs.a_min, call.attrs.a_max).astype(a.dtype), a
    ),
    "equal": lambda call, a, b: a == b,
    "not_equal": lambda call, a, b: a != b,
    "greater": lambda call, a, b: a > b,
    "greater_equal": lambda call, a, b: a >= b,
    "less": lambda call, a, b: a < b,
    "less_equal": lambda call, a, b: a <= b,
    "logical_and": lambda call, a, b: np.logical_and(a, b),
    "logical_not": lambda call, a: np.logical_not(a),
    "isnan": lambda call, a: np.isnan(a),
    "abs": lambda call, *args: _of_numbers(np.abs, *args),
    "negative": lambda call, *args: _of_numbers(np.negative, *args),
    "maximum": lambda call, *args: _of_ordered(np.maximum, *args),
    "minimum": lambda call, *args: _of_ordered(np.minimum, *args),
    "cumsum": lambda call, a: _cumsum(a, call),
    "cast": lambda call, a: _cast(a, call.checked_type.dtype),
    "full": lambda call, a: np.full(call.checked_type.shape, a),
    "full_like": lambda call, a, b: np.full(a.shape, b),
    "zeros": lambda call: np.zeros(call.checked_type.shape, call.checked_type.dtype),
    "ones": lambda call: np.ones(call.checked_type.shape, call.checked_type.dtype),
    "where": lambda call, condition, a, b: np.where(condition, a, b),
    "reshape": lambda call, a: a.reshape(call.checked_type.shape),
    "broadcast_to": lambda call, a: np.broadcast_to(a, call.checked_type.shape),
    "transpose": lambda call, a: np.transpose(a, call.attrs.axes),
    "strided_slice": lambda call, a: _strided_slice(a, call.attrs),
    "take": lambda call, a, indices: np.take(a, indices, call.attrs.axis, mode="clip"),
    "gather_elements": lambda call, a, indices: _gather(a, indices, call.attrs.axis),
    "index_tensor": lambda call, a, *indices: _index(a, indices),
    "concatenate": lambda call, *parts: np.concatenate(parts, call.attrs.axis),
}
_DTYPES = {"bool", "int8", "uint8", "int32", "int64", "float32", "float64"}
# An array that is stored so that others need not be computed, must not be much larger than they.
MAX_SIZE = 1 << 24


def fold_constant(expr: Expr) -> Constant | None:
    """Return the value of a call whose arguments are all constants.

    None if an argument is not, or if the operator is not one of those evaluated here.
    """
    evaluate = _EVALUATE.get(op_name(expr) or "")
    if evaluate is None:
        return None
    assert isinstance(expr, Call)
    type_ = expr.checked_type
    args = [
        field for arg in expr.args for field in (arg.fields if isinstance(arg, Tuple) else [arg])
    ]
    arrays = [array_of(arg) for arg in args]
    if any(array is None for array in arrays):
        return None
    if not isinstance(type_, TensorType) or not type_.is_static or np.prod(type_.shape) > MAX_SIZE:
        return None
    if type_.dtype not in _DTYPES:
        return None
    value = evaluate(expr, *arrays)
    fits = value is not None and value.shape == type_.shape and str(value.dtype) == type_.dtype
    return constant(value) if fits else None


def _of_numbers(function: Callable, *arrays: np.ndarray) -> np.ndarray | None:
    """Return what a function makes of numbers; None for bools, with which TVM does otherwise."""
    return None if any(array.dtype.kind == "b" for array in arrays) else function(*arrays)


def _of_ordered(function: Callable, *arrays: np.ndarray) -> np.ndarray | None:
    """Return what a function makes of numbers; None if it would have to choose between NaNs."""
    return None if any(map(_has_nan, arrays)) else _of_numbers(function, *arrays)


def _has_nan(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def _of_integers(function: Callable, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """Return a quotient or rest of integers; None for those of other numbers, and of 0."""
    return function(a, b) if a.dtype.kind == b.dtype.kind == "i" and b.all() else None


def _cumsum(array: np.ndarray, call: Call) -> np.ndarray | None:
    """Return the sums of whole numbers, which are the same in any order."""
    if array.dtype.kind == "f" or call.attrs.exclusive:
        return None
    return np.cumsum(array, call.attrs.axis, call.checked_type.dtype)


def _cast(array: np.ndarray, dtype: str) -> np.ndarray | None:
    """Return an array in another dtype; None where real numbers would be cut off."""
    return None if array.dtype.kind == "f" and dtype != "bool" else array.astype(dtype)


def _strided_slice(array: np.ndarray, attrs: SimpleNamespace) -> np.ndarray | None:
    if any(stride < 1 for stride in attrs.strides):
        return None
    cuts = [slice(None)] * array.ndim
    for axis, *bounds in zip(attrs.axes, attrs.begin, attrs.end, attrs.strides, strict=True):
        cuts[axis] = slice(*bounds)
    return array[tuple(cuts)]


def _gather(array: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray | None:
    """Return elements along an axis, each in its own row; None if one is not there."""
    others = [np.delete(a.shape, axis).tolist() for a in (array, indices)]
    inside = _are_within(indices, array.shape[axis]) and others[0] == others[1]
    return np.take_along_axis(array, indices, axis) if inside else None


def _index(array: np.ndarray, indices: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return the elements at places that have an index for each of the first dimensions."""
    if any(index.dtype.kind not in "iu" for index in indices):
        return None
    inside = all(map(_are_within, indices, array.shape))
    return array[tuple(indices)] if inside else None


def _are_within(indices: np.ndarray, size: int) -> bool:
    """Whether all are indices of a row: what TVM makes of others is for TVM to say."""
    return indices.size > 0 and indices.min() >= 0 and indices.max() < size
