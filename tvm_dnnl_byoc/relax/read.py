"""Reads a block of Relax as expressions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tvm import relax
from tvm.ir import Op as RelaxOp

from ..ir import Call, Constant, Expr, Op, Tuple, tuple_of
from ..ir.relax_expr import Type, Var
from .compat import constant_array, read_type, relax_type, symbols_in
from .operators import read_call, read_field


@dataclass
class Block:
    """A block; outside of dataflow, others may read whatever it binds.

    Attributes
    ----------
    bindings : dict of relax.Var to relax.Binding
        In their order.
    values : dict of relax.Var to Expr
        Also of the variables from outside that it reads.
    body : Expr
        The tuple of what the block gives to others.
    casts : dict of tirx.Var to relax.Var
        By symbolic size, the variable whose ``match_cast`` gives it its value in this block.
    """

    bindings: dict[Any, Any]
    values: dict[Any, Expr] = field(default_factory=dict)
    body: Expr | None = None
    casts: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, block: relax.BindingBlock) -> "Block":
        """Read a block."""
        self = cls._of(block.bindings)
        self.body = tuple_of(self.values[var] for var in self.outputs)
        return self

    @classmethod
    def read_function(cls, function: relax.Function) -> "Block":
        """Read all blocks of a function as one, of which the body is the function's result."""
        self = cls._of(binding for block in function.body.blocks for binding in block.bindings)
        self.body = self._value(function.body.body, {})
        return self

    @classmethod
    def _of(cls, bindings: Iterable[Any]) -> "Block":
        self = cls({binding.var: binding for binding in bindings})
        constants: dict[Any, Constant] = {}
        for var, binding in self.bindings.items():
            expr = self._read(binding, constants)
            if expr.var is None:
                expr.var = var
            self.values[var] = expr
        self._find_casts()
        return self

    @property
    def outputs(self) -> list[Any]:
        """The variables that others may read."""
        return [var for var in self.bindings if not isinstance(var, relax.DataflowVar)]

    @property
    def inputs(self) -> dict[Expr, Any]:
        """By expression for it, each variable from outside."""
        return {expr: var for var, expr in self.values.items() if var not in self.bindings}

    def _find_casts(self) -> None:
        known = {
            symbol
            for var in self.values.keys() - self.bindings.keys()
            for symbol in symbols_in(relax_type(var))
        }
        for var, binding in self.bindings.items():
            for symbol in symbols_in(relax_type(var)):
                if symbol not in known and isinstance(binding, relax.MatchCast):
                    self.casts[symbol] = var
                known.add(symbol)

    def _read(self, binding: Any, constants: dict[Any, Constant]) -> Expr:
        type_ = read_type(relax_type(binding.var))

        def value(expr: Any) -> Expr:
            return self._value(expr, constants)

        if not isinstance(binding, relax.VarBinding):  # a match_cast, which may fail
            return _opaque(binding.value, type_, value, binding)
        expr = binding.value
        if isinstance(expr, relax.TupleGetItem):
            return read_field(value(expr.tuple_value), expr.index, type_)
        if isinstance(expr, relax.Call):
            if isinstance(expr.op, RelaxOp):
                return read_call(expr, _tensors(map(value, expr.args)), type_)
            return _opaque(expr, type_, value)
        if isinstance(expr, relax.If | relax.Function | relax.SeqExpr):
            return _opaque(expr, type_, value)
        return value(expr)

    def _value(self, expr: Any, constants: dict[Any, Constant]) -> Expr:
        """Return what a variable, a constant or a tuple of them stands for."""
        if isinstance(expr, relax.Var):
            if expr not in self.values:
                self.values[expr] = Var(read_type(relax_type(expr)), var=expr)
            return self.values[expr]
        own = read_type(relax_type(expr))
        array = constant_array(expr)
        if array is not None:
            if expr not in constants:
                constants[expr] = Constant(own, array)
            return constants[expr]
        if isinstance(expr, relax.Tuple):
            return Tuple(own, [self._value(item, constants) for item in expr.fields])
        return Var(own)


def _tensors(args: Iterable[Expr]) -> list[Expr]:
    """Leave out shapes and numbers, which are attributes to us."""
    return [arg for arg in args if not (isinstance(arg, Var) and arg.var is None)]


def _opaque(
    expr: Any, type_: Type, value: Callable[[Any], Expr], origin: Any | None = None
) -> Expr:
    """Return what stands for an expression of which only what it reads is known."""
    args = [value(var) for var in relax.analysis.free_vars(expr)]
    return Call(Op(""), args, checked_type=type_, origin=expr if origin is None else origin)


def calls_inside(expr: Expr) -> list[Call]:
    """Return the calls in an opaque expression's branches and functions."""
    calls: list[Call] = []
    stack = [getattr(expr, "origin", None)]
    while stack:
        item = stack.pop()
        if isinstance(item, relax.If):
            stack += [item.true_branch, item.false_branch]
        elif isinstance(item, relax.Function):
            stack.append(item.body)
        elif isinstance(item, relax.SeqExpr):
            for block in item.blocks:
                found = [e for e in Block.read(block).values.values() if isinstance(e, Call)]
                calls += found
                stack += [call.origin for call in found]
    return calls
