"""Channelwise affine functions, y = scale · x + shift, around convolutions and dense layers."""

from dataclasses import dataclass

import numpy as np

from ..ir import (
    Call,
    Expr,
    TupleGetItem,
    add,
    array_of,
    constant,
    op_name,
    shape_of,
    with_inputs,
)

CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")


@dataclass(frozen=True)
class Affine:
    """An expression that is scale · data + shift.

    Attributes
    ----------
    data : Expr
    scale, shift : np.ndarray
        float64; broadcast against the data as NumPy does.
    shape : tuple of int or None
        The shape of the data and of the result; None for a size that only a run knows.
    """

    data: Expr
    scale: np.ndarray
    shift: np.ndarray
    shape: tuple[int | None, ...]


def channel_affine(new: Expr, old: Expr) -> Affine | None:
    """Read an expression as an affine function of its data, if all else is constant.

    Parameters
    ----------
    new, old : Expr
        The expression with rewritten inputs, and as it was, with its type.
    """
    shape = shape_of(old)
    if shape is None:
        return None
    one, zero = np.float64(1), np.float64(0)
    name = op_name(new)
    if name in ("subtract", "divide"):
        value = array_of(new.args[1])
        if value is None or value.ndim > len(shape) or shape_of(old.args[0]) != shape:
            return None
        value = value.astype(np.float64)
        if name == "subtract":
            return Affine(new.args[0], one, -value, shape)
        # By one number it is a post-op that costs nothing.
        is_scale = value.size > 1 and (np.abs(value) >= np.finfo(np.float32).tiny).all()
        return Affine(new.args[0], 1 / value, zero, shape) if is_scale else None
    if name in ("add", "multiply"):
        arrays = [array_of(arg) for arg in new.args]
        which = 1 if arrays[1] is not None else 0
        if arrays[which] is None or arrays[which].ndim > len(shape):
            return None
        value = arrays[which].astype(np.float64)
        data = new.args[1 - which]
        if shape_of(old.args[1 - which]) != shape:
            return None
        scale, shift = (one, value) if name == "add" else (value, zero)
        return Affine(data, scale, shift, shape)
    if name == "nn.bias_add":
        bias = array_of(new.args[1])
        if bias is None:
            return None
        return Affine(new.args[0], one, along(bias, new.attrs.axis, len(shape)), shape)
    if isinstance(new, TupleGetItem) and new.index == 0:
        return _batch_norm(new.tuple_value, shape)
    return None


def _batch_norm(call: Expr, shape: tuple[int | None, ...]) -> Affine | None:
    if op_name(call) != "nn.batch_norm":
        return None
    arrays = [array_of(arg) for arg in call.args[1:]]
    if any(a is None for a in arrays):
        return None
    gamma, beta, mean, variance = (a.astype(np.float64) for a in arrays)
    scale = 1 / np.sqrt(variance + call.attrs.epsilon)
    if call.attrs.scale:
        scale = scale * gamma
    shift = -mean * scale
    if call.attrs.center:
        shift = shift + beta
    axis, rank = call.attrs.axis, len(shape)
    return Affine(call.args[0], along(scale, axis, rank), along(shift, axis, rank), shape)


def apply_to_outputs(root: Expr, shift: np.ndarray | None, affine: Affine) -> Expr | None:
    """Return scale · (root + shift₀) + shift as a convolution or dense layer and one add.

    None if root is neither, if its weights are not constant where they would change, or if the
    functions are not channelwise.
    """
    shape = affine.shape
    axis = channel_axis(root, len(shape))
    if axis is None:
        return None
    scale = per_channel(affine.scale, axis, shape)
    total = per_channel(affine.shift, axis, shape)
    if shift is not None:
        before = per_channel(shift.astype(np.float64), axis, shape)
        if before is not None and scale is not None and total is not None:
            total = total + scale * before
        else:
            total = None
    if scale is None or total is None:
        return None
    if np.any(scale != 1):
        weights = _weights_to_scale(root)
        scaled = None if weights is None else _scale_outputs(root, weights, scale)
        if scaled is None:
            return None
        root = _with_weights(root, scaled.astype(weights.dtype))
    if not np.any(total):
        return root
    dtype = array_dtype(root)
    return add(root, constant(along(total, axis, len(shape)).astype(dtype)))


