"""A Hypothesis strategy that draws graphs, as Python code that a person can run.

A program is a list of assignments to v0, v1, …, written with ``relay``, or the words that stand for
it under Relax, and the helpers ``var`` and ``const``; ``batch`` is the first size of data. TVM's
own type inference gives the shape of each, so there is no second shape inference here that could be
wrong in the same way as the package.
"""

import math
import re
from dataclasses import dataclass, field

from front import const, is_leaf, relay, type_of, var
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st

NAMES = {"relay": relay, "var": var, "const": const}

_SIZES = (1, 2, 3, 4, 5, 7, 9)
_CHANNELS = (1, 2, 3, 4, 6, 8, 8, 10, 16, 16, 16, 17)  # full blocks more often
_MAX_ELEMENTS = 4096
_SPATIAL = "DHW"


@dataclass(frozen=True)
class Program:
    """A graph as code.

    Attributes
    ----------
    lines : tuple of str
        Assignments, one a line.
    outputs : tuple of str
        The names that the graph gives back.
    batch : int
        For which TVM knows its types.
    """

    lines: tuple[str, ...]
    outputs: tuple[str, ...]
    batch: int

    @property
    def source(self):
        outputs = f"outputs = [{', '.join(self.outputs)}]"
        return "\n".join([f"batch = {self.batch}", *self.lines, outputs])


def same_each_time(max_examples):
    """Run a test with that many programs, the same ones each time."""
    return settings(
        max_examples=max_examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def evaluate(source, batch=None):
    """Return the outputs of a program's source, by default for its own batch."""
    scope = dict(NAMES)
    first, rest = source.split("\n", 1)
    exec(first if batch is None else "", scope)
    scope.setdefault("batch", batch)
    exec(rest, scope)
    return scope["outputs"]


@st.composite
def programs(draw, max_operators=8):
    """Draw programs of at most about ``max_operators`` operators, composed ones counted as one."""
    graph = _Graph(draw, batch=draw(st.integers(1, 2)))
    for _ in range(draw(st.integers(1, max_operators))):
        graph.pick(_KINDS)(graph)
    results = [name for name in graph.values if name in graph.results]
    assume(results)  # under Relax, a word may be its argument
    others = draw(st.lists(st.sampled_from(results), max_size=3))  # repetitions are welcome
    unread = [name for name in results if name not in graph.read]
    return Program(tuple(graph.lines), (*others, *unread), graph.batch)


@dataclass
class _Value:
    shape: tuple[int, ...]
    dtype: str


@dataclass
class _Graph:
    """A program being drawn."""

    draw: object
    batch: int  # of all inputs: at 1, parts of a concat along the channels lie one after the other
    lines: list[str] = field(default_factory=list)
    scope: dict = field(default_factory=lambda: dict(NAMES))
    values: dict[str, _Value] = field(default_factory=dict)
    results: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)

    def integer(self, low, high):
        return self.draw(st.integers(low, high))

    def flag(self):
        return self.draw(st.booleans())

    def rarely(self):
        return self.integer(0, 7) == 7

    def pick(self, options):
        return self.draw(st.sampled_from(list(options)))

    def emit(self, code):
        """Add an assignment; return its name. What TVM refuses to type discards the program."""
        name = f"v{len(self.lines)}"
        try:
            value = eval(code, {**self.scope, "batch": self.batch})
            type_ = type_of(value)
        except Exception:
            assume(False)
        self.read.update(re.findall(r"v\d+", code))
        self.scope[name] = value
        self.lines.append(f"{name} = {code}")
        if type_ is not None:
            shape, dtype = type_
            assume(0 < math.prod(shape) <= _MAX_ELEMENTS)
            self.values[name] = _Value(shape, dtype)
            if not is_leaf(value):
                self.results.add(name)
        return name

    def input(self, shape, dtype="float32"):
        """Add an argument of a shape, in which there may be the name of the batch."""
        dims = "".join(f"{d}, " for d in shape)
        return self.emit(f"var('x{len(self.lines)}', {dims}dtype='{dtype}')")

    def weight(self, shape, low=-1.0, high=1.0):
        """Constants mostly, arguments sometimes, computed ones of the right shape sometimes."""
        if self.rarely():
            same = [n for n in self.results if self.values[n] == _Value(tuple(shape), "float32")]
            if same and low < 0:
                return self.pick(sorted(same))
            name = self.input(shape)
            return name if low < 0 else self.emit(f"relay.abs({name}) + relay.const({low})")
        dims = "".join(f"{d}, " for d in shape)
        return self.emit(f"const({dims}seed={len(self.lines)}, low={low}, high={high})")

    def source(self, ranks=(1, 2, 3, 4, 5), dtypes=("float32",)):
        """Return a value of one of the ranks: the last mostly, else another or a new input."""
        found = [
            name
            for name, value in self.values.items()
            if len(value.shape) in ranks
            and value.dtype in dtypes
            and not self.lines[int(name[1:])].startswith(f"{name} = const")
        ]
        if found:
            choice = self.integer(0, 7)
            if choice < 6:
                return found[-1]
            if choice == 6:
                return self.pick(found)
        rank = self.pick(ranks)
        shape = [self.pick(_SIZES) for _ in range(rank)]
        if rank > 1:
            shape[0] = self.batch
        if rank > 2:
            shape[1] = self.pick(_CHANNELS)
        while math.prod(shape) > _MAX_ELEMENTS // 2:
            i = shape.index(max(shape))
            shape[i] = (shape[i] + 1) // 2
        if rank > 1 and shape[0] == self.batch:
            shape[0] = "batch"
        return self.input(shape, self.pick(dtypes))

    def shape(self, name):
        return self.values[name].shape

    def axis(self, name):
        rank = len(self.shape(name))
        return self.integer(-rank, rank - 1)

    def broadcastable(self, shape):
        """Return a shape that broadcasts with another: a channel, a scalar, a row, the same…"""
        rank = len(shape)
        kind = self.integer(0, 5)
        if kind == 0:
            return ()
        if kind == 1 and rank > 1:
            return (shape[1], *[1] * (rank - 2))
        if kind == 2:
            return tuple(shape)
        if kind == 3:
            return (shape[-1],)
        result = [d if self.flag() else 1 for d in shape]
        if kind == 4:
            return tuple(result)
        return tuple(result[self.integer(0, rank) :])


