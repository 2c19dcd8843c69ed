"""Reads a dataflow block of Relax as expressions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tvm import relax, tirx
from tvm.ir import Op as RelaxOp

from ..ir import Call, Constant, Expr, Op, Tuple, op_name
from ..ir.relax_expr import TensorType, TupleType, Type, Var
from .compat import constant_array, read_type, relax_type, symbols_in
from .kernels import Kernels
from .operators import is_all_read, read_call, read_field
from .widen import widened

_CALL_TIR = RelaxOp.get("relax.call_tir")


@dataclass
class Block:
    """A dataflow block.

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
        cls, block: relax.DataflowBlock, widened: bool = False, kernels: Kernels | None = None
    ) -> "Block":
        """Read a block; `widened`: as if what is in bf16 or f16 were in f32, see ``widen``."""
        bindings = {binding.var: binding for binding in block.bindings}
        self = cls(bindings, widened=widened, kernels=kernels)
        constants: dict[Any, Constant] = {}
        known: dict[Any, Expr] = {}
        for var, binding in self.bindings.items():
            expr = self._read(binding, constants)
            expr = known.setdefault(_key(binding, expr), expr)
            if expr.var is None:
                expr.var = var
            self.values[var] = expr
        self._find_casts()
        outputs = [
            self.values[var] for var in self.bindings if not isinstance(var, relax.DataflowVar)
        ]
        types = tuple(expr.checked_type for expr in outputs)
        self.body = Tuple(TupleType(types), outputs)
        return self

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
            if isinstance(expr, relax.Var):
                if expr not in self.values:
                    self.values[expr] = Var(self._type(expr), var=expr)
                return self.values[expr]
            array = constant_array(expr)
            if array is not None:
                if expr not in constants:
                    type_ = self._type(expr)
                    constants[expr] = Constant(type_, array.astype(type_.dtype, copy=False))
                return constants[expr]
            own = self._type(expr)
            if isinstance(expr, relax.Tuple):
                return Tuple(own, [value(item) for item in expr.fields])
            return Var(own)

        if not isinstance(binding, relax.VarBinding):  # a match_cast, which may fail
            return _opaque(binding.value, type_, value)
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
        return value(expr)


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
    return (expr.op, args, repr(vars(expr.attrs)), shape, type_.dtype)


def _number_or_self(expr: Expr) -> Any:
    if isinstance(expr, Constant) and not expr.array.ndim:
        return str(expr.array.dtype), expr.array.tobytes()
    return expr


def _opaque(expr: Any, type_: Type, value: Callable[[Any], Expr]) -> Expr:
    """Return what stands for an expression of which only what it reads is known."""
    return Call(Op(""), [value(var) for var in relax.analysis.free_vars(expr)], checked_type=type_)
