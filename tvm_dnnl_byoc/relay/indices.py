"""Indices of what is gathered, as the engine reads them: vectors and more, in 32 bits."""

import numpy as np
from tvm import relay
from tvm.relay.expr import Call, Expr

from ..ir import array_of, constant, shape_of

_LARGEST = np.iinfo(np.int32).max


def narrow_indices(new: Call, old: Call, now) -> Expr | None:
    """Return a ``take`` as one with indices in int32; None if it is one, or cannot be.

    They are clipped before, as ``take`` does, so that none is another one in fewer bits. A constant
    index, of data of which only a run knows how large it is, becomes a vector of one.

    Parameters
    ----------
    new, old : Call
        A ``take`` with rewritten inputs, and as it was, with its type.
    """
    attrs, indices = new.attrs, old.args[1].checked_type
    shape = shape_of(old.args[0])
    if not shape or attrs.axis is None or int(attrs.batch_dims) or attrs.mode == "wrap":
        return None
    axis = int(attrs.axis) % len(shape)
    index = array_of(new.args[1])
    if index is not None and not index.ndim and 0 <= int(index) <= _LARGEST:
        one = constant(np.array([int(index)], "int32"))
        return relay.squeeze(relay.take(new.args[0], one, axis, mode=attrs.mode), [axis])
    size = shape[axis]
    if indices.dtype != "int64" or size is None or not 0 < size <= _LARGEST:
        return None
    narrow = relay.cast(relay.clip(new.args[1], 0, size - 1), "int32")
    return relay.take(new.args[0], narrow, axis, mode=attrs.mode)