# Convolutions


def _sizes(layout, shape):
    return [shape[layout.index(d)] for d in _SPATIAL if d in layout]


def _arrange(layout, **sizes):
    return tuple(sizes[letter] for letter in layout)


def _window(g, sizes, dilate=True):
    """Return kernel, strides, dilation and padding that leave at least one window."""
    rank = len(sizes)
    padding = [g.integer(0, 2) if g.flag() else 0 for _ in range(2 * rank)]
    if g.flag():
        padding = [g.integer(0, 2)] * (2 * rank)
    kernel, dilation = [], []
    for i, size in enumerate(sizes):
        room = size + padding[i] + padding[rank + i]
        k = min(g.integer(1, 3), room)
        d = g.integer(1, 2) if dilate else 1
        if d * (k - 1) + 1 > room:
            d = 1
        kernel.append(k)
        dilation.append(d)
    strides = [g.integer(1, 2) for _ in sizes]
    return tuple(kernel), tuple(strides), tuple(dilation), tuple(padding)


def _convolution(g):
    rank = g.pick((1, 2, 2, 2, 3))
    space = _SPATIAL[3 - rank :]
    x = g.source((rank + 2,))
    layout = g.pick((f"NC{space}", f"NC{space}", f"N{space}C"))
    channels = g.shape(x)[layout.index("C")]
    kernel, strides, dilation, padding = _window(g, _sizes(layout, g.shape(x)))
    groups = g.pick([n for n in (1, 1, 1, 2, 3, channels) if channels % n == 0])
    outputs = groups * g.integer(1, 3) if groups > 1 else g.pick(_CHANNELS)
    kernel_layout = f"OI{space}" if layout.startswith("NC") else f"{space}IO"
    if groups == channels > 1 and kernel_layout == "HWIO":
        kernel_layout = "HWOI"
        weights = (*kernel, channels, outputs // channels)
    else:
        sizes = dict(zip(space, kernel, strict=True))
        weights = _arrange(kernel_layout, O=outputs, I=channels // groups, **sizes)
    w = g.weight(weights)
    g.emit(
        f"relay.nn.conv{rank}d({x}, {w}, strides={strides}, padding={padding}, "
        f"dilation={dilation}, groups={groups}, channels={outputs}, kernel_size={kernel}, "
        f"data_layout='{layout}', kernel_layout='{kernel_layout}')"
    )


def _narrow_groups(g):
    """A convolution as a ResNeXt has it, of groups narrower than a vector, after one of none."""
    x = g.source((4,))
    channels = g.pick((16, 32))
    w = g.weight((channels, g.shape(x)[1], 1, 1))
    x = g.emit(f"relay.nn.conv2d({x}, {w}, channels={channels}, kernel_size=(1, 1))")
    group = g.pick((4, 4, 8))
    w = g.weight((channels, group, 3, 3))
    strides = g.integer(1, 2), g.integer(1, 2)
    padding = g.integer(1, 2), g.integer(1, 2), g.integer(1, 2), g.integer(1, 2)
    g.emit(
        f"relay.nn.conv2d({x}, {w}, strides={strides}, padding={padding}, "
        f"groups={channels // group}, channels={channels}, kernel_size=(3, 3))"
    )


def _transposed_convolution(g):
    rank = g.pick((1, 2, 2, 3))
    space = _SPATIAL[3 - rank :]
    x = g.source((rank + 2,))
    channels = g.shape(x)[1]
    groups = g.pick([n for n in (1, 1, 2, channels) if channels % n == 0])
    outputs = groups * g.integer(1, 3)
    kernel = tuple(g.integer(1, 3) for _ in space)
    strides = tuple(g.integer(1, 2) for _ in space)
    extra = tuple(g.integer(0, s - 1) for s in strides)
    padding = [min(g.integer(0, 1), k - 1) for k in kernel * 2]
    for i, size in enumerate(g.shape(x)[2:]):
        if (size - 1) * strides[i] + kernel[i] <= padding[i] + padding[rank + i]:
            padding[i] = padding[rank + i] = 0
    w = g.weight((channels, outputs // groups, *kernel))
    g.emit(
        f"relay.nn.conv{rank}d_transpose({x}, {w}, strides={strides}, padding={tuple(padding)}, "
        f"output_padding={extra}, groups={groups}, channels={outputs}, kernel_size={kernel}, "
        f"data_layout='NC{space}', kernel_layout='IO{space}')"
    )


# Products


def _dense(g):
    x = g.source((2, 2, 3))
    w = g.weight((g.pick(_CHANNELS), g.shape(x)[-1]))
    g.emit(f"relay.nn.dense({x}, {w})")


def _matmul(g):
    x = g.source((2,))
    transpose_a, transpose_b = g.flag(), g.flag()
    k = g.shape(x)[0 if transpose_a else 1]
    n = g.pick(_CHANNELS)
    w = g.weight((n, k) if transpose_b else (k, n))
    if g.rarely() and g.shape(x)[1 if transpose_a else 0] == k:
        w = x
    g.emit(f"relay.nn.matmul({x}, {w}, transpose_a={transpose_a}, transpose_b={transpose_b})")


def _batch_matmul(g):
    x = g.source((3,))
    transpose_a, transpose_b = g.flag(), g.flag()
    batch = g.shape(x)[0]
    k = g.shape(x)[1 if transpose_a else 2]
    n = g.pick(_CHANNELS)
    batch = g.pick((batch, 1, 2)) if batch == 1 else g.pick((batch, 1))
    w = g.weight((batch, n, k) if transpose_b else (batch, k, n))
    g.emit(f"relay.nn.batch_matmul({x}, {w}, transpose_a={transpose_a}, transpose_b={transpose_b})")


# Pooling


def _pad(g):
    x = g.source((3, 4, 5))
    rank = len(g.shape(x))
    widths = [(0, 0), (0, 0), *((g.integer(0, 2), g.integer(0, 2)) for _ in range(rank - 2))]
    if g.rarely():
        widths = [(g.integer(0, 1), g.integer(0, 1)) for _ in range(rank)]
    mode = g.pick(("constant", "constant", "constant", "edge", "reflect"))
    if mode == "reflect":
        widths = [
            (min(a, d - 1), min(b, d - 1)) for (a, b), d in zip(widths, g.shape(x), strict=True)
        ]
    value = g.pick((0, 0, 5, -1, -3.4028234663852886e38)) if mode == "constant" else 0
    g.emit(f"relay.nn.pad({x}, pad_width={tuple(widths)}, pad_value={value}, pad_mode='{mode}')")


def _pooling(g):
    rank = g.pick((1, 2, 2, 2, 3))
    space = _SPATIAL[3 - rank :]
    if g.rarely():
        _pad(g)
    x = g.source((rank + 2,))
    layout = g.pick((f"NC{space}", f"NC{space}", f"N{space}C"))
    kernel, strides, dilation, padding = _window(g, _sizes(layout, g.shape(x)), g.rarely())
    padding = tuple(min(p, k - 1) for p, k in zip(padding, kernel * 2, strict=True))
    for i, size in enumerate(_sizes(layout, g.shape(x))):
        room = size + padding[i] + padding[rank + i]
        if dilation[i] * (kernel[i] - 1) + 1 > room:
            dilation = (1,) * rank
            padding = tuple(k - 1 for k in kernel * 2)
            break
    kind = g.pick(("max", "avg"))
    include = f", count_include_pad={g.flag()}" if kind == "avg" else ""
    ceil_mode = g.flag()
    if kind == "max":
        # The maximum of nothing is the lowest float. Sums of it overflow in one order, and not in
        # another.
        sizes, (before, after) = _sizes(layout, g.shape(x)), (padding[:rank], padding[rank:])
        axes = zip(sizes, kernel, strides, dilation, before, after, strict=True)
        assume(all(_each_reads(*axis, ceil_mode) for axis in axes))
    g.emit(
        f"relay.nn.{kind}_pool{rank}d({x}, {kernel}, strides={strides}, dilation={dilation}, "
        f"padding={padding}, layout='{layout}', ceil_mode={ceil_mode}{include})"
    )


def _each_reads(size, kernel, stride, dilation, before, after, ceil_mode):
    """Whether each window along an axis holds an element, and not only padding."""
    last = size + before + after - dilation * (kernel - 1) - 1
    starts = range(-before, last - before + 1 + (stride - 1) * ceil_mode, stride)
    return all(any(0 <= start + i * dilation < size for i in range(kernel)) for start in starts)


def _adaptive_pooling(g):
    rank = g.pick((1, 2, 3))
    space = _SPATIAL[3 - rank :]
    x = g.source((rank + 2,))
    layout = g.pick((f"NC{space}", f"N{space}C"))
    kind = g.pick(("max", "avg"))
    if rank == 2 and g.flag():
        g.emit(f"relay.nn.global_{kind}_pool2d({x}, layout='{layout}')")
        return
    size = tuple(g.integer(1, d) for d in _sizes(layout, g.shape(x)))
    if g.flag():
        size = (1,) * rank
    g.emit(f"relay.nn.adaptive_{kind}_pool{rank}d({x}, output_size={size}, layout='{layout}')")


# Normalisation


def _batch_norm(g):
    x = g.source((2, 3, 4, 5))
    axis = g.pick((1, 1, 1, -1, g.axis(x)))
    c = (g.shape(x)[axis],)
    arguments = [g.weight(c), g.weight(c), g.weight(c), g.weight(c, 0.5, 2.0)]
    y = g.emit(
        f"relay.nn.batch_norm({x}, {', '.join(arguments)}, axis={axis}, "
        f"epsilon={g.pick((1e-5, 1e-3))}, center={g.flag()}, scale={g.flag()}).astuple()"
    )
    g.emit(f"relay.TupleGetItem({y}, {g.pick((0, 0, 0, 1, 2)) if g.rarely() else 0})")


def _layer_norm(g):
    x = g.source((2, 3, 4))
    axis = g.pick((-1, -1, g.axis(x)))
    c = (g.shape(x)[axis],)
    g.emit(
        f"relay.nn.layer_norm({x}, {g.weight(c)}, {g.weight(c)}, axis={axis}, "
        f"epsilon={g.pick((1e-5, 1e-3))}, center={g.flag()}, scale={g.flag()})"
    )


def _instance_norm(g):
    x = g.source((3, 4, 5))
    axis = g.pick((1, 1, -1))
    c = (g.shape(x)[axis],)
    g.emit(
        f"relay.nn.instance_norm({x}, {g.weight(c)}, {g.weight(c)}, axis={axis}, "
        f"epsilon={g.pick((1e-5, 1e-3))}, center={g.flag()}, scale={g.flag()})"
    )


def _group_norm(g):
    x = g.source((3, 4, 5))
    channels = g.shape(x)[1]
    groups = g.pick([n for n in (1, 2, channels) if channels % n == 0])
    c = (channels,)
    g.emit(
        f"relay.nn.group_norm({x}, {g.weight(c)}, {g.weight(c)}, num_groups={groups}, "
        f"epsilon={g.pick((1e-5, 1e-3))})"
    )


def _lrn(g):
    x = g.source((4,))
    g.emit(
        f"relay.nn.lrn({x}, size={g.pick((1, 3, 5))}, axis={g.pick((1, 1, 3))}, "
        f"bias={g.pick((1, 2))}, alpha={g.pick((1e-4, 0.5))}, beta={g.pick((0.75, 0.5))})"
    )


def _softmax(g):
    x = g.source()
    name = g.pick(("softmax", "log_softmax", "fast_softmax"))
    g.emit(f"relay.nn.{name}({x}, axis={g.axis(x)})")


# Elementwise


def _unary(g):
    x = g.source()
    g.emit(
        g.pick(
            (
                "relay.nn.relu({x})",
                "relay.nn.leaky_relu({x}, alpha={alpha})",
                "relay.clip({x}, {low}, {high})",
                "relay.sigmoid({x})",
                "relay.tanh({x})",
                "relay.exp(relay.clip({x}, -3, 3))",
                "relay.exp(relay.tanh({x}))",
                "relay.log(relay.abs({x}) + relay.const(0.5))",
                "relay.log(relay.sigmoid({x}))",
                "relay.sqrt(relay.abs({x}))",
                "relay.rsqrt(relay.nn.relu({x}) + relay.const(0.25))",
                "relay.abs({x})",
                "relay.negative({x})",
                "relay.erf({x})",
                "relay.cos({x})",
                "relay.power({x}, relay.const(2.0))",
                "relay.power(relay.abs({x}) + relay.const(0.5), relay.const({alpha}))",
                "{x} * {x}",
                "{x} + {x}",
                "relay.nn.fast_softmax({x})",
                "relay.fast_exp(relay.tanh({x}))",
                "relay.fast_tanh({x})",
                "relay.fast_erf({x})",
                "relay.copy({x})",
                "relay.nn.dropout({x})",
            )
        ).format(
            x=x,
            alpha=g.pick((0.1, 0.25, 0.0, 1.5)),
            low=g.pick((0.0, -0.5, -1.0)),
            high=g.pick((6.0, 0.5, 1.0)),
        )
    )


_ACTIVATIONS = {
    # name: (formula with {x} and constants {0}, {1}, …; the constants)
    "gelu_erf": ("{x} * ({0} * (relay.erf({x} * {1}) + {2}))", (0.5, 0.70710678, 1.0)),
    "gelu_erf_divide": ("({x} * (relay.erf({x} / {0}) + {1})) * {2}", (1.4142135, 1.0, 0.5)),
    "gelu_half_first": ("({x} * {0}) * ({1} + relay.erf({x} * {2}))", (0.5, 1.0, 0.70710678)),
    "gelu_tanh": (
        "{0} * {x} * ({1} + relay.tanh({2} * ({x} + {3} * relay.power({x}, {4}))))",
        (0.5, 1.0, 0.7978846, 0.044715, 3.0),
    ),
    "gelu_tanh_products": (
        "{0} * {x} * ({1} + relay.tanh({x} * {2} * ({1} + {3} * {x} * {x})))",
        (0.5, 1.0, 0.7978846, 0.044715),
    ),
    "swish": ("{x} * relay.sigmoid({x})", ()),
    "swish_left": ("relay.sigmoid({x}) * {x}", ()),
    "swish_scaled": ("{x} * relay.sigmoid({0} * {x})", (1.702,)),
    "hardswish": ("{x} * relay.clip({x} + {0}, 0, 6) / {1}", (3.0, 6.0)),
    "hardswish_scale": ("{x} * (relay.clip({x} + {0}, 0, 6) * {1})", (3.0, 1 / 6)),
    "hardsigmoid": ("relay.clip({x} * {0} + {1}, 0, 1)", (0.2, 0.5)),
    "hardsigmoid_six": ("relay.clip({x} + {0}, 0, 6) / {1}", (3.0, 6.0)),
    "mish": ("{x} * relay.tanh(relay.log({0} + relay.exp({x})))", (1.0,)),
    "softplus": ("relay.log(relay.exp({x}) + {0})", (1.0,)),
    "elu": ("relay.nn.relu({x}) - {0} * relay.nn.relu({1} - relay.exp({x}))", (1.0, 1.0)),
    "elu_where": (
        "relay.where(relay.greater({x}, {0}), {x}, {1} * (relay.exp({x}) - {2}))",
        (0.0, 0.75, 1.0),
    ),
    "linear": ("{x} * {0} + {1}", (0.5, -0.25)),
    "square": ("{0} * ({x} * {x}) + {1}", (1.0, 0.0)),
    "relu_maximum": ("relay.maximum({x}, {0})", (0.0,)),
    "leaky_maximum": ("relay.maximum({x}, {x} * {0})", (0.1,)),
    "relu6_minimum": ("relay.minimum(relay.nn.relu({x}), {0})", (6.0,)),
    "sigmoid": ("{0} / ({0} + relay.exp(relay.negative({x})))", (1.0,)),
    "softsign": ("{x} / ({0} + relay.abs({x}))", (1.0,)),
}


def _activation(g):
    x = g.source()
    formula, constants = _ACTIVATIONS[g.pick(_ACTIVATIONS)]
    if "exp" in formula:
        x = g.emit(f"relay.clip({x}, -20, 20)") if g.rarely() else x
    constants = list(constants)
    if constants and g.integer(0, 2) == 2:  # a near miss
        i = g.integer(0, len(constants) - 1)
        constants[i] = g.pick((0.9, 1.001, 2.0, -1.0)) * constants[i] + g.pick((0, 0.01))
    g.emit(formula.format(*(f"relay.const({c})" for c in constants), x=x))


def _binary(g):
    x = g.source()
    same = [n for n, v in g.values.items() if v == g.values[x]]
    y = g.pick(same) if g.rarely() or g.rarely() else g.weight(g.broadcastable(g.shape(x)))
    name = g.pick(
        ("add", "add", "add", "multiply", "subtract", "divide", "maximum", "minimum", "power")
    )
    if name == "divide":
        y = g.emit(f"relay.abs({y}) + relay.const(0.5)")
    if name == "power":
        x = g.emit(f"relay.abs({x}) + relay.const(0.5)")
        y = g.emit(f"relay.tanh({y})")
    elif g.flag() and name != "divide":
        x, y = y, x
    g.emit(f"relay.{name}({x}, {y})")


def _bias_add(g):
    x = g.source((2, 3, 4, 5))
    axis = g.pick((1, 1, 1, -1, g.axis(x)))
    g.emit(f"relay.nn.bias_add({x}, {g.weight((g.shape(x)[axis],))}, axis={axis})")


def _prelu(g):
    x = g.source((2, 3, 4, 5))
    axis = g.pick((1, 1, len(g.shape(x)) - 1))
    g.emit(f"relay.nn.prelu({x}, {g.weight((g.shape(x)[axis],))}, axis={axis})")


def _where(g):
    x = g.source()
    limit, other = g.weight(g.broadcastable(g.shape(x))), g.weight(g.shape(x))
    compare = g.pick(("greater", "less_equal"))
    g.emit(f"relay.where(relay.{compare}({x}, {limit}), {x}, {other})")


def _residual(g):
    """A convolution and a sum with what it read: what an in-place sum must not overwrite."""
    x = g.source((4,))
    c = g.shape(x)[1]
    kernel = g.pick(((1, 1), (3, 3), (3, 3), (5, 5), (1, 3), (3, 1), (1, 7), (7, 1)))
    w = g.weight((c, c, *kernel))
    y = g.emit(
        f"relay.nn.conv2d({x}, {w}, padding=({kernel[0] // 2}, {kernel[1] // 2}), channels={c}, "
        f"kernel_size={kernel})"
    )
    if g.flag():
        y = g.emit(f"relay.nn.bias_add({y}, {g.weight((c,))})")
    same = [n for n, v in g.values.items() if v == g.values[x]]
    other = g.pick((x, g.pick(same)))
    y = g.emit(f"{y} + {other}" if g.flag() else f"{other} + {y}")
    if g.flag():
        g.emit(f"relay.nn.relu({y})")


# Moves and reductions


def _reduction(g):
    x = g.source()
    axes = tuple(i for i in range(len(g.shape(x))) if g.flag()) or (len(g.shape(x)) - 1,)
    name = g.pick(("mean", "sum", "max", "min", "mean", "prod", "variance"))
    exclude = g.rarely() and name != "variance" and len(axes) < len(g.shape(x))
    g.emit(f"relay.{name}({x}, axis={axes}, keepdims={g.flag()}, exclude={exclude})")


def _reshape(g):
    x = g.source()
    shape = g.shape(x)
    if g.flag():
        i = g.integer(0, len(shape) - 1)
        shape = (*shape[:i], -1, *shape[i + 2 :])
    elif g.flag():
        shape = (math.prod(shape[:1]), -1)
    else:
        i = g.integer(0, len(shape) - 1)
        d = next(p for p in (2, 3, 5, 1) if shape[i] % p == 0)
        shape = (*shape[:i], d, shape[i] // d, *shape[i + 1 :])
    assume(len(shape) <= 5)
    g.emit(f"relay.reshape({x}, {shape})")


def _transpose(g):
    x = g.source((2, 3, 4, 5))
    axes = tuple(g.draw(st.permutations(range(len(g.shape(x))))))
    g.emit(f"relay.transpose({x}, {axes})")


def _squeeze(g):
    x = g.source()
    ones = [i for i, d in enumerate(g.shape(x)) if d == 1]
    if ones and len(g.shape(x)) > 1:
        g.emit(f"relay.squeeze({x}, axis=[{g.pick(ones)}])")
    else:
        _expand_dims(g)


def _expand_dims(g):
    x = g.source((1, 2, 3, 4))
    axis = g.integer(0, len(g.shape(x)))
    g.emit(f"relay.expand_dims({x}, axis={axis}, num_newaxis=1)")


def _flatten(g):
    g.emit(f"relay.nn.batch_flatten({g.source((2, 3, 4, 5))})")


def _slice(g):
    x = g.source()
    begin, end, strides = [], [], []
    for d in g.shape(x):
        b = g.integer(0, d - 1)
        e = g.integer(b + 1, d)
        step = g.pick((1, 1, 1, 2))
        if g.rarely():
            b, e, step = e - 1, b - 1 - d if b == 0 else b - 1, -1
        begin.append(b)
        end.append(e)
        strides.append(step)
    g.emit(f"relay.strided_slice({x}, begin={begin}, end={end}, strides={strides})")


def _split(g):
    x = g.source((2, 3, 4, 5))
    axis = g.pick([i for i, d in enumerate(g.shape(x)) if d > 1] or [0])
    d = g.shape(x)[axis]
    parts = g.pick([n for n in (2, 3, d) if d % n == 0])
    if d > 2 and g.flag():
        cut = g.integer(1, d - 1)
        parts = (cut,)
    y = g.emit(f"relay.split({x}, {parts}, axis={axis}).astuple()")
    count = len(parts) + 1 if isinstance(parts, tuple) else parts
    fields = [g.emit(f"relay.TupleGetItem({y}, {i})") for i in range(min(count, 2))]
    if g.flag():
        fields.reverse()
    if g.rarely() and count == 1:
        return
    g.emit(f"relay.nn.relu({fields[-1]})")


def _concatenate(g):
    x = g.source((1, 2, 3, 4))
    axis = g.integer(0, len(g.shape(x)) - 1)
    parts = [x]
    for _ in range(g.integer(1, 2)):
        fits = [
            name
            for name, v in g.values.items()
            if v.dtype == "float32"
            and len(v.shape) == len(g.shape(x))
            and all(
                a == b
                for i, (a, b) in enumerate(zip(v.shape, g.shape(x), strict=True))
                if i != axis
            )
        ]
        parts.append(g.pick(fits) if g.integer(0, 3) else g.weight(g.shape(x)))
    if g.flag():
        parts.reverse()
    g.emit(f"relay.concatenate([{', '.join(parts)}], axis={axis})")


def _other_move(g):
    x = g.source((2, 3, 4))
    rank = len(g.shape(x))
    options = [
        f"relay.broadcast_to({x}, {(2, *g.shape(x))})" if rank < 5 else "",
        f"relay.tile({x}, {(1,) * (rank - 1) + (2,)})",
        f"relay.repeat({x}, 2, axis={g.axis(x)})",
        f"relay.reverse({x}, axis={g.integer(0, rank - 1)})",
        f"relay.stack([{x}, {x}], axis={g.integer(0, rank)})",
    ]
    g.emit(g.pick([o for o in options if o]))


def _resize(g):
    x = g.source((4,))
    if g.flag():
        method = g.pick(("nearest_neighbor", "bilinear"))
        layout = g.pick(("NCHW", "NCHW", "NHWC"))
        g.emit(
            f"relay.nn.upsampling({x}, scale_h={g.pick((1, 2, 3))}, scale_w={g.pick((1, 2))}, "
            f"layout='{layout}', method='{method}', align_corners={g.flag()})"
        )
        return
    layout = g.pick(("NCHW", "NCHW", "NHWC"))
    method = g.pick(("nearest_neighbor", "linear", "cubic"))
    mode = g.pick(("half_pixel", "align_corners", "asymmetric"))
    rounding = g.pick(("", "round", "floor", "ceil")) if method == "nearest_neighbor" else ""
    size = (g.integer(1, 9), g.integer(1, 9))
    g.emit(
        f"relay.image.resize2d({x}, {size}, layout='{layout}', method='{method}', "
        f"coordinate_transformation_mode='{mode}', rounding_method='{rounding}')"
    )


# Other dtypes


def _island(g):
    """An island of float64 or int32, whose operators look like ours."""
    x = g.source()
    if g.flag():
        y = f"relay.cast({x}, 'float64')"
        middle = g.pick(("{y} + {y}", "relay.nn.relu({y})", "relay.sigmoid({y})", "{y} * {y}"))
    else:
        y = f"relay.cast(relay.greater({x}, relay.const(0.0)), 'int32')"
        middle = g.pick(("{y} + {y}", "relay.nn.relu({y})", "{y} * {y}", "relay.clip({y}, 0, 1)"))
    g.emit(f"relay.cast({middle.format(y=y)}, 'float32')")


def _other_dtype(g):
    x = g.source(dtypes=("int32", "float64", "int8", "uint8", "int64"))
    y = g.pick(
        (
            "relay.nn.relu({x})",
            "{x} + {x}",
            "relay.maximum({x}, {x})",
            "relay.clip({x}, 0, 3)",
            "relay.abs({x})",
            "relay.max({x}, axis=0, keepdims=True)",
            "relay.sum({x}, axis=-1, keepdims=True)",
            "relay.expand_dims({x}, axis=0)",
            "relay.concatenate([{x}, {x}], axis=0)",
        )
    ).format(x=x)
    g.emit(y)
    if g.flag():
        g.emit(f"relay.cast({y}, 'float32')")


# Convolutions and products more often: they take the others in.
_KINDS = (
    *[_convolution] * 5,
    _narrow_groups,
    *[_transposed_convolution] * 2,
    *[_dense, _matmul, _batch_matmul] * 2,
    *[_pooling] * 3,
    _adaptive_pooling,
    _pad,
    _batch_norm,
    _layer_norm,
    _instance_norm,
    _group_norm,
    _lrn,
    _softmax,
    *[_unary] * 4,
    *[_activation] * 3,
    *[_binary] * 5,
    *[_bias_add] * 2,
    _prelu,
    _where,
    *[_residual] * 2,
    *[_reduction] * 2,
    _reshape,
    _transpose,
    _squeeze,
    _flatten,
    _slice,
    _split,
    *[_concatenate] * 2,
    _other_move,
    _resize,
    _island,
    _other_dtype,
)
