"""Composed activations: every spelling that frontends give, and beside each one what it is not."""

import numpy as np
import pytest
from front import (
    RELAY,
    build,
    build_plainly,
    check,
    const,
    conv2d,
    fused,
    inputs_for,
    module,
    offloaded,
    relay,
    run,
    var,
)
from fusion_table import elu, gelu_erf, gelu_tanh, hardswish, mish, number, sigmoid_times, softplus

from tvm_dnnl_byoc import partition_for_dnnl
from tvm_dnnl_byoc.passes.activations import Activation, erf, recognise

N, C, H, W = 2, 6, 7, 5


def conv(x=None, seed=1):
    x = var("x", N, C, H, W) if x is None else x
    weights = const(C, C, 3, 3, seed=seed, low=-0.2, high=0.2)
    return conv2d(x, weights, padding=(1, 1, 1, 1))


def times_half(x, factor):
    return x * number(0.5) * (number(1) + relay.erf(factor(x)))


SPELLINGS = {
    "gelu_erf": [
        gelu_erf,
        lambda x: times_half(x, lambda x: x * number(0.70710678)),
        lambda x: times_half(x, lambda x: x / number(1.41421)),
        lambda x: times_half(x, lambda x: x / number(1.4142099)),
        lambda x: x * (number(0.5) + number(0.5) * relay.erf(x * number(0.707107))),
        lambda x: (x * (relay.erf(x / number(1.4142)) + number(1))) * number(0.5),
    ],
    "gelu_tanh": [
        gelu_tanh,
        lambda x: x * number(0.5) * (
            relay.tanh(x * number(0.7978845) * (number(1) + number(0.044715) * x * x)) + number(1)
        ),
    ],
    "swish": [
        sigmoid_times,
        lambda x: relay.sigmoid(x) * x,
        lambda x: x / (number(1) + relay.exp(relay.negative(x))),
        lambda x: x * relay.sigmoid(x * number(1.702)),
    ],
    "hardswish": [
        hardswish,
        lambda x: x * (relay.clip(x + number(3), 0, 6) / number(6)),
        lambda x: x * relay.clip(x * number(1 / 6) + number(0.5), 0, 1),
        lambda x: x * relay.clip(number(3) + x, 0, 6) * number(0.16666667),
        lambda x: x * relay.minimum(relay.nn.relu(x + number(3)), number(6)) / number(6),
    ],
    "hardsigmoid": [
        lambda x: relay.clip(x * number(0.2) + number(0.5), 0, 1),
        lambda x: relay.clip(x + number(3), 0, 6) / number(6),
    ],
    "elu": [
        elu,
        lambda x: relay.where(
            relay.greater(x, relay.zeros_like(x)), x, relay.exp(x) - relay.ones_like(x)
        ),
    ],
    "mish": [mish, lambda x: relay.tanh(softplus(x)) * x],
    "soft_relu": [
        softplus,
        lambda x: relay.log(number(1) + relay.exp(x * number(2))) / number(2),
        lambda x: relay.where(
            relay.greater(x, relay.full_like(x, number(20))), x, softplus(x)
        ),
        lambda x: relay.log(relay.sigmoid(x)),  # -softplus(-x)
    ],
    "clip": [lambda x: relay.minimum(relay.maximum(x, number(0)), number(6))],
    "relu": [lambda x: relay.maximum(x, x * number(0.1))],
    "square": [lambda x: x * x],
    "logistic": [lambda x: number(1) / (number(1) + relay.exp(relay.negative(x)))],
}  # fmt: skip

NEAR_MISSES = {
    "gelu, divided by 2": lambda x: times_half(x, lambda x: x / number(2)),
    "gelu, 1.414": lambda x: times_half(x, lambda x: x / number(1.414)),
    "gelu, plus 2": lambda x: x * number(0.5) * (number(2) + relay.erf(x / number(2**0.5))),
    "gelu, a quarter": lambda x: x * number(0.25) * (number(1) + relay.erf(x / number(2**0.5))),
    "gelu, an input divides": lambda x: times_half(x, lambda x: x / var("d")),
    "gelu_tanh, 0.0447": lambda x: number(0.5) * x * (
        number(1) + relay.tanh(number(0.7978845) * (x + number(0.04) * relay.power(x, number(3))))
    ),
    "swish, shifted": lambda x: x * relay.sigmoid(x + number(0.01)),
    "swish of two": lambda x: x * relay.sigmoid(conv(x, seed=5)),
    "hardswish, up to 6.1": lambda x: x * relay.clip(x + number(3), 0, 6.1) / number(6),
    "hardsigmoid, from 0.1": lambda x: relay.clip(x * number(0.2) + number(0.5), 0.1, 1),
    "mish, plus 1.1": lambda x: x * relay.tanh(relay.log(number(1.1) + relay.exp(x))),
    "softplus, from 5": lambda x: relay.where(
        relay.greater(x, relay.full_like(x, number(5))), x, softplus(x)
    ),
    "elu, reversed": lambda x: number(-1.3) * relay.nn.relu(relay.exp(x) - number(1)) + x,
    "relu, up to 1000": lambda x: relay.minimum(relay.nn.relu(x) * number(1), number(1000)),
    "per channel": lambda x: x * relay.sigmoid(x * const(C, 1, 1)),
}  # fmt: skip


