"""TVM's QNN dialect, as PyTorch's, MXNet's and TVM's own quantized models come."""

import numpy as np
import pytest
import tvm
from helpers import build, fused, module, offloaded, random, run, steps_of, var
from processor import WHOLE
from test_quantized import dequantize, quantize
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl

qnn = relay.qnn


def number(value, dtype="int32"):
    return relay.const(value, dtype)


def scale(value):
    return relay.const(np.asarray(value, "float32"))


def numbers(*shape, dtype="int8", seed=0, low=-127, high=127):
    rng = np.random.default_rng([seed, *shape])
    return relay.const(rng.integers(low, high, shape, endpoint=True).astype(dtype))


def conv(x, channels, inputs, kernel=3, x_scale=0.01, x_zero=0, seed=0, **attrs):
    """Return a convolution's 32-bit sums with a bias, and their scales."""
    w_scale = np.geomspace(1e-4, 1e-2, channels).astype("float32")
    y = qnn.conv2d(
        x,
        numbers(channels, inputs // attrs.get("groups", 1), kernel, kernel, seed=seed),
        number(x_zero),
        number(0),
        scale(x_scale),
        scale(w_scale),
        kernel_size=(kernel, kernel),
        channels=channels,
        **{"padding": (kernel // 2,) * 4, **attrs},
    )
    bias = numbers(channels, dtype="int32", low=-3000, high=3000)
    return relay.nn.bias_add(y, bias), w_scale * np.float32(x_scale)


def requantize(sums, scales, out_scale, out_zero=0, dtype="uint8"):
    return qnn.requantize(
        sums, scale(scales), number(0), scale(out_scale), number(out_zero), axis=1, out_dtype=dtype
    )


X = {"x": np.random.default_rng(0).integers(0, 256, (1, 16, 12, 11)).astype("uint8")}


def check(mod, inputs=X, most=1, often=0.02):
    """Compare numbers with plain TVM's, which differ where it rounds ties otherwise."""
    partitioned = partition_for_dnnl(mod)
    lib = build(partitioned)
    got, expected = run(lib, inputs), run(build(mod), inputs)
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        if b.dtype == np.float32:
            assert np.abs(a - b).max() <= 1e-5 * np.abs(b).max()
            continue
        assert len(np.unique(b)) > 8
        difference = np.abs(a.astype(int) - b)
        assert difference.max() <= most
        assert (difference > 0).mean() < often
    outside = offloaded(partitioned)[1]
    assert not [name for name in outside if name.startswith("qnn.")]
    return steps_of(lib)


@pytest.mark.parametrize("x_zero", [0, 120])
@pytest.mark.parametrize(("dtype", "out_zero"), [("uint8", 0), ("uint8", 131), ("int8", -7)])
def test_convolutions(x_zero, dtype, out_zero):
    y = requantize(
        *conv(var("x", 1, 16, 12, 11, dtype="uint8"), 32, 16, x_zero=x_zero), 0.02, out_zero, dtype
    )
    y, scales = conv(y, 8, 32, 1, 0.02, out_zero, seed=1)
    steps = check(module(requantize(y, scales, 0.05, 3)))
    if WHOLE:
        assert fused(steps) == ["convolution", "convolution"]
        assert {s["dtypes"]["weights"] for s in steps} == {"s8"}


def test_a_depthwise_convolution():
    y = conv(var("x", 1, 16, 12, 11, dtype="uint8"), 16, 16, groups=16)
    check(module(requantize(*y, 0.02)))


def test_padding_with_the_zero_point():
    x = relay.nn.pad(var("x", 1, 16, 12, 11, dtype="uint8"), ((0, 0), (0, 0), (1, 2), (0, 1)), 120)
    y = requantize(*conv(x, 8, 16, x_zero=120, padding=(0, 0)), 0.02, 128)
    steps = check(module(y))
    if WHOLE:
        assert fused(steps) == ["convolution"]


@pytest.mark.parametrize("relu", ["clip", "maximum", "nn.relu"])
def test_a_relu_on_numbers(relu):
    """PyTorch's clip at the zero point."""
    zero = 0 if relu == "nn.relu" else 40
    y = requantize(*conv(var("x", 1, 16, 12, 11, dtype="uint8"), 8, 16), 0.02, zero, "int8")
    y = {
        "clip": lambda: relay.clip(y, zero, 100),
        "maximum": lambda: relay.maximum(y, number(zero, "int8")),
        "nn.relu": lambda: relay.nn.relu(y),
    }[relu]()
    steps = check(module(y))
    if WHOLE:
        assert fused(steps) == ["convolution:eltwise_clip"]


def test_a_residual_addition():
    x = var("x", 1, 16, 12, 11, dtype="uint8")
    h = requantize(*conv(x, 16, 16), 0.02)
    y = requantize(*conv(h, 16, 16, x_scale=0.02, seed=1), 0.02, 128)
    y = qnn.add(y, x, scale(0.02), number(128), scale(0.01), number(0), scale(0.03), number(10))
    steps = check(module(y), often=0.5)  # one operand is not rounded before
    if WHOLE:
        assert "convolution:eltwise_clip+binary_add" in fused(steps)


def test_pooling_concat_and_dense():
    x = var("x", 1, 16, 12, 11, dtype="uint8")
    a = relay.nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1, 1, 1))
    b = qnn.avg_pool2d(
        x, scale(0.01), number(0), scale(0.02), number(3), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1),
        layout="NCHW",
    )  # fmt: skip
    y = qnn.concatenate(
        relay.Tuple([a, b]),
        relay.Tuple([scale(0.01), scale(0.02)]),
        relay.Tuple([number(0), number(3)]),
        scale(0.02),
        number(5),
        axis=1,
    )
    y = relay.nn.batch_flatten(y)
    w = numbers(10, 32 * 6 * 6)
    y = qnn.dense(y, w, number(5), number(0), scale(0.02), scale(1e-4), 10)
    y = relay.add(y, numbers(10, dtype="int32", low=-3000, high=3000))
    dequantized = qnn.dequantize(y, scale(0.02 * 1e-4), number(0))
    lib = build(partition_for_dnnl(module(dequantized)))
    got, expected = run(lib, X)[0], run(build(module(dequantized)), X)[0]
    # Of 1,152 numbers, some differ by one: by rounding of ties, and of the average.
    assert np.abs(got - expected).max() < 0.01 * np.abs(expected).max()
    if WHOLE:
        assert "s8" in [s["dtypes"].get("weights") for s in steps_of(lib)]


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "sqrt"])
def test_unary(name):
    x = var("x", 1, 16, 12, 11, dtype="uint8")
    y = requantize(*conv(x, 8, 16), 0.02, 128)
    y = getattr(qnn, name)(y, scale(0.02), number(0), scale(1 / 128), number(4))
    partition_for_dnnl(module(y))
    z = qnn.dequantize(y, scale(1 / 128), number(4))
    check(module(z, quantize(z, 0.02)), most=2)


