"""What exporters write around a softmax."""

from tvm import relay
from tvm.relay.expr import Call

from .dataflow import array_of, op_name

_SOFTMAX = ("nn.softmax", "nn.fast_softmax")


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
