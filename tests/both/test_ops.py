"""Each operator by itself: shapes at which kernels have borders, and what must stay in TVM.

Results are read by a TVM operator as well: padding of a blocked layout would be seen there.
"""

import numpy as np
import pytest
from front import (
    assert_close,
    build,
    build_plainly,
    check,
    const,
    conv2d,
    fused,
    in_tvm,
    inputs_for,
    module,
    offloaded,
    random,
    relay,
    run,
    shape_of,
    var,
)

from tvm_dnnl_byoc import partition_for_dnnl


def conv2d_reference(x, w, strides=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1):
    """NCHW convolution in float64; padding is top, left, bottom, right."""
    top, left, bottom, right = padding
    x = np.pad(x.astype("float64"), ((0, 0), (0, 0), (top, bottom), (left, right)))
    n, _, height, width = x.shape
    out, inner, kh, kw = w.shape
    oh = (height - dilation[0] * (kh - 1) - 1) // strides[0] + 1
    ow = (width - dilation[1] * (kw - 1) - 1) // strides[1] + 1
    x = x.reshape(n, groups, inner, height, width)
    w = w.astype("float64").reshape(groups, out // groups, inner, kh, kw)
    y = np.zeros((n, groups, out // groups, oh, ow))
    for i in range(kh):
        for j in range(kw):
            rows = slice(i * dilation[0], i * dilation[0] + (oh - 1) * strides[0] + 1, strides[0])
            columns = slice(
                j * dilation[1], j * dilation[1] + (ow - 1) * strides[1] + 1, strides[1]
            )
            y += np.einsum("ngihw,goi->ngohw", x[..., rows, columns], w[..., i, j])
    return y.reshape(n, out, oh, ow)


def check_conv2d(data, weights, **attrs):
    """Check a convolution of constant weights, read at its borders by TVM."""
    x, w = random(*data), random(*weights, seed=1)
    y = conv2d(var("x", *data), relay.const(w), **attrs)
    attrs.pop("channels", None)
    if attrs.get("groups", 1) == data[1] and weights[0] == data[1]:
        w = w.reshape(-1, 1, *weights[2:])  # (C, multiplier, …)
    reference = conv2d_reference(x, w, **attrs)
    steps = check(
        module(y, relay.reverse(y, 1), in_tvm(y)),
        inputs={"x": x},
        reference=[reference, reference[:, ::-1], reference[..., ::-1]],
        taken=["nn.conv2d"],
    )
    assert fused(steps) == ["convolution"]


CONVOLUTIONS = [
    ((1, 1, 99, 12), (7, 1, 3, 4), {}),
    ((1, 1, 99, 12), (7, 1, 3, 4), {"strides": (2, 1), "padding": (1, 0, 1, 1)}),
    ((2, 3, 11, 13), (5, 3, 3, 3), {"padding": (0, 1, 2, 0)}),
    ((2, 3, 19, 14), (6, 3, 3, 4), {"dilation": (2, 1), "padding": (1, 0, 1, 1)}),
    ((2, 3, 19, 14), (6, 3, 3, 4), {"dilation": (3, 2), "strides": (2, 3)}),
    ((3, 10, 5, 7), (17, 10, 1, 1), {}),
    ((1, 17, 6, 5), (33, 17, 1, 1), {"strides": (2, 3)}),
    ((2, 33, 5, 4), (10, 33, 3, 2), {"padding": (1, 1, 1, 0)}),
    ((1, 16, 9, 7), (32, 16, 3, 3), {"padding": (1, 1, 1, 1)}),
    ((2, 7, 5, 6), (1, 7, 3, 3), {}),
    ((1, 5, 3, 4), (1000, 5, 1, 1), {}),
    ((2, 3, 5, 6), (4, 3, 5, 6), {}),
]
GROUPED = [
    ((2, 6, 7, 5), (10, 3, 3, 3), {"groups": 2}),
    ((1, 9, 7, 5), (12, 3, 3, 2), {"groups": 3, "padding": (1, 0, 1, 1)}),
    ((1, 64, 7, 5), (96, 32, 3, 3), {"groups": 2, "strides": (2, 1)}),
    ((2, 3, 8, 7), (3, 1, 3, 3), {"groups": 3}),
    ((1, 10, 8, 7), (10, 1, 3, 3), {"groups": 10, "padding": (1, 1, 1, 1), "strides": (2, 2)}),
    ((1, 17, 9, 8), (17, 1, 5, 3), {"groups": 17, "padding": (2, 0, 1, 1)}),
    ((2, 33, 5, 6), (33, 1, 3, 3), {"groups": 33, "dilation": (2, 1)}),
    ((1, 32, 5, 6), (32, 1, 3, 3), {"groups": 32}),
]
MULTIPLIER = [
    ((1, 3, 8, 7), (3, 2, 3, 3), {"groups": 3, "channels": 6}),
    ((2, 17, 6, 7), (17, 2, 3, 2), {"groups": 17, "channels": 34, "padding": (1, 0, 1, 1)}),
    ((2, 16, 6, 7), (16, 3, 3, 3), {"groups": 16, "channels": 48, "strides": (1, 2)}),
]


@pytest.mark.parametrize(("data", "weights", "attrs"), CONVOLUTIONS)
def test_conv2d(data, weights, attrs):
    check_conv2d(data, weights, **attrs)


@pytest.mark.parametrize(("data", "weights", "attrs"), GROUPED)
def test_grouped_conv2d(data, weights, attrs):
    check_conv2d(data, weights, **attrs)


@pytest.mark.parametrize(("data", "weights", "attrs"), MULTIPLIER)
def test_depthwise_multiplier(data, weights, attrs):
    check_conv2d(data, weights, **attrs)


def test_wide_depthwise_equals_group_conv():
    """The multiplier's outputs follow their input channel, in weights of both forms."""
    x = var("x", 2, 6, 7, 5)
    w = random(6, 2, 3, 3)
    y = conv2d(x, relay.const(w), groups=6, channels=12)
    z = conv2d(x, relay.const(w.reshape(12, 1, 3, 3)), groups=6)
    xs = random(2, 6, 7, 5, seed=3)
    reference = conv2d_reference(xs, w.reshape(12, 1, 3, 3), groups=6)
    check(module(relay.reverse(y, 3)), inputs={"x": xs}, reference=[reference[..., ::-1]])
    check(module(relay.reverse(z, 3)), inputs={"x": xs}, reference=[reference[..., ::-1]])


def test_weights_may_be_inputs():
    x, w = var("x", 2, 10, 7, 5), var("w", 6, 5, 3, 2)
    xs, ws = random(2, 10, 7, 5), random(6, 5, 3, 2)
    steps = check(
        module(relay.reverse(conv2d(x, w, groups=2), 3)),
        inputs={"x": xs, "w": ws},
        reference=[conv2d_reference(xs, ws, groups=2)[..., ::-1]],
    )
    assert fused(steps) == ["convolution"]


@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (4, 32, 16), (5, 33, 17), (1, 2048, 1000), (3, 7, 1), (17, 10, 3)]
)
@pytest.mark.parametrize("constant", [True, False])
def test_dense(m, k, n, constant):
    xs, ws = random(m, k), random(n, k, seed=1)
    inputs = {"x": xs} if constant else {"x": xs, "w": ws}
    w = relay.const(ws) if constant else var("w", n, k)
    y = relay.nn.dense(var("x", m, k), w)
    reference = xs.astype("float64") @ ws.astype("float64").T
    steps = check(
        module(y, relay.reverse(y, 1)),
        inputs=inputs,
        reference=[reference, reference[:, ::-1]],
        taken=["nn.dense"],
    )
    assert fused(steps) == ["inner_product"]


def beside_conv(y):
    """Return a module in which the result is read by a convolution, so that a region is worth it.

    It is read by TVM as well.
    """
    channels = shape_of(y)[1]
    z = conv2d(y, const(4, channels, 1, 1, seed=9))
    return module(y, relay.reverse(y, 3), in_tvm(z))


def after_conv(op, channels=10, size=(9, 8)):
    """Return op of a convolution's result, which is in oneDNN's own layout."""
    x = var("x", 2, 3, size[0] + 2, size[1] + 2)
    y = op(conv2d(x, const(channels, 3, 3, 3, seed=8)))
    return module(y, relay.reverse(y, 0), in_tvm(y))


def pool2d_reference(x, op, pool_size, strides=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1)):
    """NCHW pooling in float64; op reduces the two last axes, padding is NaN to it."""
    top, left, bottom, right = padding
    x = np.pad(
        x.astype("float64"),
        ((0, 0), (0, 0), (top, bottom), (left, right)),
        constant_values=np.nan,
    )
    kh, kw = pool_size
    rows = range(0, x.shape[2] - dilation[0] * (kh - 1), strides[0])
    columns = range(0, x.shape[3] - dilation[1] * (kw - 1), strides[1])
    y = np.empty((*x.shape[:2], len(rows), len(columns)))
    for i, r in enumerate(rows):
        for j, c in enumerate(columns):
            window = x[
                :,
                :,
                r : r + dilation[0] * (kh - 1) + 1 : dilation[0],
                c : c + dilation[1] * (kw - 1) + 1 : dilation[1],
            ]
            y[:, :, i, j] = op(window)
    return y


