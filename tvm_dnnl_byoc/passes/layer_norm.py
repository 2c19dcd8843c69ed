r"""Layer normalisation in the spellings of the frontends.

::

    x ─┬───────────────── subtract ─┬───────────────── divide ── multiply ── add
       └─ mean (last axis) ┘        └─ variance ─ add ─ sqrt ┘      γ         β

The variance is ``variance(x)`` or the mean of the squares of x - mean(x); for the division by the
root there may be a product with its reciprocal.
"""

from collections.abc import Callable

import numpy as np

from ..ir import Call, Expr, array_of, constant, layer_norm, op_name, shape_of


def as_layer_norm(old: Call, now: Callable[[Expr], Expr]) -> Call | None:
    """Return the quotient of x - mean(x) and its deviation as an ``nn.layer_norm``; or None.

    Its scale is 1 and its shift is 0: see `absorb`.

    Parameters
    ----------
    old : Call
        A ``divide`` or ``multiply``, with its type.
    now : callable
        Gives what stands for an expression of the old function.
    """
    for centred, other in (old.args, reversed(old.args)):
        x = _centred(centred)
        if x is None:
            continue
        if op_name(old) == "multiply":
            shifted = _under_reciprocal_root(other)
        else:
            shifted = _under_root(other) if centred.same_as(old.args[0]) else None
        epsilon = shifted and _epsilon(shifted, x, centred)
        if epsilon is not None:
            channels = shape_of(x)[-1]
            one, zero = np.ones(channels, "float32"), np.zeros(channels, "float32")
            return layer_norm(now(x), constant(one), constant(zero), epsilon)
    return None


def absorb(new: Call, old: Call) -> Call | None:
    """Return a layer normalisation times γ or plus β, one for each channel, as one; or None."""
    for i in (0, 1):
        norm, other = new.args[i], new.args[1 - i]
        if op_name(norm) != "nn.layer_norm" or not (norm.attrs.center and norm.attrs.scale):
            continue
        shape, channels = shape_of(old.args[i]), shape_of(old.args[1 - i])
        x, gamma, beta = norm.args
        if not shape or shape[-1] is None or channels != shape[-1:]:
            continue
        if norm.attrs.axis % len(shape) != len(shape) - 1:
            continue
        if op_name(new) == "add" and _is_all(beta, 0):
            return layer_norm(x, gamma, other, norm.attrs.epsilon)
        if op_name(new) == "multiply" and _is_all(gamma, 1) and _is_all(beta, 0):
            return layer_norm(x, other, beta, norm.attrs.epsilon)
    return None


def _is_all(expr: Expr, number: float) -> bool:
    array = array_of(expr)
    return array is not None and bool((array == number).all())


def _centred(expr: Expr) -> Expr | None:
    """Return x of x - mean(x)."""
    if op_name(expr) != "subtract":
        return None
    x, mean = expr.args
    return x if _is_mean(mean) and mean.args[0].same_as(x) else None


def _is_mean(expr: Expr) -> bool:
    return op_name(expr) == "mean" and _is_along_last(expr)


def _is_along_last(expr: Call) -> bool:
    """Whether what a call computes is along the last axis, which stays, with 1."""
    shape, attrs = shape_of(expr.args[0]), expr.attrs
    if not shape or shape[-1] is None or attrs.axis is None or attrs.exclude or not attrs.keepdims:
        return False
    last = len(shape) - 1
    return last > 0 and [int(axis) % len(shape) for axis in attrs.axis] == [last]


def _under_root(expr: Expr) -> Expr | None:
    """Return v of √v."""
    if op_name(expr) == "sqrt":
        return expr.args[0]
    return expr.args[0] if op_name(expr) == "power" and _number(expr.args[1]) == 0.5 else None


def _under_reciprocal_root(expr: Expr) -> Expr | None:
    """Return v of 1 / √v."""
    name = op_name(expr)
    if name == "rsqrt" or (name == "power" and _number(expr.args[1]) == -0.5):
        return expr.args[0]
    if name == "divide" and _number(expr.args[0]) == 1:
        return _under_root(expr.args[1])
    return None


def _epsilon(expr: Expr, x: Expr, centred: Expr) -> float | None:
    """Return ε of the variance of x plus ε."""
    if op_name(expr) != "add":
        return None
    for variance, epsilon in (expr.args, reversed(expr.args)):
        if _is_variance(variance, x, centred):
            return _number(epsilon)
    return None


def _is_variance(expr: Expr, x: Expr, centred: Expr) -> bool:
    if op_name(expr) == "variance":
        data, *means = expr.args  # Relay's has the mean as an argument, too
        own_mean = all(_is_mean(mean) and mean.args[0].same_as(x) for mean in means)
        return data.same_as(x) and own_mean and _is_along_last(expr) and not expr.attrs.unbiased
    return _is_mean(expr) and _is_square(expr.args[0], centred)


def _is_square(expr: Expr, root: Expr) -> bool:
    if op_name(expr) == "power":
        return expr.args[0].same_as(root) and _number(expr.args[1]) == 2
    return op_name(expr) == "multiply" and all(arg.same_as(root) for arg in expr.args)


def _number(expr: Expr) -> float | None:
    array = array_of(expr)
    return float(array.reshape(())) if array is not None and array.size == 1 else None
