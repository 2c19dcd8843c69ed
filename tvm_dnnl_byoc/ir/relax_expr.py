"""The classes of the expressions for Relax; see ``relax.py``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

try:
    from tvm.sym import Analyzer
except ImportError:  # until 0.26
    from tvm.arith import Analyzer


@dataclass(frozen=True, eq=False)
class Symbol:
    """A size that only a run knows. Two are equal if that follows from their expressions.

    Attributes
    ----------
    expr : tirx.PrimExpr
    """

    expr: Any

    def __eq__(self, other: object) -> bool:
        """Whether it is the same size in every run."""
        return isinstance(other, Symbol) and Analyzer().can_prove_equal(self.expr, other.expr)

    __hash__ = None

    def __str__(self) -> str:
        """Return the expression as TVM prints it."""
        return str(self.expr)


Size = int | Symbol


@dataclass(frozen=True)
class TensorType:
    """A tensor's type.

    Attributes
    ----------
    shape : tuple of int and Symbol, or None
        None if not even the rank is known, or not what the sizes depend on.
    dtype : str
    """

    shape: tuple[Size, ...] | None
    dtype: str

    @property
    def is_static(self) -> bool:
        """Whether all sizes are known before a run."""
        return self.shape is not None and not any(isinstance(size, Symbol) for size in self.shape)


@dataclass(frozen=True)
class TupleType:
    """The type of a tuple."""

    fields: tuple["Type", ...]


@dataclass(frozen=True)
class OtherType:
    """That of a shape, a number, a function."""


Type = TensorType | TupleType | OtherType


@dataclass(eq=False)
class Expr:
    """An expression, which is equal only to itself.

    Attributes
    ----------
    checked_type : Type
    var : relax.Var or None
        A variable of Relax's that has this value; None if there is none.
    """

    checked_type: Type
    var: Any = field(default=None, kw_only=True)

    def same_as(self, other: "Expr") -> bool:
        """Whether it is the same expression."""
        return self is other


@dataclass(eq=False)
class Var(Expr):
    """A parameter, or whatever else nothing is known of but its type."""


@dataclass(eq=False)
class Constant(Expr):
    """An array; bfloat16 is that of ml_dtypes."""

    array: np.ndarray


@dataclass(eq=False)
class Tuple(Expr):
    """A tuple of expressions."""

    fields: Sequence[Expr]


@dataclass(eq=False)
class TupleGetItem(Expr):
    """A field of an expression that is a tuple."""

    tuple_value: Expr
    index: int


@dataclass(frozen=True)
class Op:
    """An operator, by Relay's name."""

    name: str


@dataclass
class Function:
    """A function; a composed activation's attributes are "alg", "alpha" and "beta"."""

    params: Sequence[Var]
    body: Expr
    ret_type: Type | None = None
    type_params: Sequence = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def with_attr(self, attrs: Mapping[str, Any]) -> "Function":
        """Return the function with more attributes."""
        return Function(self.params, self.body, attrs={**self.attrs, **attrs})


class Call(Expr):
    """A call of an operator or of a composed activation, or what only TVM knows.

    Parameters
    ----------
    op : Op or Function
    args : sequence of Expr
    attrs : SimpleNamespace, optional
    checked_type : Type, optional
        By default that of the function's body.
    var : relax.Var, optional
    origin : relax.Expr or relax.MatchCast, optional
        What it was read from, if it is that, perhaps of other arguments.
    """

    def __init__(self, op, args, attrs=None, checked_type=None, var=None, origin=None):
        super().__init__(checked_type or op.body.checked_type, var=var)
        self.op = op
        self.args = list(args)
        self.attrs = attrs or SimpleNamespace()
        self.origin = origin