def nan_max(window):
    return np.nanmax(window, axis=(2, 3))


def mean_of_valid(window):
    return np.nanmean(window, axis=(2, 3))


def mean_with_padding(window):
    return np.nansum(window, axis=(2, 3)) / (window.shape[2] * window.shape[3])


POOLS = [
    {"pool_size": (2, 2), "strides": (2, 2)},
    {"pool_size": (3, 2), "strides": (2, 1), "padding": (1, 0, 1, 1)},
    {"pool_size": (3, 3), "strides": (2, 2), "padding": (2, 1, 0, 1)},
    {"pool_size": (3, 2), "strides": (1, 2), "padding": (0, 1, 2, 0)},
]


@pytest.mark.parametrize("attrs", POOLS)
@pytest.mark.parametrize("channels", [3, 16, 17])
def test_max_pool2d_of_negative_data(attrs, channels):
    x = random(2, channels, 11, 8, low=-3.0, high=-1.0)
    y = relay.nn.max_pool2d(var("x", *x.shape), **attrs)
    reference = pool2d_reference(x, nan_max, **attrs)
    w = random(4, channels, 1, 1, seed=9)
    steps = check(
        module(y, in_tvm(conv2d(y, relay.const(w)))),
        inputs={"x": x},
        reference=[reference, conv2d_reference(reference, w)[..., ::-1]],
        taken=["nn.max_pool2d", "nn.conv2d"],
    )
    assert fused(steps) == ["pooling", "convolution"]