def test_sums_that_others_need():
    """The near miss: 32-bit sums that are an output stay with TVM, whatever else reads them."""
    y, scales = conv(var("x", 1, 16, 12, 11, dtype="uint8"), 8, 16)
    mod = module(y, requantize(y, scales, 0.02, 128))
    partitioned = partition_for_dnnl(mod)
    assert "qnn.conv2d" in offloaded(partitioned)[1]
    for a, b in zip(run(build(partitioned), X), run(build(mod), X), strict=True):
        assert np.abs(a.astype(int) - b).max() <= 1


def test_the_scale_of_the_reader_counts():
    """Whatever the convolution says of its operands."""
    y, scales = conv(var("x", 1, 16, 12, 11, dtype="uint8"), 8, 16)
    check(module(requantize(y, 3 * scales, 0.05, 128)))


def test_what_tvm_makes_of_qdq():
    """FakeQuantizationToInteger turns one dialect into the other."""
    w = dequantize(numbers(16, 16, 3, 3), np.geomspace(1e-4, 1e-2, 16), axis=0)
    x = dequantize(quantize(var("x", 1, 16, 12, 11), 0.01), 0.01)
    y = relay.nn.conv2d(x, w, channels=16, kernel_size=(3, 3), padding=(1, 1))
    y = quantize(relay.nn.relu(y), 0.02)
    mod = relay.transform.InferType()(module(y))
    converted = relay.transform.FakeQuantizationToInteger(hard_fail=True)(mod)
    assert "qnn.conv2d" in converted.astext()
    steps = check(converted, {"x": random(1, 16, 12, 11)})
    if WHOLE:
        assert fused(steps) == ["quantize", "convolution:eltwise_relu"]


def test_on_a_target_that_would_abort():
    """TVM 0.19 ends the process where it compiles int8 for AVX-512 VNNI itself."""
    y = requantize(*conv(var("x", 1, 16, 12, 11, dtype="uint8"), 32, 16), 0.02)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(partition_for_dnnl(module(y)), "llvm -mcpu=cascadelake")
    assert run(lib, X)[0].dtype == np.uint8


def test_a_scale_for_each_result_of_a_depthwise_convolution():
    """With a multiplier, there are more of them than the weights have channels: it stays."""
    channels, multiplier = 4, 2
    scales = np.linspace(2e-4, 4e-4, channels * multiplier).astype("float32")
    sums = qnn.conv2d(
        *(var("x", 1, channels, 8, 8, dtype="uint8"), numbers(channels, multiplier, 3, 3)),
        *(number(3), number(0), scale(0.02), scale(0.015)),
        kernel_size=(3, 3),
        channels=channels * multiplier,
        groups=channels,
    )
    mod = module(requantize(sums, scales, 0.1, dtype="int8"))
    inputs = {"x": np.random.default_rng(0).integers(0, 256, (1, channels, 8, 8)).astype("uint8")}
    got, expected = (run(build(m), inputs)[0] for m in (partition_for_dnnl(mod), mod))
    np.testing.assert_array_equal(got, expected)
