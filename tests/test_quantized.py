"""Quantized models through Relay: what runs in whole numbers, and what comes out."""

import numpy as np
import pytest
import tvm
from helpers import (
    assert_close,
    build,
    const,
    conv2d,
    fused,
    in_tvm,
    module,
    offloaded,
    random,
    run,
    steps_of,
    var,
)
from processor import WHOLE
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl


def quantize(x, scale, zero_point=0, dtype="uint8"):
    scale, zero_point = relay.const(scale, "float32"), relay.const(zero_point, "int32")
    return relay.qnn.quantize(x, scale, zero_point, out_dtype=dtype)


def dequantize(x, scales, zero_points=0, axis=-1):
    scales = np.asarray(scales, "float32")
    zero_points = np.full(scales.shape, zero_points, "int32")
    return relay.qnn.dequantize(x, relay.const(scales), relay.const(zero_points), axis=axis)


def rounded(x, scale, zero_point=0, dtype="uint8"):
    return dequantize(quantize(x, scale, zero_point, dtype), scale, zero_point)


def weights(*shape, seed=0, axis=0):
    numbers = np.random.default_rng([seed, *shape]).integers(-127, 128, shape).astype("int8")
    return dequantize(relay.const(numbers), np.geomspace(1e-4, 1e-2, shape[axis]), axis=axis)


def bias(channels):
    numbers = np.random.default_rng(channels).integers(-3000, 3000, channels).astype("int32")
    return dequantize(relay.const(numbers), np.full(channels, 1e-4), axis=0)


def convolve(x, channels, inputs, kernel=3, seed=0, **attrs):
    w = weights(channels, inputs, kernel, kernel, seed=seed)
    attrs = {"padding": (kernel // 2,) * 4, **attrs}
    y = relay.nn.conv2d(x, w, channels=channels, kernel_size=(kernel, kernel), **attrs)
    return relay.nn.bias_add(y, bias(channels))


def check(mod, inputs, steps=1):
    """Compare with plain TVM, which computes in f32: to so many steps of the last numbers."""
    lib = build(partition_for_dnnl(mod))
    got, expected = run(lib, inputs), run(build(mod), inputs)
    for a, b in zip(got, expected, strict=True):
        if b.dtype == np.float32:
            assert_close([a], [b], 1e-5)
        else:
            assert a.dtype == b.dtype
            assert len(np.unique(b)) > 8
            assert np.abs(a.astype(int) - b).max() <= steps
            assert (a != b).mean() < 0.01
    return steps_of(lib)


X = {"x": random(1, 16, 12, 11)}


@pytest.mark.parametrize(("dtype", "zero_point"), [("uint8", 0), ("uint8", 131), ("int8", -5)])
def test_numbers_from_one_convolution_to_the_next(dtype, zero_point):
    y = rounded(var("x", 1, 16, 12, 11), 0.01, 100)
    y = rounded(relay.nn.relu(convolve(y, 32, 16)), 0.02, zero_point, dtype)
    y = quantize(convolve(y, 8, 32, kernel=1), 0.03, zero_point, dtype)
    mod = module(y)
    steps = check(mod, X)
    assert offloaded(partition_for_dnnl(mod))[1] == []
    if WHOLE:
        assert fused(steps) == ["quantize", "convolution:eltwise_relu", "convolution"]
        assert {s["dtypes"]["weights"] for s in steps[1:]} == {"s8"}


def test_numbers_in_and_out_of_the_model():
    x = var("x", 1, 16, 12, 11, dtype="uint8")
    mod = module(quantize(convolve(dequantize(x, 0.01, 100), 32, 16), 0.02, 128))
    numbers = np.random.default_rng(0).integers(0, 256, (1, 16, 12, 11)).astype("uint8")
    steps = check(mod, {"x": numbers})
    if WHOLE:
        assert fused(steps) == ["convolution"]


def residual(keep=False):
    """As ONNX Runtime's quantizer writes it: the convolution's result is rounded before the sum."""
    x = rounded(var("x", 1, 16, 12, 11), 0.013)
    y = rounded(relay.nn.relu(convolve(x, 16, 16, seed=1)), 0.02)
    numbers = quantize(convolve(y, 16, 16), 0.02, 128)
    z = quantize(relay.nn.relu(dequantize(numbers, 0.02, 128) + x), 0.02)
    return module(z, numbers) if keep else module(z)


def test_a_residual_addition():
    """One operand is clipped, as plain TVM does, but not rounded."""
    lib = build(partition_for_dnnl(residual()))
    got, expected = run(lib, X)[0], run(build(residual()), X)[0]
    assert np.abs(got.astype(int) - expected).max() <= 1
    if WHOLE:
        assert fused(steps_of(lib)) == [
            "quantize",
            "convolution:eltwise_relu",
            "convolution:eltwise_clip+sum+eltwise_relu",
        ]


def test_a_residual_addition_of_which_an_operand_is_needed():
    """The near miss: then it is rounded, for the sum as well."""
    steps = check(residual(keep=True), X)
    assert "sum" not in " ".join(fused(steps))


def test_pooling_and_concat_of_numbers():
    x = rounded(var("x", 1, 16, 12, 11), 0.01)
    y = relay.nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1, 1, 1))
    y = relay.concatenate([y, rounded(y, 0.01)], axis=1)
    steps = check(module(quantize(convolve(y, 16, 32), 0.02, 100)), X)
    if WHOLE:
        assert [s["kind"] for s in steps] == ["quantize", "pooling", "concat", "convolution"]
        assert {s["dtypes"]["dst"] for s in steps} == {"u8"}


