"""A quantized module as an ONNX file in QDQ form, for the runtimes that read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm

from .. import native
from ..ir import Call, Expr, Function, Tuple, TupleGetItem, array_of, op_name
from ..passes.affine import per_channel
from ..passes.dataflow import count_uses, inputs_of, post_order
from .layers import MOVES

if TYPE_CHECKING:
    import onnx

_OPSET = 13
# The largest number of a bias: as much is left of int32 for what is added to it.
_MOST = 2**30


def to_onnx(mod: tvm.IRModule) -> onnx.ModelProto:
    """Write ``main`` of what `convert` returned, or of any module of the same operators.

    Parameters
    ----------
    mod : tvm.IRModule
        Type-inferred, with its weights as constants and data in NCHW. Of networks for images: other
        operators than those in ``_EXPORT`` are refused.

    Returns
    -------
    onnx.ModelProto
        With opset 13; inputs keep their names, outputs are ``output_0``, ….

    Raises
    ------
    ValueError
        If there is an operator, or a use of one, that is not known here.
    NotImplementedError
        If the module is Relax's.
    """
    if native.front() != "relay":
        raise NotImplementedError("to_onnx: expected a Relay module (TVM 0.19), got one of Relax")
    return _Exporter(mod["main"]).model()


class _Exporter:
    def __init__(self, function: Function):
        self._function = function
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._names: dict[Expr, str] = {}
        self._uses = count_uses(function.body)

    def model(self) -> onnx.ModelProto:
        from onnx import helper

        for param in self._function.params:
            self._names[param] = param.name_hint
        body = self._function.body
        order = post_order(body)
        # A bias is an input of its layer, and what makes no number negative needs no ReLU before:
        # only so do the runtimes find the layers that they have kernels in int8 for.
        biased = {e.args[0] for e in order if self._is_bias(e)}
        clamped = {e.args[0] for e in order if self._clamps(e)}
        for expr in order:
            if expr in biased:
                continue
            if expr in clamped:
                self._names[expr] = self._names[expr.args[0]]
            elif self._is_bias(expr):
                self._names[expr] = self._layer_with_bias(expr)
            elif isinstance(expr, Call):
                self._names[expr] = self._call(expr)
            elif isinstance(expr, TupleGetItem) and expr.index == 0:  # of a batch_norm
                self._names[expr] = self._names[expr.tuple_value]
        outputs = body.fields if isinstance(body, Tuple) else [body]
        for i, expr in enumerate(outputs):
            self.node("Identity", [expr], f"output_{i}")
        graph = helper.make_graph(
            self._nodes,
            "main",
            [_value(p.name_hint, p.checked_type) for p in self._function.params],
            [_value(f"output_{i}", expr.checked_type) for i, expr in enumerate(outputs)],
            self._initializers,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
        model.ir_version = 7  # what opset 13 came with: older runtimes refuse newer ones
        return model

    def node(
        self, kind: str, inputs: list[Expr | np.ndarray | str], output: str | None = None, **attrs
    ) -> str:
        """Append a node that reads expressions, constants and names; return its output's name."""
        from onnx import helper

        output = output or f"t{len(self._nodes)}"
        names = [self._name(each) for each in inputs]
        self._nodes.append(helper.make_node(kind, names, [output], **attrs))
        return output

    def _name(self, value: Expr | np.ndarray | str) -> str:
        from onnx import numpy_helper

        if isinstance(value, str):
            return value
        if isinstance(value, np.ndarray):
            name = f"c{len(self._initializers)}"
            self._initializers.append(numpy_helper.from_array(value, name))
            return name
        if value not in self._names:  # a constant, at its first use
            self._names[value] = self._name(array_of(value))
        return self._names[value]

    def _is_bias(self, expr: Expr) -> bool:
        if op_name(expr) not in ("add", "nn.bias_add") or array_of(expr.args[1]) is None:
            return False
        layer, bias = expr.args[0], array_of(expr.args[1])
        if op_name(layer) not in ("nn.conv2d", "nn.dense") or self._uses[layer] != 1:
            return False
        shape = _ints(layer.checked_type.shape)
        axis = len(shape) - 1 if op_name(layer) == "nn.dense" else 1
        if bias.size != shape[axis] or bias.ndim > len(shape):
            return False
        if op_name(expr) == "nn.bias_add":
            return int(expr.attrs.axis) % len(shape) == axis
        return per_channel(bias, axis, tuple(shape)) is not None

    def _clamps(self, expr: Expr) -> bool:
        return (
            op_name(expr) == "qnn.quantize"
            and op_name(expr.args[0]) == "nn.relu"
            and self._uses[expr.args[0]] == 1
            and expr.attrs.out_dtype == "uint8"
            and not array_of(expr.args[2]).any()
        )

    def _layer_with_bias(self, call: Call) -> str:
        layer, bias = call.args[0], array_of(call.args[1]).reshape(-1)
        data = layer.args[0]
        while op_name(data) in MOVES:
            data = data.args[0]
        if all(op_name(e) == "qnn.dequantize" for e in (data, layer.args[1])):
            bias = self._rounded(bias, data, layer.args[1])
        return self._call(layer, bias)

    def _rounded(self, bias: np.ndarray, data: Call, weights: Call) -> str | np.ndarray:
        """Return a bias in numbers, as the runtimes add it; as it is if it would change by more.

        By more than the rounding of the data changes what it is added to: half a number times the
        largest weight. A channel whose weights are all 0 has a scale that says nothing of its bias;
        one whose weights are far smaller than its bias, a scale of which int32 has not enough.
        """
        numbers, scales, zeros = (array_of(arg) for arg in weights.args)
        each = bias.size // scales.size  # of one scale there may be several outputs
        scales, zeros = (np.repeat(values, each) for values in (scales, zeros))
        largest = np.abs(numbers.reshape(bias.size, -1) - zeros[:, None]).max(1)
        scales = array_of(data.args[1]).astype(np.float64) * scales
        exact = bias / scales
        rounded = np.rint(exact).clip(-_MOST, _MOST)
        if (np.abs(rounded - exact) > largest / 2).any():
            return bias
        parts = [rounded.astype(np.int32), scales.astype(np.float32), np.zeros(bias.size, np.int32)]
        return self.node("DequantizeLinear", parts, axis=0)

    def _call(self, call: Call, bias: str | np.ndarray | None = None) -> str:
        export = _EXPORT.get(op_name(call) or "")
        if export is None:
            raise ValueError(
                f"to_onnx: expected one of {', '.join(sorted(_EXPORT))}, got {op_name(call)}"
            )
        layouts = ("data_layout", "layout", "out_layout")
        if any(getattr(call.attrs, name, "") not in ("NCHW", "") for name in layouts):
            raise ValueError(f"to_onnx: {op_name(call)}: expected data in NCHW")
        args = [
            e for arg in inputs_of(call) for e in (arg.fields if isinstance(arg, Tuple) else [arg])
        ]
        return export(self, call, args if bias is None else [*args, bias])


