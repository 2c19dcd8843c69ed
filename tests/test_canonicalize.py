"""Folding into weights: the canonical module alone, built plainly, gives what the original gives.

What must be folded is looked for in the canonical module's operators; what must not, too.
"""

from collections import Counter

import numpy as np
import pytest
import tvm
from helpers import (
    assert_close,
    build,
    build_plainly,
    check,
    const,
    conv2d,
    fused,
    inputs_for,
    module,
    op_names,
    run,
    var,
)
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl
from tvm_dnnl_byoc.relay.canonicalize import canonicalize

N, C, H, W = 2, 6, 7, 5
SHAPE = (N, C, H, W)


def canonical(mod):
    """Return a canonical module, after comparing its results with the original's.

    Both are built as one: plainly, and with the kernels that they share compiled once.
    """
    original = relay.transform.InferType()(mod)["main"]
    result = canonicalize(original)
    both = relay.Function(original.params, relay.Tuple([original.body, result.body]))
    both = tvm.IRModule.from_expr(both)
    outputs = run(build_plainly(both), inputs_for(both))
    half = len(outputs) // 2
    assert_close(outputs[half:], outputs[:half])
    return relay.transform.InferType()(tvm.IRModule.from_expr(result))


def operators(mod):
    return Counter(op_names(canonical(mod)["main"]))


def batch_norm(x, channels=C, seed=0, **attrs):
    """Everything about it random: gamma of both signs, mean not 0, variance not 1."""
    gamma, beta, mean = (const(channels, seed=seed + i) for i in range(3))
    variance = const(channels, seed=seed + 3, low=0.1, high=3.0)
    attrs.setdefault("epsilon", 3e-3)
    return relay.nn.batch_norm(x, gamma, beta, mean, variance, **attrs)


def conv(x, channels=C, seed=1, inputs=C):
    return conv2d(x, const(channels, inputs, 3, 3, seed=seed), padding=(2, 0, 0, 2))


FOLDED = {"nn.conv2d": 1, "add": 1}


@pytest.mark.parametrize("attrs", [{}, {"scale": False}, {"center": False}, {"epsilon": 0.5}])
def test_batch_norm(attrs):
    assert operators(module(batch_norm(conv(var("x", *SHAPE)), **attrs)[0])) == FOLDED


def test_batch_norm_without_gamma_and_beta_ignores_them():
    x = conv(var("x", *SHAPE))
    y = batch_norm(x, scale=False, center=False)[0]
    assert operators(module(y)) == FOLDED


@pytest.mark.parametrize(
    ("groups", "channels", "inputs"), [(2, 8, 3), (3, 9, 2), (6, 6, 1)], ids=["2", "3", "depthwise"]
)
def test_batch_norm_of_grouped_conv(groups, channels, inputs):
    y = conv2d(var("x", *SHAPE), const(channels, inputs, 3, 2), groups=groups)
    assert operators(module(batch_norm(y, channels)[0])) == FOLDED


def test_batch_norm_of_depthwise_conv_with_multiplier():
    y = conv2d(var("x", *SHAPE), const(C, 3, 3, 2), groups=C, channels=3 * C)
    assert operators(module(batch_norm(y, 3 * C)[0])) == FOLDED


def test_batch_norm_of_dense():
    y = batch_norm(relay.nn.dense(var("x", 5, 12), const(7, 12)), 7)[0]
    assert operators(module(y)) == {"nn.dense": 1, "add": 1}


def nhwc_conv(channels, weights, layout, groups=1):
    return relay.nn.conv2d(
        var("x", N, H, W, C),
        weights,
        channels=channels,
        kernel_size=(3, 3),
        groups=groups,
        data_layout="NHWC",
        kernel_layout=layout,
    )


def test_batch_norm_of_nhwc_conv():
    """Its weights are (H, W, I, O)."""
    y = nhwc_conv(4, const(3, 3, C, 4), "HWIO")
    mod = module(relay.nn.relu(batch_norm(y, 4, axis=3)[0]))
    assert operators(mod) == FOLDED | {"nn.relu": 1}
    assert fused(check(mod)) == ["convolution:eltwise_relu"]


def test_batch_norm_of_nhwc_conv_along_h_stays():
    y = nhwc_conv(4, const(3, 3, C, 4), "HWIO")
    mod = module(relay.nn.relu(batch_norm(y, H - 2, axis=1)[0]))
    assert operators(mod)["nn.batch_norm"] == 1
    check(mod)


