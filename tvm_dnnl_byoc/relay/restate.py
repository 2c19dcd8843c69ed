"""Operators that oneDNN lacks, or has in another place, written with those that it has."""

from collections.abc import Callable

from tvm import relay
from tvm.relay.expr import Call, Expr

from ..ir import op_name, shape_of, static_shape
from ..passes.layer_norm import absorb, as_layer_norm
from ..passes.normalization import as_one_instance
from ..passes.padding import WINDOWS, fold_padding
from .padding import slice_before_padding
from .products import as_dense, untranspose
from .resize import resize_as_products
from .slices import index_as_slice, slice_of_dense
from .softmax import minimum_for_sequence_mask, zero_for_nan
from .sums import sum_as_additions

# Each is given a call and the shape of its data, float32, and returns None where it has no answer;
# those of windows are also asked about data with sizes that only a run knows.
_RULES = {
    **dict.fromkeys(WINDOWS, fold_padding),
    "strided_slice": lambda call, shape: (
        slice_before_padding(call, shape) or slice_of_dense(call, shape)
    ),
    "take": index_as_slice,
    "image.resize2d": resize_as_products,
    "nn.upsampling": resize_as_products,
    "nn.softmax": minimum_for_sequence_mask,
    "nn.group_norm": as_one_instance,
    "nn.instance_norm": as_one_instance,
}


def restate(new: Call, old: Call, now: Callable[[Expr], Expr]) -> Expr | None:
    """Return an expression for a call that oneDNN runs better, None if there is none.

    Parameters
    ----------
    new, old : Call
        The call with rewritten inputs, and as it was, with its type.
    now : callable
        Gives what stands for an expression of the old function.
    """
    name = op_name(new)
    if name in _RULES:
        shape = shape_of(old.args[0])
        if not shape or (None in shape and _RULES[name] is not fold_padding):
            return None
        return _RULES[name](new, shape)
    shape = static_shape(old)
    if shape is None:
        return None
    if name == "nn.batch_matmul":
        return as_dense(new, old, now) or untranspose(new)
    if name == "contrib_reverse_reshape":
        return relay.reshape(new.args[0], shape)
    if name == "sum":
        return sum_as_additions(new, old)
    if name == "where":
        return zero_for_nan(new, old)
    if name == "divide":
        return as_layer_norm(old, now)
    if name == "multiply":
        return as_layer_norm(old, now) or absorb(new, old)
    return absorb(new, old) if name == "add" else None