Export = Callable[[_Exporter, Call, list[Expr]], str]


def _value(name: str, type_: Any) -> onnx.ValueInfoProto:
    from onnx import helper
    from onnx.mapping import NP_TYPE_TO_TENSOR_TYPE

    dtype = NP_TYPE_TO_TENSOR_TYPE[np.dtype(type_.dtype)]
    return helper.make_tensor_value_info(name, dtype, [int(size) for size in type_.shape])


def _ints(values) -> list[int]:
    return [int(value) for value in values]


def _plain(kind: str) -> Export:
    return lambda exporter, call, args: exporter.node(kind, args)


def _convolution(exporter: _Exporter, call: Call, args: list[Expr]) -> str:
    attrs, (data, weights, *bias) = call.attrs, args
    if attrs.kernel_layout != "OIHW":
        raise ValueError(f"to_onnx: nn.conv2d: expected weights in OIHW, got {attrs.kernel_layout}")
    channels, shape = int(call.checked_type.shape[1]), _ints(weights.checked_type.shape)
    if shape[0] != channels:  # a depthwise one's with a multiplier are spread over two axes
        shape = np.array([channels, -1, *shape[2:]], np.int64)
        weights = exporter.node("Reshape", [weights, shape])
    return exporter.node(
        "Conv",
        [data, weights, *bias],
        strides=_ints(attrs.strides),
        pads=_ints(attrs.padding),
        dilations=_ints(attrs.dilation),
        group=int(attrs.groups),
        kernel_shape=_ints(attrs.kernel_size),
    )


def _pool(kind: str) -> Export:
    def export(exporter: _Exporter, call: Call, args: list[Expr]) -> str:
        attrs = call.attrs
        dilations = _ints(attrs.dilation)
        if kind == "MaxPool":
            fields = {"dilations": dilations}
        elif set(dilations) == {1}:
            fields = {"count_include_pad": int(attrs.count_include_pad)}
        else:  # which ONNX has from opset 19
            raise ValueError(f"to_onnx: {op_name(call)}: expected no dilation, got {dilations}")
        return exporter.node(
            kind,
            args,
            kernel_shape=_ints(attrs.pool_size),
            strides=_ints(attrs.strides),
            pads=_ints(attrs.padding),
            ceil_mode=int(attrs.ceil_mode),
            **fields,
        )

    return export