def test_batch_norm_of_depthwise_nhwc_conv_with_multiplier_stays():
    """Its outputs are spread over two axes of the weights, (H, W, O, I)."""
    y = nhwc_conv(2 * C, const(3, 3, C, 2), "HWOI", groups=C)
    mod = module(relay.nn.relu(batch_norm(y, 2 * C, axis=3)[0]))
    assert operators(mod)["nn.batch_norm"] == 1
    check(mod)


def test_bias_batch_norm_and_relu():
    y = relay.nn.bias_add(conv(var("x", *SHAPE)), const(C, seed=5))
    y = relay.nn.relu(batch_norm(y)[0])
    assert operators(module(y)) == FOLDED | {"nn.relu": 1}


def test_everything_at_once():
    y = relay.multiply(const(C, 1, 1, seed=4), conv(var("x", *SHAPE)))
    y = relay.add(const(1, C, 1, 1, seed=5), y)
    y = batch_norm(relay.nn.bias_add(y, const(C, seed=6)))[0]
    y = relay.add(batch_norm(y, seed=10)[0], relay.const(0.25))
    y = relay.multiply(y, relay.const(-2.0))
    assert operators(module(y)) == FOLDED


@pytest.mark.parametrize("shape", [(W,), (H, 1), (1, 1, H, W), (C, H, W), (N, 1, 1, 1)])
@pytest.mark.parametrize("op", [relay.add, relay.multiply], ids=["add", "multiply"])
def test_not_per_channel_is_not_folded(op, shape):
    y = op(conv(var("x", *SHAPE)), const(*shape))
    found = operators(module(batch_norm(y)[0]))
    assert found["nn.batch_norm"] == 1
    assert found["add" if op is relay.add else "multiply"] == 1


@pytest.mark.parametrize("size", [5, 7])
def test_batch_norm_along_another_axis_is_not_folded(size):
    y = conv2d(var("x", N, C, size, 9), const(size, C, 1, 1))
    found = operators(module(batch_norm(y, size, axis=2)[0]))
    assert found == {"nn.conv2d": 1, "nn.batch_norm": 1}


def test_batch_norm_of_a_variable_weight():
    """Only a shift can be folded, into the add."""
    y = conv2d(var("x", *SHAPE), var("w", C, C, 3, 3))
    assert operators(module(batch_norm(y)[0])) == {"nn.conv2d": 1, "nn.batch_norm": 1}
    z = relay.add(relay.nn.bias_add(y, const(C)), const(C, 1, 1, seed=2))
    assert operators(module(z)) == FOLDED


def test_batch_norm_with_variable_statistics():
    x = conv(var("x", *SHAPE))
    y = relay.nn.batch_norm(x, const(C), const(C), var("mean", C), const(C, low=0.2))[0]
    assert operators(module(y))["nn.batch_norm"] == 1


def test_conv_read_twice():
    """Folded, the other reader would see scaled data, or the convolution would run twice."""
    x = conv(var("x", *SHAPE))
    found = operators(module(batch_norm(x)[0], relay.tanh(x)))
    assert found == {"nn.conv2d": 1, "nn.batch_norm": 1, "tanh": 1}
    assert operators(module(batch_norm(x)[0], x))["nn.batch_norm"] == 1


def test_shifted_conv_read_twice():
    x = relay.nn.bias_add(conv(var("x", *SHAPE)), const(C))
    found = operators(module(batch_norm(x)[0], relay.tanh(x)))
    assert found["nn.conv2d"] == 1
    assert found["nn.batch_norm"] == 1


def test_two_batch_norms_of_one_conv():
    x = conv(var("x", *SHAPE))
    found = operators(module(batch_norm(x)[0], batch_norm(x, seed=20)[0]))
    assert found == {"nn.conv2d": 1, "nn.batch_norm": 2}


def test_batch_norm_read_twice():
    """Two readers of one result that is taken apart twice: one convolution."""
    y = batch_norm(conv(var("x", *SHAPE)))
    z = (relay.nn.relu(y[0]), relay.tanh(y[0]))
    assert operators(module(*z))["nn.conv2d"] == 1


def test_field_that_is_taken_twice():
    """TVM's MXNet frontend takes the result of a batch_norm apart anew for each reader."""
    y = batch_norm(conv(var("x", *SHAPE)))
    z = relay.add(relay.tanh(y[0]), y[0])
    check(module(z), taken=["nn.conv2d", "add", "tanh", "add"])


