"""Operators that oneDNN lacks, or has under another name: slices, resizing, group norm."""

import numpy as np
import pytest
from helpers import (
    build,
    build_plainly,
    check,
    const,
    conv2d,
    fused,
    inputs_for,
    module,
    offloaded,
    op_names,
    run,
    steps_of,
    var,
)
from tvm import relay

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


def test_padding_behind_a_slice_goes_into_a_convolution():
    padded = relay.nn.pad(var("x", N, C, H, W), WIDTHS)
    y = conv2d(relay.strided_slice(padded, [0, 0, 2, 1], [N, C, H + 3, W + 1]), const(4, C, 3, 3))
    mod = module(relay.nn.relu(y))
    assert fused(check(mod)) == ["convolution:eltwise_relu"]
    assert offloaded(partition_for_dnnl(mod))[1] == []


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parts", "axis"), [(3, 1), ([2, 5], 2), ([1, 1], -1)])
def test_split(parts, axis):
    if parts == [1, 1]:
        parts = [1, 3]
    x = conv()
    pieces = relay.split(x, parts, axis)
    y = relay.concatenate([relay.nn.relu(pieces[2]), pieces[0], relay.tanh(pieces[1])], axis)
    mod = module(conv(y, seed=2))
    steps = fused(check(mod))
    assert steps == ["convolution", "eltwise", "eltwise", "concat", "convolution"]
    assert offloaded(partition_for_dnnl(mod))[1] == []


def test_split_that_is_an_output():
    pieces = relay.split(conv(), 3, 1)
    check(module(pieces[0], relay.nn.relu(pieces[1]), pieces[0]))
    check(module(relay.concatenate(pieces.astuple(), axis=0)))


@pytest.mark.parametrize("rows", [1, 128])
def test_a_slice_of_a_layer_with_a_bias_for_each_row(rows):
    """The near miss of a bias for each column, of which the slice takes some."""
    layer = relay.nn.dense(var("x", rows, 16), const(128, 16)) + const(128, 1)
    check(module(relay.strided_slice(layer, [0, 0], [128, 64])))


@pytest.mark.parametrize(
    "cut",
    [
        lambda x: relay.strided_slice(x, [0, 1, 2, 0], [N, 5, H, W]),
        lambda x: relay.strided_slice(x, [-3], [-1], axes=[2]),
        lambda x: relay.strided_slice(x, [2, 1], [7, 4], [1, 1], axes=[2, 1]),
        lambda x: relay.strided_slice(x, [0, 2], [-1, 3], slice_mode="size"),
        lambda x: relay.strided_slice(x, [0, 0, 1, -100], [100, 100, 6, 4]),
    ],
)
def test_slice_is_a_view(cut):
    mod = module(relay.nn.relu(cut(conv())), conv2d(cut(conv(seed=2)), var("w", 4, 3, 2, 2)))
    mod = module(relay.nn.max_pool2d(cut(conv()), (2, 2)))
    assert fused(check(mod)) == ["convolution", "pooling"]


@pytest.mark.parametrize("strides", [[1, 2], [1, 1, -1]])
def test_slice_with_strides_stays(strides):
    begin, end = ([0, 0], [N, C]) if len(strides) == 2 else ([0, 0, H], [N, C, -H - 1])
    mod = module(conv(relay.tile(relay.strided_slice(conv(), begin, end, strides), (1, 2, 1, 1))))
    mod = module(relay.nn.relu(relay.strided_slice(conv(), begin, end, strides)))
    assert "strided_slice" in offloaded(partition_for_dnnl(mod))[1]
    check(mod)


# --- sizes ----------------------------------------------------------------------------------------


def resize(x, size, method="linear", mode="half_pixel", rounding="", layout="NCHW"):
    return relay.image.resize2d(
        x, size=size, layout=layout, method=method, coordinate_transformation_mode=mode,
        rounding_method=rounding,
    )  # fmt: skip


@pytest.mark.parametrize("size", [(14, 10), (21, 5)])
@pytest.mark.parametrize(
    ("mode", "rounding"),
    [("asymmetric", ""), ("asymmetric", "floor"), ("half_pixel", "round"),
     ("half_pixel", "round_prefer_ceil")],
)  # fmt: skip
def test_nearest_resize(size, mode, rounding):
    y = resize(conv(), size, "nearest_neighbor", mode, rounding)
    assert fused(check(module(relay.nn.relu(y)), tolerance=1e-6)) == [
        "convolution",
        "resampling:eltwise_relu",
    ]


