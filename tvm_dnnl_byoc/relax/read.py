"""Reads a block of Relax as expressions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tvm import relax, tirx
from tvm.ir import Op as RelaxOp

from ..ir import Call, Constant, Expr, Op, Tuple, op_name, tuple_of
from ..ir.relax_expr import TensorType, Type, Var
from .compat import constant_array, read_type, relax_type, symbols_in
from .kernels import Kernels
from .operators import is_all_read, read_call, read_field
from .widen import widened

_CALL_TIR = RelaxOp.get("relax.call_tir")


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
    widened : bool
        Whether expressions are in f32 of which the variables are in bf16 or f16.
    kernels : Kernels or None
        Those of its module.
    """

    bindings: dict[Any, Any]
    values: dict[Any, Expr] = field(default_factory=dict)
    body: Expr | None = None
    casts: dict[Any, Any] = field(default_factory=dict)
    widened: bool = False
    kernels: Kernels | None = None

    @classmethod
    def read(
        cls, block: relax.BindingBlock, widened: bool = False, kernels: Kernels | None = None
    ) -> "Block":
        """Read a block; `widened`: as if what is in bf16 or f16 were in f32, see ``widen``."""
        self = cls._of(block.bindings, widened, kernels)
        self.body = tuple_of(self.values[var] for var in self.outputs)
        return self

    @classmethod
    def read_function(cls, function: relax.Function, kernels: Kernels | None = None) -> "Block":
        """Read all blocks of a function as one, of which the body is the function's result."""
        bindings = [binding for block in function.body.blocks for binding in block.bindings]
        self = cls._of(bindings, False, kernels)
        self.body = self._value(function.body.body, {})
        return self

    @classmethod
    def _of(cls, bindings: Iterable[Any], widened: bool, kernels: Kernels | None) -> "Block":
        by_var = {binding.var: binding for binding in bindings}
        self = cls(by_var, widened=widened, kernels=kernels)
        constants: dict[Any, Constant] = {}
        known: dict[Any, Expr] = {}
        for var, binding in self.bindings.items():
            expr = self._read(binding, constants)
            expr = known.setdefault(_key(binding, expr), expr)
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

    def _type(self, expr: Any) -> Type:
        type_ = read_type(relax_type(expr))
        return widened(type_) if self.widened else type_

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
        type_ = self._type(binding.var)

        def value(expr: Any) -> Expr:
            return self._value(expr, constants)

        if not isinstance(binding, relax.VarBinding):  # a match_cast, which may fail
            return _opaque(binding.value, type_, value, binding)
        expr = binding.value
        if isinstance(expr, relax.TupleGetItem):
            return read_field(value(expr.tuple_value), expr.index, type_)
        if isinstance(expr, relax.Call):
            if expr.op == _CALL_TIR and self.kernels:
                name = self.kernels.operator_of(expr)
                if name:
                    return Call(Op(name), list(map(value, expr.args[1].fields)), checked_type=type_)
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
                self.values[expr] = Var(self._type(expr), var=expr)
            return self.values[expr]
        own = self._type(expr)
        array = constant_array(expr)
        if array is not None:
            if expr not in constants:
                constants[expr] = Constant(own, array.astype(own.dtype, copy=False))
            return constants[expr]
        if isinstance(expr, relax.Tuple):
            return Tuple(own, [self._value(item, constants) for item in expr.fields])
        return Var(own)


def _tensors(args: Iterable[Expr]) -> list[Expr]:
    """Leave out shapes and numbers, which are attributes to us."""
    return [arg for arg in args if not (isinstance(arg, Var) and arg.var is None)]


def _key(binding: Any, expr: Expr) -> Any:
    """Return what is the same for two bindings of the same value, as of the masks of each layer."""
    call = getattr(binding, "value", None)
    if not isinstance(call, relax.Call) or op_name(expr) is None or not is_all_read(call, expr):
        return expr
    type_ = expr.checked_type
    if not isinstance(type_, TensorType) or type_.shape is None:
        return expr
    args = tuple(_number_or_self(arg) for arg in expr.args)
    shape = tuple(getattr(size, "expr", size) for size in type_.shape)
    if not all(isinstance(size, int | tirx.Var) for size in shape):
        return expr
    # Its own attributes, too: a reader leaves out what the engine has no use for.
    return (expr.op, args, repr(vars(expr.attrs)), str(call.attrs), shape, type_.dtype)


def _number_or_self(expr: Expr) -> Any:
    if isinstance(expr, Constant) and not expr.array.ndim:
        return str(expr.array.dtype), expr.array.tobytes()
    return expr


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
