"""Quantized models in the form that regions run best: numbers, dequantized by who reads them.

What moves numbers about without computing is the engine's to handle.
"""

from collections.abc import Mapping

import numpy as np
from tvm import relay
from tvm.relay.expr import Call, Constant, Expr

from .affine import CONVOLUTIONS
from .dataflow import array_of, constant, is_constant, op_name, with_inputs

_PRODUCTS = (*CONVOLUTIONS, "nn.dense", "nn.matmul", "nn.batch_matmul")


def simplify_quantized(call: Call, uses: Mapping[Expr, int]) -> Expr | None:
    """Return a simpler expression for a call that has to do with quantization, None for none.

    - A bias that is dequantized is a constant.
    - Of a residual addition of two operands that are rounded, the product that gives one of them is
      clipped to the range of its numbers, but not rounded: the addition is its post-op. What is
      quantized after it is the same to within that rounding.
    """
    name = op_name(call)
    if name == "qnn.dequantize" and is_constant(call) and len(call.args[0].data.shape) <= 1:
        return constant(dequantized(call))
    if name == "add":
        for i, operand in enumerate(call.args):
            product = _clipped_product(operand, uses)
            other = call.args[1 - i]
            if product is not None and not isinstance(other, Constant) and not _is_product(other):
                args = list(call.args)
                args[i] = product
                return with_inputs(call, args)
    return None


def dequantized(call: Call) -> np.ndarray:
    """Return the value, in float32, of a ``qnn.dequantize`` of a constant."""
    numbers, scales, zero_points = (array_of(arg) for arg in call.args)
    shape = [1] * numbers.ndim
    if scales.size > 1 or zero_points.size > 1:
        shape[int(call.attrs.axis)] = -1
    scales, zero_points = scales.reshape(shape), zero_points.reshape(shape)
    return (scales.astype("float64") * (numbers.astype("int64") - zero_points)).astype("float32")


def _clipped_product(expr: Expr, uses: Mapping[Expr, int]) -> Expr | None:
    """Return dequantize(quantize(x)) without rounding, if x is a product, perhaps with a bias.

    None if it is something else, or if anybody else reads it.
    """
    quantized = expr.args[0] if op_name(expr) == "qnn.dequantize" else None
    if op_name(quantized) != "qnn.quantize" or uses[expr] != 1 or uses[quantized] != 1:
        return None
    product, scale, zero_point = quantized.args
    same = all(_same(a, b) for a, b in zip(quantized.args[1:], expr.args[1:], strict=True))
    if not _is_product(product) or uses[product] != 1 or not same:
        return None
    scale, zero_point = array_of(scale).item(), array_of(zero_point).item()
    limits = np.iinfo(quantized.attrs.out_dtype)
    low, high = (scale * (limit - zero_point) for limit in (limits.min, limits.max))
    return relay.clip(product, low, high)


def _is_product(expr: Expr) -> bool:
    """Whether an expression is a product, perhaps with a bias, to which others can be added."""
    if op_name(expr) in ("add", "nn.bias_add") and array_of(expr.args[1]) is not None:
        expr = expr.args[0]
    return op_name(expr) in _PRODUCTS


def _same(a: Expr, b: Expr) -> bool:
    a, b = array_of(a), array_of(b)
    return a is not None and b is not None and a.size == b.size == 1 and a.item() == b.item()
