"""Relay's words for Relax: the cases of ``both/`` are written with them.

A word gives a ``Value``, which knows what it is made of, as Relay's expressions do; ``module``
binds each to a variable. A word that Relax has nothing for raises ``NoWord``: its case is skipped.
"""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import relax_helpers
import tvm
from comparison import TOLERANCE, assert_close, fused, random
from relax_helpers import parameter_names, tensor_type
from tvm import relax
from tvm.relax import op

from tvm_dnnl_byoc import partition_for_dnnl, profile
from tvm_dnnl_byoc.ir import Function
from tvm_dnnl_byoc.ir.relax_expr import Symbol, TensorType, TupleType
from tvm_dnnl_byoc.passes.composed import combine_activations
from tvm_dnnl_byoc.passes.fuse import find_chains
from tvm_dnnl_byoc.relax.canonicalize import canonicalize
from tvm_dnnl_byoc.relax.compat import constant_array, read_type, relax_type
from tvm_dnnl_byoc.relax.read import Block

__all__ = [
    "NoWord",
    "Value",
    "any_size",
    "assert_close",
    "build",
    "build_dynamic",
    "build_plainly",
    "check",
    "const",
    "conv2d",
    "fingerprint",
    "from_onnx",
    "fused",
    "in_tvm",
    "inputs_for",
    "is_leaf",
    "module",
    "offloaded",
    "random",
    "reasons_against_fusion",
    "relay",
    "run",
    "shape_of",
    "steps_of",
    "type_of",
    "var",
]


class NoWord(Exception):
    """Relax has no such operator, or not with such attributes."""


class Value:
    """An expression of Relax's.

    Parameters
    ----------
    expr : relax.Expr
        A variable or a constant; or what a variable is bound to.
    parts : sequence of Value
        What the expression is made of.
    """

    def __init__(self, expr: relax.Expr, parts: tuple["Value", ...] = ()):
        self.parts = parts
        self.bound = None
        self.expr = expr
        if not isinstance(expr, relax.Var) and constant_array(expr) is None:
            self.bound = relax.BlockBuilder().normalize(expr)
            self.expr = relax.DataflowVar("v", relax_type(self.bound))

    @property
    def data(self) -> tvm.runtime.Tensor | None:
        array = constant_array(self.expr)
        return None if array is None else tvm.runtime.tensor(array)

    @property
    def name_hint(self) -> str:
        return self.expr.name if hasattr(self.expr, "name") else self.expr.name_hint

    def __getitem__(self, index: int) -> "Value":
        return Value(relax.TupleGetItem(self.expr, index), (self,))

    def astuple(self) -> "Value":
        return self

    def __add__(self, other):
        return relay.add(self, other)

    def __sub__(self, other):
        return relay.subtract(self, other)

    def __mul__(self, other):
        return relay.multiply(self, other)

    def __truediv__(self, other):
        return relay.divide(self, other)


def shape_of(value: Value) -> tuple[int, ...]:
    return read_type(relax_type(value.expr)).shape


def type_of(value: Value) -> tuple[tuple[int, ...], str] | None:
    type_ = read_type(relax_type(value.expr))
    return (type_.shape, type_.dtype) if isinstance(type_, TensorType) else None


def is_leaf(value: Value) -> bool:
    return value.bound is None


def any_size() -> tvm.tirx.Var:
    return relax_helpers.symbol("batch")


def fingerprint(mod: tvm.IRModule) -> str:
    return mod.script()


def build_dynamic(mod: tvm.IRModule) -> Callable:
    executable = build(mod)
    return lambda inputs: run(executable, inputs)


def var(name: str, *shape, dtype="float32") -> Value:
    return Value(relax.Var(name, tensor_type(shape, dtype)))


def const(*shape, seed=0, low=-1.0, high=1.0) -> Value:
    return Value(relax_helpers.const(*shape, seed=seed, low=low, high=high))


def _const(value, dtype=None) -> Value:
    array = np.asarray(value, dtype or ("float32" if isinstance(value, float) else None))
    return Value(relax.const(array, str(array.dtype)))


def conv2d(data, weights, **attrs) -> Value:
    return relay.nn.conv2d(data, weights, **attrs)


def in_tvm(x: Value) -> Value:
    """Return x in reverse order along its last axis: stays in TVM, and adds no rounding."""
    return relay.reverse(x, -1)


