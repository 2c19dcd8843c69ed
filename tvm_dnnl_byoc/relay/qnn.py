"""TVM's QNN dialect in the form of QDQ: what numbers stand for is computed, and quantized again.

A QNN operator carries the scales and zero points of its operands; here they move into the
``qnn.dequantize`` of each operand and the ``qnn.quantize`` of the result. A product is replaced
together with the ``qnn.requantize`` or ``qnn.dequantize`` that reads its 32-bit sums, perhaps after
a bias and a ReLU. The results differ from QNN's in the rounding of ties.
"""

from collections.abc import Callable

import numpy as np
import tvm
from tvm import relay
from tvm.relay.expr import Call, Constant, Expr, Tuple

from ..ir import array_of, constant, op_name
from ..passes.dataflow import inputs_of, post_order, with_body, with_inputs

# By QNN's product: what it is on real numbers, and the axis of its weights' scales.
_PRODUCTS: dict[str, Callable[[Call, Expr, Expr], Expr]] = {
    "qnn.conv2d": lambda call, x, w: _with_attrs("nn.conv2d", call, [x, w]),
    "qnn.conv2d_transpose": lambda call, x, w: _with_attrs("nn.conv2d_transpose", call, [x, w]),
    "qnn.dense": lambda call, x, w: relay.nn.dense(x, w, units=call.attrs.units),
    "qnn.batch_matmul": lambda call, x, w: relay.nn.batch_matmul(x, w),
}
# What may follow before the sums are read, with another operand in the same scale.
_WITH_SUMS = ("add", "nn.bias_add", "maximum", "minimum")
_BINARY = {"qnn.add": relay.add, "qnn.subtract": relay.subtract, "qnn.mul": relay.multiply}
_UNARY = {
    **{f"qnn.{f.__name__}": f for f in (relay.tanh, relay.sigmoid, relay.exp, relay.sqrt)},
    **{f"qnn.{f.__name__}": f for f in (relay.rsqrt, relay.erf, relay.log, relay.abs)},
}


def has_qnn(function: relay.Function) -> bool:
    """Whether there are QNN operators besides quantize and dequantize."""
    names = {op_name(expr) or "" for expr in post_order(function.body)}
    return any(name.startswith("qnn.") for name in names - {"qnn.quantize", "qnn.dequantize"})


def qdq_of_qnn(function: relay.Function) -> relay.Function:
    """Return a type-inferred function without those QNN operators that have a counterpart."""
    return with_body(function, _Rewriter().run(function.body))


class _Rewriter:
    def __init__(self):
        self._new: dict[Expr, Expr] = {}
        self._real: dict[tuple, Expr] = {}  # what was dequantized, once for all readers

    def run(self, body: Expr) -> Expr:
        for old in post_order(body):
            new = with_inputs(old, [self._new[e] for e in inputs_of(old)])
            self._new[old] = self._restated(new, old)
        return self._new[body]

    def _restated(self, new: Expr, old: Expr) -> Expr:
        name = op_name(new)
        if name == "qnn.requantize":
            real = self._product(*new.args[:3])
            if real is None:
                real = self._dequantized(*new.args[:3], axis=int(new.attrs.axis))
            return _quantized(real, *new.args[3:], new.attrs.out_dtype)
        if name == "qnn.dequantize":
            return self._product(*new.args) or new
        if name in _BINARY:
            a, b, a_scale, a_zero, b_scale, b_zero, scale, zero = new.args
            real = _BINARY[name](
                self._dequantized(a, a_scale, a_zero, axis=int(new.attrs.lhs_axis)),
                self._dequantized(b, b_scale, b_zero, axis=int(new.attrs.rhs_axis)),
            )
            return _quantized(real, scale, zero, _dtype(old))
        if name in _UNARY:
            x, x_scale, x_zero, scale, zero = new.args
            return _quantized(
                _UNARY[name](self._dequantized(x, x_scale, x_zero)), scale, zero, _dtype(old)
            )
        if name == "qnn.avg_pool2d":
            x, x_scale, x_zero, scale, zero = new.args
            real = _with_attrs("nn.avg_pool2d", new, [self._dequantized(x, x_scale, x_zero)])
            return _quantized(real, scale, zero, _dtype(old))
        if name == "qnn.concatenate":
            parts, scales, zeros, scale, zero = new.args
            if not all(isinstance(e, Tuple) for e in (parts, scales, zeros)):
                return new
            fields = zip(parts.fields, scales.fields, zeros.fields, strict=True)
            real = relay.concatenate(
                [self._dequantized(*field) for field in fields], int(new.attrs.axis)
            )
            return _quantized(real, scale, zero, _dtype(old))
        return _clipped_before(new) or new

    def _product(self, sums: Expr, scale: Expr, zero: Expr) -> Expr | None:
        """Return what 32-bit sums stand for, if they are those of a product; once for all readers.

        It is the scale of who reads the sums that counts, not those that the product carries.
        """
        key = (sums, scale, zero)
        if key not in self._real:
            self._real[key] = self._real_product(sums, array_of(scale), array_of(zero))
        return self._real[key]

    def _real_product(self, call: Expr, scale, zero) -> Expr | None:
        afterwards = []
        while op_name(call) == "nn.relu" or (
            op_name(call) in _WITH_SUMS and array_of(call.args[1]) is not None
        ):
            afterwards.append(call)
            call = call.args[0]
        if op_name(call) not in _PRODUCTS or scale is None or zero is None or zero.any():
            return None
        x, w, x_zero, w_zero, x_scale, _ = call.args
        axis, of_x = _weights_axis(call), array_of(x_scale)
        if of_x is None or of_x.size != 1 or not of_x.item() > 0:
            return None
        if scale.size > 1 and (axis is None or array_of(w) is None):
            return None
        if scale.size > 1 and array_of(w).shape[axis] != scale.size:
            return None  # of a depthwise convolution with a multiplier
        of_w = constant((scale.astype("float64") / of_x.item()).astype("float32"))
        weights = self._dequantized(w, of_w, w_zero, axis=axis or 0)
        real = _PRODUCTS[op_name(call)](call, self._padded(x, x_scale, x_zero), weights)
        for after in reversed(afterwards):
            if op_name(after) == "maximum" and not array_of(after.args[1]).any():
                real = relay.nn.relu(real)
                continue
            args = [real]
            if op_name(after) != "nn.relu":
                operand = _real_operand(after, call, scale.astype("float64"))
                if operand is None:
                    return None
                args.append(operand)
            real = Call(after.op, args, after.attrs)
        return real

    def _padded(self, x: Expr, scale: Expr, zero: Expr) -> Expr:
        """Return what x stands for; what is padded with its zero point is padded with 0."""
        if op_name(x) != "nn.pad":
            return self._dequantized(x, scale, zero)
        value, point = array_of(x.args[1]), array_of(zero)
        if value is None or point is None or value.item() != point.item():
            return self._dequantized(x, scale, zero)
        inner = self._dequantized(x.args[0], scale, zero)
        return relay.nn.pad(inner, x.attrs.pad_width, 0.0, x.attrs.pad_mode)

    def _dequantized(self, numbers: Expr, scale: Expr, zero: Expr, axis: int = -1) -> Expr:
        key = (numbers, scale, zero, axis)
        if key not in self._real:
            self._real[key] = relay.qnn.dequantize(numbers, scale, _as_many(zero, scale), axis=axis)
        return self._real[key]


