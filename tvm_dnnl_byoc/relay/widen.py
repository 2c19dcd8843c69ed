"""Models that come in bf16 or f16, as the same ones in f32 with a precision for their regions."""

from collections.abc import Iterable

import numpy as np
import tvm
from tvm import relay
from tvm.relay.expr import Call, Constant, Expr, Tuple, TupleGetItem

from ..ir import constant, op_name
from ..passes.dataflow import inputs_of, post_order, with_body, with_inputs

_PRECISIONS = {"bfloat16": "bf16", "float16": "f16"}
_HEAVY = ("nn.conv", "nn.dense", "nn.matmul", "nn.batch_matmul")


def precision_of(functions: Iterable[relay.Function]) -> str:
    """Return the precision in which most of the heavy operators compute: f32, bf16 or f16."""
    counts = dict.fromkeys(("f32", *_PRECISIONS.values()), 0)
    for function in functions:
        for expr in post_order(function.body):
            if (op_name(expr) or "").startswith(_HEAVY):
                counts[_PRECISIONS.get(_dtype(expr.args[0].checked_type), "f32")] += 1
    return max(counts, key=counts.get)


def widen(function: relay.Function) -> relay.Function:
    """Return a type-inferred function that computes in f32; its parameters and results stay.

    What TVM's ToMixedPrecision has added disappears, with its rounding. All numbers of the narrow
    types are numbers of f32, so nothing is less exact than before.
    """
    exprs = post_order(function.body)
    if not any(_is_narrow(expr.checked_type) for expr in exprs):
        return function
    new: dict[Expr, Expr] = {}
    for old in exprs:
        new[old] = _widened(old, [new[e] for e in inputs_of(old)])
    type_ = function.body.checked_type
    return with_body(function, _cast(new[function.body], _wide(type_), type_))


def _widened(old: Expr, inputs: list[Expr]) -> Expr:
    """Return what stands for an expression, given what stands for those that it reads."""
    type_ = old.checked_type
    if isinstance(old, Constant):
        return constant(_wide_array(old.data)) if _is_narrow(type_) else old
    if isinstance(old, Tuple | TupleGetItem):
        return with_inputs(old, inputs)
    name = op_name(old)
    # A parameter, control flow, a call of a function, what looks at bits: they stay what they are.
    if name in (None, "reinterpret"):
        types = [e.checked_type for e in inputs_of(old)]
        inputs = [_cast(e, _wide(t), t) for e, t in zip(inputs, types, strict=True)]
        return _cast(with_inputs(old, inputs) if inputs else old, type_, _wide(type_))
    if name == "cast" and _wide(type_) == _wide(old.args[0].checked_type):
        return inputs[0]  # from a narrow type or to one
    call = with_inputs(old, inputs)
    names = [str(field.name) for field in old.attrs.list_field_info()] if old.attrs else []
    fields = {name: old.attrs[name] for name in names}
    narrow = [name for name in ("dtype", "out_dtype") if fields.get(name) in _PRECISIONS]
    if not narrow:
        return call
    fields.update(dict.fromkeys(narrow, "float32"))
    attrs = tvm.ir.make_node(old.attrs.type_key, **fields)
    return Call(call.op, call.args, attrs, call.type_args, call.span)


def _wide_array(data: tvm.nd.NDArray) -> np.ndarray:
    array = data.numpy()
    if data.dtype == "bfloat16":  # which NumPy lacks: the bits, which are f32's upper half
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def _dtype(type_: relay.Type) -> str | None:
    return type_.dtype if isinstance(type_, relay.TensorType) else None


def _is_narrow(type_: relay.Type) -> bool:
    if isinstance(type_, relay.TupleType):
        return any(map(_is_narrow, type_.fields))
    return _dtype(type_) in _PRECISIONS


def _wide(type_: relay.Type) -> relay.Type:
    if isinstance(type_, relay.TupleType):
        return relay.TupleType([_wide(field) for field in type_.fields])
    return relay.TensorType(type_.shape, "float32") if _is_narrow(type_) else type_


def _cast(expr: Expr, have: relay.Type, want: relay.Type) -> Expr:
    """Return an expression of one type as one of another, which differs in dtypes only."""
    if have == want:
        return expr
    if isinstance(have, relay.TupleType):
        count = len(have.fields)
        fields = (
            expr.fields
            if isinstance(expr, Tuple)
            else map(TupleGetItem, [expr] * count, range(count))
        )
        return Tuple(list(map(_cast, fields, have.fields, want.fields)))
    return relay.cast(expr, want.dtype)
