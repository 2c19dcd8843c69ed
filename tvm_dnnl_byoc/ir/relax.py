"""Expressions for Relax: of Relay's form, so that what works on the one works on the other.

Relax binds each value to a variable, and its classes differ from release to release. So its
functions are read into expressions of our own, which know the variables that they stand for.
"""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import tvm

from .encode import Refusal, encode_chain
from .relax_expr import (
    Call,
    Constant,
    Expr,
    Function,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
)

__all__ = [
    "VALUES",
    "Call",
    "Constant",
    "Expr",
    "Function",
    "Op",
    "Tuple",
    "TupleGetItem",
    "add",
    "array_of",
    "batch_matmul",
    "call_function",
    "constant",
    "dense",
    "dequantize",
    "instance_norm",
    "kind_of",
    "layer_norm",
    "multiply",
    "op_name",
    "padding_of",
    "parameter",
    "quantize",
    "refusal",
    "reshape",
    "same_type",
    "shape_of",
    "sizes_of",
    "static_shape",
    "tuple_of",
    "type_text",
    "with_attrs",
    "with_inputs",
    "with_shape",
]

VALUES = (Constant, Var)
"""Nothing is computed for them."""


def refusal(chain: list[Expr]) -> str:
    """Return why oneDNN cannot run a chain of expressions; "" if it can."""
    try:
        text, constants = encode_chain(chain)
    except Refusal as error:
        return str(error)
    return tvm.get_global_func("tvm_dnnl_byoc.refusal")(text, constants)


def with_inputs(expr: Expr, inputs: list[Expr]) -> Expr:
    """Return a call, tuple or field with other inputs of the same types."""
    if isinstance(expr, Call):
        return Call(expr.op, inputs, expr.attrs, expr.checked_type, expr.var, expr.origin)
    if isinstance(expr, Tuple):
        return Tuple(expr.checked_type, inputs, var=expr.var)
    return TupleGetItem(expr.checked_type, inputs[0], expr.index, var=expr.var)


def with_attrs(call: Call, inputs: list[Expr], **attrs: Any) -> Call:
    """Return a call with other inputs of the same rank, and some attributes changed."""
    attributes = SimpleNamespace(**{**vars(call.attrs), **attrs})
    return Call(call.op, inputs, attributes, call.checked_type)


def with_shape(
    call: Call, inputs: list[Expr], shape: tuple[int, ...], stands_for: Expr | None = None
) -> Call:
    """Return a call with other inputs, whose result has another shape.

    It may have the value of an expression.
    """
    type_ = TensorType(shape, call.checked_type.dtype)
    return Call(
        call.op, inputs, call.attrs, type_, stands_for and stands_for.var, origin=call.origin
    )


def op_name(expr: Expr) -> str | None:
    """Return the name of the operator that an expression calls, None if it calls none."""
    if isinstance(expr, Call) and isinstance(expr.op, Op):
        return expr.op.name or None
    return None


def kind_of(expr: Expr) -> str:
    """Return what an expression that calls no operator is called."""
    origin = getattr(expr, "origin", None)
    return type(expr if origin is None else origin).__name__


def array_of(expr: Expr) -> np.ndarray | None:
    """Return a constant's data, None for any other expression."""
    return expr.array if isinstance(expr, Constant) else None


def constant(array: np.ndarray) -> Constant:
    """Return an array as a constant of the same dtype."""
    array = np.asarray(array, order="C")
    return Constant(TensorType(array.shape, str(array.dtype)), array)


def padding_of(pad: Call) -> tuple[list[tuple[int, int]] | None, float]:
    """Return an ``nn.pad``'s widths by axis, and its value; None and nan if it is not constant."""
    if pad.attrs.pad_mode != "constant":
        return None, np.nan
    widths = pad.attrs.pad_width
    return list(zip(widths[::2], widths[1::2], strict=True)), pad.attrs.pad_value


def call_function(function: Function, arg: Expr, stands_for: Expr) -> Call:
    """Return the call of a function that computes what an expression does."""
    return Call(function, [arg], checked_type=stands_for.checked_type, var=stands_for.var)


def parameter(name: str, stands_for: Expr) -> Var:
    """Return a function's parameter that has the type of an expression."""
    return Var(stands_for.checked_type)


def add(x: Expr, y: Expr) -> Expr:
    """Return x + y, which has the type of x."""
    return Call(Op("add"), [x, y], checked_type=x.checked_type)


