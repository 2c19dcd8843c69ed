"""Moves a slice before the ``nn.pad`` whose result it cuts."""

from collections.abc import Sequence

from tvm import relay
from tvm.relay.expr import Call

from ..ir import op_name, padding_of
from .slices import slice_bounds


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
    widths, _ = padding_of(pad)
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
