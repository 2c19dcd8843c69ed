"""Moves reshapes to where they disturb no fusion.

What a frontend wants of a dense layer of rank 3 it often writes with reshapes to matrices and back,
and the bias, the activation and the residual addition come after the second one.
"""

from collections import Counter

from tvm import relay
from tvm.relay.expr import Call, Expr

from ..ir import array_of, constant, op_name
from ..passes.dataflow import count_uses, rewrite, with_body, with_inputs
from .symbolic import VIEWS, Sizes, reshape, sizes_of

_UNARY = {
    *("nn.relu", "nn.leaky_relu", "clip", "sigmoid", "tanh", "fast_tanh", "exp", "fast_exp"),
    *("erf", "fast_erf", "log", "sqrt", "rsqrt", "abs", "negative"),
}
_BINARY = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "power"}
# Along the last axis, which a reshape may leave alone.
_BY_ROW = {"nn.bias_add", "nn.layer_norm", "nn.softmax", "nn.fast_softmax", "nn.log_softmax"}


def sink_views(function: relay.Function) -> relay.Function:
    """Move reshapes of a type-inferred function behind what computes the same before them.

    - f(reshape(x)) is reshape(f(x)) where f is elementwise; also with another operand that is a
      number, has the shape of the result, or lies along the last axis, if that stays.
    - dense(reshape(x)), and what else works on rows, is reshape(dense(x)) if the rows stay.
    - A number's product with a transposed tensor is the transposed product.
    - A reshape of a reshape is one, or none.
    """
    return with_body(function, _Sinker(function.body).run())


