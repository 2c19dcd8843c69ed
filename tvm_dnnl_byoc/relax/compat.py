"""What Relax calls differently in the releases of apache-tvm that are supported."""

from typing import Any

import numpy as np
import tvm
from tvm import relax

from ..ir.relax_expr import OtherType, Size, Symbol, TensorType, TupleType, Type


class SymbolicNumber(Exception):
    """A number that only a run knows, where one is expected that is known before."""


def relax_type(expr: relax.Expr) -> Any:
    """Return the type of an expression: ``.ty``, until 0.26 ``.struct_info``."""
    return expr.ty if hasattr(expr, "ty") else expr.struct_info


def read_type(type_: Any) -> Type:
    """Return a type of Relax's as one of ours."""
    if hasattr(type_, "fields"):
        return TupleType(tuple(map(read_type, type_.fields)))
    if not hasattr(type_, "shape"):
        return OtherType()
    sizes = getattr(type_.shape, "values", None)
    shape = None if sizes is None else tuple(map(read_size, sizes))
    return TensorType(shape, str(type_.dtype))


def read_size(size: Any) -> Size:
    """Return a size of a shape."""
    return int(size) if isinstance(size, int | tvm.tirx.IntImm) else Symbol(size)


def symbols_in(type_: Any) -> list[tvm.tirx.Var]:
    """Return the symbolic variables in a type of Relax's."""
    analysis = relax.analysis
    find = getattr(analysis, "tir_vars_in_type", None) or analysis.tir_vars_in_struct_info
    return list(find(type_))


def tuple_type(types: list[Any]) -> Any:
    """Return Relax's type of a tuple."""
    return (getattr(relax, "TupleStructInfo", None) or relax.TupleType)(types)


def constant_array(expr: relax.Expr) -> np.ndarray | None:
    """Return the data of a constant (``.data``, or ``.value`` since 0.27); else None."""
    if type(expr).__name__ not in ("Constant", "GenericConst"):
        return None
    data = expr.data if hasattr(expr, "data") else expr.value
    return data.numpy() if hasattr(data, "numpy") else None


def name_of(var: relax.Var) -> str:
    """Return a variable's name: ``.name``, until 0.26 ``.name_hint``."""
    return var.name if hasattr(var, "name") else var.name_hint


def number(expr: Any) -> int | float:
    """Return a number's value, which is wrapped once, or until 0.26 twice.

    Raises
    ------
    SymbolicNumber
    """
    while hasattr(expr, "value"):
        expr = expr.value
    if not isinstance(expr, int | float):
        raise SymbolicNumber(f"expected a number, got {expr}")
    return expr


def tensor_type(type_: TensorType) -> Any:
    """Return a type of ours of known rank as Relax's."""
    make = getattr(relax, "TensorStructInfo", None) or relax.TensorType
    sizes = [size.expr if isinstance(size, Symbol) else size for size in type_.shape]
    return make(sizes, type_.dtype)
