"""Names for the sizes that only a run knows.

TVM's frontends give each such size the type ``Any``, of which two are never known to be equal, and
compute the shapes that a model reshapes to in the model, as tensors of integers. Here the sizes of
the inputs get names, that arithmetic is followed with the names, and what a ``dyn.reshape`` does
becomes a ``reshape``, where its codes can say it, or a ``reshape_like``; a ``dyn.broadcast_to`` to
the shape that a tensor has goes. TVM's type inference then carries the names on.

Sizes are taken to be at least 1. Two names that meet in an elementwise operation become one: in a
run in which one of them is 1, the engine broadcasts, as it goes by the tensors that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap

import numpy as np
import tvm
from tvm import relay, tir
from tvm.relay.expr import Call, Constant, Expr, Tuple, Var
from tvm.relay.op import op as relay_op

from ..ir import op_name, with_inputs
from ..passes.dataflow import concat_parts, inputs_of, post_order
from .slices import slice_bounds
from .symbolic import (
    Product,
    Size,
    Sizes,
    count,
    quotient,
    reshape,
    size_of,
    sole_name,
    split_of_two,
)

_SIZED = "dnnl_byoc.sized"
_LARGEST = np.iinfo(np.int32).max  # as an end, it means all
_CONTROL_FLOW = (relay.If, relay.Let, relay.Match, relay.Function)
_BROADCASTING = {
    *("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "where", "equal"),
    *("not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or"),
}


def name_sizes(function: relay.Function) -> relay.Function | None:
    """Return a type-inferred function with named sizes; None if they cannot be followed.

    `forget_sizes` takes the names away again.
    """
    if any(isinstance(expr, _CONTROL_FLOW) for expr in post_order(function.body)):
        return None
    names = {
        (param, axis): f"{param.name_hint}_{number}_{axis}"
        for number, param in enumerate(function.params)
        if isinstance(param.checked_type, relay.TensorType)
        for axis, size in enumerate(param.checked_type.shape)
        if isinstance(size, tir.Any)
    }
    while names:
        try:
            return _Namer(function, names).run()
        except _Meeting as meeting:
            one, other = meeting.args
            names = {key: one if name == other else name for key, name in names.items()}
        except tvm.TVMError:  # types that do not fit: only a run can say more
            break
    return None


def has_named_sizes(function: relay.Function) -> bool:
    """Whether a parameter has a size with a name."""
    return any(
        isinstance(size, tir.Var)
        for param in function.params
        if isinstance(param.type_annotation, relay.TensorType)
        for size in param.type_annotation.shape
    )


def forget_sizes(function: relay.Function) -> relay.Function:
    """Return a function without names of sizes."""
    params = {
        param: relay.var(param.name_hint, _without_names(param.type_annotation))
        for param in function.params
    }
    values: dict[Expr, Expr] = dict(params)
    for expr in post_order(function.body):
        if expr in values:
            continue
        new = _with(expr, [values[e] for e in inputs_of(expr)])
        if op_name(new) == _SIZED:
            new = new.args[0]
        elif isinstance(new, Call) and isinstance(new.op, relay.Function):
            new = Call(forget_sizes(new.op), new.args, new.attrs, new.type_args, new.span)
        values[expr] = new
    body, type_ = values[function.body], _without_names(function.ret_type)
    return relay.Function(list(params.values()), body, type_, attrs=function.attrs)


def _with(expr: Expr, inputs: list[Expr]) -> Expr:
    return with_inputs(expr, inputs) if inputs else expr


def _without_names(type_: relay.Type | None) -> relay.Type | None:
    if isinstance(type_, relay.TupleType):
        return relay.TupleType([_without_names(field) for field in type_.fields])
    if not isinstance(type_, relay.TensorType):
        return type_
    shape = [size if isinstance(size, tir.IntImm) else relay.Any() for size in type_.shape]
    return relay.TensorType(shape, type_.dtype)


class _Meeting(Exception):
    """Two names are the sizes of what is combined elementwise."""


class _Namer:
    def __init__(self, function: relay.Function, names: dict[tuple[Var, int], str]):
        self.function = function
        self.names = names
        self.vars = {name: tir.SizeVar(name, "int32") for name in names.values()}
        # By new expression: its type, and, of whole numbers, what is known of each.
        self.types: dict[Expr, relay.Type] = {}
        self.numbers: dict[Expr, np.ndarray] = {}

    def run(self) -> relay.Function:
        params = {param: self.named(param) for param in self.function.params}
        self.places = {
            Product(1, {name: 1}): (params[param], axis)
            for (param, axis), name in reversed(self.names.items())
        }
        new: dict[Expr, Expr] = dict(params)
        for param in params.values():
            self.note(param)
        for expr in post_order(self.function.body):
            if expr not in new:
                new[expr] = self.resolve(_with(expr, [new[e] for e in inputs_of(expr)]))
            self.note(new[expr])
        body = new[self.function.body]
        return relay.Function(list(params.values()), body, attrs=self.function.attrs)

    def named(self, param: Var) -> Var:
        type_ = param.checked_type
        if not isinstance(type_, relay.TensorType):
            return param
        sizes = [
            self.vars[self.names[param, axis]] if (param, axis) in self.names else size
            for axis, size in enumerate(type_.shape)
        ]
        return relay.var(param.name_hint, shape=sizes, dtype=type_.dtype)

    def note(self, expr: Expr) -> None:
        """Infer the type of an expression, and what is known of its numbers."""
        if expr in self.types or isinstance(expr, tvm.ir.Op):
            return
        if op_name(expr) in _BROADCASTING:
            self.expect_one_name([self.sizes(arg) for arg in expr.args])
        self.types[expr] = relay.transform.InferTypeLocal(expr)
        sizes = self.sizes(expr)
        is_short = sizes is not None and len(sizes) < 2 and all(isinstance(s, int) for s in sizes)
        if is_short and self.types[expr].dtype in ("int32", "int64", "bool"):
            numbers = np.full(sizes, None, object)
            found = self.evaluate(expr)
            if found is not None:
                numbers[...] = np.asarray(found, object).reshape(sizes)
            self.numbers[expr] = numbers

    def sizes(self, expr: Expr) -> tuple[Size | None, ...] | None:
        type_ = self.types[expr]
        if not isinstance(type_, relay.TensorType):
            return None
        return tuple(map(size_of, type_.shape))

    def expect_one_name(self, shapes: list) -> None:
        for axis in range(-max(len(shape or ()) for shape in shapes), 0):
            along = {shape[axis] for shape in shapes if shape and len(shape) >= -axis}
            names = sorted(filter(None, map(sole_name, along)))
            if len(names) > 1:
                raise _Meeting(*names[:2])

    # --- what becomes of the operators that are given a shape ------------------------------------

    def resolve(self, expr: Expr) -> Expr:
        name = op_name(expr) or ""
        if name == "shape_of":
            return self.shape_by_inputs(expr)
        wanted = self.wanted(expr)
        if wanted is None or None in wanted:
            return expr
        data = expr.args[0]
        if name in ("dyn.reshape", "dyn.broadcast_to") and self.sizes(data) == wanted:
            return data
        if name == "dyn.reshape":
            result = self.reshape(data, wanted)
            if result is not None:
                return result
        return self.sized(expr, wanted)

    def wanted(self, call: Call) -> tuple[Size | None, ...] | None:
        """Return the shape of the result of an operator that is given it as numbers."""
        rule = {
            "dyn.broadcast_to": self.sizes_of_broadcast,
            "dyn.reshape": self.sizes_of_reshape,
            "dyn.strided_slice": self.sizes_of_slice,
            "arange": self.sizes_of_range,
        }.get(op_name(call) or "")
        return rule and rule(call)

    def sizes_of_broadcast(self, call: Call):
        numbers = self.numbers.get(call.args[1])
        return None if numbers is None else tuple(numbers)

    def sizes_of_reshape(self, call: Call):
        numbers, sizes = self.numbers.get(call.args[1]), self.sizes(call.args[0])
        if numbers is None:
            return None
        wanted = [
            (sizes[axis] if axis < len(sizes) else None) if size == 0 else size
            for axis, size in enumerate(numbers)
        ]
        if -1 in wanted and None not in (*wanted, *sizes):
            rest = count([size for size in wanted if size != -1])
            wanted[wanted.index(-1)] = quotient(count(sizes), rest)
        return tuple(wanted)

    def sizes_of_range(self, call: Call):
        numbers = [self.numbers.get(arg) for arg in call.args]
        if any(number is None for number in numbers):
            return None
        start, stop, step = (number.item() for number in numbers)
        return (stop,) if start == 0 and step == 1 and isinstance(stop, Product) else None

    def shape_by_inputs(self, call: Call) -> Expr:
        """Return the shape of a tensor by those of the inputs, so that it can be had before it."""
        data, dtype = call.args[0], call.attrs.dtype
        sizes = self.sizes(data)
        if (
            isinstance(data, Var)
            or not sizes
            or not all(isinstance(size, int) or size in self.places for size in sizes)
        ):
            return call
        parts: list[Expr] = []
        for size in sizes:
            if isinstance(size, int):
                parts.append(relay.const([size], dtype))
            else:
                param, axis = self.places[size]
                shape = relay.shape_of(param, dtype)
                self.note(shape)
                parts.append(relay.strided_slice(shape, [axis], [axis + 1]))
            self.note(parts[-1])
        together = Tuple(parts)
        self.note(together)
        return relay.concatenate(together, 0)

    def sizes_of_slice(self, call: Call):
        """Return what a slice leaves that begins at the beginning."""
        sizes = self.sizes(call.args[0])
        begin, end, strides = (self.numbers.get(arg) for arg in call.args[1:4])
        if any(numbers is None for numbers in (begin, end, strides)):
            return None
        if len(end) != len(sizes) or set(strides) != {1} or set(begin) != {0}:
            return None
        return tuple(starmap(_cut, zip(sizes, end, strict=True)))

    def reshape(self, data: Expr, wanted: Sizes) -> Expr | None:
        sizes = self.sizes(data)
        axis = split_of_two(sizes, wanted)
        like = None if axis is None else self.find_like(data, wanted[axis : axis + 2])
        if like is None:
            return reshape(data, sizes, wanted)
        split = relay.reshape_like(data, like[0], axis, axis + 1, like[1], like[1] + 2)
        self.note(split)
        if self.sizes(split) == wanted:
            return split
        return reshape(split, self.sizes(split), wanted)

    def find_like(self, data: Expr, pair: Sizes) -> tuple[Expr, int] | None:
        """Return the nearest tensor that `data` was computed of with these sizes, and where."""
        queue, seen = [data], {data}
        for expr in queue:
            sizes = self.sizes(expr)
            if sizes and self.types[expr].dtype == "float32":
                for axis in range(len(sizes) - 1):
                    if sizes[axis : axis + 2] == pair:
                        return expr, axis
            new = [e for e in inputs_of(expr) if e not in seen and e in self.types]
            queue += new
            seen.update(new)
        return None

    def sized(self, expr: Expr, sizes: Sizes) -> Expr:
        """Return an expression with a type that TVM cannot infer."""
        self.note(expr)
        type_ = relay.TensorType([self.as_expr(size) for size in sizes], self.types[expr].dtype)
        attrs = tvm.ir.make_node("DictAttrs", type=type_)
        return Call(tvm.ir.Op.get(_SIZED), [expr], attrs)

    def as_expr(self, size: Size) -> tir.PrimExpr | int:
        if isinstance(size, int):
            return size
        result = tir.IntImm("int32", size.factor)
        for name, power in size.powers.items():
            for _ in range(power):
                result = self.vars[name] if _is_one(result) else result * self.vars[name]
        return result

    # --- numbers ---------------------------------------------------------------------------------

    def evaluate(self, expr: Expr):
        """Return what is known of the numbers of a vector or a number; None for nothing."""
        if isinstance(expr, Constant):
            array = expr.data.numpy()
            return array.astype(object) if array.dtype == bool else array.astype(int).astype(object)
        name = op_name(expr)
        if name == "shape_of":
            return self.sizes(expr.args[0])
        if name == "concatenate":
            parts = [self.numbers.get(part) for part in concat_parts(expr)]
            known = all(part is not None for part in parts)
            return np.concatenate(parts) if known and parts else None
        rule = _NUMBERS.get(name or "")
        args = [self.numbers.get(arg) for arg in getattr(expr, "args", ())]
        if rule is None or any(arg is None for arg in args):
            return None
        return rule(expr.attrs, *args)


def _cut(size: Size | None, end: Size | None) -> Size | None:
    """Return how much there is up to an end; of a known size, a named end is taken to be inside."""
    if isinstance(end, int):
        if end >= _LARGEST or end == size:
            return size
        return min(size, end) if isinstance(size, int) and end >= 0 else None
    return end if end == size or isinstance(size, int) else None


def _is_one(expr: tir.PrimExpr) -> bool:
    return isinstance(expr, tir.IntImm) and int(expr) == 1


def _each(function: Callable) -> Callable:
    """Return a rule that applies a function to numbers, and knows nothing where one is unknown."""

    def apply(_, *arrays):
        arrays = np.broadcast_arrays(*arrays)
        results = [
            None if None in numbers else function(*numbers)
            for numbers in zip(*(array.flat for array in arrays), strict=True)
        ]
        found = np.empty(len(results), object)
        found[:] = results
        return found.reshape(arrays[0].shape)

    return apply


def _are_equal(a: Size, b: Size) -> bool | None:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if a == b:
        return True
    return False if any(isinstance(x, int) and x < 1 for x in (a, b)) else None


def _is_less(a: Size, b: Size) -> bool | None:
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    return False if isinstance(b, int) and b <= 1 else None


def _maximum(a: Size, b: Size) -> Size | None:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    if a == b:
        return a
    numbers = [x for x in (a, b) if isinstance(x, int)]
    return (b if a is numbers[0] else a) if numbers and numbers[0] <= 1 else None


def _both(function: Callable[[int, int], int]) -> Callable:
    return _each(lambda a, b: function(a, b) if isinstance(a, int) and isinstance(b, int) else None)


def _where(_, condition, a, b):
    chosen = _each(lambda c, x, y: x if c else y)
    # What is not chosen may be unknown.
    known = [np.where(array == None, -7, array) for array in (a, b)]  # noqa: E711
    result = chosen(None, condition, *known)
    unknown = chosen(None, condition, *(array == None for array in (a, b)))  # noqa: E711
    return np.where(unknown.astype(bool), None, result)


def _prod(attrs, numbers):
    return None if None in numbers.flat else count(list(numbers.flat))


def _times(a: Size, b: Size) -> Size | None:
    # A size is at least 1.
    return None if any(isinstance(x, int) and x < 0 for x in (a, b)) and a * b != 0 else a * b


def _are_known(numbers: np.ndarray) -> bool:
    return all(isinstance(number, int) for number in numbers.flat)


def _take(attrs, numbers, index):
    if not _are_known(index) or attrs.mode == "wrap":
        return None
    return np.take(numbers, index.astype(int), mode="clip")


def _scatter(attrs, data, indices, updates):
    if not _are_known(indices) or attrs.reduction != "update":
        return None
    if any(not 0 <= i < len(data) for i in indices.flat):
        return None
    result = data.copy()
    result[indices.astype(int)] = updates
    return result


def _slice(attrs, numbers):
    bounds = slice_bounds(attrs, numbers.shape)
    return bounds and numbers[tuple(slice(*pair) for pair in bounds)]


_NUMBERS: dict[str, Callable] = {
    "cast": lambda attrs, numbers: numbers,
    "expand_dims": lambda attrs, numbers: numbers,
    "squeeze": lambda attrs, numbers: numbers,
    "reshape": lambda attrs, numbers: numbers,
    "take": _take,
    "strided_slice": _slice,
    "scatter_elements": _scatter,
    "prod": _prod,
    "where": _where,
    "maximum": _each(_maximum),
    "multiply": _each(_times),
    "add": _both(lambda a, b: a + b),
    "subtract": _both(lambda a, b: a - b),
    "equal": _each(_are_equal),
    "less": _each(_is_less),
}


def _register() -> None:
    relay_op.register(_SIZED, "What it is given, with a type.")
    op = tvm.ir.Op.get(_SIZED)
    op.set_num_inputs(1)
    op.add_argument("data", "Tensor", "What has the type.")
    op.set_attrs_type_key("DictAttrs")
    op.add_type_rel("DnnlByocSized", lambda args, attrs: attrs["type"])


_register()