def test_other_outputs_of_batch_norm():
    """CASE 21. TVM 0.19 itself builds this only if the region takes the convolution away."""
    y = batch_norm(conv(var("x", *SHAPE)))
    mod = relay.transform.InferType()(module(*y))
    found = Counter(op_names(canonicalize(mod["main"])))
    assert found == {"nn.conv2d": 1, "nn.batch_norm": 1}
    actual = run(build(partition_for_dnnl(mod)), inputs_for(mod))
    expected = run(build(module(y[0])), inputs_for(mod))
    assert_close(actual[:1], expected)
    for i, output in ((1, actual[1]), (2, actual[2])):
        assert_close([output], [y[0].tuple_value.args[2 + i].data.numpy()])


def test_shared_weights():
    """CASE 12: each convolution gets weights of its own."""
    w = const(C, C, 3, 3)
    x = var("x", *SHAPE)
    a = relay.nn.relu(batch_norm(conv2d(x, w))[0])
    b = relay.tanh(conv2d(x, w))
    c = batch_norm(conv2d(x, w), seed=30)[0]
    found = operators(module(a, b, c))
    assert found == {"nn.conv2d": 3, "add": 2, "nn.relu": 1, "tanh": 1}


def test_tiny_variance():
    """Folded in float64, the scale has its full precision."""
    gamma, beta, mean = (const(C, seed=i) for i in range(3))
    variance = const(C, seed=3, low=1e-9, high=1e-7)
    x = conv(var("x", *SHAPE))
    y = relay.nn.batch_norm(x, gamma, beta, mean, variance, epsilon=1e-9)[0]
    assert operators(module(y)) == FOLDED


# --- scale of a layer's data ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "channels", "inputs"), [(1, 4, 6), (2, 8, 3), (3, 9, 2), (6, 6, 1)]
)
@pytest.mark.parametrize("shape", [(C, 1, 1), (1, C, 1, 1), ()])
def test_scale_before_conv(groups, channels, inputs, shape):
    """CASE 22."""
    x = relay.multiply(relay.nn.relu(var("x", *SHAPE)), const(*shape))
    y = conv2d(x, const(channels, inputs, 3, 2, seed=2), groups=groups, padding=(1, 0, 1, 1))
    assert operators(module(y)) == {"nn.relu": 1, "nn.conv2d": 1}


def test_scale_before_depthwise_conv_with_multiplier():
    x = relay.multiply(const(C, 1, 1), var("x", *SHAPE))
    y = conv2d(x, const(C, 2, 3, 2, seed=2), groups=C, channels=2 * C)
    assert operators(module(y)) == {"nn.conv2d": 1}


def test_scale_depthwise_relu_scale():
    """CASE 22."""
    x = relay.multiply(var("x", *SHAPE), const(C, 1, 1))
    y = conv2d(x, const(C, 1, 3, 3), groups=C)
    y = relay.multiply(relay.nn.relu(y), const(C, 1, 1, seed=4))
    assert operators(module(y)) == {"nn.conv2d": 1, "nn.relu": 1, "multiply": 1}


def test_scale_before_dense():
    x = relay.multiply(var("x", 5, 12), const(12))
    assert operators(module(relay.nn.dense(x, const(7, 12)))) == {"nn.dense": 1}
    x = relay.multiply(var("x", 5, 12), const(5, 1))
    y = relay.nn.dense(x, const(7, 12))
    assert operators(module(y)) == {"nn.dense": 1, "multiply": 1}


@pytest.mark.parametrize("shape", [(W,), (C, H, 1), (N, 1, 1, 1)])
def test_scale_that_is_not_per_channel(shape):
    y = conv(relay.multiply(var("x", *SHAPE), const(*shape)))
    assert operators(module(y)) == {"nn.conv2d": 1, "multiply": 1}


def test_scaled_data_read_twice():
    x = relay.multiply(var("x", *SHAPE), const(C, 1, 1))
    assert operators(module(conv(x), x))["multiply"] == 1
    assert operators(module(conv(x), conv(x, seed=3)))["multiply"] == 1


def test_scale_between_two_convs_goes_into_one():
    x = relay.multiply(conv(var("x", *SHAPE)), const(C, 1, 1))
    assert operators(module(conv(x, seed=3))) == {"nn.conv2d": 2}