@pytest.mark.parametrize("attrs", POOLS)
@pytest.mark.parametrize("include", [True, False])
def test_avg_pool2d(attrs, include):
    x = random(2, 17, 11, 8)
    y = relay.nn.avg_pool2d(var("x", *x.shape), count_include_pad=include, **attrs)
    mean = mean_with_padding if include else mean_of_valid
    w = random(4, 17, 1, 1, seed=9)
    reference = pool2d_reference(x, mean, **attrs)
    mod = module(y, in_tvm(conv2d(y, relay.const(w))))
    steps = check(
        mod, inputs={"x": x}, reference=[reference, conv2d_reference(reference, w)[..., ::-1]]
    )
    assert fused(steps) == ["pooling", "convolution"]


@pytest.mark.parametrize("pool", [relay.nn.max_pool2d, relay.nn.avg_pool2d])
@pytest.mark.parametrize(
    "attrs",
    [
        {"pool_size": (3, 3), "strides": (2, 2)},
        {"pool_size": (3, 3), "strides": (2, 2), "padding": (0, 0, 1, 1)},
        {"pool_size": (2, 3), "strides": (3, 2), "padding": (1, 0, 0, 1)},
        {"pool_size": (2, 2), "strides": (4, 3)},  # the last window is outside: stays
    ],
)
@pytest.mark.parametrize("size", [(8, 9), (10, 12)])
def test_pool2d_with_ceil_mode(pool, attrs, size):
    y = pool(relay.nn.relu(var("x", 1, 5, *size)), ceil_mode=True, **attrs)
    check(beside_conv(y))


@pytest.mark.parametrize("include", [True, False])
def test_avg_pool2d_with_ceil_mode_and_padding(include):
    attrs = {"pool_size": (3, 3), "strides": (2, 2), "padding": (2, 1, 0, 1)}
    y = relay.nn.avg_pool2d(
        var("x", 2, 5, 10, 11), ceil_mode=True, count_include_pad=include, **attrs
    )
    check(beside_conv(y))


@pytest.mark.parametrize("pool", [relay.nn.max_pool2d, relay.nn.avg_pool2d])
def test_pool2d_with_dilation(pool):
    y = pool(var("x", 2, 5, 13, 12), pool_size=(3, 2), dilation=(2, 3), strides=(2, 1))
    check(beside_conv(y))


