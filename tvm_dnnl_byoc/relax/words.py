"""Calls that no call of Relax's was read as, in Relax's words."""

from collections.abc import Callable

from tvm import relax
from tvm.relax import op

from ..ir import Call, Expr, array_of, op_name
from .compat import tensor_type

Bind = Callable[[relax.Expr], relax.Var]
Word = Callable[..., relax.Expr]

# What a region may read of TVM though it was made while partitioning: indices, narrowed.
_FOR_INDICES = ("clip", "cast")


def in_words(bind: Bind, call: Call, *args: relax.Expr) -> relax.Expr:
    """Return a call with these arguments; ``bind`` gives a variable for a part of it."""
    return _WORDS[op_name(call)](bind, call, *args)


def are_made_indices(expr: Expr) -> bool:
    """Whether an expression has no variable, but is arithmetic of indices on what has one."""
    return (
        expr.var is None
        and op_name(expr) in _FOR_INDICES
        and all(arg.var is not None or are_made_indices(arg) for arg in expr.args)
    )


def _dense(bind: Bind, call: Call, x: relax.Expr, weights: relax.Expr) -> relax.Expr:
    return op.matmul(x, bind(op.permute_dims(weights)))


def _batch_norm(bind: Bind, call: Call, x: relax.Expr, *args: relax.Expr) -> relax.Expr:
    attrs = call.attrs
    return op.nn.batch_norm(x, *args, axis=attrs.axis, epsilon=attrs.epsilon, training=False)


def _layer_norm(bind: Bind, call: Call, x: relax.Expr, *args: relax.Expr) -> relax.Expr:
    return op.nn.layer_norm(x, *args, axes=[call.attrs.axis], epsilon=call.attrs.epsilon)


def _instance_norm(bind: Bind, call: Call, x: relax.Expr, *args: relax.Expr) -> relax.Expr:
    axis, rank = call.attrs.axis, len(call.checked_type.shape)
    axes = [i for i in range(1, rank) if i != axis]
    return op.nn.instance_norm(x, *args, axis, axes, epsilon=call.attrs.epsilon)


def _reshape(bind: Bind, call: Call, x: relax.Expr) -> relax.Expr:
    return op.reshape(x, list(tensor_type(call.checked_type).shape))


def _strided_slice(bind: Bind, call: Call, x: relax.Expr) -> relax.Expr:
    """Write the part of a split that a slice was made of."""
    attrs, shape = call.attrs, call.checked_type.shape
    ends = [begin + shape[axis] for axis, begin in zip(attrs.axes, attrs.begin, strict=True)]
    return op.strided_slice(x, attrs.axes, attrs.begin, ends)


def _window(name: str, *attributes: str) -> Word:
    """Return what writes a convolution or pooling whose padding is another."""
    make = getattr(op.nn, name)

    def write(bind: Bind, call: Call, *args: relax.Expr) -> relax.Expr:
        return make(*args, **{key: getattr(call.attrs, key) for key in attributes})

    return write


def _quantization(make: Callable) -> Word:
    """Return what writes a quantization, whose zero points are in the dtype of the numbers."""

    def write(bind: Bind, call: Call, x: relax.Expr, scales: relax.Expr, _) -> relax.Expr:
        numbers = call if make is op.quantize else call.args[0]
        zeros = array_of(call.args[2]).astype(numbers.checked_type.dtype)
        attrs = call.attrs
        return make(x, scales, relax.const(zeros), axis=attrs.axis, out_dtype=attrs.out_dtype)

    return write


_WINDOW = ("strides", "padding", "dilation")
_CONVOLUTION = (*_WINDOW, "groups", "data_layout", "kernel_layout", "out_layout")
_POOL = ("pool_size", *_WINDOW, "ceil_mode", "count_include_pad", "layout", "out_layout")

# What is made, or changed more than in its arguments: where a block is read, where it is brought
# into canonical form, and by quantizing it.
_WORDS: dict[str, Word] = {
    "add": lambda bind, call, x, y: op.add(x, y),
    "cast": lambda bind, call, x: op.astype(x, call.checked_type.dtype),
    "clip": lambda bind, call, x: op.clip(x, call.attrs.a_min, call.attrs.a_max),
    "concatenate": lambda bind, call, parts: op.concat(parts, call.attrs.axis),
    "matmul": lambda bind, call, x, y: op.matmul(x, y),
    "multiply": lambda bind, call, x, y: op.multiply(x, y),
    "nn.batch_norm": _batch_norm,
    "nn.dense": _dense,
    "nn.instance_norm": _instance_norm,
    "nn.layer_norm": _layer_norm,
    "nn.relu": lambda bind, call, x: op.nn.relu(x),
    "qnn.quantize": _quantization(op.quantize),
    "qnn.dequantize": _quantization(op.dequantize),
    "reshape": _reshape,
    "strided_slice": _strided_slice,
    "take": lambda bind, call, x, i: op.take(x, i, call.attrs.axis, mode=call.attrs.mode),
    **{f"nn.conv{dims}d": _window(f"conv{dims}d", *_CONVOLUTION) for dims in (1, 2, 3)},
    **{
        f"nn.{name}": _window(name, *_POOL)
        for name in (f"{kind}_pool{dims}d" for kind in ("max", "avg") for dims in (1, 2, 3))
    },
}
