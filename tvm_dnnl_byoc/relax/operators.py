"""Relax's operators under Relay's names, with Relay's attributes.

Each function takes the call as Relax has it, with its arguments read, and returns the expression
for it. It raises ``NoCounterpart`` for a call that has no such form, which then stays in TVM.
"""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..ir import Call, Expr, Function, Op, Tuple, TupleGetItem, array_of, constant, op_name
from ..ir.relax_expr import Size, Symbol, TensorType, TupleType, Type, Var
from ..passes.activations import Activation
from .compat import SymbolicNumber, number
from .fold_constants import MAX_SIZE

Read = Callable[[Any, list[Expr], Type], Expr]
_LARGEST = np.iinfo(np.int32).max


class NoCounterpart(Exception):
    """A call that Relay's operator of that name does not stand for."""


def read_call(call: Any, args: list[Expr], type_: Type) -> Expr:
    """Return a call of an operator as an expression.

    Parameters
    ----------
    call : relax.Call
    args : list of Expr
        Its arguments that are tensors or tuples.
    type_ : Type
        That of its result.
    """
    name = call.op.name.removeprefix("relax.")
    try:
        expr = _READ.get(name, _plain)(call, args, type_)
    except (NoCounterpart, SymbolicNumber):
        expr = Call(Op(f"relax.{name}"), args, checked_type=type_)
    if isinstance(expr, Call) and expr not in args:
        same = all(own is given for own, given in zip(expr.args, args, strict=False))
        expr.origin = call if same and len(expr.args) <= len(args) else None
    return expr


def _plain(call: Any, args: list[Expr], type_: Type) -> Expr:
    """Read one whose name is the same, and which has no attributes that matter."""
    return Call(Op(call.op.name.removeprefix("relax.")), args, checked_type=type_)


