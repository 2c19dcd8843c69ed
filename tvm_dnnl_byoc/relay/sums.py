"""Sums over a short dimension as additions, as split attention has them."""

from functools import reduce

from tvm import relay
from tvm.relay.expr import Call, Expr

from ..ir import op_name, static_shape

_MOST_PARTS = 4
_VIEWS = ("expand_dims", "reshape", "squeeze")


def sum_as_additions(new: Call, old: Call) -> Expr | None:
    """Return a ``sum`` over one short dimension as additions of its parts.

    oneDNN's reduction is fast only for the last dimensions. Parts of what are channels elsewhere,
    as the groups that a ResNeSt adds up, with weights or without, lie one after the other there
    and need no copy.

    Parameters
    ----------
    new, old : Call
        The call with rewritten inputs, and as it was, with its type.

    Returns
    -------
    Expr or None
        None if it is over more, over the last one, or not of float32 of static shape.
    """
    shape = static_shape(old.args[0])
    attrs = new.attrs
    if shape is None or attrs.keepdims or attrs.exclude or attrs.axis is None:
        return None
    if len(attrs.axis) != 1:
        return None
    axis = int(attrs.axis[0]) % len(shape)
    if axis == len(shape) - 1 or not 1 < shape[axis] <= _MOST_PARTS:
        return None
    parts = [_part(new.args[0], old.args[0], axis, i) for i in range(shape[axis])]
    return reduce(relay.add, parts)


def _part(new: Expr, old: Expr, axis: int, index: int) -> Expr:
    """Return what is at `index` along a dimension, without the dimension."""
    shape = static_shape(old)
    name = op_name(new)
    if name == "multiply" and name == op_name(old):
        shapes = [static_shape(arg) for arg in old.args]
        if all(s is not None and len(s) == len(shape) for s in shapes):
            return relay.multiply(
                *(
                    _part(arg, old_arg, axis, min(index, s[axis] - 1))
                    for arg, old_arg, s in zip(new.args, old.args, shapes, strict=True)
                )
            )
    # Where the dimension is the outer one of two that were one before: a slice of that one.
    joined = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
    source, old_source = new, old
    while op_name(source) in _VIEWS and op_name(source) == op_name(old_source):
        source, old_source = source.args[0], old_source.args[0]
        if static_shape(old_source) == joined:
            begin, end = [0] * len(joined), list(joined)
            begin[axis], end[axis] = index * shape[axis + 1], (index + 1) * shape[axis + 1]
            return relay.strided_slice(source, begin, end)
    begin, end = [0] * len(shape), list(shape)
    begin[axis], end[axis] = index, index + 1
    return relay.squeeze(relay.strided_slice(new, begin, end), axis=[axis])
