"""Moves ``nn.pad`` into the padding of the convolution or pooling that follows."""

from collections.abc import Sequence

import numpy as np

from ..ir import Call, op_name, padding_of, with_attrs

WINDOWS = [f"nn.{kind}{dims}d" for kind in ("conv", "max_pool", "avg_pool") for dims in (1, 2, 3)]

_LOWEST = float(np.finfo(np.float32).min)


def fold_padding(call: Call, shape: Sequence[int | None]) -> Call | None:
    """Return a convolution or pooling of padded data as one of the data itself.

    The shape is that of the padded data; its sizes may be unknown. None if the data is not padded,
    or not with what the operator itself pads with: 0 for convolutions and averages, the lowest
    number for maxima.
    """
    name, pad = op_name(call), call.args[0]
    if op_name(pad) != "nn.pad":
        return None
    widths, value = padding_of(pad)
    attrs, changed = call.attrs, {}
    layout = str(attrs.data_layout if "conv" in name else attrs.layout)
    spatial = [layout.find(letter) for letter in "DHW" if letter in layout]
    if widths is None or not layout.isalpha() or len(layout) != len(shape):
        return None
    if any(width != (0, 0) for axis, width in enumerate(widths) if axis not in spatial):
        return None
    own = _both_sides(attrs.padding, len(spatial))
    added = [widths[axis] for axis in spatial]
    if "pool" in name:
        # A window of padding alone is beyond oneDNN, and has a maximum of its own.
        kernel = [int(size) for size in attrs.pool_size]
        within = all(max(width) < size for width, size in zip(added, kernel, strict=True))
        if attrs.ceil_mode or not within:
            return None
    if "max_pool" in name:
        if not value <= _LOWEST:  # so that NaN is refused
            return None
    elif value != 0:
        return None
    elif "avg_pool" in name:
        # Zeros that were data count as such; the pooling's own padding may not.
        if any(map(any, own)) and not attrs.count_include_pad:
            return None
        changed["count_include_pad"] = True
    total = [(a + c, b + d) for (a, b), (c, d) in zip(own, added, strict=True)]
    changed["padding"] = [begin for begin, _ in total] + [end for _, end in total]
    folded = with_attrs(call, [pad.args[0], *call.args[1:]], **changed)
    return fold_padding(folded, shape) or folded  # it is the rank that matters


def _both_sides(padding: Sequence[int], dims: int) -> list[tuple[int, int]]:
    """Return a window's padding, of which there may be one size, one per dimension, or all."""
    sizes = [int(size) for size in padding]
    if len(sizes) == 1:
        sizes *= dims
    if len(sizes) == dims:
        sizes *= 2
    return list(zip(sizes[:dims], sizes[dims:], strict=True))