def _value(value: Any) -> Any:
    """Return an attribute as Python's numbers, texts and lists."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "value"):
        return number(value)
    if hasattr(value, "__iter__"):
        return [_value(item) for item in value]
    return str(value)


def _named(name: str, *attributes: str, **fixed: Any) -> Read:
    """Return what reads a call under another name, with some of its attributes."""

    def read(call: Any, args: list[Expr], type_: Type) -> Expr:
        attrs = {key: _value(getattr(call.attrs, key)) for key in attributes}
        return Call(Op(name), args, SimpleNamespace(**attrs, **fixed), type_)

    return read


def _activation(alg: str, alpha: float = 0.0, beta: float = 0.0) -> Read:
    return lambda call, args, type_: _activate(Activation(alg, alpha, beta), args[0], type_)


def _activate(activation: Activation, x: Expr, type_: Type) -> Expr:
    function = Function([], Var(type_), attrs=vars(activation))
    return Call(function, [x], checked_type=type_)


def _softplus(call: Any, args: list[Expr], type_: Type) -> Expr:
    # Beyond the threshold Relax returns x, which differs from the formula by e^-threshold.
    if float(call.attrs.threshold) < 15:
        raise NoCounterpart
    return _activate(Activation("soft_relu", float(call.attrs.beta)), args[0], type_)


def _batch_norm(call: Any, args: list[Expr], type_: Type) -> Expr:
    if getattr(call.attrs, "training", False):
        raise NoCounterpart
    data, gamma, beta, mean, variance = args
    statistics = array_of(mean)
    if statistics is not None:  # what is switched off
        gamma = gamma if call.attrs.scale else constant(np.ones_like(statistics))
        beta = beta if call.attrs.center else constant(np.zeros_like(statistics))
    elif not (call.attrs.scale and call.attrs.center):
        raise NoCounterpart
    read = _named("nn.batch_norm", "axis", "epsilon", center=True, scale=True)
    return read(call, [data, gamma, beta, mean, variance], type_)


def _layer_norm(call: Any, args: list[Expr], type_: Type) -> Expr:
    (axis,) = _one(call.attrs.axes)
    return _named("nn.layer_norm", "epsilon", "center", "scale", axis=axis)(call, args, type_)


def _spatial_norm(name: str, *attributes: str) -> Read:
    """Return what reads a normalisation of each instance along all but the channels."""

    def read(call: Any, args: list[Expr], type_: Type) -> Expr:
        rank = len(_shape(type_))
        axes = sorted(axis % rank for axis in _value(call.attrs.axes))
        axis = int(call.attrs.channel_axis) % rank
        if axes != [i for i in range(1, rank) if i != axis]:
            raise NoCounterpart
        named = _named(name, "epsilon", "center", "scale", *attributes, axis=axis)
        return named(call, args, type_)

    return read


def _one(axes: Any) -> list[int]:
    axes = _value(axes)
    if len(axes) != 1:
        raise NoCounterpart
    return axes


def _transposed_convolution(call: Any, args: list[Expr], type_: Type) -> Expr:
    if not str(call.attrs.kernel_layout).startswith("IO"):
        raise NoCounterpart
    name = call.op.name.removeprefix("relax.")
    attributes = ("strides", "padding", "output_padding", "dilation", "groups", "data_layout")
    return _named(name, *attributes, "out_layout")(call, args, type_)


def _reshape(call: Any, args: list[Expr], type_: Type) -> Expr:
    return _reshaped(args[0], type_)


def _shape(type_: Type) -> tuple[Size, ...]:
    if not isinstance(type_, TensorType) or type_.shape is None:
        raise NoCounterpart
    return type_.shape


def _axes_of(before: tuple[Size, ...], after: tuple[Size, ...]) -> list[int]:
    """Return for each size of a reshape's result the axis of its data that has it; else -1.

    Asked for by sizes that only a run knows; of others it does not matter.
    """

    def axis(size: Size) -> int:
        return before.index(size) if isinstance(size, Symbol) and size in before else -1

    return list(map(axis, after))


def _clip(call: Any, args: list[Expr], type_: Type) -> Expr:
    low, high = (float(number(bound)) for bound in call.args[1:])
    if math.isnan(low) or math.isnan(high):
        raise NoCounterpart
    return Call(Op("clip"), args[:1], SimpleNamespace(a_min=low, a_max=high), type_)


def _strided_slice(call: Any, args: list[Expr], type_: Type) -> Expr:
    """Read a slice along the axes that it cuts: one that takes all may say so by symbols."""
    before, after = _shape(args[0].checked_type), _shape(type_)
    attrs = SimpleNamespace(axes=[], begin=[], end=[], strides=[])
    for axis, begin, end, *stride in zip(*(arg.fields for arg in call.args[1:]), strict=True):
        axis, stride = int(number(axis)), int(number(stride[0])) if stride else 1
        if stride == 1 and before[axis] == after[axis]:
            continue
        attrs.axes.append(axis)
        attrs.begin.append(int(number(begin)))
        attrs.end.append(int(number(end)))
        attrs.strides.append(stride)
    if not attrs.axes:
        return args[0]
    if attrs.strides == [2]:
        return _every_second(args[0], attrs.axes[0] % len(before), attrs.begin[0], type_)
    return Call(Op("strided_slice"), args[:1], attrs, type_)


def _every_second(data: Expr, axis: int, begin: int, type_: Type) -> Expr:
    """Return every second along an axis as all of the first or second of pairs."""
    before, after = _shape(data.checked_type), _shape(type_)
    size = before[axis]
    if isinstance(size, Symbol) or size % 2 or begin not in (0, 1) or 2 * after[axis] != size:
        raise NoCounterpart
    pairs = (*before[:axis], size // 2, 2, *before[axis + 1 :])
    split = _reshaped(data, TensorType(pairs, type_.dtype))
    part = TensorType((*pairs[: axis + 1], 1, *pairs[axis + 2 :]), type_.dtype)
    attrs = SimpleNamespace(axes=[axis + 1], begin=[begin], end=[begin + 1], strides=[1])
    return _reshaped(Call(Op("strided_slice"), [split], attrs, part), type_)


def _reshaped(data: Expr, type_: Type) -> Expr:
    attrs = SimpleNamespace(axes=_axes_of(_shape(data.checked_type), _shape(type_)))
    return Call(Op("reshape"), [data], attrs, type_)


def _take(call: Any, args: list[Expr], type_: Type) -> Expr:
    """Read one whose indices are clipped, or within the data, as the mode "fast" has it.

    The engine's are in 32 bits. Those in 64 are clipped first, so that none is another one then.
    """
    data, indices = args
    if call.attrs.mode not in ("fast", "clip"):
        raise NoCounterpart
    axis = 0 if call.attrs.axis is None else int(call.attrs.axis) % len(_shape(data.checked_type))
    size = _shape(data.checked_type)[axis]
    index = array_of(indices)
    if index is not None and not index.ndim:
        return _take_one(data, int(index), axis, type_)
    if not _shape(indices.checked_type):
        raise NoCounterpart
    if index is not None and index.size and index.min() >= 0 and index.max() <= _LARGEST:
        indices = constant(index.astype(np.int32))
    elif indices.checked_type.dtype != "int32":
        known = not isinstance(size, Symbol) and 0 < size <= _LARGEST
        if not known or indices.checked_type.dtype != "int64":
            raise NoCounterpart
        bounds = SimpleNamespace(a_min=0, a_max=size - 1)
        clipped = Call(Op("clip"), [indices], bounds, indices.checked_type)
        narrow = TensorType(indices.checked_type.shape, "int32")
        indices = Call(Op("cast"), [clipped], checked_type=narrow)
    return Call(Op("take"), [data, indices], _taken_along(axis), type_)


def _take_one(data: Expr, index: int, axis: int, type_: Type) -> Expr:
    """Return what is at an index along an axis, without the axis."""
    before, dtype = _shape(data.checked_type), data.checked_type.dtype
    size = before[axis]
    if not 0 <= index <= _LARGEST or (not isinstance(size, Symbol) and index >= size):
        raise NoCounterpart
    part = TensorType((*before[:axis], 1, *before[axis + 1 :]), dtype)
    if isinstance(size, Symbol):  # of which it is not known whether it is large enough
        indices = constant(np.array([index], np.int32))
        taken = Call(Op("take"), [data, indices], _taken_along(axis), part)
    else:
        attrs = SimpleNamespace(axes=[axis], begin=[index], end=[index + 1], strides=[1])
        taken = Call(Op("strided_slice"), [data], attrs, part)
    return _reshaped(taken, type_)


def _taken_along(axis: int) -> SimpleNamespace:
    return SimpleNamespace(axis=axis, mode="clip", batch_dims=0)


def _concat(call: Any, args: list[Expr], type_: Type) -> Expr:
    if not isinstance(args[0], Tuple):
        raise NoCounterpart
    return _named("concatenate", "axis")(call, args, type_)


def _split(call: Any, args: list[Expr], type_: Type) -> Expr:
    """Return a tuple of slices."""
    axis = int(call.attrs.axis)
    parts, begin = [], 0
    for field in type_.fields:
        attrs = SimpleNamespace(axes=[axis], begin=[begin], strides=[1])
        parts.append(Call(Op("strided_slice"), args, attrs, field))
        size = _shape(field)[axis]
        if isinstance(size, Symbol):
            raise NoCounterpart
        begin += size
    return Tuple(type_, parts)


def _quantization(name: str) -> Read:
    def read(call: Any, args: list[Expr], type_: Type) -> Expr:
        data, scales, zero_points = args
        zeros = array_of(zero_points)
        if array_of(scales) is None or zeros is None:
            raise NoCounterpart
        attrs = SimpleNamespace(axis=int(call.attrs.axis), out_dtype=type_.dtype)
        return Call(Op(name), [data, scales, constant(zeros.astype(np.int32))], attrs, type_)

    return read


def _resize2d(call: Any, args: list[Expr], type_: Type) -> Expr:
    attributes = ("layout", "method", "coordinate_transformation_mode", "rounding_method")
    return _named("image.resize2d", *attributes)(call, args[:1], type_)


def _convolution(call: Any, args: list[Expr], type_: Type) -> Expr:
    layout = str(call.attrs.out_layout) or str(call.attrs.data_layout)
    channels = _shape(type_)[layout.index("C")] if layout.isalpha() else None
    attributes = ("strides", "padding", "dilation", "groups", "data_layout", "kernel_layout")
    fixed = {"channels": channels if isinstance(channels, int) else None, "out_dtype": ""}
    name = call.op.name.removeprefix("relax.")
    return _named(name, *attributes, "out_layout", **fixed)(call, args, type_)


def _or_same(name: str) -> Read:
    """Return what gives the data itself where the type is kept, as by casting to the same dtype."""

    def read(call: Any, args: list[Expr], type_: Type) -> Expr:
        known = isinstance(type_, TensorType) and type_.shape is not None
        if known and args[0].checked_type == type_:
            return args[0]
        return Call(Op(name), args, checked_type=type_)

    return read


# Up to so many copies of a tensor are parts of a concat.
_MOST_COPIES = 8


def _broadcast_to(call: Any, args: list[Expr], type_: Type) -> Expr:
    """Read repetition along one axis as a concat of copies, as of keys for groups of queries."""
    same = _or_same("broadcast_to")(call, args, type_)
    before, after = _shape(args[0].checked_type), _shape(type_)
    if same is args[0] or len(before) != len(after):
        return same
    axes = [i for i, sizes in enumerate(zip(before, after, strict=True)) if sizes[0] != sizes[1]]
    if len(axes) != 1 or _dtype(type_) != "float32" or array_of(args[0]) is not None:
        return same
    if before[axes[0]] != 1:  # a size that only a run knows: it may be that of the result
        return same
    copies = after[axes[0]]
    if isinstance(copies, Symbol) or not 1 < copies <= _MOST_COPIES:
        return same
    parts = Tuple(TupleType((args[0].checked_type,) * copies), [args[0]] * copies)
    return Call(Op("concatenate"), [parts], SimpleNamespace(axis=axes[0]), type_)


def _and(call: Any, args: list[Expr], type_: Type) -> Expr:
    """Read one of bools."""
    if any(_dtype(arg.checked_type) != "bool" for arg in args):
        raise NoCounterpart
    return Call(Op("logical_and"), args, checked_type=type_)


def _dtype(type_: Type) -> str | None:
    return type_.dtype if isinstance(type_, TensorType) else None


def _pad(call: Any, args: list[Expr], type_: Type) -> Expr:
    if not any(_value(call.attrs.pad_width)):
        return args[0]
    return _named("nn.pad", "pad_width", "pad_mode", "pad_value")(call, args, type_)


def _arange(call: Any, args: list[Expr], type_: Type) -> Expr:
    start, stop, step = call.args
    start, step = number(start), number(step)
    if _dtype(type_) not in ("int32", "int64"):
        raise NoCounterpart  # its rounding is TVM's
    if type_.is_static and type_.shape[0] <= MAX_SIZE:
        return constant(np.arange(start, number(stop), step, dtype=type_.dtype))
    return Call(Op("arange"), [], SimpleNamespace(start=start, step=step), type_)


_ALONG = ("axis", "keepdims")
_POOL = ("pool_size", "strides", "dilation", "padding", "ceil_mode", "count_include_pad")

_READ: dict[str, Read] = {
    **{f"nn.conv{dims}d": _convolution for dims in (1, 2, 3)},
    **{f"nn.conv{dims}d_transpose": _transposed_convolution for dims in (1, 2, 3)},
    **{
        name: _named(name, *_POOL, "layout", "out_layout")
        for name in (f"nn.{kind}_pool{dims}d" for kind in ("max", "avg") for dims in (1, 2, 3))
    },
    **{
        name: _named(name, "layout", "out_layout")
        for name in (f"nn.adaptive_avg_pool{dims}d" for dims in (1, 2, 3))
    },
    "nn.pad": _pad,
    "nn.batch_norm": _batch_norm,
    "nn.layer_norm": _layer_norm,
    "nn.instance_norm": _spatial_norm("nn.instance_norm"),
    "nn.group_norm": _spatial_norm("nn.group_norm", "num_groups"),
    "nn.softmax": _named("nn.softmax", "axis"),
    "nn.log_softmax": _named("nn.log_softmax", "axis"),
    **{name: _named(name, *_ALONG, exclude=False) for name in ("mean", "sum", "max", "min")},
    "variance": _named("variance", *_ALONG, exclude=False, unbiased=False),
    "nn.leakyrelu": _named("nn.leaky_relu", "alpha"),
    "nn.prelu": _named("nn.prelu", "axis"),
    "nn.gelu": _activation("gelu_erf"),
    "nn.gelu_tanh": _activation("gelu_tanh"),
    "nn.silu": _activation("swish", 1.0),
    "nn.softplus": _softplus,
    "square": _activation("square"),
    "clip": _clip,
    **dict.fromkeys(("reshape", "squeeze", "expand_dims", "flatten"), _reshape),
    "permute_dims": _named("transpose", "axes"),
    "strided_slice": _strided_slice,
    "concat": _concat,
    "split": _split,
    "quantize": _quantization("qnn.quantize"),
    "dequantize": _quantization("qnn.dequantize"),
    "image.resize2d": _resize2d,
    "astype": _or_same("cast"),
    "broadcast_to": _broadcast_to,
    "cumsum": _named("cumsum", "axis", "exclusive"),
    "gather_elements": _named("gather_elements", "axis"),
    **dict.fromkeys(("bitwise_and", "logical_and"), _and),
    "take": _take,
    "arange": _arange,
}


def is_all_read(call: Any, read: Call) -> bool:
    """Whether what was read of a call says all about its value."""
    if getattr(call.op, "name", "").removeprefix("relax.") in _READ:
        return not op_name(read).startswith("relax.")
    return call.attrs is None and len(call.args) == len(read.args)


def read_field(value: Expr, index: int, type_: Type) -> Expr:
    """Return a field of a tuple."""
    if isinstance(value, Tuple):
        return value.fields[index]
    return TupleGetItem(type_, value, index)
