r"""Parts of a dense layer's result: of layers that compute no more than that.

::

    x   weights (3 · H · D, C)                       x   weights[part]
     \  /                                             \  /
    dense, + bias                                    dense, + bias[part]
       |                                                |
    reshape (S, B, H, 3, D)                 →        reshape (S, B, H, D)
       |
    take(0), or strided_slice

Query, key and value in one layer are thus three, of which oneDNN's products are as fast, and faster
at reading the results: their rows lie side by side.
"""

from collections.abc import Sequence
from math import prod

import numpy as np
from tvm import relay
from tvm.relay.expr import Call, Expr

from ..ir import array_of, constant, op_name

# As many as oneDNN computes at once: fewer cost as much.
_FEWEST = 64


def columns_of_dense(
    data: Expr, shape: Sequence[int], begin: Sequence[int], end: Sequence[int]
) -> Expr | None:
    """Return the slice [begin, end) of a dense layer's result as the result of a smaller layer.

    Parameters
    ----------
    data : Expr
        What is sliced: reshaped or transposed, perhaps, and with a bias.
    shape : sequence of int
        Its shape.
    begin, end : sequence of int
        For each axis.

    Returns
    -------
    Expr or None
        None if the data is no such layer with constant weights, if the slice is one of rows, or of
        few columns.
    """
    if op_name(data) == "transpose" and data.attrs.axes is not None:
        axes = [int(axis) % len(shape) for axis in data.attrs.axes]
        back = np.argsort(axes)
        before = [[each[i] for i in back] for each in (shape, begin, end)]
        part = columns_of_dense(data.args[0], *before)
        return part and relay.transpose(part, axes)
    result, bias = data, None
    while op_name(result) == "reshape":
        result = result.args[0]
    if op_name(result) == "add":
        result, bias = result.args[0], array_of(result.args[1])
        if bias is None:
            return None
    weights = array_of(result.args[1]) if op_name(result) == "nn.dense" else None
    if weights is None:
        return None
    channels = len(weights)
    split = len(shape)
    while split > 0 and prod(shape[split:]) < channels:
        split -= 1
    whole = all(
        b == 0 and e == s for b, e, s in zip(begin[:split], end[:split], shape, strict=False)
    )
    if prod(shape[split:]) != channels or not whole:
        return None
    if bias is not None and (bias.size != channels or bias.shape[-1] != channels):
        return None
    columns = np.arange(channels).reshape(shape[split:])
    part = columns[tuple(map(slice, begin[split:], end[split:]))]
    if part.size < _FEWEST:
        return None
    layer = _layer(result, weights[part.ravel()])
    if bias is not None:
        layer = relay.add(layer, constant(bias.ravel()[part.ravel()]))
    return relay.reshape(layer, (*shape[:split], *part.shape))


def _layer(dense: Call, weights: np.ndarray) -> Call:
    attrs = dense.attrs
    return relay.nn.dense(
        dense.args[0], constant(weights), units=len(weights), out_dtype=attrs.out_dtype
    )