def _quantized(real: Expr, scale: Expr, zero: Expr, dtype: str) -> Expr:
    return relay.qnn.quantize(real, scale, zero, out_dtype=dtype)


def _as_many(zero: Expr, scale: Expr) -> Expr:
    """Return zero points for each of the scales, which ``qnn.dequantize`` wants."""
    values, scales = array_of(zero), array_of(scale)
    if values is None or scales is None or values.size != 1 or scales.size == 1:
        return zero
    return constant(np.full(scales.shape, values.item(), "int32"))


def _clipped_before(call: Expr) -> Expr | None:
    """Return clip(quantize(x)) as quantize(clip(x)): a ReLU on numbers becomes a post-op."""
    name = op_name(call)
    if name not in ("clip", "nn.relu", "maximum") or op_name(call.args[0]) != "qnn.quantize":
        return None
    quantize = call.args[0]
    scale, zero = (array_of(arg) for arg in quantize.args[1:])
    if scale is None or zero is None or scale.size != 1 or zero.size != 1:
        return None
    limits = np.iinfo(quantize.attrs.out_dtype)
    low, high = limits.min, limits.max
    if name == "clip":
        low, high = max(low, call.attrs.a_min), min(high, call.attrs.a_max)
    else:
        bound = 0 if name == "nn.relu" else array_of(call.args[1])
        if bound is None or np.size(bound) != 1:
            return None
        low = max(low, np.asarray(bound).item())
    ends = (float(scale.item() * (end - zero.item())) for end in (low, high))
    return with_inputs(quantize, [relay.clip(quantize.args[0], *ends), *quantize.args[1:]])


def _real_operand(call: Call, product: Call, scale: np.ndarray) -> Constant | None:
    """Return what the constant of `call`, with as many numbers as scales or one, stands for."""
    numbers = array_of(call.args[1]).astype("float64")
    if scale.size > 1 and numbers.size not in (1, scale.size):
        return None
    if scale.size > 1 and numbers.size == 1:
        shape = (scale.size,)
        if op_name(call) != "nn.bias_add" and op_name(product) != "qnn.dense":
            layout = product.attrs.data_layout
            shape = (scale.size, *(1,) * (len(layout) - 1 - layout.index("C")))
        numbers = np.full(shape, numbers.item())
    value = numbers * (scale.item() if scale.size == 1 else scale.reshape(numbers.shape))
    return constant(value.astype("float32"))


def _weights_axis(call: Call) -> int | None:
    """Return the axis of a product's weights that its output channels lie along."""
    if op_name(call) == "qnn.dense":
        return 0
    if op_name(call) == "qnn.batch_matmul":
        return None
    axis = call.attrs.kernel_layout.find("O")
    return axis if axis >= 0 else None


def _with_attrs(name: str, call: Call, args: list[Expr]) -> Call:
    """Return another operator with the attributes of a call, but a result in float32."""
    attrs = call.attrs
    fields = {str(field.name): attrs[field.name] for field in attrs.list_field_info()}
    if "out_dtype" in fields:
        fields["out_dtype"] = ""
    return Call(tvm.ir.Op.get(name), args, tvm.ir.make_node(attrs.type_key, **fields))


def _dtype(expr: Expr) -> str:
    return expr.checked_type.dtype
