"""Slices: their bounds, and the parts of a ``split`` as slices."""

from collections.abc import Sequence

import numpy as np
from tvm import relay
from tvm.relay.expr import Call, Expr, TupleGetItem

from ..ir import static_shape


def slice_bounds(call: Call, shape: Sequence[int]) -> list[tuple[int, int]] | None:
    """Return [begin, end) of a ``strided_slice`` for each axis; None if it has strides."""
    attrs = call.attrs
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
        What is split, with its type; None is returned if that is not float32 of static shape.
    """
    shape = static_shape(data)
    if shape is None:
        return None
    split = item.tuple_value
    attrs = split.attrs
    axis = int(attrs.axis) % len(shape)
    parts = attrs.indices_or_sections
    if isinstance(parts, int):
        borders = np.linspace(0, shape[axis], parts + 1).astype(int)
    else:
        borders = [0, *(int(border) for border in parts), shape[axis]]
    begin, end = [0] * len(shape), list(shape)
    begin[axis], end[axis] = int(borders[item.index]), int(borders[item.index + 1])
    return relay.strided_slice(split.args[0], begin, end)
