"""Moves ``nn.pad`` into the padding of the convolution or pooling that follows."""

from collections.abc import Sequence

import numpy as np
import tvm
from tvm import relay
from tvm.relay.expr import Call

from ..ir import array_of, op_name
from .slices import slice_bounds

_ATTRS = {
    f"nn.{kind}{dims}d": f"relay.attrs.{name}{dims}DAttrs"
    for dims in (1, 2, 3)
    for kind, name in (("conv", "Conv"), ("max_pool", "MaxPool"), ("avg_pool", "AvgPool"))
}
_LOWEST = float(np.finfo(np.float32).min)

Widths = list[tuple[int, int]]


def fold_padding(call: Call, shape: Sequence[int | None]) -> Call | None:
    """Return a convolution or pooling of padded data as one of the data itself.

    The shape is that of the padded data; its sizes may be unknown. None if the data is not padded,
    or not with what the operator itself pads with: 0 for convolutions and averages, the lowest
    number for maxima.
    """
    name, pad = op_name(call), call.args[0]
    if op_name(pad) != "nn.pad":
        return None
    widths, value = _constant_padding(pad)
    keys = call.attrs.keys()
    attrs = {str(key): call.attrs[key] for key in keys}
    layout = str(attrs["data_layout" if "conv" in name else "layout"])
    spatial = [layout.find(letter) for letter in "DHW" if letter in layout]
    if widths is None or not layout.isalpha() or len(layout) != len(shape):
        return None
    if any(width != (0, 0) for axis, width in enumerate(widths) if axis not in spatial):
        return None
    own = _both_sides(attrs["padding"], len(spatial))
    added = [widths[axis] for axis in spatial]
    if "pool" in name:
        # A window of padding alone is beyond oneDNN, and has a maximum of its own.
        kernel = [int(size) for size in attrs["pool_size"]]
        within = all(max(width) < size for width, size in zip(added, kernel, strict=True))
        if attrs["ceil_mode"] or not within:
            return None
    if "max_pool" in name:
        if value > _LOWEST:
            return None
    elif value != 0:
        return None
    elif "avg_pool" in name:
        # Zeros that were data count as such; the pooling's own padding may not.
        if any(map(any, own)) and not attrs["count_include_pad"]:
            return None
        attrs["count_include_pad"] = True
    total = [(a + c, b + d) for (a, b), (c, d) in zip(own, added, strict=True)]
    attrs["padding"] = [begin for begin, _ in total] + [end for _, end in total]
    new = tvm.ir.attrs.make_node(_ATTRS[name], **attrs)
    folded = Call(call.op, [pad.args[0], *call.args[1:]], new, call.type_args, call.span)
    return fold_padding(folded, shape) or folded  # it is the rank that matters


def slice_before_padding(call: Call, shape: Sequence[int]) -> Call | None:
    """Return a slice of padded data as padding of a slice, which may then be folded.

    Parameters
    ----------
    call : Call
        A ``strided_slice``.
    shape : sequence of int
        The shape of its data.

    Returns
    -------
    Call or None
        None if the slice has strides, or takes nothing but padding of some dimension.
    """
    pad = call.args[0]
    if op_name(pad) != "nn.pad":
        return None
    widths, _ = _constant_padding(pad)
    bounds = slice_bounds(call.attrs, shape)
    if widths is None or bounds is None:
        return None
    begin, end, kept = [], [], []
    for (low, high), (before, after), size in zip(bounds, widths, shape, strict=True):
        inner = size - before - after
        first, last = max(low - before, 0), min(high - before, inner)
        if first >= last:
            return None
        begin.append(first)
        end.append(last)
        kept.append((max(before - low, 0), max(high - before - inner, 0)))
    data, value = pad.args
    return relay.nn.pad(relay.strided_slice(data, begin, end), kept, value)


def _constant_padding(pad: Call) -> tuple[Widths | None, float]:
    """Return an ``nn.pad``'s widths by axis, and its value; None and nan if it is not constant."""
    value = array_of(pad.args[1])
    if pad.attrs.pad_mode != "constant" or value is None:
        return None, np.nan
    return [(int(a), int(b)) for a, b in pad.attrs.pad_width], float(value.reshape(()))


def _both_sides(padding: Sequence[int], dims: int) -> Widths:
    """Return a window's padding, of which Relay gives one size, one per dimension, or all."""
    sizes = [int(size) for size in padding]
    if len(sizes) == 1:
        sizes *= dims
    if len(sizes) == dims:
        sizes *= 2
    return list(zip(sizes[:dims], sizes[dims:], strict=True))