def module(*outputs: Value) -> tvm.IRModule:
    """Return a module of one function, which gives the outputs, as a tuple if there are more."""
    order: dict[Value, None] = {}
    stack = [(value, False) for value in reversed(outputs)]
    while stack:
        value, ready = stack.pop()
        if ready:
            order[value] = None
        elif value not in order:
            stack.append((value, True))
            stack += [(part, False) for part in reversed(value.parts)]
    params = [v.expr for v in order if v.bound is None and v.data is None]
    bindings = [relax.VarBinding(v.expr, v.bound) for v in order if v.bound is not None]
    results = [value.expr for value in outputs]
    result = results[0] if len(results) == 1 else relax.Tuple(results)
    output = relax.Var("outputs", relax_type(relax.BlockBuilder().normalize(result)))
    block = relax.DataflowBlock([*bindings, relax.VarBinding(output, result)])
    function = relax.Function(params, relax.SeqExpr([block], output), relax_type(output))
    mod = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    return relax.transform.Normalize()(mod)


def inputs_for(mod: tvm.IRModule, seed=100) -> dict[str, np.ndarray]:
    return dict(zip(parameter_names(mod), relax_helpers.inputs_for(mod, seed=seed), strict=True))


def build(mod: tvm.IRModule, target=None, opt_level=None):
    """Build; there is but one way to."""
    return relax_helpers.build(mod)


def build_plainly(mod, params=None):
    return build(relax.transform.BindParams("main", dict(params or {}))(mod))