def _clip(exporter: _Exporter, call: Call, args: list[Expr]) -> str:
    ends = [np.array(end, np.float32) for end in (call.attrs.a_min, call.attrs.a_max)]
    return exporter.node("Clip", [*args, *ends])


def _dense(exporter: _Exporter, call: Call, args: list[Expr | np.ndarray | str]) -> str:
    if len(call.checked_type.shape) == 2:
        return exporter.node("Gemm", args, transB=1)
    data, weights, *bias = args  # a Gemm is of matrices only
    weights = exporter.node("Transpose", [weights], perm=[1, 0])
    product = exporter.node("MatMul", [data, weights])
    return exporter.node("Add", [product, *bias]) if bias else product


def _bias_add(exporter: _Exporter, call: Call, args: list[Expr]) -> str:
    rank = len(call.checked_type.shape)
    bias = array_of(call.args[1])
    if bias is None:
        raise ValueError("to_onnx: nn.bias_add: expected a constant bias")
    shape = [1] * rank
    shape[int(call.attrs.axis)] = -1
    return exporter.node("Add", [args[0], bias.reshape(shape)])


def _reshape(exporter: _Exporter, call: Call, args: list[Expr]) -> str:
    shape = np.array(_ints(call.checked_type.shape), np.int64)
    return exporter.node("Reshape", [args[0], shape])


def _batch_norm(exporter: _Exporter, call: Call, args: list[Expr]) -> str:
    if int(call.attrs.axis) % len(args[0].checked_type.shape) != 1:
        raise ValueError(f"to_onnx: nn.batch_norm: expected axis 1, got {call.attrs.axis}")
    data, gamma, beta, *statistics = args
    ones, zeros = (
        value(_ints(gamma.checked_type.shape), np.float32) for value in (np.ones, np.zeros)
    )
    gamma, beta = gamma if call.attrs.scale else ones, beta if call.attrs.center else zeros
    return exporter.node(
        "BatchNormalization", [data, gamma, beta, *statistics], epsilon=float(call.attrs.epsilon)
    )


def _adaptive_pool(exporter: _Exporter, call: Call, args: list[Expr]) -> str:
    if _ints(call.checked_type.shape)[2:] != [1, 1]:
        raise ValueError("to_onnx: nn.adaptive_avg_pool2d: expected a result of 1 × 1")
    return exporter.node("GlobalAveragePool", args)


def _softmax(exporter: _Exporter, call: Call, args: list[Expr]) -> str:
    return exporter.node("Softmax", args, axis=int(call.attrs.axis))


def _concatenate(exporter: _Exporter, call: Call, args: list[Expr]) -> str:
    return exporter.node("Concat", args, axis=int(call.attrs.axis))


def _quantize(kind: str) -> Export:
    def export(exporter: _Exporter, call: Call, args: list[Expr]) -> str:
        scales, zero_points = (array_of(arg) for arg in call.args[1:])
        if scales is None or zero_points is None:
            raise ValueError(f"to_onnx: {op_name(call)}: expected constant scales and zero points")
        numbers = call if kind == "QuantizeLinear" else call.args[0]
        zero_points = zero_points.astype(numbers.checked_type.dtype)
        attrs = {"axis": int(call.attrs.axis)} if scales.size > 1 else {}
        if scales.size == 1:
            scales, zero_points = scales.reshape(()), zero_points.reshape(())
        return exporter.node(kind, [args[0], scales, zero_points], **attrs)

    return export


_EXPORT: dict[str, Export] = {
    "add": _plain("Add"),
    "clip": _clip,
    "concatenate": _concatenate,
    "multiply": _plain("Mul"),
    "nn.adaptive_avg_pool2d": _adaptive_pool,
    "nn.avg_pool2d": _pool("AveragePool"),
    "nn.batch_flatten": _plain("Flatten"),
    "nn.batch_norm": _batch_norm,
    "nn.bias_add": _bias_add,
    "nn.conv2d": _convolution,
    "nn.dense": _dense,
    "nn.global_avg_pool2d": _plain("GlobalAveragePool"),
    "nn.max_pool2d": _pool("MaxPool"),
    "nn.relu": _plain("Relu"),
    "nn.softmax": _softmax,
    "qnn.dequantize": _quantize("DequantizeLinear"),
    "qnn.quantize": _quantize("QuantizeLinear"),
    "reshape": _reshape,
    "sigmoid": _plain("Sigmoid"),
    "squeeze": _reshape,
}
