"""Quantized models in the form that regions run best: numbers, dequantized by who reads them.

What moves numbers about without computing is the engine's to handle.
"""

from collections.abc import Mapping

import numpy as np
from tvm import relay
from tvm.relay.expr import Call, Constant, Expr, Var

from ..ir import array_of, constant, op_name
from ..passes.affine import CONVOLUTIONS
from ..passes.dataflow import concat_parts, is_constant, with_inputs

_PRODUCTS = (*CONVOLUTIONS, "nn.dense", "nn.matmul", "nn.batch_matmul")


def simplify_quantized(call: Call, uses: Mapping[Expr, int]) -> Expr | None:
    """Return a simpler expression for a call that has to do with quantization, None for none.

    - A bias that is dequantized is a constant.
    - What a concat puts together is quantized as the whole is.
    - Of a residual addition, the product that gives an operand which is rounded for it alone is
      clipped to the range of its numbers, but not rounded: the addition is its post-op. What is
      quantized after it is the same to within that rounding.
    """
    name = op_name(call)
    if name == "qnn.dequantize" and is_constant(call) and len(call.args[0].data.shape) <= 1:
        return constant(dequantized(call))
    if name == "qnn.quantize" and op_name(call.args[0]) == "concatenate":
        return _parts_alike(call, uses)
    if name == "add":
        for i, operand in enumerate(call.args):
            product = _unrounded(operand, uses)
            other = call.args[1 - i]
            if product is None or not _is_product(product.args[0]):
                continue
            if not isinstance(other, Constant) and not _is_product(other):
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


def _unrounded(expr: Expr, uses: Mapping[Expr, int]) -> Call | None:
    """Return clip(x), to the range of the numbers, for a dequantize(quantize(x)).

    None if it is something else, or if anybody else reads it or the numbers.
    """
    quantized = expr.args[0] if op_name(expr) == "qnn.dequantize" else None
    if op_name(quantized) != "qnn.quantize" or uses[expr] != 1 or uses[quantized] != 1:
        return None
    if _quantization(quantized) is None or _quantization(quantized) != _quantization(expr):
        return None
    _, scale, zero_point = _quantization(quantized)
    limits = np.iinfo(quantized.attrs.out_dtype)
    low, high = (scale * (limit - zero_point) for limit in (limits.min, limits.max))
    return relay.clip(quantized.args[0], low, high)


def _parts_alike(call: Call, uses: Mapping[Expr, int]) -> Expr | None:
    """Quantize the parts of a concat as the whole: their numbers are then put together.

    Then it is the parts' producers that leave numbers. A part that is rounded already, for this
    concat alone, is rounded once.
    """
    concat, *how = call.args
    if uses[concat] != 1 or _quantization(call) is None:
        return None
    parts = concat_parts(concat)
    for i, part in enumerate(parts):
        exact = None
        if op_name(part) == "qnn.dequantize":
            if _quantization(part) == _quantization(call):
                continue
            exact = _unrounded(part, uses)
        numbers = relay.qnn.quantize(
            part if exact is None else exact, *how, out_dtype=call.attrs.out_dtype
        )
        parts[i] = relay.qnn.dequantize(numbers, *how)
    if all(new.same_as(old) for new, old in zip(parts, concat_parts(concat), strict=True)):
        return None
    whole = with_inputs(concat, [with_inputs(concat.args[0], parts)])
    return with_inputs(call, [whole, *how])


def _quantization(call: Call) -> tuple[str, float, int] | None:
    """Return dtype, scale and zero point of a (de)quantize with one constant scale, else None."""
    quantizes = op_name(call) == "qnn.quantize"
    values = [array_of(arg) for arg in call.args[1:]]
    if any(value is None or value.size != 1 for value in values):
        return None
    dtype = call.attrs.out_dtype if quantizes else _numbers_dtype(call.args[0])
    return (dtype, *(value.item() for value in values)) if dtype else None


def _numbers_dtype(expr: Expr) -> str | None:
    """Return the dtype of what a dequantize reads, which has no type yet; None if it is unknown."""
    if op_name(expr) == "qnn.quantize":
        return expr.attrs.out_dtype
    if isinstance(expr, Constant):
        return expr.data.dtype
    return expr.type_annotation.dtype if isinstance(expr, Var) else None


def _is_product(expr: Expr) -> bool:
    """Whether an expression is a product, perhaps with a bias, to which others can be added."""
    if op_name(expr) in ("add", "nn.bias_add") and array_of(expr.args[1]) is not None:
        expr = expr.args[0]
    return op_name(expr) in _PRODUCTS