@pytest.mark.parametrize("value", [0.0, 5.0])
@pytest.mark.parametrize("pool", [relay.nn.max_pool2d, relay.nn.avg_pool2d])
def test_pad_before_pool2d(pool, value):
    x = relay.nn.pad(var("x", 2, 5, 9, 8), ((0, 0), (0, 0), (2, 1), (0, 3)), value)
    check(beside_conv(pool(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1))))


@pytest.mark.parametrize("pool", [relay.nn.max_pool2d, relay.nn.avg_pool2d])
def test_padding_as_wide_as_the_window(pool):
    check(beside_conv(pool(var("x", 1, 5, 9, 8), pool_size=(2, 2), padding=(2, 1, 1, 2))))


@pytest.mark.parametrize("size", [(1, 1), (7, 5)])
@pytest.mark.parametrize(
    ("pool", "reduce"),
    [(relay.nn.global_max_pool2d, np.max), (relay.nn.global_avg_pool2d, np.mean)],
)
def test_global_pool2d(pool, reduce, size):
    x = random(2, 17, *size, low=-3.0, high=-1.0)
    y = relay.nn.dense(relay.nn.batch_flatten(pool(var("x", *x.shape))), const(5, 17, seed=4))
    pooled = reduce(x.astype("float64"), axis=(2, 3))
    reference = pooled @ random(5, 17, seed=4).astype("float64").T
    steps = check(module(y), inputs={"x": x}, reference=[reference])
    assert fused(steps) == ["pooling", "inner_product"]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ELTWISE = {
    "relu": (relay.nn.relu, lambda x: np.maximum(x, 0)),
    "leaky_relu": (lambda x: relay.nn.leaky_relu(x, 0.3), lambda x: np.where(x > 0, x, 0.3 * x)),
    "clip": (lambda x: relay.clip(x, -0.4, 0.9), lambda x: np.clip(x, -0.4, 0.9)),
    "sigmoid": (relay.sigmoid, sigmoid),
    "tanh": (relay.tanh, np.tanh),
    "add": (lambda x: relay.add(x, relay.const(0.3)), lambda x: x + 0.3),
    "add_left": (lambda x: relay.add(relay.const(0.3), x), lambda x: x + 0.3),
    "multiply": (lambda x: relay.multiply(x, relay.const(-1.7)), lambda x: x * -1.7),
}


@pytest.mark.parametrize("name", ELTWISE)
def test_eltwise(name):
    """Before a convolution, where nothing can be fused, and as its data."""
    op, numpy_op = ELTWISE[name]
    x = random(2, 17, 7, 5, low=-2.0, high=2.0)
    w = random(4, 17, 3, 3, seed=2)
    y = op(relay.nn.max_pool2d(op(var("x", *x.shape))))
    applied = numpy_op(numpy_op(x.astype("float64")))
    steps = check(
        module(y, in_tvm(conv2d(y, relay.const(w)))),
        inputs={"x": x},
        reference=[applied, conv2d_reference(applied, w)[..., ::-1]],
    )
    assert {"pooling", "convolution"} <= {step["kind"] for step in steps}
    assert len(steps) <= 4


@pytest.mark.parametrize("op", [relay.add, relay.multiply], ids=["add", "multiply"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 5, 7, 3), (2, 5, 7, 3)),
        ((2, 5, 7, 3), (5, 1, 1)),
        ((2, 5, 7, 3), (3,)),
        ((2, 5, 7, 3), (2, 1, 7, 1)),
        ((5, 7, 1), (2, 5, 7, 3)),
        ((2, 5, 1, 3), (1, 5, 7, 1)),
        ((2, 5, 7, 3), ()),
    ],
)
def test_binary(op, a, b):
    """Broadcasting in all directions, of two inputs."""
    combine = np.add if op is relay.add else np.multiply
    y = op(var("a", *a), var("b", *b))
    w = random(4, 5, 1, 1, seed=2)
    inputs = {"a": random(*a, seed=1), "b": random(*b, seed=2)}
    expected = combine(inputs["a"].astype("float64"), inputs["b"])
    check(
        module(relay.nn.max_pool2d(y), in_tvm(conv2d(y, relay.const(w)))),
        inputs=inputs,
        reference=[expected, conv2d_reference(expected, w)[..., ::-1]],
    )


