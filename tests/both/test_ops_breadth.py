"""Operators that are light by themselves: each is given a dense layer that reads its result.

Several cases are outputs of one module, so that they share a build. The results are compared with
NumPy's in float64; what oneDNN ran is read from the profile.
"""

import numpy as np
import pytest
from front import check, const, fused, module, offloaded, random, relay, shape_of, var
from reference import pooling

from tvm_dnnl_byoc import partition_for_dnnl


def run_cases(cases, low=-2.0, high=2.0, outputs=True):
    """Run cases (shape, Relay operator, NumPy operator); return what oneDNN ran but the dense."""
    results, expected, inputs = [], [], {}
    for i, (shape, op, numpy_op) in enumerate(cases):
        x = random(*shape, seed=i, low=low, high=high)
        y, reference = op(var(f"x{i}", *shape)), numpy_op(x.astype("float64"))
        w = random(3, reference.size, seed=i)
        inputs[f"x{i}"] = x
        if outputs:
            results.append(y)
            expected.append(reference)
        results.append(relay.nn.dense(relay.reshape(y, (1, reference.size)), relay.const(w)))
        expected.append(reference.reshape(1, -1) @ w.T.astype("float64"))
    mod = module(*results)
    steps = check(mod, inputs=inputs, reference=expected)
    return [step for step in fused(steps) if step != "inner_product"]


def stays(y):
    """Whether an operator that a dense layer reads is left to TVM, which gives what it gave."""
    shape = shape_of(y)
    size = int(np.prod([int(d) for d in shape]))
    mod = module(relay.nn.dense(relay.reshape(y, (1, size)), const(3, size)))
    check(mod)
    return len(offloaded(partition_for_dnnl(mod))[1]) > 0


# --- moves ----------------------------------------------------------------------------------------

