"""Operators that oneDNN lacks, or has in another place, written with those that it has."""

from collections.abc import Callable, Sequence

from tvm.relay.expr import Call, Expr

from ..ir import op_name, shape_of
from ..passes.layer_norm import absorb, as_layer_norm
from ..passes.normalization import as_one_instance
from ..passes.padding import WINDOWS, fold_padding
from .indices import narrow_indices
from .padding import slice_before_padding
from .products import as_dense, untranspose
from .resize import resize_as_products
from .slices import index_as_slice, slice_of_dense
from .softmax import minimum_for_sequence_mask, zero_for_nan
from .sums import sum_as_additions
from .symbolic import reshape, sizes_of

Now = Callable[[Expr], Expr]
Rule = Callable[[Call, Call, Now], Expr | None]


def _of_data(
    rule: Callable[[Call, Sequence[int | None]], Expr | None], symbolic: bool = False
) -> Rule:
    """Return a rule that is given the shape of a call's data, in float32.

    `symbolic`: it is also asked about data with sizes that only a run knows.
    """

    def apply(new: Call, old: Call, now: Now) -> Expr | None:
        shape = shape_of(old.args[0])
        return rule(new, shape) if shape and (symbolic or None not in shape) else None

    return apply


def _of_result(rule: Rule) -> Rule:
    """Return a rule for calls that give float32, in sizes that are known or have names."""

    def apply(new: Call, old: Call, now: Now) -> Expr | None:
        return None if sizes_of(old) is None else rule(new, old, now)

    return apply


def _layer_norm(new: Call, old: Call, now: Now) -> Expr | None:
    return as_layer_norm(old, now)


def _absorb(new: Call, old: Call, now: Now) -> Expr | None:
    return absorb(new, old)


# The first that has an answer gives it.
_RULES: dict[str, list[Rule]] = {
    **{name: [_of_data(fold_padding, symbolic=True)] for name in WINDOWS},
    "strided_slice": [_of_data(slice_before_padding), _of_data(slice_of_dense)],
    "take": [_of_data(index_as_slice), narrow_indices],
    "image.resize2d": [_of_data(resize_as_products)],
    "nn.upsampling": [_of_data(resize_as_products)],
    "nn.softmax": [_of_data(minimum_for_sequence_mask)],
    "nn.group_norm": [_of_data(as_one_instance)],
    "nn.instance_norm": [_of_data(as_one_instance)],
    "nn.batch_matmul": [
        _of_result(as_dense),
        _of_result(lambda new, old, now: untranspose(new)),
    ],
    "contrib_reverse_reshape": [
        _of_result(
            lambda new, old, now: reshape(new.args[0], sizes_of(old.args[0]) or (), sizes_of(old))
        )
    ],
    "sum": [_of_result(lambda new, old, now: sum_as_additions(new, old))],
    "where": [_of_result(lambda new, old, now: zero_for_nan(new, old))],
    "divide": [_layer_norm],
    "multiply": [_layer_norm, _absorb],
    "add": [_absorb],
}


def restate(new: Call, old: Call, now: Now) -> Expr | None:
    """Return an expression for a call that oneDNN runs better, None if there is none.

    Parameters
    ----------
    new, old : Call
        The call with rewritten inputs, and as it was, with its type.
    now : callable
        Gives what stands for an expression of the old function.
    """
    answers = (rule(new, old, now) for rule in _RULES.get(op_name(new) or "", ()))
    return next((answer for answer in answers if answer is not None), None)
