"""Slices: their bounds, and what else takes a part of a tensor as slices."""

from collections.abc import Sequence

import numpy as np
from tvm import relay
from tvm.relay.expr import Call, Expr, TupleGetItem

from ..ir import array_of, shape_of
from .columns import columns_of_dense


def slice_bounds(attrs, shape: Sequence[int]) -> list[tuple[int, int]] | None:
    """Return [begin, end) for each axis from the attributes of a ``strided_slice``.

    None if it has strides.
    """
    if any(int(stride) != 1 for stride in attrs.strides or ()):
        return None
    bounds = [(0, size) for size in shape]
    axes = range(len(attrs.begin)) if attrs.axes is None else map(int, attrs.axes)
    for axis, begin, end in zip(axes, map(int, attrs.begin), map(int, attrs.end), strict=False):
        size = shape[axis]
        if attrs.slice_mode == "size":
            end = size if end < 0 else begin + end
        first, last, _ = slice(begin, end).indices(size)
        bounds[axis] = first, max(first, last)
    return bounds


def part_as_slice(item: TupleGetItem, data: Expr) -> Expr | None:
    """Return one part of a ``split`` as a ``strided_slice``.

    Parameters
    ----------
    item : TupleGetItem
        A field of a call of ``split``.
    data : Expr
        What is split, with its type; None is returned if that is not float32, or if only a run
        knows how much there is to split.
    """
    shape = shape_of(data)
    if shape is None:
        return None
    split = item.tuple_value
    attrs = split.attrs
    axis = int(attrs.axis) % len(shape)
    if shape[axis] is None:
        return None
    parts = attrs.indices_or_sections
    if isinstance(parts, int):
        borders = np.linspace(0, shape[axis], parts + 1).astype(int)
    else:
        borders = [0, *(int(border) for border in parts), shape[axis]]
    first, last = int(borders[item.index]), int(borders[item.index + 1])
    begin, end = [0] * len(shape), list(shape)
    begin[axis], end[axis] = first, last
    part = None if None in shape else columns_of_dense(split.args[0], shape, begin, end)
    return part or relay.strided_slice(split.args[0], [first], [last], axes=[axis])


def index_as_slice(call: Call, shape: Sequence[int]) -> Expr | None:
    """Return a ``take`` of one index as a ``strided_slice`` without the axis.

    Parameters
    ----------
    call : Call
    shape : sequence of int
        The shape of its data.

    Returns
    -------
    Expr or None
        None if the index is not constant, or is not within the axis.
    """
    index, attrs = array_of(call.args[1]), call.attrs
    single = index is not None and not index.ndim and len(shape) > 1
    if not single or attrs.axis is None or int(attrs.batch_dims):
        return None
    axis, index = int(attrs.axis) % len(shape), int(index)
    if not 0 <= index < shape[axis]:
        return None
    begin, end = [0] * len(shape), list(shape)
    begin[axis], end[axis] = index, index + 1
    part = columns_of_dense(call.args[0], shape, begin, end)
    part = part or relay.strided_slice(call.args[0], begin, end)
    return relay.reshape(part, [size for i, size in enumerate(shape) if i != axis])


def slice_of_dense(call: Call, shape: Sequence[int]) -> Expr | None:
    """Return a ``strided_slice`` of a dense layer's columns as a layer; None if it is no such."""
    bounds = slice_bounds(call.attrs, shape)
    return bounds and columns_of_dense(call.args[0], shape, *zip(*bounds, strict=True))