EPSILON = number(1e-6)


def bell(x):
    x = x * number(64) - number(26)
    return relay.exp(relay.negative(x * x))


# What an activation is but for a small number, or but for a narrow place; and where that shows.
NEARLY = {
    "log(relu + ε)": (lambda x: relay.log(relay.nn.relu(x) + EPSILON), (-3, 1)),
    "1 / (relu + ε)": (lambda x: number(1) / (relay.nn.relu(x) + EPSILON), (-3, 1)),
    "1 / max(|x|, ε)": (lambda x: number(1) / relay.maximum(relay.abs(x), EPSILON), (-1e-6, 1e-6)),
    "x / sqrt(x² + ε²)": (lambda x: x / relay.sqrt(x * x + number(1e-12)), (-2e-6, 3e-6)),
    "x · rsqrt(x² + ε)": (lambda x: x * relay.rsqrt(x * x + EPSILON), (-2e-3, 3e-3)),
    "log(clip(sigmoid))": (
        lambda x: relay.log(relay.clip(relay.sigmoid(x), 1e-7, 1 - 1e-7)), (-90, 9)
    ),
    "log(1 - clip(sigmoid))": (  # at 8 and 24; between them float32's 1 - 1e-6 is not exact
        lambda x: relay.log(number(1) - relay.clip(relay.sigmoid(x), 1e-7, 1 - 1e-7)), (-392, 104)
    ),
    "ε · sigmoid": (lambda x: EPSILON * relay.sigmoid(x), (-3, 3)),
    "ε · tanh": (lambda x: EPSILON * relay.tanh(x), (-3, 3)),
    "bell": (bell, (0.38, 0.44)),
    "tent": (
        lambda x: number(1000) * relay.maximum(
            number(0), relay.minimum(x - number(3.05), number(3.1) - x)
        ),
        (3, 3.15),
    ),
    "clip at 1e9": (lambda x: relay.clip(x * number(0.001), -1e6, 1e6), (-3e9, 2e9)),
}  # fmt: skip


@pytest.mark.parametrize("alg", SPELLINGS)
def test_spellings(alg):
    x, weights = var("x", N, C, H, W), var("w", C, C, 1, 1)  # no constants to fold a scale into
    outputs = [
        spelling(conv2d(relay.tanh(x + number(i)), weights))
        for i, spelling in enumerate(SPELLINGS[alg])
    ]
    mod = module(*outputs)
    steps = fused(check(mod, tolerance=3e-6))
    assert [s for s in steps if "conv" in s] == [f"convolution:eltwise_{alg}"] * len(outputs)
    assert offloaded(partition_for_dnnl(mod))[1] == []


def test_near_misses():
    x = conv()
    for name, expression in NEAR_MISSES.items():
        steps = fused(check(module(expression(conv(x, seed=2))), tolerance=3e-6))
        known = ("gelu", "swish", "hardsigmoid", "mish", "soft_relu", "elu+", "elu'")
        assert not any(alg in str(steps) for alg in known), name


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("name", NEARLY)
def test_nearly_an_activation(name, before):
    """Nearly is not enough: what is before or behind an anchor gives plain TVM's numbers."""
    expression, (low, high) = NEARLY[name]
    x, same = var("x", 4, 8), relay.const(np.eye(8, dtype="float32"))
    y = relay.nn.dense(expression(x), same) if before else expression(relay.nn.dense(x, same))
    mod = module(y)
    inputs = {"x": np.linspace(low, high, 32, dtype="float32").reshape(4, 8)}
    partitioned = partition_for_dnnl(mod)
    assert offloaded(partitioned)[0]
    actual, expected = run(build(partitioned), inputs), run(build_plainly(mod), inputs)
    scale = np.abs(expected[0]).mean()
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-4, atol=1e-5 * scale)


def test_selu_is_a_scaled_elu():
    mod = module(number(1.05) * elu(conv()))
    assert fused(check(mod, tolerance=3e-6)) == ["convolution:eltwise_elu+eltwise_linear"]


def test_inner_value_that_is_read_elsewhere():
    """The sigmoid of a swish is an output: one primitive must give it."""
    x = conv()
    s = relay.sigmoid(x)
    steps = fused(check(module(relay.nn.relu(x * s), s), tolerance=3e-6))
    assert steps == ["convolution", "eltwise", "binary:eltwise_relu"]


