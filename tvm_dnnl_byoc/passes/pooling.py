"""Averages and 1 × 1 convolutions, in the order that is less work.

An average over windows works on each channel alone, a 1 × 1 convolution on each pixel alone, and
both are linear: they commute. A DenseNet's transitions average what they have convolved: with the
average first, the convolution has a quarter of the pixels. An Inception's branches convolve an
average of as many pixels: with the convolution first, the average has fewer channels.
"""

from collections.abc import Mapping
from math import prod

from ..ir import (
    Call,
    Constant,
    Expr,
    Function,
    add,
    array_of,
    op_name,
    refusal,
    static_shape,
    with_shape,
)
from .affine import CONVOLUTIONS
from .dataflow import count_uses, rewrite, with_body

_WINDOWS = {f"nn.avg_pool{dims}d" for dims in (1, 2, 3)}
_AVERAGES = _WINDOWS | {"nn.global_avg_pool2d", *(f"nn.adaptive_avg_pool{d}d" for d in (1, 2, 3))}


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
        None if it is no such average, or if something else reads what is averaged.
    """
    if op_name(new) not in _AVERAGES or uses[new.args[0]] != 1:
        return None
    conv, bias = new.args[0], None
    if op_name(conv) == "add" and isinstance(conv.args[1], Constant) and uses[conv.args[0]] == 1:
        conv, bias = conv.args
    before, after = static_shape(old.args[0]), static_shape(old)
    channels = _channels(conv)
    if None in (before, after, channels) or _layout(new) != conv.attrs.data_layout:
        return None
    if prod(after) >= prod(before) or (bias is not None and _counts_padding(new)):
        return None
    axis = _layout(new).index("C")
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
        channels = _channels(new)
        if channels is None or channels[1] >= channels[0]:
            return None
        average, as_it_was = new.args[0], old.args[0]
        if op_name(average) not in _WINDOWS or uses[as_it_was] != 1:
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
    attrs, weights = conv.attrs, array_of(conv.args[1])
    plain = str(attrs.data_layout).isalpha() and attrs.out_layout in ("", attrs.data_layout)
    steps = [*map(int, attrs.strides)] + [int(size) + 1 for size in attrs.padding]
    if weights is None or not plain or attrs.groups != 1 or set(steps) != {1}:
        return None
    sizes = dict(zip(str(attrs.kernel_layout), weights.shape, strict=True))
    channels = (sizes.pop("I"), sizes.pop("O"))
    return channels if set(sizes.values()) == {1} else None


def _layout(average: Call) -> str:
    return str(average.attrs.layout)


def _counts_padding(average: Call) -> bool:
    """Whether an average of ones may be less than one."""
    attrs = average.attrs
    if op_name(average) not in _WINDOWS:
        return False
    padded = any(int(size) for size in attrs.padding) or bool(attrs.ceil_mode)
    return padded and bool(attrs.count_include_pad)
