"""Averages and 1 × 1 convolutions, in the order that is less work.

An average over windows works on each channel alone, a 1 × 1 convolution on each pixel alone, and
both are linear: they commute. A DenseNet's transitions average what they have convolved: with the
average first, the convolution has a quarter of the pixels. An Inception's branches convolve an
average of as many pixels: with the convolution first, the average has fewer channels.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from ..ir import (
    Call,
    Expr,
    Function,
    add,
    array_of,
    op_name,
    refusal,
    static_shape,
    with_shape,
)
from .affine import CONVOLUTIONS, per_channel
from .dataflow import count_uses, rewrite, with_body

_WINDOWS = {f"nn.avg_pool{dims}d" for dims in (1, 2, 3)}
AVERAGES = _WINDOWS | {"nn.global_avg_pool2d", *(f"nn.adaptive_avg_pool{d}d" for d in (1, 2, 3))}


def averaged_first(new: Expr, old: Expr, uses: Mapping[Expr, int]) -> Expr | None:
    """Return the average of a convolution as the convolution of the average of fewer pixels.

    ::

        conv (C → O, of H × W)       average
        add (O)                  →   conv (C → O, of h × w)
        average (to h × w)           add (O)

    Parameters
    ----------
    new, old : Expr
        An expression with rewritten inputs, and as it was, with its type.
    uses : mapping of Expr to int
        How often each rewritten expression is read.

    Returns
    -------
    Expr or None
        None if it is no such average, if something else reads what is averaged, or if oneDNN does
        not run the average.
    """
    if op_name(new) not in AVERAGES or uses[new.args[0]] != 1:
        return None
    conv, bias = new.args[0], None
    if op_name(conv) == "add" and uses[conv.args[0]] == 1:
        conv, bias = conv.args
    before, after = static_shape(old.args[0]), static_shape(old)
    channels, layout = _channels(conv), _layout(new)
    if None in (before, after, channels) or layout != conv.attrs.data_layout:
        return None
    axis = layout.index("C")
    if bias is not None and (
        (array := array_of(bias)) is None
        or array.ndim > len(before)
        or per_channel(array, axis, before) is None
        or _counts_padding(new)
    ):
        return None
    if not _is_less_work(new, prod(before) // before[axis], prod(after) // after[axis], *channels):
        return None
    if refusal([old]):
        return None
    pooled = (*after[:axis], channels[0], *after[axis + 1 :])
    average = with_shape(new, [conv.args[0]], pooled)
    result = with_shape(conv, [average, conv.args[1]], after)
    return result if bias is None else add(result, bias)


def convolve_first(function: Function) -> Function:
    """Replace averages that a 1 × 1 convolution to fewer channels reads by those of its result.

    Not where the average has fewer pixels than what it is taken of, nor where oneDNN does not run
    it: what follows the convolution is to be a post-op of the average.

    Parameters
    ----------
    function : Function
        Type-inferred and canonical.
    """
    uses = count_uses(function.body)
    if not any(op_name(expr) in _WINDOWS for expr in uses):
        return function

    def rule(new: Expr, old: Expr) -> Expr | None:
        if op_name(new) not in CONVOLUTIONS or op_name(new.args[0]) not in _WINDOWS:
            return None
        average, as_it_was = new.args[0], old.args[0]
        channels = _channels(new)
        if channels is None or channels[1] >= channels[0] or uses[as_it_was] != 1:
            return None
        shape = static_shape(as_it_was)
        if shape is None or static_shape(as_it_was.args[0]) != shape:
            return None
        if _layout(average) != new.attrs.data_layout or refusal([as_it_was]):
            return None
        conv = with_shape(new, [average.args[0], new.args[1]], static_shape(old))
        return with_shape(average, [conv], static_shape(old), stands_for=old)

    return with_body(function, rewrite(function.body, rule))


def _channels(conv: Expr) -> tuple[int, int] | None:
    """Return how many channels a 1 × 1 convolution reads and writes; None if it is none."""
    if op_name(conv) not in CONVOLUTIONS:
        return None
    attrs = conv.attrs
    layouts = (str(attrs.data_layout), str(attrs.kernel_layout))
    steps = [*map(int, attrs.strides)] + [int(size) + 1 for size in attrs.padding]
    if not all(map(str.isalpha, layouts)) or attrs.out_layout not in ("", layouts[0]):
        return None
    if attrs.groups != 1 or set(steps) != {1} or (weights := array_of(conv.args[1])) is None:
        return None
    if weights.dtype != np.float32 or attrs.out_dtype not in ("", "float32"):
        return None  # an average of whole numbers is rounded
    sizes = dict(zip(layouts[1], weights.shape, strict=True))
    channels = (sizes.pop("I"), sizes.pop("O"))
    return channels if set(sizes.values()) == {1} else None


def _layout(average: Call) -> str | None:
    """Return the layout of an average's data and result; None if they differ."""
    layout = str(average.attrs.layout)
    return layout if average.attrs.out_layout in ("", layout) else None


def _is_less_work(average: Call, before: int, after: int, inputs: int, outputs: int) -> bool:
    """Whether fewer sums are computed with the average first, of so many pixels and channels."""
    windows = op_name(average) in _WINDOWS
    sums = after * prod(map(int, average.attrs.pool_size)) if windows else before
    return inputs * (sums + after * outputs) < outputs * (before * inputs + sums)


def _counts_padding(average: Call) -> bool:
    """Whether an average of ones may be less than one."""
    if op_name(average) not in _WINDOWS:
        return False
    attrs = average.attrs
    padded = any(map(int, attrs.padding)) or attrs.ceil_mode
    return bool(padded and attrs.count_include_pad)