class _Sinker:
    def __init__(self, body: Expr):
        self.body = body
        self.old_uses = count_uses(body)
        # By rewritten expression: its shape, if it is float32; how often it is read.
        self.shape: dict[Expr, Sizes | None] = {}
        self.uses: Counter[Expr] = Counter()

    def run(self) -> Expr:
        return rewrite(self.body, self.rule)

    def rule(self, new: Expr, old: Expr) -> Expr:
        shape = sizes_of(old)
        self.shape[new] = shape
        result = new
        if shape is not None and isinstance(new, Call):
            result = self.reshape_once(new, shape) or self.sink(new, shape) or new
        self.shape[result] = shape
        self.uses[result] += self.old_uses[old]
        return result

    def reshape_once(self, call: Call, shape: Sizes) -> Expr | None:
        if op_name(call) not in VIEWS:
            return None
        source = call.args[0]
        while self.shape.get(source) != shape:
            inner = source.args[0] if op_name(source) in VIEWS else None
            # Rows are kept for what works on them, though no rows before: the heads of attention.
            if (
                not inner
                or not self.shape.get(inner)
                or (self.same_rows(source, call) and not self.same_rows(inner, source))
            ):
                return None if source.same_as(call.args[0]) else self.view(source, shape)
            source = inner
        return source

    def view(self, source: Expr, shape: Sizes) -> Expr | None:
        """Return the reshape of a tensor; None if only ``reshape_like`` can say it."""
        sizes = self.shape.get(source)
        return reshape(source, sizes, shape) if sizes else None

    def sink(self, new: Call, shape: Sizes) -> Expr | None:
        """Return a call of what is behind a view as the view of a call; None if there is none."""
        name = op_name(new)
        if name in _UNARY:
            return self.behind(new, 0, shape)
        if name in _BINARY:
            for i, other in ((0, 1), (1, 0)):
                if _is_number(new.args[other]) and self.shape.get(new.args[i]) == shape:
                    return self.behind(new, i, shape)
            return self.sink_binary(new, shape)
        data = new.args[0] if new.args else None
        source = self.source(data)
        if source is None or not self.same_rows(source, data):
            return None
        rest = list(new.args[1:])
        rank = len(shape)
        if name == "nn.dense":
            result = (*self.shape[source][:-1], shape[-1])
            return self.reshaped(with_inputs(new, [source, *rest]), result, shape)
        if name in _BY_ROW and new.attrs.axis % rank == rank - 1:
            return self.reshaped(_along_last(new, [source, *rest]), self.shape[source], shape)
        return None

    def behind(self, call: Call, i: int, shape: Sizes) -> Expr | None:
        """Sink views of argument i below an elementwise call; its others are numbers."""
        view = call.args[i]
        source = self.source(view)
        transposes = op_name(view) == "transpose" and self.shape.get(view.args[0]) is not None
        if transposes and self.uses[view] <= 1 and len(call.args) == 2:
            source = view.args[0]
        if source is None:
            return None
        args = [_scalar(arg) if _is_number(arg) else arg for arg in call.args]
        args[i] = source
        inner = with_inputs(call, args)
        below = self.behind(inner, i, self.shape[source]) or inner
        self.shape[below] = self.shape[source]
        result = with_inputs(view, [below])
        return self.view(below, shape) if op_name(view) in VIEWS else result

    def sink_binary(self, new: Call, shape: Sizes) -> Expr | None:
        sources = [self.source(arg) for arg in new.args]
        if None not in sources:
            same = self.shape[sources[0]] == self.shape[sources[1]]
            if same and all(self.shape[arg] == shape for arg in new.args):
                return self.reshaped(with_inputs(new, sources), self.shape[sources[0]], shape)
        for i, source in enumerate(sources):
            if source is None or self.shape[new.args[i]] != shape:
                continue
            if _product_of(new.args[1 - i]) and not _product_of(source):
                continue  # the sum goes into the product as it is
            other = self.as_operand(new.args[1 - i], source, new.args[i])
            if other is not None:
                args = [source, other] if i == 0 else [other, source]
                return self.reshaped(with_inputs(new, args), self.shape[source], shape)
        return None

    def as_operand(self, expr: Expr, source: Expr, view: Expr) -> Expr | None:
        """Return the other operand of what reads a view as one of what reads its source."""
        shape = self.shape.get(expr)
        if shape == self.shape[view] and array_of(expr) is None:
            return self.view(expr, self.shape[source])
        if self.same_rows(source, view) and self.is_row(expr, self.shape[view][-1]):
            return _flat(expr, shape, self.shape[view][-1])
        return None

    def source(self, expr: Expr | None) -> Expr | None:
        """Return what a reshape reads; None for one that makes a product one of rank 4."""
        source = expr.args[0] if op_name(expr) in VIEWS else None
        if source is None or not self.shape.get(source):
            return None
        batched = op_name(source) == "nn.batch_matmul" and len(self.shape[expr]) == 4
        return None if batched else source

    def same_rows(self, source: Expr, view: Expr) -> bool:
        """Whether both have rows, and the same ones."""
        rank = min(len(self.shape[source]), len(self.shape[view]))
        return rank > 1 and self.shape[source][-1] == self.shape[view][-1]

    def is_row(self, expr: Expr, size: int) -> bool:
        """Whether a tensor varies along its last axis only, or not at all."""
        array = array_of(expr)
        shape = self.shape.get(expr) if array is None else array.shape
        return bool(shape) and set(shape[:-1]) <= {1} and shape[-1] == size

    def reshaped(self, call: Expr, shape: Sizes, wanted: Sizes) -> Expr | None:
        self.shape[call] = shape
        return self.view(call, wanted)


def _product_of(expr: Expr) -> Expr | None:
    """Return the matrix product that an expression is, but for what is elementwise after it."""
    while op_name(expr) in (*_UNARY, *_BINARY, "nn.bias_add"):
        expr = next((arg for arg in expr.args if array_of(arg) is None), expr.args[0])
    return expr if op_name(expr) in ("nn.dense", "nn.batch_matmul") else None


def _is_number(expr: Expr) -> bool:
    array = array_of(expr)
    return array is not None and array.size == 1


def _scalar(number: Expr) -> Expr:
    array = array_of(number)
    return constant(array.reshape(())) if array.ndim else number


def _flat(expr: Expr, shape: Sizes | None, size: int) -> Expr:
    array = array_of(expr)
    if array is not None:
        return constant(array.reshape(size)) if array.ndim > 1 else expr
    return expr if len(shape) == 1 else relay.reshape(expr, (size,))


def _along_last(call: Call, args: list[Expr]) -> Expr:
    """Return a call that works along the last axis, on other data."""
    name, attrs = op_name(call), call.attrs
    if name == "nn.bias_add":
        return relay.nn.bias_add(*args, axis=-1)
    if name == "nn.layer_norm":
        return relay.nn.layer_norm(
            *args, axis=-1, epsilon=attrs.epsilon, center=attrs.center, scale=attrs.scale
        )
    function = {"nn.softmax": relay.nn.softmax, "nn.fast_softmax": relay.nn.fast_softmax}
    return function.get(name, relay.nn.log_softmax)(*args, axis=-1)
