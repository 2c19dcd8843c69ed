"""What exporters write around a softmax."""

import numpy as np
from tvm import relay
from tvm.relay.expr import Call

from ..ir import array_of, constant, op_name

_SOFTMAX = ("nn.softmax", "nn.fast_softmax")
_LOWEST = np.finfo("float32").min


def zero_for_nan(new: Call, old: Call) -> Call | None:
    """Return a softmax in which 0 stands for NaN as one with a ReLU.

    PyTorch's ONNX exporter writes where(isnan(y), 0, y), for rows that are masked completely. What
    a softmax gives is NaN or at least 0. The ReLU of a NaN is 0 in TVM and in oneDNN's generated
    code: both compute it as the maximum of x and 0, which on x86 is the second where there is none.

    Parameters
    ----------
    new, old : Call
        A ``where`` with rewritten inputs, and as it was, with its type.
    """
    condition, zero, y = old.args
    array = array_of(zero)
    if op_name(condition) != "isnan" or not condition.args[0].same_as(y):
        return None
    if op_name(y) not in _SOFTMAX or array is None or array.size != 1 or array.any():
        return None
    return relay.nn.relu(new.args[2])


def minimum_for_sequence_mask(call: Call, shape: tuple[int, ...]) -> Call | None:
    """Return a softmax of a ``sequence_mask`` as one of a minimum with infinity or the lowest.

    That is a post-op of what gives the data. Only before a softmax, which does not tell the lowest
    number from what is below it.

    Parameters
    ----------
    call : Call
        A softmax.
    shape : tuple of int
        The shape of its data, float32.
    """
    mask = call.args[0]
    if op_name(mask) != "sequence_mask" or len(shape) != 2:
        return None
    if int(mask.attrs.axis) != 1 or np.float32(mask.attrs.mask_value) != _LOWEST:
        return None
    data, lengths = mask.args
    positions = constant(np.arange(shape[1], dtype="float32"))
    lengths = relay.expand_dims(relay.cast(lengths, "float32"), 1)
    bounds = relay.where(
        relay.less(positions, lengths), relay.const(np.inf), relay.const(float(_LOWEST))
    )
    return relay.nn.softmax(relay.minimum(data, bounds), axis=call.attrs.axis)