def test_shift_before_padded_conv_is_not_folded():
    """The padding is 0 after the shift."""
    y = conv(relay.add(var("x", *SHAPE), const(C, 1, 1)))
    assert operators(module(y)) == {"nn.conv2d": 1, "add": 1}


# --- dense of other ranks: TVM 0.19 builds none, so the module is only to be partitioned ----------


@pytest.mark.parametrize("operand", [(), (8, 1), (7,), (3, 1, 1)])
@pytest.mark.parametrize("where", ["before", "after"])
def test_dense_of_rank_3(where, operand):
    """The channels are the last axis, not axis 1."""
    x = var("x", 3, 8, 7)
    if where == "before":
        y = relay.nn.dense(relay.multiply(x, const(*operand)), const(7, 7))
    else:
        y = relay.add(relay.multiply(relay.nn.dense(x, const(7, 7)), const(*operand)), const(7))
    mod = relay.transform.InferType()(module(y))
    result = canonicalize(mod["main"])
    found = Counter(op_names(result))
    assert found["nn.dense"] == 1
    assert found["multiply"] == (0 if operand in [(), (7,)] else 1)
    partition_for_dnnl(mod)


# --- constants and dropout ------------------------------------------------------------------------


def test_dropout():
    y = relay.nn.relu(relay.nn.dropout(relay.nn.relu(var("x", 3, 4)), rate=0.9))
    assert operators(module(y)) == {"nn.relu": 2}
    x = var("x", 3, 4)
    assert operators(module(relay.nn.dropout(x))) == {}


def test_batch_norm_through_dropout():
    y = batch_norm(relay.nn.dropout(conv(var("x", *SHAPE))))[0]
    assert operators(module(y)) == FOLDED


def test_concat_of_concats():
    """In channels-last layout, the inner one would be a copy of its own."""
    x = conv(var("x", *SHAPE))
    inner = relay.concatenate([relay.nn.relu(x), relay.tanh(x)], axis=-3)
    found = operators(module(relay.concatenate([x, inner, x], axis=1)))
    assert found["concatenate"] == 1


@pytest.mark.parametrize("other", ["axis", "reader"])
def test_concats_that_stay(other):
    x = conv(var("x", *SHAPE))
    inner = relay.concatenate([relay.nn.relu(x), x], axis=2 if other == "axis" else 1)
    rest = relay.concatenate([x, x], axis=2) if other == "axis" else relay.tanh(inner)
    found = operators(module(relay.concatenate([inner, rest], axis=1)))
    assert found["concatenate"] == (3 if other == "axis" else 2)


