"""Indices of what is gathered, in the 32 bits that the engine reads."""

import numpy as np
from tvm import relay
from tvm.relay.expr import Call, Expr

from ..ir import shape_of


def narrow_indices(new: Call, old: Call, now) -> Expr | None:
    """Return a ``take`` with indices in int64 as one with indices in int32; None for others.

    They are clipped before, as ``take`` does, so that none is another one in fewer bits.
    """
    attrs, indices = new.attrs, old.args[1].checked_type
    shape = shape_of(old.args[0])
    if not shape or attrs.axis is None or int(attrs.batch_dims) or attrs.mode == "wrap":
        return None
    size = shape[int(attrs.axis) % len(shape)]
    if indices.dtype != "int64" or size is None or not 0 < size <= np.iinfo(np.int32).max:
        return None
    narrow = relay.cast(relay.clip(new.args[1], 0, size - 1), "int32")
    return relay.take(new.args[0], narrow, int(attrs.axis), mode=attrs.mode)