def run(executable, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    return relax_helpers.run(executable, inputs.values())


def from_onnx(model, inputs):
    """Do what ``helpers.from_onnx`` does; the importer may give the inputs other names."""
    from tvm.relax.frontend.onnx import from_onnx

    shapes = {name: list(array.shape) for name, array in inputs.items()}
    mod = from_onnx(model, shapes, {name: str(array.dtype) for name, array in inputs.items()})
    results = read_type(relax_type(mod["main"].body))
    fields = results.fields if isinstance(results, TupleType) else [results]
    if not all(isinstance(field, TensorType) and field.is_static for field in fields):
        raise ValueError("a size depends on data")
    return mod, {}, dict(zip(parameter_names(mod), inputs.values(), strict=True))


def check(mod, params=None, inputs=None, reference=None, tolerance=TOLERANCE, taken=None):
    """Do what ``helpers.check`` does; what is taken, is not left."""
    names = [name for name in parameter_names(mod) if name not in (params or {})]
    inputs = inputs_for(mod) if inputs is None else inputs
    inputs = {name: inputs[name] for name in names}
    before = {name: value.copy() for name, value in inputs.items()}
    partitioned = partition_for_dnnl(mod, params)
    if taken is not None:
        left = set(relax_helpers.ops_left(partitioned)) - _NOT_IN_REGIONS
        assert not left & set(relax_helpers.ops_left(mod)), left
    executable = build(partitioned)
    actual = run(executable, inputs)
    if reference is None:
        reference = run(build_plainly(mod, params), inputs)
    else:
        reference = [np.asarray(r, "float32") for r in reference]
    assert_close(actual, reference, tolerance)
    for name, value in inputs.items():
        np.testing.assert_array_equal(value, before[name])
    return steps_of(executable)


def steps_of(executable) -> list[dict]:
    plans = sorted(profile(executable).items())
    return [s for _, plan in plans for s in plan["steps"] if s["kind"] != "reorder"]


def offloaded(mod):
    """Return "region" for each region, and the names of the operators outside."""
    names = relax_helpers.ops_left(mod)
    outside = [name for name in names if name != "call_dps_packed"]
    return ["region"] * (len(names) - len(outside)), outside


def reasons_against_fusion(mod):
    """Return for each operator that is not fused into the one before it, why."""
    body, _ = canonicalize(Block.read(mod["main"].body.blocks[0]).body)
    body = combine_activations(Function([], body)).body
    return list(find_chains(body).unfused.values())


_NOT_IN_REGIONS = {"flip", "strided_slice"}  # in_tvm


# The words


def _word(function: Callable, **names: str) -> Callable:
    """Return a word for an operator of the same operands; attributes may have other names."""

    def word(*args, **attrs):
        parts = tuple(arg for arg in args if isinstance(arg, Value))
        plain = [arg.expr if isinstance(arg, Value) else arg for arg in args]
        attrs = {names.get(key, key): value for key, value in attrs.items()}
        try:
            return Value(function(*plain, **attrs), parts)
        except TypeError as error:
            raise NoWord(f"Relax: {error}") from None

    return word


def _convolution(dims: int) -> Callable:
    word = _word(getattr(op.nn, f"conv{dims}d"))

    def convolution(x, weights, channels=None, kernel_size=None, groups=1, **attrs):
        shape = shape_of(weights)
        plain = attrs.get("kernel_layout", "OI").startswith("OI")
        if plain and groups > 1 and shape[0] == groups and channels not in (None, groups):
            weights = relay.reshape(weights, (channels, 1, *shape[2:]))
        if attrs.get("kernel_layout") == "HWOI":
            raise NoWord("Relax: no kernel_layout HWOI")
        return word(x, weights, groups=groups, **attrs)

    return convolution


def _transposed_convolution(dims: int) -> Callable:
    word = _word(getattr(op.nn, f"conv{dims}d_transpose"))
    return lambda x, w, channels=None, kernel_size=None, **attrs: word(x, w, **attrs)


def _dense(x, weights):
    return relay.matmul(x, _swapped(weights))


def _swapped(x):
    axes = list(range(len(shape_of(x))))
    return relay.transpose(x, [*axes[:-2], axes[-1], axes[-2]])


def _matmul(x, y, transpose_a=False, transpose_b=False):
    return relay.matmul(_swapped(x) if transpose_a else x, _swapped(y) if transpose_b else y)


def _along(vector, axis, rank):
    return relay.reshape(vector, (shape_of(vector)[0], *[1] * (rank - 1 - axis % rank)))


def _bias_add(x, bias, axis=1):
    return relay.add(x, _along(bias, axis, len(shape_of(x))))


def _batch_norm(x, *args, axis=1, epsilon=1e-5, center=True, scale=True):
    word = _word(op.nn.batch_norm)
    attrs = {"epsilon": epsilon, "center": center, "scale": scale}
    return word(x, *args, axis=axis % len(shape_of(x)), training=False, **attrs)


def _layer_norm(x, gamma, beta, axis=-1, **attrs):
    return _word(op.nn.layer_norm)(x, gamma, beta, axes=[axis], **attrs)


def _instance_norm(x, gamma, beta, axis=1, **attrs):
    rank = len(shape_of(x))
    axes = [i for i in range(1, rank) if i != axis % rank]
    word = _word(op.nn.instance_norm)
    return word(x, gamma, beta, channel_axis=axis % rank, axes=axes, **attrs)


def _group_norm(x, gamma, beta, num_groups, axis=1, **attrs):
    axes = [i for i in range(1, len(shape_of(x))) if i != axis]
    return _word(op.nn.group_norm)(x, gamma, beta, num_groups, axis, axes, **attrs)


def _global_pool(kind):
    def pool(x, layout="NCHW"):
        if kind == "avg":
            return relay.nn.adaptive_avg_pool2d(x, (1, 1), layout=layout)
        size = tuple(shape_of(x)[layout.index(letter)] for letter in "HW")
        return relay.nn.max_pool2d(x, size, layout=layout)

    return pool


def _reduction(name):
    word = _word(getattr(op, name))

    def reduction(x, axis=None, keepdims=False, exclude=False):
        rank = len(shape_of(x))
        axes = [axis] if isinstance(axis, int) else axis
        axes = list(range(rank)) if axes is None else [i % rank for i in axes]
        if exclude:
            axes = [i for i in range(rank) if i not in axes]
        return word(x, axis=axes, keepdims=keepdims)

    return reduction


def _pad(x, pad_width, pad_value=0, pad_mode="constant"):
    if pad_mode != "constant":
        raise NoWord(f"Relax: no pad_mode {pad_mode} that its code for CPUs has")
    return _word(op.nn.pad)(
        x, [width for pair in pad_width for width in pair], pad_value=float(pad_value)
    )


def _reshape(x, newshape):
    sizes = [shape_of(x)[i] if size == 0 else size for i, size in enumerate(newshape)]
    return _word(op.reshape)(x, [d.expr if isinstance(d, Symbol) else d for d in sizes])


def _expand_dims(x, axis, num_newaxis=1):
    rank = len(shape_of(x))
    axis = axis if axis >= 0 else axis + rank + 1
    return _word(op.expand_dims)(x, list(range(axis, axis + num_newaxis)))


def _strided_slice(x, begin, end, strides=None, axes=None, slice_mode="end"):
    axes = list(range(len(begin))) if axes is None else list(axes)
    strides = list(strides or [1]) * (len(axes) if len(strides or [1]) == 1 else 1)
    if slice_mode == "size":
        cuts = list(zip(axes, begin, end, strict=True))
        end = [shape_of(x)[axis] if size < 0 else first + size for axis, first, size in cuts]
        strides = [1] * len(axes)
    return _word(op.strided_slice)(x, axes, list(begin), list(end), strides)


def _concatenate(values, axis=0):
    return Value(op.concat([value.expr for value in values], axis), tuple(values))


def _stack(values, axis=0):
    return Value(op.stack([value.expr for value in values], axis), tuple(values))


def _split(x, parts, axis=0):
    parts = list(parts) if isinstance(parts, tuple | list) else parts
    return _word(op.split)(x, parts, axis=axis)


def _squeeze(x, axis=None):
    # Which Relax would leave as it is; Relay refuses it.
    if any(isinstance(shape_of(x)[i], int) and shape_of(x)[i] != 1 for i in axis or ()):
        raise ValueError(f"squeeze: expected sizes of 1, got {shape_of(x)} and axes {axis}")
    return _word(op.squeeze)(x, axis)


def _cast(x, dtype):
    return _word(op.astype)(x, dtype)


def _resize2d(x, size, layout="NCHW", rounding_method="", **attrs):
    return _word(op.image.resize2d)(
        x, tuple(size), layout=layout, rounding_method=rounding_method or "round", **attrs
    )


def _avg_pool(dims):
    word = _word(getattr(op.nn, f"avg_pool{dims}d"))

    def pool(x, *args, count_include_pad=False, **attrs):
        return word(x, *args, count_include_pad=count_include_pad, **attrs)

    return pool


def _adaptive_avg_pool(dims):
    word = _word(getattr(op.nn, f"adaptive_avg_pool{dims}d"))
    return lambda x, output_size=None, **attrs: word(x, output_size, **attrs)


class _Words(SimpleNamespace):
    def __getattr__(self, name):
        raise NoWord(f"Relax has no {name}")


_SAME = (
    "add subtract multiply divide maximum minimum power floor_divide greater greater_equal less "
    "less_equal equal where sigmoid tanh exp log sqrt rsqrt abs negative erf cos tan round tile "
    "zeros_like ones_like full_like broadcast_to matmul"
)
_DIMS = (1, 2, 3)

relay = _Words(
    const=_const,
    TupleGetItem=lambda value, index: value[index],
    **{name: _word(getattr(op, name)) for name in _SAME.split()},
    **{name: _reduction(name) for name in ("mean", "sum", "max", "min", "prod", "variance")},
    clip=_word(op.clip, a_min="min", a_max="max"),
    transpose=_word(op.permute_dims),
    reverse=_word(op.flip),
    repeat=_word(op.repeat),
    reshape=_reshape,
    expand_dims=_expand_dims,
    strided_slice=_strided_slice,
    concatenate=_concatenate,
    stack=_stack,
    split=_split,
    squeeze=_squeeze,
    cast=_cast,
    zeros=_word(op.zeros),
    copy=lambda x: x,
    image=_Words(resize2d=_resize2d),
    nn=_Words(
        **{f"conv{dims}d": _convolution(dims) for dims in _DIMS},
        **{f"conv{dims}d_transpose": _transposed_convolution(dims) for dims in _DIMS},
        **{f"max_pool{dims}d": _word(getattr(op.nn, f"max_pool{dims}d")) for dims in _DIMS},
        **{f"avg_pool{dims}d": _avg_pool(dims) for dims in _DIMS},
        **{f"adaptive_avg_pool{dims}d": _adaptive_avg_pool(dims) for dims in _DIMS},
        global_avg_pool2d=_global_pool("avg"),
        global_max_pool2d=_global_pool("max"),
        dense=_dense,
        matmul=_matmul,
        batch_matmul=lambda x, y, transpose_a=False, transpose_b=True: _matmul(
            x, y, transpose_a, transpose_b
        ),
        bias_add=_bias_add,
        batch_norm=_batch_norm,
        layer_norm=_layer_norm,
        instance_norm=_instance_norm,
        group_norm=_group_norm,
        pad=_pad,
        relu=_word(op.nn.relu),
        leaky_relu=_word(op.nn.leakyrelu),
        prelu=_word(op.nn.prelu),
        dropout=lambda x: x,
        softmax=_word(op.nn.softmax),
        log_softmax=_word(op.nn.log_softmax),
        batch_flatten=_word(op.nn.batch_flatten),
    ),
)