@pytest.mark.parametrize(
    ("size", "mode", "rounding"),
    [
        ((9, 8), "asymmetric", ""),  # not by whole numbers
        ((3, 4), "half_pixel", "round"),
        ((14, 10), "half_pixel", ""),  # rounded down
        ((14, 10), "asymmetric", "ceil"),
        ((14, 10), "align_corners", ""),
    ],
)
def test_nearest_resize_that_stays(size, mode, rounding):
    mod = module(resize(conv(), size, "nearest_neighbor", mode, rounding))
    assert fused(check(mod)) == ["convolution"]


def interpolated(x, size, mode):
    """Linear resizing (N, C, H, W) in float64, one dimension after the other."""

    def weights(n, m):
        pixels = np.arange(m, dtype=np.float64)
        centre = {
            "align_corners": pixels * (n - 1) / max(m - 1, 1),
            "asymmetric": pixels * n / m,
            "half_pixel": (pixels + 0.5) * n / m - 0.5,
        }[mode]
        centre = np.clip(centre, 0, n - 1)
        return np.maximum(0, 1 - np.abs(centre[:, None] - np.arange(n)))

    rows, columns = (weights(n, m) for n, m in zip(x.shape[2:], size, strict=True))
    return np.einsum("ah,nchw,bw->ncab", rows, x, columns)


@pytest.mark.parametrize("size", [(14, 10), (3, 4), (1, 9), (23, 11)])
@pytest.mark.parametrize(
    ("mode", "layout"),
    [
        ("half_pixel", "NCHW"),
        ("half_pixel", "NHWC"),
        ("align_corners", "NCHW"),
        ("asymmetric", "NCHW"),
    ],
)
def test_linear_resize(size, mode, layout):
    """TVM 0.19 cannot compile its own with its LLVM: NumPy is the judge."""
    x = conv() if layout == "NCHW" else conv_nhwc(var("x", N, H + 2, W + 2, C))
    inputs = inputs_for(module(x))
    source = run(build_plainly(module(x)), inputs)[0].astype(np.float64)
    mod = module(resize(x, size, mode=mode, layout=layout))
    lib = build(partition_for_dnnl(mod))
    to_nchw, back = ((0, 3, 1, 2), (0, 2, 3, 1)) if layout == "NHWC" else (range(4), range(4))
    expected = interpolated(source.transpose(to_nchw), size, mode).transpose(back)
    np.testing.assert_allclose(run(lib, inputs)[0], expected, atol=1e-5 * np.abs(expected).max())
    how = ["resampling"] if mode == "half_pixel" else ["inner_product", "matmul"]
    assert fused(steps_of(lib)) == ["convolution", *how]


def test_upsampling():
    nearest = relay.nn.upsampling(conv(), 2, 3, method="nearest_neighbor")
    assert fused(check(module(nearest), tolerance=1e-6)) == ["convolution", "resampling"]
    repeated = relay.repeat(relay.repeat(conv(), 2, -1), 3, 2)
    assert fused(check(module(repeated), tolerance=1e-6)) == ["convolution", *["resampling"] * 2]
    assert fused(check(module(relay.repeat(conv(), 2, 1)))) == ["convolution"]
    x = var("x", 1, 2, 4, 5, 3)
    y = relay.nn.conv3d(x, const(4, 2, 1, 1, 1), channels=4, kernel_size=(1, 1, 1))
    for mode, steps in (("asymmetric", ["resampling"]), ("half_pixel", [])):
        z = relay.nn.upsampling3d(y, 2, 2, 3, coordinate_transformation_mode=mode)
        assert fused(check(module(z), tolerance=1e-6)) == ["convolution", *steps]


@pytest.mark.parametrize("combine", [relay.add, relay.multiply])
def test_upsampling_takes_no_operand(combine):
    """oneDNN 3.2's resampling accepts them, and reads whole tensors in the wrong places (HRNet)."""
    x = relay.nn.relu(conv())
    y = relay.nn.upsampling(conv2d(x, const(C, C, 1, 1)), 2, 2)
    z = relay.nn.relu(conv2d(y, const(C, C, 1, 1, seed=1)))
    mod = module(relay.nn.relu(combine(z, relay.nn.upsampling(x, 2, 2))), z)
    assert "resampling" in fused(check(mod))


def test_bilinear_upsampling():
    for aligned, mode in ((True, "align_corners"), (False, "asymmetric")):
        x = conv()
        mod = module(relay.nn.upsampling(x, 2, 3, method="bilinear", align_corners=aligned))
        inputs = inputs_for(mod)
        source = run(build_plainly(module(x)), inputs)[0].astype(np.float64)
        expected = interpolated(source, (2 * H, 3 * W), mode)
        actual = run(build(partition_for_dnnl(mod)), inputs)[0]
        np.testing.assert_allclose(actual, expected, atol=1e-5 * np.abs(expected).max())


