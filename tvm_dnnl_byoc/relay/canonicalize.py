"""Brings a module into the form that partitioning looks for.

Everything is done on the arrays with NumPy, in float64: TVM's own FoldConstant compiles a kernel
for each distinct expression, which takes longer than all the rest of a build.
"""

import numpy as np
from tvm import relay
from tvm.relay.expr import Call, Expr, Tuple, TupleGetItem

from ..ir import array_of, constant, op_name, same_type
from ..passes.affine import CONVOLUTIONS
from ..passes.dataflow import concat_parts, with_body
from ..passes.folding import Folder
from ..passes.pooling import averaged_first
from .fold_constants import fold_constant
from .quantized import simplify_quantized
from .restate import restate
from .slices import part_as_slice


def canonicalize(function: relay.Function) -> relay.Function:
    """Simplify one type-inferred function.

    - Constant expressions are evaluated.
    - x + x is 2 · x.
    - Dropout is removed, and what does nothing: a copy, a reshape to the same shape.
    - What scales or shifts each channel of a convolution's or dense layer's result by constants
      (bias_add, add, multiply, batch_norm) goes into its weights and one add; what scales the
      channels of its data goes into its weights.
    - A batch_norm that stays applies its scale and shift.
    - Padding goes into the convolution or pooling that follows.
    - A 1 × 1 convolution of which averages are taken is one of the averages, if these are fewer.
    - Parts of a split are slices, as is what a ``take`` of one index takes.
    - A concat of concats is one.
    - Linear layers in the guise of batched products, and layer normalisation in any spelling, are
      those.
    - Quantized models: see `simplify_quantized`.
    - Group normalisation, and instance normalisation of a batch, are that of one instance.
    - Sums over a short dimension are additions.
    - Linear resizing that oneDNN has no rule for is two matrix products.
    """
    return with_body(function, _Canonicalizer(function.body).run())


# They do nothing where they keep the type.
_KEEP_DATA = {"broadcast_to", "cast", "contrib_reverse_reshape", "copy", "reshape", "squeeze"}


class _Canonicalizer(Folder):
    def simplify(self, new: Expr, old: Expr) -> Expr:
        if isinstance(new, TupleGetItem):
            return self.simplify_field(new, old)
        name = op_name(new)
        if name is None:
            return new
        folded = fold_constant(new, old)
        if folded is not None:
            return folded
        simplified = simplify_quantized(new, self.uses)
        if simplified is not None:
            return simplified
        if name in _KEEP_DATA and same_type(old.args[0], old):
            return new.args[0]
        if name == "add" and new.args[0].same_as(new.args[1]):
            return _doubled(new, old)
        if name == "concatenate":
            return self.flatten(new, old)
        restated = restate(new, old, self.now.__getitem__)
        if restated is not None:
            return restated
        averaged = averaged_first(new, old, self.uses)
        if averaged is not None:
            return self.read_once(averaged)
        folded = self.fold_affine(new, old)
        if folded is not None:
            return folded
        if name in (*CONVOLUTIONS, "nn.dense"):
            return self.fold_data_scale(new, old)
        if name == "nn.batch_norm":
            return _apply_scale_and_shift(new)
        return new

    def flatten(self, new: Call, old: Call) -> Call:
        """Put the parts of a concat in its place in another one that alone reads it."""
        parts = []
        for part in concat_parts(new):
            inner = op_name(part) == "concatenate" and self.uses[part] == 1
            same = inner and _concat_axis(part, old) == _concat_axis(new, old)
            parts += (same and concat_parts(part)) or [part]
        if len(parts) == len(concat_parts(new)):
            return new
        return relay.concatenate(parts, new.attrs.axis)

    def simplify_field(self, new: TupleGetItem, old: TupleGetItem) -> Expr:
        source = new.tuple_value
        if isinstance(source, Tuple):  # as PyTorch's unbind, made of a split
            return source.fields[new.index]
        name = op_name(source)
        if name == "nn.dropout" and new.index == 0:
            return source.args[0]
        if name == "split":
            return part_as_slice(new, old.tuple_value.args[0]) or new
        if name == "nn.batch_norm" and self.uses[source] == 1:
            return self.fold_affine(new, old) or new
        return new  # also of a batch_norm of which another output is used


def _concat_axis(concat: Call, typed: Call) -> int:
    """Return the axis of a concat of tensors of the same rank as `typed`, which has its type."""
    return int(concat.attrs.axis) % len(typed.checked_type.shape)


def _doubled(new: Call, old: Call) -> Expr:
    """Return x + x as 2 · x.

    TVM's SimplifyExpr does it, too, but makes a second call of the region that gives x, which its
    Inline pass then fails on.
    """
    type_ = old.checked_type
    if not isinstance(type_, relay.TensorType) or type_.dtype == "bool":
        return new
    return relay.multiply(new.args[0], relay.const(2, type_.dtype))


def _apply_scale_and_shift(call: Call) -> Call:
    """Switch on a batch_norm's scale and shift; where they were off, they become 1 and 0."""
    attrs = call.attrs
    if attrs.scale and attrs.center:
        return call
    data, gamma, beta, mean, variance = call.args
    channels = array_of(mean)
    if channels is None or mean.data.dtype != "float32":
        return call
    if not attrs.scale:
        gamma = constant(np.ones_like(channels))
    if not attrs.center:
        beta = constant(np.zeros_like(channels))
    return relay.nn.batch_norm(
        data, gamma, beta, mean, variance, axis=attrs.axis, epsilon=attrs.epsilon
    ).astuple()
