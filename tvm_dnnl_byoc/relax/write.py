"""Writes expressions as Relax: what was read as it was, what is new in Relax's words."""

from collections import deque
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
import tvm
from tvm import relax

from ..ir import Call, Constant, Expr, Op, Tuple, TupleGetItem
from ..ir.relax_expr import TensorType, Var
from ..passes.dataflow import inputs_of, post_order
from .compat import constant_array, relax_type, symbols_in, tensor_type
from .read import Block
from .words import in_words


class Writer:
    """Writes an expression whose leaves are those of a block that was read.

    Parameters
    ----------
    read : Block
        Also what it has under no expression of the body, but needs, such as checks of shapes.

    Attributes
    ----------
    bindings : list of relax.Binding
        What was written, in order.
    """

    def __init__(self, read: Block):
        self.bindings: list[Any] = []
        self._read = read
        self._builder = relax.BlockBuilder()
        self._opaque: dict[Any, Expr] = {}  # by variable
        self._written: dict[Expr, relax.Expr | None] = {}
        self._bound: set[Any] = set()

    def write(self, body: Expr) -> relax.Expr:
        """Write an expression; return the variable for it, or the tuple of them."""
        self._opaque = {expr.var: expr for expr in post_order(body) if _is_opaque(expr)}
        needed: dict[Expr, list[Expr]] = {}
        stack = [body]
        while stack:
            expr = stack.pop()
            if expr not in needed:
                needed[expr] = [*inputs_of(expr), *map(self._value, self._also_needed(expr))]
                stack += needed[expr]
        for expr in TopologicalSorter(needed).static_order():
            self._written[expr] = self._write(expr)
        return self._builder.normalize(self._written[body])

    def _also_needed(self, expr: Expr) -> list[relax.Var]:
        """Return what gives symbolic sizes their values, and shapes that are no arguments to us."""
        casts = map(self._read.casts.get, _symbols(expr))
        found = [var for var in casts if var is not None and not var.same_as(expr.var)]
        if isinstance(expr, Call) and isinstance(expr.origin, relax.Call) and not _is_opaque(expr):
            values = [arg for arg in expr.origin.args if _is_value(arg)]
            found += [arg for arg in values[len(expr.args) :] if isinstance(arg, relax.Var)]
        if isinstance(expr, Var) and expr.var in self._read.bindings:  # as that of a shape
            reads = relax.analysis.free_vars(self._read.bindings[expr.var].value)
            found += [var for var in reads if var in self._read.bindings]
        return found

    def _value(self, var: relax.Var) -> Expr:
        """Return what stands for a variable that was read."""
        return self._opaque.get(var, self._read.values[var])

    def _write(self, expr: Expr) -> relax.Expr | None:
        args = [self._written[e] for e in inputs_of(expr)]
        if isinstance(expr, Constant):
            return relax.const(tvm.runtime.tensor(np.asarray(expr.array, order="C")))
        if isinstance(expr, Tuple):  # of numbers: an argument that stays as it was
            return None if any(arg is None for arg in args) else relax.Tuple(args)
        if isinstance(expr, TupleGetItem):
            return self._bind(relax.TupleGetItem(args[0], expr.index))
        if isinstance(expr, Var) or _is_opaque(expr):
            return self._keep(expr)
        if expr.origin is None:
            return self._bind(in_words(self._bind, expr, *args))
        own = deque(args)
        args = [self._argument(arg, own) for arg in expr.origin.args]
        given = getattr(expr.origin, "ty_args", None) or getattr(expr.origin, "sinfo_args", None)
        return self._bind(relax.Call(expr.origin.op, args, expr.origin.attrs, given))

    def _argument(self, arg: relax.Expr, own: deque[relax.Expr | None]) -> relax.Expr:
        """Return what stands for an argument that was read: the next of ours, if it is one."""
        if not _is_value(arg):
            return arg
        if own:
            new = own.popleft()
            return arg if new is None else new
        return self._written[self._value(arg)] if isinstance(arg, relax.Var) else arg

    def _bind(self, value: relax.Expr) -> relax.Var:
        value = self._builder.normalize(value)
        var = relax.Var("lv", relax_type(value))
        self.bindings.append(relax.VarBinding(var, value))
        return var

    def _keep(self, expr: Expr) -> relax.Var:
        """Write the binding as it was; and before it what it reads, as it calls that."""
        binding = self._read.bindings.get(expr.var)
        if binding is None or expr.var in self._bound:
            return expr.var
        names = relax.analysis.free_vars(binding.value)
        values = expr.args if isinstance(expr, Call) else map(self._read.values.get, names)
        for var, value in zip(names, values, strict=True):
            if var in self._read.bindings and var not in self._bound:
                self._bound.add(var)
                if not self._written[value].same_as(var):
                    self.bindings.append(relax.VarBinding(var, self._written[value]))
        self._bound.add(expr.var)
        self.bindings.append(binding)
        return expr.var


def _is_opaque(expr: Expr) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and not expr.op.name


def _is_value(arg: relax.Expr) -> bool:
    """Whether an argument of Relax's may be one of ours, too."""
    return isinstance(arg, relax.Var | relax.Tuple) or constant_array(arg) is not None


def _symbols(expr: Expr) -> list[tvm.tirx.Var]:
    type_ = expr.checked_type
    if isinstance(type_, TensorType):
        return [] if type_.shape is None else symbols_in(tensor_type(type_))
    return [] if expr.var is None else symbols_in(relax_type(expr.var))