def test_argument_that_is_read_elsewhere():
    x = conv()
    steps = fused(check(module(gelu_erf(x), relay.nn.relu(x)), tolerance=3e-6))
    assert sorted(steps) == ["convolution", "eltwise", "eltwise"]


def test_without_a_region_it_is_spelled_out():
    x = var("x", N, C, H, W)
    y = relay.cos(relay.nn.relu(hardswish(relay.cos(conv(x))) * var("m", C, 1, 1)))
    mod = module(y)
    partitioned = partition_for_dnnl(mod)
    inside, outside = offloaded(partitioned)
    assert len(inside) == 1
    assert sorted(outside) == sorted(
        ["cos", "add", "clip", "multiply", "divide", "multiply", "nn.relu", "cos"]
    )
    assert fused(check(mod)) == ["convolution"]


@pytest.mark.skipif(not RELAY, reason="Relax has one executor, the VM")
def test_vm():
    from helpers import run_vm

    mod = module(relay.cos(mish(conv(gelu_erf(conv())))))
    inputs = inputs_for(mod)
    partitioned = partition_for_dnnl(mod)
    graph, machine = run(build(partitioned), inputs), run_vm(partitioned, inputs)
    np.testing.assert_array_equal(graph[0], machine[0])


def test_integers_are_left_alone():
    x = var("x", 3, 4, dtype="int32")
    check(module(x * x))


def softplus_of(x):
    return np.log(1 + np.exp(x))


def sigmoid_of(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    ("function", "constants", "expected"),
    [
        (lambda x: np.clip(x, -2, 3), [-2, 3], Activation("clip", -2, 3)),
        (lambda x: 3 * x - 1, [3, 1], Activation("linear", 3, -1)),
        (lambda x: np.abs(x), [], Activation("relu", -1)),
        (lambda x: np.minimum(np.maximum(x, 0), 1e9), [1e9], None),
        (lambda x: x**3, [3], None),
        (lambda x: np.sqrt(x), [], None),
        (lambda x: np.where(x > 50, np.inf, x), [50], None),
        (lambda x: np.where(x > 100, np.inf, x), [100], None),
        (lambda x: np.ones_like(x), [], None),
        (lambda x: np.maximum(np.minimum(x, -3), 5), [-3, 5], None),  # 5
        (lambda x: np.maximum(x, 0) + 1e-30, [1e-30], None),
        (lambda x: np.maximum(np.abs(x), 1e-6), [1e-6], None),
        (lambda x: np.sqrt(x * x + 1e-12), [1e-12], None),
        (lambda x: x * x + 1e-9, [1e-9], None),
        (softplus_of, [1], Activation("soft_relu", 1)),
        (lambda x: softplus_of(x) + 1e-6, [1, 1e-6], None),
        (lambda x: softplus_of(x) + 1e-12, [1, 1e-12], None),
        (lambda x: np.clip(sigmoid_of(x), 1e-7, 1), [1e-7, 1], None),
        (lambda x: np.minimum(sigmoid_of(x), 1 - 1e-7), [1 - 1e-7], None),
        (lambda x: sigmoid_of(np.clip(x, -88, 88)), [-88, 88], Activation("logistic")),
        (lambda x: 0.9999999 * np.tanh(x), [0.9999999], None),
        (lambda x: 1e-6 * np.tanh(x), [1e-6], None),
        (lambda x: 2 * sigmoid_of(2 * x) - 1, [2, 1], Activation("tanh")),
        (lambda x: 0.5 * x * (1.000005 + erf(x / 2**0.5)), [0.5, 1.000005], None),
        (lambda x: x / (1 + np.exp(-1.702 * x)), [1, 1.702], Activation("swish", 1.702)),
        (lambda x: x + np.clip(x - 1e5, 0, 1), [1e5, 0, 1], None),
        (lambda x: np.exp(-((64 * x - 26) ** 2)), [64, 26, 2], None),
        (lambda x: x + np.exp(-1e4 * (x * (4096 * x - 3328) + 676)), [1e4, 4096, 3328, 676], None),
        (lambda x: np.maximum(0, np.minimum(x - 3.05, 3.1 - x)), [3.05, 3.1], None),
        (lambda x: np.clip(x * 0.001, -1e6, 1e6), [0.001, -1e6, 1e6], None),
    ],
)
def test_recognise(function, constants, expected):
    found = recognise(function, constants)
    if expected is None:
        assert found is None
    else:
        assert found.alg == expected.alg
        np.testing.assert_allclose(
            (found.alpha, found.beta), (expected.alpha, expected.beta), rtol=1e-9
        )
