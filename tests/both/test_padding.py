"""Padding that goes into the convolution or pooling which follows, and such as must not."""

import numpy as np
import pytest
from front import (
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

from tvm_dnnl_byoc import partition_for_dnnl

N, C, H, W = 2, 6, 7, 5
WIDTHS = ((0, 0), (0, 0), (1, 2), (0, 1))


def conv(x=None, seed=1):
    x = var("x", N, C, H, W) if x is None else x
    return conv2d(x, const(C, C, 3, 3, seed=seed), padding=(1, 1, 1, 1))


def conv_nhwc(x, channels=4):
    return relay.nn.conv2d(
        x, const(3, 3, C, channels), channels=channels, kernel_size=(3, 3), data_layout="NHWC",
        kernel_layout="HWIO",
    )  # fmt: skip


def conv1d(x):
    return relay.nn.conv1d(x, const(4, C, 3), channels=4, kernel_size=3, padding=(1, 0))


def conv3d(x):
    return relay.nn.conv3d(x, const(4, C, 3, 3, 3), channels=4, kernel_size=(3, 3, 3))


WINDOWS_OF_PADDED = {
    "conv2d": lambda: conv2d(relay.nn.pad(var("x", N, C, H, W), WIDTHS), const(4, C, 3, 3)),
    "conv2d with padding of its own": lambda: conv2d(
        relay.nn.pad(var("x", N, C, H, W), WIDTHS), const(4, C, 3, 3), padding=(1, 0, 0, 2)
    ),
    "pad of pad": lambda: conv2d(
        relay.nn.pad(relay.nn.pad(var("x", N, C, H, W), WIDTHS), WIDTHS), const(4, C, 3, 3)
    ),
    "conv2d NHWC": lambda: conv_nhwc(
        relay.nn.pad(var("x", N, H, W, C), ((0, 0), (1, 2), (0, 1), (0, 0)))
    ),
    "conv1d": lambda: conv1d(relay.nn.pad(var("x", N, C, H), ((0, 0), (0, 0), (2, 1)))),
    "conv3d": lambda: conv3d(
        relay.nn.pad(var("x", 1, C, 4, H, W), ((0, 0), (0, 0), (1, 0), (0, 1), (2, 1)))
    ),
}


@pytest.mark.parametrize("name", WINDOWS_OF_PADDED)
def test_padding_goes_into_a_convolution(name):
    mod = module(relay.nn.relu(WINDOWS_OF_PADDED[name]()))
    assert fused(check(mod)) == ["convolution:eltwise_relu"]
    assert offloaded(partition_for_dnnl(mod))[1] == []


POOLINGS_OF_PADDED = {
    "average": lambda x: relay.nn.avg_pool2d(relay.nn.pad(x, WIDTHS), (4, 3)),
    "average that counts": lambda x: relay.nn.avg_pool2d(
        relay.nn.pad(x, WIDTHS), (4, 4), padding=(1, 1), count_include_pad=True
    ),
    "maximum": lambda x: relay.nn.max_pool2d(
        relay.nn.pad(x, WIDTHS, float(np.finfo("float32").min)), (3, 3), strides=(2, 1)
    ),
}


@pytest.mark.parametrize("name", POOLINGS_OF_PADDED)
def test_padding_goes_into_a_pooling(name):
    mod = module(POOLINGS_OF_PADDED[name](conv()))
    assert fused(check(mod)) == ["convolution", "pooling"]


PADDING_THAT_STAYS = {
    "of 5": lambda x: conv(relay.nn.pad(x, WIDTHS, 5.0)),
    "of channels": lambda x: conv2d(
        relay.nn.pad(x, ((0, 0), (1, 0), (1, 2), (0, 1))), const(4, C + 1, 3, 3)
    ),
    "at the edge": lambda x: conv(relay.nn.pad(x, WIDTHS, pad_mode="edge")),
    "maximum of NaN": lambda x: relay.nn.max_pool2d(
        relay.nn.pad(x, WIDTHS, float("nan")), (3, 3), strides=(2, 1)
    ),
    "maximum of 0": lambda x: relay.nn.max_pool2d(relay.nn.pad(x, WIDTHS), (3, 3)),
    "average, own padding not counted": lambda x: relay.nn.avg_pool2d(
        relay.nn.pad(x, WIDTHS), (3, 3), padding=(1, 1), count_include_pad=False
    ),
    "average, ceil_mode": lambda x: relay.nn.avg_pool2d(
        relay.nn.pad(x, WIDTHS), (3, 3), strides=(2, 2), ceil_mode=True
    ),
    "maximum, wider than the window": lambda x: relay.nn.max_pool2d(
        relay.nn.pad(x, ((0, 0), (0, 0), (3, 0), (0, 0)), float("-inf")), (2, 2)
    ),
}


@pytest.mark.parametrize("name", PADDING_THAT_STAYS)
def test_padding_that_stays(name):
    mod = module(PADDING_THAT_STAYS[name](conv()))
    assert "nn.pad" in offloaded(partition_for_dnnl(mod))[1]
    if "wider" in name or "NaN" in name:  # no test for check(); plain TVM's answer all the same
        inputs = inputs_for(mod)
        actual, expected = (
            run(build(partition_for_dnnl(mod)), inputs),
            run(build_plainly(mod), inputs),
        )
        np.testing.assert_allclose(actual[0], expected[0], rtol=1e-5, atol=1e-4)
    else:
        check(mod)