def test_a_quantized_concat_of_a_split():
    """Its parts are no expressions of their own, and stay as they are."""
    parts = relay.split(convolve(rounded(var("x", 1, 16, 12, 11), 0.01), 16, 16), 2, axis=1)
    check(module(quantize(relay.concatenate(parts.astuple(), axis=2), 0.02, 100)), X)


@pytest.mark.parametrize("zero_point", [0, 9])
def test_dense(zero_point):
    x = rounded(var("x", 4, 70), 0.01, zero_point)
    y = relay.nn.dense(x, weights(33, 70))
    mod = module(quantize(relay.nn.bias_add(y, bias(33)), 0.02, 128))
    steps = check(mod, {"x": random(4, 70)})
    if WHOLE:
        assert [s["kind"] for s in steps] == ["quantize", "matmul"]


def test_channels_last():
    y = relay.nn.conv2d(
        rounded(var("x", 1, 12, 11, 16), 0.01, 3),
        weights(3, 3, 16, 32, axis=3),
        channels=32,
        kernel_size=(3, 3),
        data_layout="NHWC",
        kernel_layout="HWIO",
    )
    steps = check(module(y), {"x": random(1, 12, 11, 16)})
    if WHOLE:
        assert steps[-1]["dtypes"] == {"src": "u8", "weights": "s8", "dst": "f32"}


def test_weights_are_numbers_in_every_region():
    x = rounded(var("x", 1, 16, 12, 11), 0.01)
    y = rounded(in_tvm(convolve(x, 16, 16)), 0.02, 100)
    partitioned = partition_for_dnnl(module(convolve(y, 8, 16)))
    inside, outside = offloaded(partitioned)
    assert inside.count("nn.conv2d") == 2
    assert outside == ["reverse"]
    lib = build(partitioned)
    if WHOLE:
        heavy = [s for s in steps_of(lib) if s["kind"] == "convolution"]
        assert [s["dtypes"]["weights"] for s in heavy] == ["s8", "s8"]


def test_scales_that_are_no_constants():
    scale = relay.var("scale", shape=(), dtype="float32")
    x = var("x", 1, 16, 12, 11)
    y = relay.qnn.quantize(x, scale, relay.const(0), out_dtype="uint8")
    y = relay.qnn.dequantize(y, scale, relay.const(0))
    mod = module(conv2d(y, const(8, 16, 3, 3)))
    assert offloaded(partition_for_dnnl(mod))[0] == ["nn.conv2d"]
    check(mod, {**X, "scale": np.float32(0.01)})


def test_convolutions_leave_the_numbers_of_a_concat():
    """Also those that are rounded in another way before."""
    x = rounded(var("x", 1, 16, 12, 11), 0.01)
    parts = [
        convolve(x, 16, 16, seed=1),
        relay.nn.relu(convolve(x, 8, 16, kernel=1, seed=2)),
        rounded(convolve(x, 8, 16, seed=3), 0.03, 100),
    ]
    y = rounded(relay.concatenate(parts, axis=1), 0.02, 90)
    # The third part is one step off where it was rounded twice, and that 4 times in a window.
    steps = check(module(quantize(convolve(y, 16, 32, kernel=1), 0.5, 100)), X)
    if WHOLE:
        kinds = [s["kind"] for s in steps]
        assert kinds == ["quantize", *["convolution"] * 3, "concat", "convolution"]
        assert {s["dtypes"]["dst"] for s in steps} == {"u8"}


def test_a_concat_of_what_was_rewritten():
    """Types are not known of what partitioning has put in the place of something else."""
    x = conv2d(var("x", 1, 16, 12, 11), const(16, 16, 3, 3)) * relay.const(0.3)
    pooled = relay.nn.max_pool2d(quantize(x, 0.02), (3, 3), (1, 1))
    y = relay.concatenate([dequantize(pooled, 0.02), dequantize(pooled, 0.03)], axis=1)
    check(module(quantize(y, 0.05)), X)


def test_twice_is_once():
    once = partition_for_dnnl(residual())
    assert tvm.ir.structural_equal(partition_for_dnnl(once), once)
