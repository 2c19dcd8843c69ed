"""Relay's expressions."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import tvm
from tvm import relay, tir
from tvm.ir import Op
from tvm.relay import Function
from tvm.relay.expr import Call, Constant, Expr, GlobalVar, Tuple, TupleGetItem, Var

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

VALUES = (Constant, GlobalVar, Op, Var)
"""Nothing is computed for them."""


_ATTRS = {
    **{
        f"nn.{kind}{dims}d": f"relay.attrs.{name}{dims}DAttrs"
        for dims in (1, 2, 3)
        for kind, name in (("conv", "Conv"), ("max_pool", "MaxPool"), ("avg_pool", "AvgPool"))
    },
    "image.resize2d": "relay.attrs.Resize2DAttrs",
    "nn.upsampling": "relay.attrs.UpSamplingAttrs",
}


def refusal(chain: list[Expr]) -> str:
    """Return why oneDNN cannot run a chain of type-inferred expressions; "" if it can."""
    return tvm.get_global_func("tvm_dnnl_byoc.refusal")(chain)


def with_inputs(expr: Expr, inputs: list[Expr]) -> Expr:
    """Return a call, tuple or field with other inputs."""
    if isinstance(expr, Call):
        return Call(expr.op, inputs, expr.attrs, expr.type_args, expr.span)
    if isinstance(expr, Tuple):
        return Tuple(inputs, expr.span)
    return TupleGetItem(inputs[0], expr.index, expr.span)


def with_attrs(call: Call, inputs: list[Expr], **attrs: Any) -> Call:
    """Return a convolution, pooling or resizing of images, with some attributes changed."""
    old = {str(key): call.attrs[key] for key in call.attrs.keys()}  # noqa: SIM118
    new = tvm.ir.attrs.make_node(_ATTRS[call.op.name], **{**old, **attrs})
    return Call(call.op, inputs, new, call.type_args, call.span)


def with_shape(
    call: Call, inputs: list[Expr], shape: tuple[int, ...], stands_for: Expr | None = None
) -> Call:
    """Return a call with other inputs, whose result has another shape.

    It may have the value of an expression.
    """
    return with_inputs(call, inputs)


def op_name(expr: Expr) -> str | None:
    """Return the name of the operator that an expression calls, None if it calls none."""
    if isinstance(expr, Call) and isinstance(expr.op, Op):
        return expr.op.name
    return None


def kind_of(expr: Expr) -> str:
    """Return what an expression that calls no operator is called."""
    return type(expr).__name__


def array_of(expr: Expr) -> np.ndarray | None:
    """Return a constant's data, None for any other expression."""
    return expr.data.numpy() if isinstance(expr, Constant) else None


def constant(array: np.ndarray) -> Constant:
    """Return an array as a constant of the same dtype."""
    return relay.const(np.asarray(array, order="C"), dtype=str(array.dtype))


def padding_of(pad: Call) -> tuple[list[tuple[int, int]] | None, float]:
    """Return an ``nn.pad``'s widths by axis, and its value; None and nan if it is not constant."""
    value = array_of(pad.args[1])
    if pad.attrs.pad_mode != "constant" or value is None:
        return None, np.nan
    return [(int(a), int(b)) for a, b in pad.attrs.pad_width], float(value.reshape(()))


def call_function(function: Function, arg: Expr, stands_for: Expr) -> Call:
    """Return the call of a function that computes what an expression does."""
    return Call(function, [arg])


def parameter(name: str, stands_for: Expr) -> Var:
    """Return a function's parameter that has the type of an expression."""
    return relay.var(name, type_annotation=stands_for.checked_type)


def add(x: Expr, y: Expr) -> Expr:
    """Return x + y, which has the type of x."""
    return relay.add(x, y)


def multiply(x: Expr, y: Expr) -> Expr:
    """Return x · y, which has the type of x."""
    return relay.multiply(x, y)


def quantize(x: Expr, scale: float, dtype: str) -> Expr:
    """Return the whole numbers nearest to x / scale, without a zero point."""
    scale, zero_point = relay.const(scale, "float32"), relay.const(0, "int32")
    return relay.qnn.quantize(x, scale, zero_point, out_dtype=dtype)


def dequantize(numbers: Expr, scales: np.ndarray, axis: int = -1) -> Expr:
    """Return numbers · scales, float32: one scale, or one for each index along an axis."""
    scales = np.asarray(scales, np.float32)
    zero_points = constant(np.zeros(scales.shape, np.int32))
    return relay.qnn.dequantize(numbers, constant(scales), zero_points, axis=axis)


def tuple_of(fields: Iterable[Expr]) -> Tuple:
    """Return a tuple."""
    return Tuple(list(fields))


def reshape(x: Expr, shape: tuple[int, ...]) -> Expr:
    """Return x in another shape."""
    return relay.reshape(x, shape)


def dense(x: Expr, weights: Expr) -> Expr:
    """Return the rows of x (M, K) times those of the weights (N, K)."""
    return relay.nn.dense(x, weights)


def batch_matmul(x: Expr, y: Expr) -> Expr:
    """Return x (1, M, K) times each of y (B, K, N)."""
    return relay.nn.batch_matmul(x, y, transpose_b=False)


def layer_norm(x: Expr, gamma: Expr, beta: Expr, epsilon: float) -> Call:
    """Return x normalised along its last axis."""
    return relay.nn.layer_norm(x, gamma, beta, epsilon=epsilon)


def instance_norm(x: Expr, gamma: Expr, beta: Expr, epsilon: float) -> Call:
    """Return x, each of its channels, dimension 1, normalised in each instance."""
    return relay.nn.instance_norm(x, gamma, beta, epsilon=epsilon)


def sizes_of(expr: Expr) -> tuple[int | None, ...] | None:
    """Return the shape of a tensor, None for a symbolic size; None if it is no tensor."""
    type_ = expr.checked_type
    if not isinstance(type_, relay.TensorType):
        return None
    return tuple(int(size) if isinstance(size, tir.IntImm) else None for size in type_.shape)


def shape_of(expr: Expr) -> tuple[int | None, ...] | None:
    """Return the shape of a float32 tensor, None for a symbolic size; None for another type."""
    shape = sizes_of(expr)
    return shape if shape is not None and expr.checked_type.dtype == "float32" else None


def static_shape(expr: Expr) -> tuple[int, ...] | None:
    """Return the shape of a float32 tensor; None if it has another type or a symbolic size."""
    shape = shape_of(expr)
    return None if shape is None or None in shape else shape


def same_type(a: Expr, b: Expr) -> bool:
    """Whether two type-inferred expressions are tensors of one dtype and one known shape.

    Sizes that have names are known to be the same.
    """
    type_ = a.checked_type
    return (
        isinstance(type_, relay.TensorType)
        and not any(isinstance(size, tir.Any) for size in type_.shape)
        and tvm.ir.structural_equal(type_, b.checked_type)
    )


def type_text(expr: Expr) -> str:
    """Return the type of an expression, to be read; "" if it is neither a tensor nor a tuple."""
    sizes = sizes_of(expr)
    if sizes is None:
        return "tuple" if isinstance(expr.checked_type, relay.TupleType) else ""
    shape = ", ".join("?" if size is None else str(size) for size in sizes)
    return f"({shape}) {expr.checked_type.dtype}"