@pytest.mark.parametrize("axis", [1, 2, 3, -1, 0])
def test_softmax(axis):
    x = random(3, 17, 5, 4, low=-4.0, high=4.0)
    y = relay.nn.softmax(var("x", *x.shape), axis=axis)
    e = np.exp(x.astype("float64"))
    expected = e / e.sum(axis, keepdims=True)
    w = random(4, 17, 1, 1, seed=2)
    check(
        module(y, in_tvm(conv2d(y, relay.const(w)))),
        inputs={"x": x},
        reference=[expected, conv2d_reference(expected, w)[..., ::-1]],
    )


def test_softmax_of_blocked_data():
    steps = check(after_conv(lambda y: relay.nn.softmax(y, axis=1)))
    assert fused(steps) == ["convolution", "softmax"]


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("channels", [10, 16])
def test_concatenate(axis, channels):
    """Of a convolution's result, the graph's input and a constant, in this order."""
    x = var("x", 2, channels, 7, 5)
    conv = conv2d(x, const(channels, channels, 3, 3, seed=2), padding=(1, 1, 1, 1))
    y = relay.concatenate([conv, x, const(2, channels, 7, 5, seed=3)], axis=axis)
    steps = check(module(y, relay.reverse(y, axis % 4)), taken=["nn.conv2d", "concatenate"])
    assert fused(steps) == ["convolution", "concat"]


def test_concatenate_of_uneven_parts():
    x = var("x", 1, 3, 7, 5)
    parts = [conv2d(x, const(n, 3, 1, 1, seed=n)) for n in (16, 1, 7, 32)]
    y = relay.concatenate([*parts, parts[1]], axis=1)
    check(module(in_tvm(y), y, parts[0]), taken=["nn.conv2d"] * 4 + ["concatenate"])


def test_concatenate_of_constants_and_one_tensor_twice():
    x = relay.nn.relu(conv2d(var("x", 1, 3, 7, 5), const(8, 3, 1, 1)))
    y = relay.concatenate([x, const(1, 2, 7, 5), x], axis=1)
    check(module(relay.reverse(conv2d(y, const(3, 18, 1, 1, seed=5)), 3)))


@pytest.mark.parametrize(
    "op",
    [
        relay.nn.batch_flatten,
        lambda y: relay.reshape(y, (2, 10, 72)),
        lambda y: relay.reshape(y, (-1, 9)),
        lambda y: relay.reshape(y, (0, -1, 4)),
        lambda y: relay.reshape(y, (1440,)),
    ],
    ids=["flatten", "merge", "rows", "special", "rank1"],
)
@pytest.mark.parametrize("channels", [10, 16])
def test_reshape_of_blocked_data(op, channels):
    size = (9, 8) if channels == 10 else (9, 5)
    check(after_conv(op, channels, size))


def test_reshape_of_an_input_is_an_output():
    x = var("x", 2, 3, 4, 5)
    flat = relay.reshape(x, (2, 60))
    check(module(relay.nn.dense(flat, const(7, 60)), flat, x))


@pytest.mark.parametrize("axis", [1, 3, -1, -3])
def test_bias_add_alone(axis):
    x = var("x", 2, 5, 7, 5)
    y = relay.nn.bias_add(relay.nn.max_pool2d(x), const(5), axis=axis)
    check(beside_conv(y))


BATCH_NORM = [const(17, seed=s, low=low) for s, low in ((1, -1), (2, -1), (3, -1), (4, 0.2))]


