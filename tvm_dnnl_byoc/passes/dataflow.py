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
    return list(inputs_by_expr(body))


def inputs_by_expr(body: Expr) -> dict[Expr, list[Expr]]:
    """Return what every expression under ``body`` reads, by expression, in post-order."""
    reads: dict[Expr, list[Expr]] = {}  # asked for once: TVM takes a while to answer
    found: dict[Expr, list[Expr]] = {}
    stack = [body]
    while stack:
        expr = stack.pop()
        if expr in found:
            continue
        if expr in reads:  # and so all that it reads has been found
            found[expr] = reads[expr]
            continue
        reads[expr] = inputs_of(expr)
        stack.append(expr)
        stack.extend(e for e in reversed(reads[expr]) if e not in found)
    return found


def count_uses(body: Expr) -> Counter[Expr]:
    """Count how often each expression is read, the function's result being one reader."""
    uses: Counter[Expr] = Counter([body])
    for inputs in inputs_by_expr(body).values():
        uses.update(inputs)
    return uses


def with_inputs(expr: Expr, inputs: list[Expr]) -> Expr:
    """Return the expression with other inputs; the same object if they are the same."""
    return expr if _are_same(inputs, inputs_of(expr)) else ir.with_inputs(expr, inputs)


def _are_same(some: list[Expr], others: list[Expr]) -> bool:
    return all(one.same_as(other) for one, other in zip(some, others, strict=True))


def with_body(function: Function, body: Expr) -> Function:
    """Return the function with another body of the same type; the same object if it is the same."""
    if body.same_as(function.body):
        return function
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
    for old, inputs in inputs_by_expr(body).items():
        now = [new[e] for e in inputs]
        expr = old if _are_same(now, inputs) else ir.with_inputs(old, now)
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
