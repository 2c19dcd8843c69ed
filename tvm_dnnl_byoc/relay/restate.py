"""Operators that oneDNN lacks, or has in another place, written with those that it has."""

from tvm.relay.expr import Call, Expr

from ..ir import op_name, static_shape
from .normalization import as_one_instance
from .padding import fold_padding, slice_before_padding
from .resize import resize_as_products

_WINDOWS = [f"nn.{kind}{dims}d" for kind in ("conv", "max_pool", "avg_pool") for dims in (1, 2, 3)]
# Each is given a call and the shape of its data, float32, and returns None where it has no answer.
_RULES = {
    **dict.fromkeys(_WINDOWS, fold_padding),
    "strided_slice": slice_before_padding,
    "image.resize2d": resize_as_products,
    "nn.upsampling": resize_as_products,
    "nn.group_norm": as_one_instance,
    "nn.instance_norm": as_one_instance,
}


def restate(new: Call, old: Call) -> Expr | None:
    """Return an expression for a call that oneDNN runs better, None if there is none.

    Parameters
    ----------
    new, old : Call
        The call with rewritten inputs, and as it was, with its type.
    """
    rule = _RULES.get(op_name(new))
    shape = static_shape(old.args[0]) if rule else None
    return rule(new, shape) if shape else None