def apply_to_inputs(root: Call, affine: Affine) -> Call | None:
    """Return root(scale · data) as root'(data); None if it cannot be done in the weights."""
    weights = _weights_to_scale(root)
    data_axis = channel_axis(root, len(affine.shape))
    if weights is None or data_axis is None or not outputs_first(root):
        return None
    scale = per_channel(affine.scale, data_axis, affine.shape)
    if scale is None:
        return None
    mine = taps(root, weights, len(scale))  # the same memory
    groups, _, inputs, _ = mine.shape
    scaled = mine * scale.reshape(groups, 1, inputs, 1)
    scaled = scaled.reshape(weights.shape).astype(weights.dtype)
    return _with_weights(root, scaled, data=affine.data)


def _weights_to_scale(root: Call) -> np.ndarray | None:
    """Return constant weights that a scale may go into: others than float32 would be rounded."""
    weights = array_of(root.args[1])
    return weights if weights is not None and weights.dtype == np.float32 else None


def mean_results(root: Call, weights: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return the means of a layer's results, by output channel, from those of its data's channels.

    At the borders of an image, a convolution's results have other means, unless the weights say for
    each tap how often it lies inside.

    Parameters
    ----------
    root : Call
        A layer of which `output_axis` knows the axis.
    weights : np.ndarray
        In its shape.
    """
    mine = taps(root, weights, len(means))
    groups, _, inputs, _ = mine.shape
    return (mine * means.reshape(groups, 1, inputs, 1)).sum((2, 3)).ravel()


def taps(root: Call, weights: np.ndarray, channels: int) -> np.ndarray:
    """Return a layer's weights as (groups, outputs of a group, inputs of a group, kernel).

    Parameters
    ----------
    channels : int
        Of the data: a depthwise convolution's outputs may be spread over two axes of the weights.
    """
    if not outputs_first(root):
        layout = root.attrs.kernel_layout
        weights = np.moveaxis(weights, [layout.index("O"), layout.index("I")], [0, 1])
    groups = root.attrs.groups if op_name(root) in CONVOLUTIONS else 1
    kernel = int(np.prod(weights.shape[2:]))
    return weights.reshape(groups, -1, channels // groups, kernel)


def array_dtype(root: Call) -> np.dtype:
    """Return the dtype of a layer's result: that of its weights unless it says otherwise."""
    weights = array_of(root.args[1])
    declared = root.attrs.out_dtype
    if declared or weights is None:
        return np.dtype(declared or "float32")
    return weights.dtype


def _with_weights(root: Call, weights: np.ndarray, data: Expr | None = None) -> Call:
    args = [root.args[0] if data is None else data, constant(weights)]
    return with_inputs(root, args)


def channel_axis(expr: Expr, rank: int) -> int | None:
    """Return the axis of the channels in a layer's data and result; None if it is no layer."""
    name = op_name(expr)
    if name == "nn.dense":
        return rank - 1
    if name not in CONVOLUTIONS:
        return None
    layout = expr.attrs.data_layout
    if expr.attrs.out_layout not in ("", layout) or not layout.isalpha() or "C" not in layout:
        return None
    return layout.index("C")


def outputs_first(root: Call) -> bool:
    """Whether the weights are one row for each output channel."""
    return op_name(root) == "nn.dense" or root.attrs.kernel_layout.startswith("OI")


def output_axis(root: Call) -> int | None:
    """Return the axis of a layer's weights along which each index gives another output channel.

    None if there is no such axis: of a depthwise convolution with a multiplier, the outputs may be
    spread over two.
    """
    if outputs_first(root):
        return 0
    axis = root.attrs.kernel_layout.find("O")
    weights, channels = array_of(root.args[1]), root.attrs.channels
    if axis < 0 or weights is None or channels is None or weights.shape[axis] != int(channels):
        return None
    return axis


def _scale_outputs(root: Call, weights: np.ndarray, scale: np.ndarray) -> np.ndarray | None:
    if outputs_first(root):
        return (weights.reshape(len(scale), -1) * scale[:, None]).reshape(weights.shape)
    axis = output_axis(root)
    if axis is None or weights.shape[axis] != len(scale):
        return None
    return weights * along(scale, axis, weights.ndim)


def along(vector: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """Return a vector as (C, 1, …), which broadcasts along an axis of a tensor of some rank."""
    return vector.reshape((-1,) + (1,) * (rank - 1 - axis % rank))


def per_channel(value: np.ndarray, axis: int, shape: tuple[int | None, ...]) -> np.ndarray | None:
    """Return a value that broadcasts to `shape` as one number per channel, None if it is more."""
    if shape[axis] is None:
        return None
    value = value.reshape((1,) * (len(shape) - value.ndim) + value.shape)
    if any(size != 1 for i, size in enumerate(value.shape) if i != axis):
        return None
    return np.broadcast_to(value.reshape(-1), shape[axis])