MOVES = [
    ((3, 4, 5), lambda x: relay.transpose(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    ((3, 4, 5), lambda x: relay.transpose(x, (-1, 1, 0)), lambda x: x.transpose(2, 1, 0)),
    ((2, 3, 4, 5), relay.transpose, lambda x: x.transpose()),
    ((2, 1, 3, 1), relay.squeeze, lambda x: x.squeeze()),
    ((2, 1, 3, 1), lambda x: relay.squeeze(x, [1]), lambda x: x.squeeze(1)),
    ((2, 3), lambda x: relay.expand_dims(x, 1, 2), lambda x: x[:, None, None]),
    ((2, 3), lambda x: relay.expand_dims(x, -1), lambda x: x[..., None]),
]
SLICES = [
    ((4, 17, 5), lambda x: relay.strided_slice(x, [1, 3, 0], [3, 16, 5]), lambda x: x[1:3, 3:16]),
    ((4, 17), lambda x: relay.strided_slice(x, [-3, -40], [9, -1]), lambda x: x[-3:9, -40:-1]),
    ((4, 17, 5), lambda x: relay.strided_slice(x, [2], [4]), lambda x: x[2:4]),
    ((4, 17), lambda x: relay.strided_slice(x, [1, 2], [2, -1], slice_mode="size"),
     lambda x: x[1:3, 2:]),
]  # fmt: skip


def test_moves():
    """Views: no step of their own, in regions and as results."""
    assert run_cases(MOVES) == []
    assert run_cases(SLICES) == []


def test_moves_of_blocked_data():
    """Cuts through blocks of channels, transposed channels, and a sum of two of them."""
    x, w = random(1, 3, 6, 5), random(32, 3, 1, 1)
    y = relay.nn.conv2d(var("x", 1, 3, 6, 5), relay.const(w), channels=32, kernel_size=(1, 1))
    cut = relay.strided_slice(y, [0, 3, 1, 0], [1, 21, 6, 4])
    rest = relay.strided_slice(y, [0, 14, 0, 1], [1, 32, 5, 5])
    turned = relay.transpose(y, (0, 2, 3, 1))
    full = np.einsum("nihw,oi->nohw", x.astype("float64"), w[..., 0, 0])
    a, b = full[:, 3:21, 1:, :4], full[:, 14:, :5, 1:]
    check(
        module(cut, relay.add(cut, rest), turned, relay.nn.relu(turned)),
        inputs={"x": x},
        reference=[a, a + b, full.transpose(0, 2, 3, 1), full.transpose(0, 2, 3, 1).clip(0)],
    )


@pytest.mark.parametrize("batch", [1, 3])
def test_products_of_slices(batch):
    """oneDNN's matmul of a batch of one ignores the offset in a descriptor."""
    a, w = random(batch + 2, 4, 7, seed=1), random(batch + 1, 7, 5, seed=2)
    x, y = var("a", *a.shape), var("w", *w.shape)
    rows = relay.strided_slice(x, [2, 0, 0], [batch + 2, 4, 7])
    inner = relay.strided_slice(x, [1, 1, 3], [batch + 1, 4, 6])
    weights = relay.strided_slice(y, [1, 0, 0], [batch + 1, 7, 5])
    part = relay.strided_slice(y, [0, 4, 1], [batch, 7, 5])
    check(
        module(
            relay.nn.batch_matmul(rows, weights, transpose_b=False),
            relay.nn.batch_matmul(inner, part, transpose_b=False),
        ),
        inputs={"a": a, "w": w},
        reference=[
            a[2:].astype("float64") @ w[1:],
            a[1 : batch + 1, 1:, 3:6].astype("float64") @ w[:batch, 4:, 1:],
        ],
    )


@pytest.mark.parametrize(
    "slices",
    [
        lambda x: relay.strided_slice(x, [0, 0], [4, 16], [1, 3]),
        lambda x: relay.strided_slice(x, [3, 0], [-5, 16], [-1, 1]),
    ],
    ids=["strides", "backwards"],
)
def test_other_slices_stay(slices):
    assert stays(slices(var("x", 4, 16)))


# --- normalizations -------------------------------------------------------------------------------


def layer_norm(x, gamma, beta, epsilon):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta


@pytest.mark.parametrize("epsilon", [1e-5, 1e-6, 1e-12])
def test_layer_norm(epsilon):
    """CASE 15: of data so small that epsilon counts, or would drown it."""
    cases = []
    for shape in ((5, 33), (2, 7, 64), (1, 2, 3, 17)):
        g, b = random(shape[-1], seed=1), random(shape[-1], seed=2)

        def op(x, g=g, b=b):
            return relay.nn.layer_norm(x, relay.const(g), relay.const(b), epsilon=epsilon)

        cases.append((shape, op, lambda x, g=g, b=b: layer_norm(x, g, b, epsilon)))
    assert run_cases(cases, low=-1e-3, high=1e-3) == ["layer_normalization"] * 3


def test_layer_norm_of_inputs():
    """CASE 15: gamma and beta are not constant."""
    x, g, b, w = random(5, 33), random(33, seed=1), random(33, seed=2), random(3, 33)
    y = relay.nn.layer_norm(var("x", 5, 33), var("g", 33), var("b", 33))
    expected = layer_norm(x.astype("float64"), g, b, 1e-5)
    steps = check(
        module(relay.nn.dense(y, relay.const(w)), y),
        inputs={"x": x, "g": g, "b": b},
        reference=[expected @ w.T, expected],
    )
    assert fused(steps) == ["layer_normalization", "inner_product"]


def composed_norm(x, axis=-1, unbiased=False):
    """Return the same written out, as exporters do."""
    centred = relay.subtract(x, relay.mean(x, axis, keepdims=True))
    variance = relay.mean(relay.power(centred, relay.const(2.0)), axis, keepdims=True)
    if unbiased:
        variance = relay.multiply(variance, relay.const(7 / 6))
    return relay.divide(centred, relay.sqrt(relay.add(variance, relay.const(1e-5))))


@pytest.mark.parametrize("gamma", [(1,), (7, 1), (64,)])
def test_composed_layer_norm(gamma):
    """CASE 15: it is whatever its arithmetic says, with any gamma, axis or variance.

    Along another axis, with another variance, it is no layer normalisation.
    """
    g = random(*gamma)

    def reference(x, axis, factor=1.0):
        variance = x.var(axis, keepdims=True) * factor
        return (x - x.mean(axis, keepdims=True)) / np.sqrt(variance + 1e-5) * g

    cases = [
        ((2, 7, 64), lambda x: relay.multiply(composed_norm(x), relay.const(g)),
         lambda x: reference(x, -1)),
        ((2, 7, 64), lambda x: relay.multiply(composed_norm(x, 1, True), relay.const(g)),
         lambda x: reference(x, 1, 7 / 6)),
    ]  # fmt: skip
    along_last, other = run_cases(cases[:1]), run_cases(cases[1:])
    assert along_last[0] == "layer_normalization"
    assert "layer_normalization" not in " ".join(other)


@pytest.mark.parametrize(
    "norm",
    [
        lambda x: relay.nn.layer_norm(x, const(7), const(7), axis=1),
        lambda x: relay.nn.layer_norm(x, const(5), const(5, seed=1), scale=False),
        lambda x: relay.nn.instance_norm(x, const(5), const(5), axis=2),
        lambda x: relay.nn.group_norm(x, var("gamma", 7), const(7), num_groups=7),
    ],
    ids=[
        "layer_norm axis",
        "layer_norm scale",
        "instance_norm axis",
        "group",
    ],
)
def test_other_norms_stay(norm):
    assert stays(norm(var("x", 2, 7, 5)))


def test_instance_norm():
    g, b = random(17, seed=1), random(17, seed=2)

    def reference(x):
        mean, variance = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
        normal = (x - mean) / np.sqrt(variance + 1e-3)
        return normal * g.reshape(-1, 1, 1) + b.reshape(-1, 1, 1)

    def op(x):
        return relay.nn.instance_norm(x, relay.const(g), relay.const(b), epsilon=1e-3)

    (step,) = run_cases([((1, 17, 7, 5), op, reference)])
    assert step.endswith("normalization")


def lrn(x, size, alpha, beta, bias):
    squares = np.pad(x**2, [(0, 0), (size // 2, size // 2), (0, 0), (0, 0)])
    total = sum(squares[:, i : i + x.shape[1]] for i in range(size))
    return x / (bias + alpha / size * total) ** beta


@pytest.mark.parametrize(("size", "channels"), [(5, 17), (3, 4), (5, 16)])
def test_lrn(size, channels):
    attrs = {"size": size, "alpha": 0.3, "beta": 0.75, "bias": 1.5}
    case = (
        (2, channels, 4, 3),
        lambda x: relay.nn.lrn(x, axis=1, **attrs),
        lambda x: lrn(x, **attrs),
    )
    # oneDNN has fast kernels for some sizes: what it lacks one for stays in TVM.
    assert run_cases([case]) in ([["lrn"]] if channels == 16 else [["lrn"], []])


def test_lrn_of_another_axis_stays():
    assert stays(relay.nn.lrn(var("x", 1, 4, 5, 6), size=3, axis=3))


def log_softmax(x, axis):
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def test_log_softmax():
    cases = [
        (shape, lambda x, a=axis: relay.nn.log_softmax(x, a), lambda x, a=axis: log_softmax(x, a))
        for shape, axis in [((5, 33), 1), ((3, 17), -1), ((17,), 0), ((2, 10, 7), 2)]
    ]
    assert run_cases(cases, low=-9.0, high=9.0) == ["softmax"] * 4


# --- reductions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mean", "sum", "max", "min"])
def test_reduction(name):
    relay_op, numpy_op = getattr(relay, name), getattr(np, name)

    def case(shape, axis, keepdims=False, **attrs):
        attrs = {"axis": axis, "keepdims": keepdims, **attrs}
        numpy_axis = 2 if attrs.get("exclude") else axis
        return (
            shape,
            lambda x: relay_op(x, **attrs),
            lambda x: numpy_op(x, numpy_axis, keepdims=keepdims),
        )

    cases = [
        case((2, 17, 5, 7), (2, 3)),
        case((3, 17, 5), -1, keepdims=True),
        case((3, 17, 5), (0, 1), exclude=True),
    ]
    assert run_cases(cases) == ["reduction"] * 3
    assert run_cases([case((5, 33), 0)]) in (["reduction"], [])  # if oneDNN has a fast kernel


@pytest.mark.parametrize(
    "reduce",
    [
        lambda x: relay.sum(x),
        lambda x: relay.prod(x, 1),
        lambda x: relay.variance(x, 1),
    ],
    ids=["to a scalar", "prod", "variance"],
)
def test_other_reductions_stay(reduce):
    assert stays(reduce(var("x", 3, 4, 1)))


# --- elementwise ----------------------------------------------------------------------------------

C = relay.const
UNARY = [
    (relay.exp, np.exp),
    (relay.log, np.log), (relay.sqrt, np.sqrt), (relay.rsqrt, lambda x: 1 / np.sqrt(x)),
    (relay.abs, np.abs), (relay.negative, np.negative),
    (lambda x: relay.power(x, C(0.3)), lambda x: x**0.3),
    (lambda x: relay.power(x, C(-2.0)), lambda x: x**-2.0),
    (lambda x: relay.divide(x, C(0.7)), lambda x: x / np.float32(0.7)),
]  # fmt: skip
SIGNED = [
    (relay.abs, np.abs), (relay.negative, np.negative),
    (lambda x: relay.power(x, C(2.0)), lambda x: x**2),
    (lambda x: relay.power(x, C(3.0)), lambda x: x**3),
    (lambda x: relay.subtract(x, C(0.3)), lambda x: x - np.float32(0.3)),
    (lambda x: relay.subtract(C(0.3), x), lambda x: np.float32(0.3) - x),
    (lambda x: relay.maximum(x, C(0.3)), lambda x: np.maximum(x, np.float32(0.3))),
    (lambda x: relay.minimum(C(0.3), x), lambda x: np.minimum(x, np.float32(0.3))),
    (lambda x: relay.divide(x, C(-3.0)), lambda x: x / -3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "low"), [(UNARY, 0.3), (SIGNED, -2.0)], ids=["positive", "signed"]
)
def test_unary(table, low):
    cases = [((2, 17, 5), op, numpy_op) for op, numpy_op in table]
    assert run_cases(cases, low=low) == ["eltwise"] * len(table)


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    """With itself (CASE 13); and broadcast either way, where the order of operands counts.

    Where the first operand is broadcast, it is up to oneDNN.
    """
    op, numpy_op = getattr(relay, name), BINARY[name]
    other = random(17, 1, seed=5, low=0.5)
    cases = [
        ((2, 17, 5), lambda x: op(x, C(other)), lambda x: numpy_op(x, other)),
        ((2, 17, 5), lambda x: op(C(other), x), lambda x: numpy_op(other, x)),
        ((1, 5), lambda x: op(C(other), x), lambda x: numpy_op(other, x)),
        ((3, 7), lambda x: op(x, x), lambda x: numpy_op(x, x)),
    ]
    steps = run_cases(cases, low=0.3)
    # With itself, a value is a function of one, but for those that are a number: nearly everywhere.
    assert steps.count("binary") >= 1
    assert steps.count("eltwise") == (name not in ("subtract", "divide"))
    assert 2 <= len(steps) <= len(cases)


@pytest.mark.parametrize(
    "op",
    [
        lambda x: relay.divide(C(1.5), x),
        lambda x: relay.power(C(1.5), x),
        lambda x: relay.power(x, const(5, low=0.1)),
        lambda x: relay.floor_divide(x, C(0.3)),
    ],
    ids=["number / x", "number ** x", "tensors", "floor"],
)
def test_other_arithmetic_stays(op):
    assert stays(op(relay.abs(var("x", 3, 5))))


def test_prelu():
    """Alone; the slopes of both signs. Along the last axis it is up to oneDNN."""
    alpha = random(17, seed=3)

    def case(shape, axis):
        along = alpha.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        return (
            shape,
            lambda x: relay.nn.prelu(x, C(alpha), axis),
            lambda x: np.where(x > 0, x, x * along),
        )

    assert run_cases([case((2, 17, 5), 1), case((2, 17, 4, 3), 1)]) == ["prelu"] * 2
    assert set(run_cases([case((2, 5, 17), 2), case((2, 4, 3, 17), 3)])) <= {"prelu"}


# --- pooling of other ranks and layouts -----------------------------------------------------------

POOLS = {
    1: ((2, 17, 11), {"pool_size": (3,), "strides": (2,), "padding": (2, 1)}),
    2: ((2, 17, 11, 8),
        {"pool_size": (3, 2), "strides": (2, 1), "padding": (2, 1, 0, 1)}),
    3: ((1, 5, 6, 9, 7),
        {"pool_size": (2, 3, 2), "strides": (1, 2, 2), "padding": (1, 0, 1, 0, 2, 1)}),
}  # fmt: skip


def mean_with_padding(window, axes):
    return np.nansum(window, axes) / np.prod(window.shape[-len(axes) :])


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("dims", POOLS)
def test_pool(dims, last):
    """CASES 7, 10."""
    shape, attrs = POOLS[dims]
    layout = ("N" + "DHW"[3 - dims :] + "C") if last else ("NC" + "DHW"[3 - dims :])
    max_pool, avg_pool = (getattr(relay.nn, f"{n}_pool{dims}d") for n in ("max", "avg"))
    to, back = (0, *range(2, dims + 2), 1), (0, dims + 1, *range(1, dims + 1))
    given = tuple(shape[i] for i in to) if last else shape

    def reference(reduce):
        if not last:
            return lambda x: pooling(x, reduce, **attrs)
        return lambda x: pooling(x.transpose(back), reduce, **attrs).transpose(to)

    cases = [
        (given, lambda x: max_pool(x, layout=layout, **attrs), reference(np.nanmax)),
        (given, lambda x: avg_pool(x, layout=layout, **attrs), reference(np.nanmean)),
        (given, lambda x: avg_pool(x, layout=layout, count_include_pad=True, **attrs),
         reference(mean_with_padding)),
    ]  # fmt: skip
    assert run_cases(cases, low=-3.0, high=-1.0) == ["pooling"] * 3


def test_adaptive_and_global_pool():
    """Where windows are of one size; also on 1 × 1 (CASE 10)."""

    def windows(reduce, rows, columns):
        def op(x):
            n, c, h, w = x.shape
            return reduce(x.reshape(n, c, rows, h // rows, columns, w // columns), (3, 5))

        return op

    cases = [
        ((2, 5, 6, 9), lambda x: relay.nn.adaptive_avg_pool2d(x, (2, 3)), windows(np.mean, 2, 3)),
        ((2, 5, 6, 9), lambda x: relay.nn.adaptive_max_pool2d(x, (3, 1)), windows(np.max, 3, 1)),
        ((2, 17, 7, 5), relay.nn.global_avg_pool2d, windows(np.mean, 1, 1)),
        ((2, 17, 1, 1), relay.nn.global_max_pool2d, windows(np.max, 1, 1)),
        ((2, 7, 5, 17), lambda x: relay.nn.global_avg_pool2d(x, layout="NHWC"),
         lambda x: x.mean((1, 2), keepdims=True)),
    ]  # fmt: skip
    assert run_cases(cases) == ["pooling"] * len(cases)


def test_uneven_adaptive_pool_stays():
    assert stays(relay.nn.adaptive_avg_pool2d(var("x", 1, 3, 7, 5), (3, 2)))


def test_adaptive_pool_to_nothing_stays():
    nothing = module(relay.nn.adaptive_avg_pool2d(var("x", 1, 8, 4, 4), (0, 0)))
    assert offloaded(partition_for_dnnl(nothing))[0] == []
