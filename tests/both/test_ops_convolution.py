"""Convolutions and transposed convolutions of 1, 2 and 3 dimensions, in the layouts of Relay."""

import numpy as np
import pytest
from front import check, const, fused, module, offloaded, random, relay, var
from reference import convolution, transposed_convolution

from tvm_dnnl_byoc import partition_for_dnnl

RELAY = {
    1: (relay.nn.conv1d, relay.nn.conv1d_transpose),
    2: (relay.nn.conv2d, relay.nn.conv2d_transpose),
    3: (relay.nn.conv3d, relay.nn.conv3d_transpose),
}


def logical(letters, dims):
    return letters + "DHW"[3 - dims :]


def to_layout(array, source, target):
    """Return an array whose axes have the letters of `source` in the order of `target`."""
    return np.ascontiguousarray(array.transpose([source.index(letter) for letter in target]))


def check_convolution(data, weights, data_layout, kernel_layout, channels=None, **attrs):
    """Check a convolution of shapes (N, C, …) and (O, I / groups, …) in other layouts."""
    dims = len(data) - 2
    x, w = random(*data), random(*weights, seed=1)
    expected = convolution(x, w, **attrs)
    data_axes, kernel_axes = logical("NC", dims), logical("OI", dims)
    multiplier = channels is not None
    if multiplier:  # Relay's O and I are the channels of the data and the multiplier
        w = w.reshape(data[1], channels // data[1], *weights[2:])
    x, expected = (to_layout(a, data_axes, data_layout) for a in (x, expected))
    w = to_layout(w, kernel_axes, kernel_layout)
    y = RELAY[dims][0](
        var("x", *x.shape),
        relay.const(w),
        channels=channels or weights[0],
        kernel_size=weights[2:],
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        **attrs,
    )
    steps = check(
        module(relay.reverse(y, dims + 1)),
        inputs={"x": x},
        reference=[expected[..., ::-1]],
        taken=[f"nn.conv{dims}d"],
    )
    assert fused(steps) == ["convolution"]


CONVOLUTIONS = {
    "NCW": [
        ("OIW", (1, 1, 99), (7, 1, 3), {"strides": (2,), "padding": (1, 0)}),
        ("OIW", (2, 10, 19), (33, 10, 4), {"dilation": (3,), "padding": (0, 2)}),
        ("OIW", (2, 9, 8), (6, 3, 3), {"groups": 3, "padding": (1, 1)}),
        ("OIW", (1, 17, 9), (17, 1, 3), {"groups": 17, "strides": (2,)}),
    ],
    "NWC": [
        ("WIO", (2, 3, 19), (17, 3, 4), {"strides": (3,), "padding": (2, 1), "dilation": (2,)}),
    ],
    "NHWC": [
        ("HWIO", (2, 3, 11, 9), (17, 3, 3, 2), {"strides": (2, 1), "padding": (1, 0, 1, 1)}),
        ("HWIO", (1, 10, 19, 14), (6, 10, 3, 4), {"dilation": (2, 1), "padding": (0, 1, 2, 0)}),
        ("HWIO", (1, 10, 7, 5), (6, 5, 3, 3), {"groups": 2}),
        ("HWOI", (2, 33, 5, 6), (33, 1, 3, 3), {"groups": 33, "padding": (1, 1, 1, 1)}),
        ("HWOI", (1, 3, 8, 7), (6, 1, 3, 3), {"groups": 3, "channels": 6}),
        ("OHWI", (2, 5, 7, 6), (10, 5, 3, 3), {"padding": (2, 0, 0, 1)}),
    ],
    "NCHW": [("HWIO", (2, 5, 7, 6), (10, 5, 3, 2), {"padding": (2, 0, 0, 1)})],
    "NCDHW": [
        ("OIDHW", (1, 3, 5, 9, 7), (10, 3, 3, 2, 4),
         {"strides": (1, 2, 3), "padding": (1, 0, 2, 0, 1, 1)}),
        ("OIDHW", (2, 4, 6, 7, 5), (6, 2, 2, 3, 1), {"groups": 2, "dilation": (3, 2, 1)}),
        ("OIDHW", (1, 17, 3, 4, 5), (17, 1, 3, 3, 3),
         {"groups": 17, "padding": (1, 1, 1, 1, 1, 1)}),
    ],
    "NDHWC": [
        ("DHWIO", (2, 3, 4, 7, 6), (17, 3, 2, 3, 3),
         {"strides": (2, 1, 2), "padding": (0, 1, 1, 1, 0, 1)}),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("data_layout", "case"),
    [(layout, i) for layout, c in CONVOLUTIONS.items() for i in range(len(c))],
)
def test_convolution(data_layout, case):
    """CASES 7, 8."""
    kernel_layout, data, weights, attrs = CONVOLUTIONS[data_layout][case]
    check_convolution(data, weights, data_layout, kernel_layout, **attrs)


TRANSPOSED = {
    1: [
        ((2, 3, 9), (3, 10, 4), {"strides": (3,), "padding": (1, 2), "output_padding": (1,)}),
        ((1, 17, 8), (17, 5, 3), {"dilation": (2,), "padding": (0, 1)}),
    ],
    2: [
        ((2, 3, 5, 7), (3, 10, 3, 2), {}),
        ((1, 17, 6, 5), (17, 33, 3, 4),
         {"strides": (2, 3), "padding": (1, 0, 2, 1), "output_padding": (1, 0)}),
        ((1, 6, 5, 4), (6, 5, 3, 3),
         {"groups": 2, "strides": (2, 2), "padding": (1, 1, 1, 1), "output_padding": (1, 1)}),
        ((2, 4, 7, 5), (4, 4, 3, 2), {"dilation": (2, 3), "padding": (0, 1, 2, 0)}),
        ((1, 9, 5, 6), (9, 1, 4, 4), {"groups": 9, "strides": (2, 2), "padding": (1, 1, 1, 1)}),
    ],
    3: [
        ((1, 3, 3, 5, 4), (3, 10, 2, 3, 2),
         {"strides": (1, 2, 2), "padding": (0, 1, 1, 1, 0, 0), "output_padding": (0, 1, 0)}),
        ((2, 4, 3, 4, 3), (4, 3, 3, 2, 2), {"groups": 2, "strides": (2, 1, 2)}),
    ],
}  # fmt: skip


def transposed(dims, x, weights, **attrs):
    """Return Relay's transposed convolution with weights (I, O / groups, …)."""
    shape = weights.data.shape
    attrs.setdefault("kernel_layout", logical("IO", dims))
    return RELAY[dims][1](
        x, weights, channels=shape[1] * attrs.get("groups", 1), kernel_size=shape[2:], **attrs
    )


@pytest.mark.parametrize(
    ("dims", "case"), [(d, i) for d, c in TRANSPOSED.items() for i in range(len(c))]
)
@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
def test_transposed_convolution(dims, case, bias):
    """CASE 9."""
    data, weights, attrs = TRANSPOSED[dims][case]
    x, w = random(*data), random(*weights, seed=1)
    y = transposed(dims, var("x", *data), relay.const(w), **attrs)
    expected = transposed_convolution(x, w, **attrs)
    if bias:
        b = random(expected.shape[1], seed=2)
        y = relay.nn.bias_add(y, relay.const(b))
        expected = expected + b.reshape(-1, *[1] * dims)
    steps = check(
        module(relay.reverse(y, dims + 1)), inputs={"x": x}, reference=[expected[..., ::-1]]
    )
    assert fused(steps) == ["deconvolution"]


def test_transposed_convolutions_equal_tvms():
    """What Relay means by padding and output padding, in one build."""
    outputs = []
    for dims in (1, 2):
        data, weights, attrs = TRANSPOSED[dims][0 if dims == 1 else 1]
        y = transposed(dims, var(f"x{dims}", *data), const(*weights), **attrs)
        outputs.append(relay.reverse(y, dims + 1))
    assert fused(check(module(*outputs))) == ["deconvolution"] * 2


def test_weights_that_are_inputs():
    """CASE 12: nothing of them is kept; of depthwise and transposed convolutions they are moved."""
    x, v, w = random(1, 6, 7, 5), random(3, 2, 6, 1, seed=1), random(6, 4, 3, 2, seed=2)
    nhwc = relay.nn.conv2d(
        var("x", 1, 7, 5, 6), var("v", 3, 2, 6, 1), channels=6, kernel_size=(3, 2), groups=6,
        data_layout="NHWC", kernel_layout="HWOI",
    )  # fmt: skip
    z = relay.nn.conv2d_transpose(
        var("z", 1, 6, 7, 5), var("w", 6, 4, 3, 2), channels=8, kernel_size=(3, 2), groups=2,
        kernel_layout="IOHW",
    )  # fmt: skip
    expected = convolution(x, v.transpose(2, 3, 0, 1), groups=6).transpose(0, 2, 3, 1)
    steps = check(
        module(relay.reverse(nhwc, 3), relay.reverse(z, 3)),
        inputs={"x": to_layout(x, "NCHW", "NHWC"), "v": v, "z": x, "w": w},
        reference=[expected[..., ::-1], transposed_convolution(x, w, groups=2)[..., ::-1]],
    )
    assert sorted(fused(steps)) == ["convolution", "deconvolution"]


def test_transposed_convolution_of_channels_last_stays():
    y = relay.nn.conv2d_transpose(
        var("x", 1, 5, 6, 3), const(3, 3, 3, 3), channels=3, kernel_size=(3, 3),
        data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip
    assert offloaded(partition_for_dnnl(module(y)))[0] == []  # TVM has no kernel for it either