def multiply(x: Expr, y: Expr) -> Expr:
    """Return x · y, which has the type of x."""
    return Call(Op("multiply"), [x, y], checked_type=x.checked_type)


def quantize(x: Expr, scale: float, dtype: str) -> Expr:
    """Return the whole numbers nearest to x / scale, without a zero point."""
    return _quantization("qnn.quantize", x, np.float32(scale), -1, dtype)


def dequantize(numbers: Expr, scales: np.ndarray, axis: int = -1) -> Expr:
    """Return numbers · scales, float32: one scale, or one for each index along an axis."""
    return _quantization("qnn.dequantize", numbers, scales, axis, "float32")


def _quantization(name: str, x: Expr, scales: np.ndarray, axis: int, dtype: str) -> Call:
    scales = np.asarray(scales, np.float32)
    args = [x, constant(scales), constant(np.zeros(scales.shape, np.int32))]
    attrs = SimpleNamespace(axis=axis, out_dtype=dtype)
    return Call(Op(name), args, attrs, TensorType(x.checked_type.shape, dtype))


def tuple_of(fields: Iterable[Expr]) -> Tuple:
    """Return a tuple."""
    fields = list(fields)
    return Tuple(TupleType(tuple(field.checked_type for field in fields)), fields)


def reshape(x: Expr, shape: tuple[int, ...]) -> Expr:
    """Return x in another shape."""
    return Call(Op("reshape"), [x], checked_type=TensorType(shape, x.checked_type.dtype))


def dense(x: Expr, weights: Expr) -> Expr:
    """Return the rows of x (M, K) times those of the weights (N, K)."""
    (rows, _), (columns, _) = x.checked_type.shape, weights.checked_type.shape
    type_ = TensorType((rows, columns), x.checked_type.dtype)
    return Call(Op("nn.dense"), [x, weights], SimpleNamespace(out_dtype=""), type_)


def batch_matmul(x: Expr, y: Expr) -> Expr:
    """Return x (1, M, K) times each of y (B, K, N)."""
    (_, rows, _), (batch, _, columns) = x.checked_type.shape, y.checked_type.shape
    return Call(
        Op("matmul"), [x, y], checked_type=TensorType((batch, rows, columns), x.checked_type.dtype)
    )


def layer_norm(x: Expr, gamma: Expr, beta: Expr, epsilon: float) -> Call:
    """Return x normalised along its last axis."""
    return _normalised("nn.layer_norm", x, gamma, beta, axis=-1, epsilon=epsilon)


def instance_norm(x: Expr, gamma: Expr, beta: Expr, epsilon: float) -> Call:
    """Return x, each of its channels, dimension 1, normalised in each instance."""
    return _normalised("nn.instance_norm", x, gamma, beta, axis=1, epsilon=epsilon)


def _normalised(name: str, x: Expr, gamma: Expr, beta: Expr, **attrs: float) -> Call:
    attributes = SimpleNamespace(**attrs, center=True, scale=True)
    return Call(Op(name), [x, gamma, beta], attributes, x.checked_type)


def sizes_of(expr: Expr) -> tuple[int | None, ...] | None:
    """Return the shape of a tensor, None for a symbolic size.

    None if it is no tensor, or if its shape is not known.
    """
    type_ = expr.checked_type
    if not isinstance(type_, TensorType) or type_.shape is None:
        return None
    return tuple(size if isinstance(size, int) else None for size in type_.shape)


def shape_of(expr: Expr) -> tuple[int | None, ...] | None:
    """Return the shape of a float32 tensor, None for a symbolic size; None for another type."""
    shape = sizes_of(expr)
    return shape if shape is not None and expr.checked_type.dtype == "float32" else None


def static_shape(expr: Expr) -> tuple[int, ...] | None:
    """Return the shape of a float32 tensor; None if it has another type or a symbolic size."""
    shape = shape_of(expr)
    return None if shape is None or None in shape else shape


def same_type(a: Expr, b: Expr) -> bool:
    """Whether two expressions are tensors of one dtype and of the same sizes in every run."""
    type_ = a.checked_type
    return isinstance(type_, TensorType) and type_.shape is not None and type_ == b.checked_type


def type_text(expr: Expr) -> str:
    """Return the type of an expression, to be read; "" if it is neither a tensor nor a tuple."""
    type_ = expr.checked_type
    if not isinstance(type_, TensorType):
        return "tuple" if isinstance(type_, TupleType) else ""
    shape = "?" if type_.shape is None else f"({', '.join(map(str, type_.shape))})"
    return f"{shape} {type_.dtype}"
