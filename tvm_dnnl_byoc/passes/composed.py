r"""Finds activations that are composed of several operators, and makes one call of each.

::

        x                     x
      /   \                   |
     |    add(3)          (p) ↦ p · clip(p + 3, 0, 6) / 6     alg "hardswish", alpha, beta
     |    clip(0, 6)  →       |
      \   /                   y
     multiply
    divide(6)

The function's body is what it stands for, and is put back where oneDNN does not run it.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict

import numpy as np

from ..ir import (
    Call,
    Constant,
    Expr,
    Function,
    array_of,
    call_function,
    op_name,
    parameter,
    shape_of,
)
from .activations import Activation, erf, recognise
from .dataflow import inputs_of, post_order, replace, with_body, with_inputs

_MAX_OPERATORS = 12
# Of a chain of straight pieces, such as clip((x + 3) / 6).
_MAX_STRAIGHT = 4
_CURVED = {"erf", "exp", "fast_erf", "fast_exp", "fast_tanh", "log", "power", "sigmoid", "tanh"}

_EVALUATE: dict[str, Callable] = {
    "abs": lambda attrs, x: np.abs(x),
    "add": lambda attrs, x, y: x + y,
    "clip": lambda attrs, x: np.clip(x, attrs.a_min, attrs.a_max),
    "divide": lambda attrs, x, y: x / y,
    "erf": lambda attrs, x: erf(x),
    "exp": lambda attrs, x: np.exp(x),
    "fast_exp": lambda attrs, x: np.exp(x),
    "fast_erf": lambda attrs, x: erf(x),
    "fast_tanh": lambda attrs, x: np.tanh(x),
    "full_like": lambda attrs, x, y: np.full_like(x, y),
    "greater": lambda attrs, x, y: x > y,
    "greater_equal": lambda attrs, x, y: x >= y,
    "less": lambda attrs, x, y: x < y,
    "less_equal": lambda attrs, x, y: x <= y,
    "log": lambda attrs, x: np.log(x),
    "maximum": lambda attrs, x, y: np.maximum(x, y),
    "minimum": lambda attrs, x, y: np.minimum(x, y),
    "multiply": lambda attrs, x, y: x * y,
    "negative": lambda attrs, x: -x,
    "nn.leaky_relu": lambda attrs, x: np.where(x > 0, x, attrs.alpha * x),
    "nn.relu": lambda attrs, x: np.maximum(x, 0),
    "ones_like": lambda attrs, x: np.ones_like(x),
    "power": lambda attrs, x, y: np.power(x, y),
    "rsqrt": lambda attrs, x: 1 / np.sqrt(x),
    "sigmoid": lambda attrs, x: 1 / (1 + np.exp(-x)),
    "sqrt": lambda attrs, x: np.sqrt(x),
    "subtract": lambda attrs, x, y: x - y,
    "tanh": lambda attrs, x: np.tanh(x),
    "where": lambda attrs, condition, x, y: np.where(condition, x, y),
    "zeros_like": lambda attrs, x: np.zeros_like(x),
}


def combine_activations(function: Function) -> Function:
    """Replace each composed activation of a type-inferred function by a call of a function.

    The new functions have the attributes "alg", "alpha" and "beta".
    """
    order = post_order(function.body)
    found = _find(order)
    if not found:
        return function
    new: dict[Expr, Expr] = {}
    for expr in order:
        if expr in found:
            source, activation = found[expr]
            new[expr] = call_function(activation, new[source], expr)
        else:
            new[expr] = with_inputs(expr, [new[e] for e in inputs_of(expr)])
    return with_body(function, new[function.body])


def composed_of(expr: Expr) -> str | None:
    """Return what the call of a composed function stands for; None for other expressions.

    That is oneDNN's algorithm of an activation, or an operator of other ranks than Relay's.
    """
    if isinstance(expr, Call) and isinstance(expr.op, Function) and expr.op.attrs:
        return expr.op.attrs.get("alg") or expr.op.attrs.get("op")
    return None


def spelled_out(call: Call, inputs: list[Expr]) -> Expr:
    """Return a composed function's call as it was before it was combined, on other inputs."""
    return replace(call.op.body, dict(zip(call.op.params, inputs, strict=True)))


def _find(order: list[Expr]) -> dict[Expr, tuple[Expr, Function]]:
    """Return, by the last expression of each activation, its argument and its function."""
    position = {expr: i for i, expr in enumerate(order)}
    readers: dict[Expr, set[Expr]] = {}
    for reader in order:
        for expr in inputs_of(reader):
            readers.setdefault(expr, set()).add(reader)
    found: dict[Expr, tuple[Expr, Function]] = {}
    inside: set[Expr] = set()
    # The last ones first: mish contains a softplus.
    for root in reversed(order):
        if root in inside or not _is_elementwise(root):
            continue
        # From the largest formula to the smallest: a scale that goes before belongs to it.
        for source, members in reversed(list(_formulas(root, position, readers))):
            # Numbers do not change a shape; sizes that only a run knows are the same in both.
            fits = shape_of(root) and shape_of(source) == shape_of(root)
            activation = _recognise(source, members) if fits else None
            if activation:
                found[root] = source, _function(source, root, activation)
                inside.update(members)
                break
    return found


def _formulas(
    root: Expr, position: dict[Expr, int], readers: dict[Expr, set[Expr]]
) -> Iterator[tuple[Expr, list[Expr]]]:
    """Yield (x, members): the ways to see `root` as a formula of one x, the smallest first.

    ``members`` are the formula's expressions, in order; of all but the last, only they read.
    """
    members: list[Expr] = []
    frontier = {root}
    limit = _MAX_STRAIGHT
    while len(members) < limit:
        last = max(frontier, key=position.__getitem__)
        if not _is_elementwise(last) or (members and not readers[last] <= set(members)):
            return
        members.insert(0, last)
        frontier.remove(last)
        if op_name(last) in _CURVED:
            limit = _MAX_OPERATORS
        frontier.update(e for e in inputs_of(last) if not _is_number(e))
        if len(frontier) > 1:
            limit = _MAX_OPERATORS
        if len(frontier) == 1:
            (x,) = frontier
            if len(members) > 1 or inputs_of(last).count(x) > 1:
                yield x, list(members)
        if not frontier:
            return


def _recognise(source: Expr, members: list[Expr]) -> Activation | None:
    numbers = {e: _number(e) for m in members for e in inputs_of(m) if _is_number(e)}
    constants = list(numbers.values())
    constants += [
        b for m in members if op_name(m) == "clip" for b in (m.attrs.a_min, m.attrs.a_max)
    ]

    def evaluate(x: np.ndarray) -> np.ndarray:
        values = {source: x, **numbers}
        for expr in members:
            name = op_name(expr)
            values[expr] = _EVALUATE[name](expr.attrs, *(values[e] for e in inputs_of(expr)))
        return values[members[-1]]

    return recognise(evaluate, constants)


def _function(source: Expr, root: Expr, activation: Activation) -> Function:
    param = parameter("p", source)
    function = Function([param], replace(root, {source: param}))
    return function.with_attr(asdict(activation))


def _is_elementwise(expr: Expr) -> bool:
    return op_name(expr) in _EVALUATE


def _is_number(expr: Expr) -> bool:
    return isinstance(expr, Constant) and array_of(expr).size == 1


def _number(expr: Expr) -> float:
    return float(array_of(expr).reshape(()))
