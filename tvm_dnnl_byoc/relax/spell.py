"""Expressions that were made while partitioning, as Relax's: what a region reads of TVM."""

from collections.abc import Callable
from typing import Any

from tvm import relax
from tvm.relax import op

from ..ir import Call, Expr, op_name

_SPELL: dict[str, Callable[[Call, Any], relax.Expr]] = {
    "clip": lambda call, x: op.clip(x, call.attrs.a_min, call.attrs.a_max),
    "cast": lambda call, x: op.astype(x, call.checked_type.dtype),
}


def is_made(expr: Expr) -> bool:
    """Whether an expression has no variable, but can be spelled in Relax from what has one."""
    return (
        expr.var is None
        and op_name(expr) in _SPELL
        and all(arg.var is not None or is_made(arg) for arg in expr.args)
    )


def spelled(expr: Call, *args: Any) -> relax.Expr:
    """Return a made expression of these variables."""
    return _SPELL[op_name(expr)](expr, *args)
