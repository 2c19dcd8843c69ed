"""What Relax calls differently in the releases of apache-tvm that are supported."""

from typing import Any

import numpy as np
import tvm
from tvm import relax

from ..ir.relax_expr import OtherType, TensorType, TupleType, Type


def relax_type(expr: relax.Expr) -> Any:
    """Return the type of an expression: ``.ty``, until 0.26 ``.struct_info``."""
    return expr.ty if hasattr(expr, "ty") else expr.struct_info


def read_type(type_: Any) -> Type:
    """Return a type of Relax's as one of ours."""
    if hasattr(type_, "fields"):
        return TupleType(tuple(map(read_type, type_.fields)))
    if not hasattr(type_, "shape"):
        return OtherType()
    return TensorType(_static(type_.shape), str(type_.dtype))


def tuple_type(types: list[Any]) -> Any:
    """Return Relax's type of a tuple."""
    return (getattr(relax, "TupleStructInfo", None) or relax.TupleType)(types)


def constant_array(expr: relax.Expr) -> np.ndarray | None:
    """Return the data of a constant (``.data``, or ``.value`` since 0.27); else None."""
    if type(expr).__name__ not in ("Constant", "GenericConst"):
        return None
    data = expr.data if hasattr(expr, "data") else expr.value
    return data.numpy() if hasattr(data, "numpy") else None


def number(expr: Any) -> int | float:
    """Return a number's value, which is wrapped once, or until 0.26 twice."""
    while hasattr(expr, "value"):
        expr = expr.value
    if not isinstance(expr, int | float):
        raise TypeError(f"expected a number, got {expr}")
    return expr


def _static(shape: Any) -> tuple[int, ...] | None:
    sizes = getattr(shape, "values", None)
    if sizes is None or not all(isinstance(size, tvm.tirx.IntImm) for size in sizes):
        return None
    return tuple(int(size) for size in sizes)


def tensor_type(type_: TensorType) -> Any:
    """Return a static type of ours as Relax's."""
    make = getattr(relax, "TensorStructInfo", None) or relax.TensorType
    return make(type_.shape, type_.dtype)