# --- normalisation, PReLU -------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [1, 2, 3, C])
def test_group_norm(groups):
    y = relay.nn.group_norm(conv(), const(C), const(C, seed=3), num_groups=groups, epsilon=2e-3)
    mod = module(relay.nn.relu(y))
    steps = fused(check(mod))
    assert steps[:1] == ["convolution"]
    assert "instance_normalization" in steps[1]
    assert offloaded(partition_for_dnnl(mod))[1] == []


def test_instance_norm_of_a_batch():
    y = relay.nn.instance_norm(conv(), const(C), const(C, seed=3), epsilon=2e-3)
    assert fused(check(module(y))) == ["convolution", "instance_normalization"]


@pytest.mark.parametrize("attrs", [{"center": False}, {"scale": False}, {"axis": 2}])
def test_instance_norm_that_stays(attrs):
    size = H if "axis" in attrs else C
    y = relay.nn.instance_norm(conv(), const(size), const(size, seed=3), **attrs)
    mod = module(y)
    assert offloaded(partition_for_dnnl(mod))[0] == ["nn.conv2d"]
    check(mod)


def test_prelu():
    x = conv()
    y = relay.nn.prelu(relay.nn.bias_add(x, const(C)), const(C, seed=4))
    assert fused(check(module(y))) == ["convolution:prelu"]
    assert fused(check(module(conv(relay.nn.prelu(var("x", N, C, H, W), const(C)))))) == [
        "prelu",
        "convolution",
    ]
    y = relay.nn.prelu(conv(), var("slopes", C))
    assert fused(check(module(y))) == ["convolution:prelu"]


def test_prelu_after_a_pooling():
    """oneDNN 3.2's simple_nchw accepts it as a post-op, and fails when it is run."""
    for pool in (relay.nn.max_pool2d, relay.nn.avg_pool2d):
        y = relay.nn.prelu(pool(conv(), (2, 2)), const(C), axis=1)
        assert fused(check(module(y))) == ["convolution", "pooling", "prelu"]


def test_prelu_along_another_axis():
    """Right, fused or not; never taken for one weight per channel."""
    square = conv2d(var("x", 1, C, C, C), const(C, C, 1, 1))
    for axis in (2, 3):
        steps = fused(check(module(relay.nn.prelu(square, const(C), axis=axis))))
        assert steps[0] == "convolution"


# --- sums -----------------------------------------------------------------------------------------


def split_attention(x, weights):
    """Groups of channels, weighted and added up, as ResNeSt has it."""
    groups = relay.reshape(relay.expand_dims(x, axis=1), (0, 2, C // 2, 0, 0))
    pooled = relay.nn.adaptive_avg_pool2d(relay.sum(groups, axis=[1]), (1, 1))
    logits = conv2d(pooled, const(C, C // 2, 1, 1, seed=4))
    attention = relay.transpose(relay.reshape(logits, (0, 1, 2, -1)), (0, 2, 1, 3))
    attention = relay.reshape(relay.nn.softmax(attention, axis=1), (0, 2, -1, 1, 1))
    return conv2d(relay.sum(relay.multiply(attention, groups), axis=[1]), weights)


def test_split_attention():
    mod = module(split_attention(conv(), const(4, C // 2, 1, 1)))
    steps = fused(check(mod))
    assert "reduction" not in steps
    assert offloaded(partition_for_dnnl(mod))[1] == []


@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("shape", [(3, 4, 5, 6), (4, 3, 30)])
def test_sum_over_a_short_dimension(shape, axis):
    x = relay.reshape(conv(var("x", 2, C, 5, 6)), shape)
    mod = module(relay.nn.relu(relay.sum(x, axis=[axis])))
    assert "reduction" not in fused(check(mod))
    assert ("sum" in op_names(partition_for_dnnl(mod)["main"])) == (shape[axis] > 4)


SUMS_THAT_STAY = {
    "over the last": {"axis": [-1]},
    "over two": {"axis": [1, 2]},
    "over a long one": {"axis": [0]},
    "over all but": {"axis": [1], "exclude": True},
    "over all": {},
}


@pytest.mark.parametrize("name", SUMS_THAT_STAY)
def test_sum_that_stays(name):
    y = relay.nn.relu(relay.sum(var("x", 7, 3, 4), **SUMS_THAT_STAY[name]))
    mod = partition_for_dnnl(module(y))
    assert "add" not in op_names(mod["main"])
    check(module(y))