CONSTANTS = {
    "add": lambda a, b: relay.add(a, b),
    "subtract": lambda a, b: relay.subtract(a, b),
    "multiply": lambda a, b: relay.multiply(a, b),
    "negative": lambda a, b: relay.negative(a),
    "transpose": lambda a, b: relay.transpose(a),
    "transpose axes": lambda a, b: relay.transpose(a, (2, 0, 1)),
    "squeeze": lambda a, b: relay.squeeze(a),
    "squeeze axis": lambda a, b: relay.squeeze(a, axis=[-2]),
    "expand_dims": lambda a, b: relay.expand_dims(a, 1, 2),
    "expand_dims at the end": lambda a, b: relay.expand_dims(a, -1, 2),
    "expand_dims negative": lambda a, b: relay.expand_dims(a, -2),
    "cast": lambda a, b: relay.cast(relay.cast(relay.multiply(a, b), "int32"), "float32"),
    "batch_flatten": lambda a, b: relay.nn.batch_flatten(a),
    "concatenate": lambda a, b: relay.concatenate([a, b, a], axis=-1),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constant_expression(name):
    a = const(3, 1, 4, low=-5.0, high=5.0)
    b = const(3, 1, 4, seed=2, low=-5.0, high=5.0)
    y = CONSTANTS[name](a, b)
    assert operators(module(relay.nn.relu(y), relay.nn.relu(var("x", 2)))) == {"nn.relu": 2}


def test_constant_scalar_stays_a_scalar():
    """An array of one element in its place would have another rank."""
    index = relay.add(relay.const(1), relay.const(1))
    squeezed = relay.squeeze(relay.const(np.array([[1.5]], "float32")))
    y = relay.take(var("x", 4, 5), index, axis=0)
    expected = {"strided_slice": 1, "reshape": 1}  # a take of one index is a slice
    assert operators(module(y, relay.sqrt(squeezed))) == expected


def test_weights_that_are_computed():
    """PyTorch's linear: the weights are transposed twice on their way to dense."""
    w = relay.transpose(relay.transpose(const(7, 12), (1, 0)), (1, 0))
    y = relay.add(relay.nn.dense(var("x", 3, 12), w), relay.squeeze(const(1, 7)))
    assert operators(module(y)) == {"nn.dense": 1, "add": 1}


def test_integers_wrap_like_relay():
    big = relay.const(np.array([2**31 - 1, 5], "int32"))
    y = relay.add(big, relay.const(np.array([2, 3], "int32")))
    assert operators(module(relay.add(y, var("x", 2, dtype="int32")))) == {"add": 1}


def test_nothing_of_another_dtype_is_touched():
    x = var("x", N, 3, 4, 5, dtype="float16")
    c = [relay.const(np.full(3, 0.5 + i, "float16")) for i in range(4)]
    y = relay.nn.batch_norm(x, *c, scale=False)[0]
    mod = relay.transform.InferType()(module(y))
    assert Counter(op_names(canonicalize(mod["main"]))) == {"nn.batch_norm": 1}
    assert tvm.ir.structural_equal(partition_for_dnnl(mod), partition_for_dnnl(mod))


def test_bfloat16_constants():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    c = [
        relay.const(tvm.nd.array(np.full(3, 0.5 + i, "float32").astype(ml_dtypes.bfloat16)))
        for i in range(4)
    ]
    x = var("x", N, 3, 4, 5, dtype="bfloat16")
    partition_for_dnnl(module(relay.nn.batch_norm(x, *c, scale=False)[0]))


def test_zero_shift_adds_nothing():
    zero = relay.const(np.zeros(C, "float32"))
    y = relay.nn.bias_add(conv(var("x", *SHAPE)), zero)
    assert operators(module(y)) == {"nn.conv2d": 1}


def test_canonical_is_a_fixed_point():
    y = batch_norm(relay.nn.bias_add(conv(var("x", *SHAPE)), const(C)))[0]
    once = canonical(module(relay.nn.relu(y)))
    assert tvm.ir.structural_equal(once, canonical(once))


WHOLE_NUMBERS = {
    "dense": lambda x, w: relay.nn.dense(x, w(7, C), out_dtype="float32"),
    "conv2d": lambda x, w: relay.nn.conv2d(
        relay.reshape(x, (1, C, 2, 1)), w(7, C, 1, 1), channels=7, kernel_size=(1, 1),
        out_dtype="float32",
    ),
}  # fmt: skip


@pytest.mark.parametrize("scale", [(), (7,)])
@pytest.mark.parametrize("name", WHOLE_NUMBERS)
def test_scales_do_not_go_into_whole_numbers(name, scale):
    """They would be rounded."""
    rng = np.random.default_rng(1)

    def weights(*shape):
        return relay.const(rng.integers(-9, 9, shape, endpoint=True).astype("int8"))

    y = WHOLE_NUMBERS[name](var("x", 2, C, dtype="int8"), weights)
    factor = const(*scale, low=0.01, high=0.02)
    if name == "conv2d" and scale:
        factor = relay.expand_dims(factor, 1, 2)
    assert operators(module(y * factor))["multiply"] == 1


def test_scales_do_not_go_into_weights_of_less_precision():
    x = var("x", 2, C, 5, 4, dtype="float16")
    weights = relay.cast(const(4, C, 3, 3), "float16")
    y = relay.nn.conv2d(x, weights, channels=4, kernel_size=(3, 3), out_dtype="float32")
    y = y * relay.const(np.array([1e5, 2e5, 3e5, 1e-7], "float32").reshape(4, 1, 1))
    assert operators(module(y))["multiply"] == 1


def test_averages_of_whole_numbers_stay_where_they_are():
    rng = np.random.default_rng(1)
    weights = relay.const(rng.integers(-9, 9, (4, C, 1, 1), endpoint=True).astype("int8"))
    x = var("x", 1, C, 8, 8, dtype="int8")
    y = relay.nn.conv2d(x, weights, channels=4, kernel_size=(1, 1), out_dtype="float32")
    for average in (relay.nn.global_avg_pool2d(y), relay.nn.avg_pool2d(y, (2, 2), (2, 2))):
        names = list(op_names(canonical(module(average))["main"]))
        assert names.index("nn.conv2d") < max(i for i, n in enumerate(names) if "pool" in n)
