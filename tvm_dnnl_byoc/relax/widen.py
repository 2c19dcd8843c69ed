"""Modules that come in bf16 or f16, as the same ones in f32 with a precision for their regions.

Blocks are read as if they were in f32: the casts between its types and f32 disappear, with their
rounding. All numbers of the narrow types are numbers of f32, so nothing is less exact than before.
What stays in TVM keeps its types; where a region reads or leaves a narrow variable, there is a
cast.
"""

from collections.abc import Iterable

from tvm import relax
from tvm.ir import Op

from ..ir.relax_expr import TensorType, TupleType, Type
from .compat import read_type, relax_type

_PRECISIONS = {"bfloat16": "bf16", "float16": "f16"}
_HEAVY = ("relax.nn.conv", "relax.matmul")


def precision_of(functions: Iterable[relax.Function]) -> str:
    """Return the precision in which most of the heavy operators compute: f32, bf16 or f16."""
    counts = dict.fromkeys(("f32", *_PRECISIONS.values()), 0)
    for function in functions:
        for block in function.body.blocks:
            for binding in block.bindings:
                call = binding.value
                if not isinstance(call, relax.Call) or not isinstance(call.op, Op):
                    continue
                if call.op.name.startswith(_HEAVY):
                    type_ = read_type(relax_type(call.args[0]))
                    counts[_PRECISIONS.get(getattr(type_, "dtype", ""), "f32")] += 1
    return max(counts, key=counts.get)


def widened(type_: Type) -> Type:
    """Return a type with f32 in the place of bf16 and f16."""
    if isinstance(type_, TupleType):
        return TupleType(tuple(map(widened, type_.fields)))
    if isinstance(type_, TensorType) and type_.dtype in _PRECISIONS:
        return TensorType(type_.shape, "float32")
    return type_
