"""A function's body as a graph: iterative traversal and rewriting.

Relay's own Python visitors recurse, and networks are deeper than Python's stack. Control flow
(``If``, ``Let``, ``Match``, nested functions) is opaque here: such an expression is a leaf that is
kept as it is.
"""

from collections import Counter
from collections.abc import Callable

from .. import ir
from ..ir import Call, Constant, Expr, Function, Tuple, TupleGetItem, op_name


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
    return ir.with_inputs(expr, inputs)


def with_body(function: Function, body: Expr) -> Function:
    """Return the function with another body of the same type."""
    return Function(function.params, body, function.ret_type, function.type_params, function.attrs)


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


def concat_parts(concat: Call) -> list[Expr]:
    """Return what a ``concatenate`` puts together; nothing if that is one call, of a ``split``."""
    parts = concat.args[0]
    return list(parts.fields) if isinstance(parts, Tuple) else []


def is_constant(expr: Expr) -> bool:
    """Whether an expression is a constant, or one that is dequantized."""
    if op_name(expr) == "qnn.dequantize":
        return all(isinstance(arg, Constant) for arg in expr.args)
    return isinstance(expr, Constant)