def test_batch_norm_alone():
    x = random(2, 17, 7, 5)
    y = relay.nn.batch_norm(relay.nn.max_pool2d(var("x", *x.shape)), *BATCH_NORM, epsilon=1e-3)[0]
    w = random(4, 17, 1, 1, seed=2)
    gamma, beta, mean, variance = (
        c.data.numpy().astype("float64").reshape(-1, 1, 1) for c in BATCH_NORM
    )
    expected = (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta
    steps = check(
        module(y, in_tvm(conv2d(y, relay.const(w)))),
        inputs={"x": x},
        reference=[expected, conv2d_reference(expected, w)[..., ::-1]],
    )
    assert fused(steps) == ["pooling", "batch_normalization", "convolution"]


@pytest.mark.parametrize("attrs", [{"scale": False}, {"center": False}])
def test_batch_norm_without_gamma_or_beta(attrs):
    x = relay.nn.max_pool2d(var("x", 2, 17, 7, 5))
    steps = check(beside_conv(relay.nn.batch_norm(x, *BATCH_NORM, **attrs)[0]))
    assert fused(steps) == ["pooling", "batch_normalization", "convolution"]


def test_batch_norm_of_inputs():
    """Its statistics are the graph's inputs."""
    statistics = [var(name, 17) for name in ("gamma", "beta", "mean", "variance")]
    y = relay.nn.batch_norm(var("x", 2, 17, 7, 5), *statistics)[0]
    inputs = {v.name_hint: random(17, seed=i, low=0.3) for i, v in enumerate(statistics)}
    steps = check(beside_conv(y), inputs={"x": random(2, 17, 7, 5), **inputs})
    assert fused(steps) == ["batch_normalization", "convolution"]


def test_batch_norm_of_last_axis_stays():
    statistics = [const(5, seed=s, low=0.2) for s in range(4)]
    y = relay.nn.batch_norm(var("x", 2, 17, 7, 5), *statistics, axis=3)[0]
    mod = beside_conv(y)
    check(mod)
    assert "nn.batch_norm" in offloaded(partition_for_dnnl(mod))[1]


def test_no_step_is_a_reference_implementation():
    """CASE 27: over the operators above, as one network."""
    x = var("x", 2, 3, 17, 15)
    y = relay.nn.relu(conv2d(x, const(10, 3, 3, 3)))
    y = relay.nn.batch_norm(relay.nn.max_pool2d(y, (3, 3), (2, 2)), *[const(10, low=0.2)] * 4)[0]
    y = relay.concatenate([y, conv2d(y, const(7, 10, 1, 1))], axis=1)
    y = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(relay.tanh(y)))
    y = relay.nn.softmax(relay.nn.dense(y, const(5, 17)))
    steps = check(module(y))
    assert len(steps) >= 8
    assert not [step for step in steps if step["impl"].startswith("ref")]


@pytest.mark.parametrize("limited", ["maximum", "minimum", "clip"])
def test_infinity_passes_a_bound_on_the_other_side(limited):
    x = relay.nn.dense(var("x", 1, 4), relay.const(np.eye(4, dtype="float32") * 2))
    y = {
        "maximum": lambda: relay.maximum(x, relay.const(0.5)),
        "minimum": lambda: relay.minimum(x, relay.const(0.5)),
        "clip": lambda: relay.clip(x, 0.5, float("inf")),
    }[limited]()

    data = np.array([[3e38, -3e38, 0.125, 1.0]], "float32")
    product = np.array([[np.inf, -np.inf, 0.25, 2.0]], "float32")
    low, high = (-np.inf, 0.5) if limited == "minimum" else (0.5, np.inf)
    lib = build(partition_for_dnnl(module(y)))
    np.testing.assert_array_equal(run(lib, {"x": data})[0], np.clip(product, low, high))


@pytest.mark.parametrize("limit", [relay.minimum, relay.maximum], ids=["minimum", "maximum"])
def test_two_limits_on_one_side_are_none_on_the_other(limit):
    y = relay.nn.dense(var("x", 1, 4), relay.const(np.eye(4, dtype="float32")))
    y = limit(limit(y, relay.const(0.5)), relay.const(0.75))
    check(module(y), inputs={"x": np.array([[-1e9, 1e9, 3e8, -2.0]], "float32")})


@pytest.mark.parametrize("shape", [(3, 5, 1), (3, 5, 1, 1), (3, 5, 1, 1, 1), (3, 5, 2, 1)])
def test_operand_per_channel_after_a_binary(shape):
    """Where nothing but channels is left, oneDNN 3.2 reads one number of the operand for all."""
    along = (5, *(1 for _ in shape[2:]))
    x = relay.multiply(var("x", *shape), const(*along, seed=1))
    check_kept(relay.add(x, const(*along, seed=2)), relay.maximum(const(*along, seed=3), x))


def check_kept(*outputs):
    """Compare with plain TVM, with the regions that would be dissolved."""
    mod = module(*outputs)
    inputs = inputs_for(mod)
    partitioned = partition_for_dnnl(mod, keep_light_regions=True)
    assert offloaded(partitioned)[1] == []
    assert_close(run(build(partitioned), inputs), run(build_plainly(mod), inputs))
