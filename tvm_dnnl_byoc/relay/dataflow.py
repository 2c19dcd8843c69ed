"""A Relay function's body as a graph: iterative traversal and rewriting.

Relay's own Python visitors recurse, and networks are deeper than Python's stack. Control flow
(``If``, ``Let``, ``Match``, nested functions) is opaque here: such an expression is a leaf that is
kept as it is.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np
import tvm
from tvm import relay, tir
from tvm.relay.expr import Call, Constant, Expr, Tuple, TupleGetItem


def inputs_of(expr: Expr) -> list[Expr]:
    """Return the expressions that an expression reads, in order; none for a leaf."""
    if isinstance(expr, Call):
        return list(expr.args)
    if isinstance(expr, Tuple):
        return list(expr.fields)
    if isinstance(expr, TupleGetItem):
        return [expr.tuple_value]
    return []


def post_order(body: Expr) -> list[Expr]:
    """Return every expression under ``body``, each once and after those that it reads."""
    order: list[Expr] = []
    done: set[Expr] = set()
    stack = [body]
    while stack:
        expr = stack[-1]
        if expr in done:
            stack.pop()
            continue
        pending = [e for e in inputs_of(expr) if e not in done]
        if pending:
            stack.extend(reversed(pending))
        else:
            done.add(expr)
            order.append(stack.pop())
    return order


def count_uses(body: Expr) -> Counter[Expr]:
    """Count how often each expression is read, the function's result being one reader."""
    uses: Counter[Expr] = Counter([body])
    for expr in post_order(body):
        uses.update(inputs_of(expr))
    return uses


def with_inputs(expr: Expr, inputs: list[Expr]) -> Expr:
    """Return the expression with other inputs; the same object if they are the same."""
    if all(new.same_as(old) for new, old in zip(inputs, inputs_of(expr), strict=True)):
        return expr
    if isinstance(expr, Call):
        return Call(expr.op, inputs, expr.attrs, expr.type_args, expr.span)
    if isinstance(expr, Tuple):
        return Tuple(inputs, expr.span)
    return TupleGetItem(inputs[0], expr.index, expr.span)


def with_body(function: relay.Function, body: Expr) -> relay.Function:
    """Return the function with another body of the same type."""
    return relay.Function(
        function.params, body, function.ret_type, function.type_params, function.attrs
    )


def rewrite(body: Expr, rule: Callable[[Expr, Expr], Expr | None]) -> Expr:
    """Rebuild an expression from its leaves.

    Parameters
    ----------
    rule : callable
        ``rule(new, old)`` is given each expression with rewritten inputs, and as it was before. It
        returns what to put in its place, or None to keep it.
    """
    new: dict[Expr, Expr] = {}
    for old in post_order(body):
        expr = with_inputs(old, [new[e] for e in inputs_of(old)])
        new[old] = rule(expr, old) or expr
    return new[body]


def replace(body: Expr, replacements: dict[Expr, Expr]) -> Expr:
    """Rebuild an expression with others in the place of some that it reads."""
    new = dict(replacements)
    stack = [body]
    while stack:
        expr = stack[-1]
        pending = [e for e in inputs_of(expr) if e not in new]
        if expr in new:
            stack.pop()
        elif pending:
            stack.extend(pending)
        else:
            new[expr] = with_inputs(expr, [new[e] for e in inputs_of(expr)])
    return new[body]


def op_name(expr: Expr) -> str | None:
    """Return the name of the operator that an expression calls, None if it calls none."""
    if isinstance(expr, Call) and isinstance(expr.op, tvm.ir.Op):
        return expr.op.name
    return None


def array_of(expr: Expr) -> np.ndarray | None:
    """Return a constant's data, None for any other expression."""
    return expr.data.numpy() if isinstance(expr, Constant) else None


def is_constant(expr: Expr) -> bool:
    """Whether an expression is a constant, or one that is dequantized."""
    if op_name(expr) == "qnn.dequantize":
        return all(isinstance(arg, Constant) for arg in expr.args)
    return isinstance(expr, Constant)


def constant(array: np.ndarray) -> Constant:
    """Return an array as a Relay constant of the same dtype."""
    return relay.const(np.asarray(array, order="C"), dtype=str(array.dtype))


def shape_of(expr: Expr) -> tuple[int | None, ...] | None:
    """Return the shape of a float32 tensor, None for a symbolic size; None for another type."""
    type_ = expr.checked_type
    if not isinstance(type_, relay.TensorType) or type_.dtype != "float32":
        return None
    return tuple(int(size) if isinstance(size, tir.IntImm) else None for size in type_.shape)


def static_shape(expr: Expr) -> tuple[int, ...] | None:
    """Return the shape of a float32 tensor; None if it has another type or a symbolic size."""
    shape = shape_of(expr)
    return None if shape is None or None in shape else shape


def is_dynamic(type_: relay.Type) -> bool:
    """Whether a tensor, or a field of a tuple, has a symbolic size."""
    if isinstance(type_, relay.TupleType):
        return any(map(is_dynamic, type_.fields))
    return isinstance(type_, relay.TensorType) and not all(
        isinstance(size, tir.IntImm) for size in type_.shape
    )


def same_type(a: Expr, b: Expr) -> bool:
    """Whether two type-inferred expressions are tensors of one dtype and one static shape."""
    type_ = a.checked_type
    return (
        isinstance(type_, relay.TensorType)
        and all(isinstance(size, tir.IntImm) for size in type_.shape)
        and tvm.ir.structural_equal(type_, b.checked_type)
    )
