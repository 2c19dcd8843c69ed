"""Each operator of Relax that oneDNN runs: that it does, and that the numbers are Relax's."""

import numpy as np
import pytest
from relax_helpers import check, const, inputs_for, module, ops_left
from tvm import relax
from tvm.relax import op

from tvm_dnnl_byoc import partition_for_dnnl

X = (2, 6, 9, 7)  # N, C, H, W

# By name: what is built, the shapes of the inputs, and the kinds of what oneDNN runs.
CASES = {
    "conv1d": (
        lambda x: op.nn.conv1d(x, const(5, 3, 3), strides=2, padding=(1, 2), dilation=2),
        [(2, 3, 17)],
        ["convolution"],
    ),
    "conv2d": (
        lambda x: op.nn.conv2d(
            x, const(5, 6, 3, 2), strides=(2, 1), padding=(1, 0, 2, 1), dilation=(1, 2)
        ),
        [X],
        ["convolution"],
    ),
    "conv2d, groups": (
        lambda x: op.nn.conv2d(x, const(8, 3, 3, 3), groups=2, padding=1),
        [X],
        ["convolution"],
    ),
    "conv2d, depthwise": (
        lambda x: op.nn.conv2d(x, const(6, 1, 3, 3), groups=6, padding=1),
        [X],
        ["convolution"],
    ),
    "conv2d, NHWC": (
        lambda x: op.nn.conv2d(
            x, const(5, 3, 3, 6), padding=1, data_layout="NHWC", kernel_layout="OHWI"
        ),
        [(2, 9, 7, 6)],
        ["convolution"],
    ),
    "conv2d, weights as an argument": (op.nn.conv2d, [X, (5, 6, 3, 3)], ["convolution"]),
    "conv3d": (
        lambda x: op.nn.conv3d(x, const(4, 3, 2, 3, 3), strides=(1, 2, 1), padding=1),
        [(1, 3, 5, 6, 7)],
        ["convolution"],
    ),
    "conv1d_transpose": (
        lambda x: op.nn.conv1d_transpose(x, const(3, 5, 3), strides=2, output_padding=1),
        [(2, 3, 9)],
        ["deconvolution"],
    ),
    "conv2d_transpose": (
        lambda x: op.nn.conv2d_transpose(x, const(6, 2, 3, 3), strides=(2, 1), groups=2),
        [X],
        ["deconvolution"],
    ),
    "matmul, a layer": (lambda x: op.matmul(x, const(7, 5)), [(4, 7)], ["inner_product"]),
    "matmul, a layer of torch's": (
        lambda x: op.matmul(x, op.permute_dims(const(5, 7))),
        [(2, 3, 7)],
        ["inner_product"],
    ),
    "matmul, a matrix as an argument": (op.matmul, [(2, 3, 7), (7, 5)], ["inner_product"]),
    "matmul, batches": (op.matmul, [(2, 3, 4, 7), (2, 3, 7, 5)], ["matmul"]),
    "matmul, batches that broadcast": (op.matmul, [(3, 4, 7), (2, 1, 7, 5)], ["matmul"]),
    "max_pool2d": (
        lambda x: op.nn.max_pool2d(x, (3, 2), strides=2, padding=(1, 0, 0, 1)),
        [X],
        ["pooling"],
    ),
    "max_pool2d, ceil_mode": (
        lambda x: op.nn.max_pool2d(x, 3, strides=2, ceil_mode=True),
        [X],
        ["pooling"],
    ),
    "avg_pool2d": (
        lambda x: op.nn.avg_pool2d(x, 3, strides=2, padding=1, count_include_pad=False),
        [X],
        ["pooling"],
    ),
    "avg_pool2d, padding counts": (
        lambda x: op.nn.avg_pool2d(x, 3, strides=2, padding=1, count_include_pad=True),
        [X],
        ["pooling"],
    ),
    "adaptive_avg_pool2d": (
        lambda x: op.nn.adaptive_avg_pool2d(x, (3, 1)),
        [X],
        ["pooling"],
    ),
    "batch_norm": (
        lambda x: op.nn.batch_norm(
            x, const(6), const(6), const(6), const(6, low=0.5, high=2.0), axis=1, training=False
        )[0],
        [X],
        ["batch_normalization"],
    ),
    "layer_norm": (
        lambda x: op.nn.layer_norm(x, const(7), const(7, seed=1), axes=[-1], epsilon=1e-6),
        [(3, 5, 7)],
        ["layer_normalization"],
    ),
    "softmax": (lambda x: op.nn.softmax(x, axis=1), [(3, 5, 7)], ["softmax"]),
    "log_softmax": (lambda x: op.nn.log_softmax(x, axis=-1), [(3, 5)], ["softmax"]),
    "mean": (lambda x: op.mean(x, axis=[2, 3], keepdims=True), [X], ["reduction"]),
    "sum": (lambda x: op.sum(x, axis=[-1]), [X], ["reduction"]),
    "max": (lambda x: op.max(x, axis=[-1]), [X], ["reduction"]),
    "concat": (lambda x, y: op.concat([x, y], axis=1), [X, (2, 3, 9, 7)], ["concat"]),
    "permute_dims": (lambda x: op.nn.relu(op.permute_dims(x, (0, 2, 3, 1))), [X], ["eltwise"]),
    "strided_slice": (
        lambda x: op.nn.relu(op.strided_slice(x, [1, 3], [2, 1], [5, 6])),
        [X],
        ["eltwise"],
    ),
    "split": (lambda x: op.nn.relu(op.split(x, 3, axis=1)[1]), [X], ["eltwise"]),
    "every second": (
        lambda x: op.nn.relu(op.strided_slice(x, [1], [1], [6], [2])),
        [X],
        ["eltwise"],
    ),
    "broadcast_to, copies": (
        lambda x: op.nn.relu(op.broadcast_to(x, (2, 3, 4, 5))),
        [(2, 3, 1, 5)],
        ["concat", "eltwise"],
    ),
    "pad by nothing": (lambda x: op.nn.relu(op.nn.pad(x, [0] * 8)), [X], ["eltwise"]),
    "reshape": (lambda x: op.nn.relu(op.reshape(x, (2, 6 * 9, 7))), [X], ["eltwise"]),
    "resize2d": (
        lambda x: op.image.resize2d(x, (18, 14), layout="NCHW", method="linear"),
        [X],
        ["resampling"],
    ),
    "resize2d, by corners": (
        lambda x: op.image.resize2d(
            x,
            (18, 10),
            layout="NCHW",
            method="linear",
            coordinate_transformation_mode="align_corners",
        ),
        [X],
        ["inner_product", "matmul"],
    ),
    "add": (op.add, [X, X], ["binary"]),
    "subtract": (op.subtract, [X, (6, 1, 1)], ["binary"]),
    "divide, by a number": (lambda x: op.divide(x, relax.const(3.0)), [X], ["eltwise"]),
    "maximum": (op.maximum, [X, X], ["binary"]),
    **{
        name: (function, [(3, 5)], ["eltwise"])
        for name, function in {
            "relu": op.nn.relu,
            "gelu": op.nn.gelu,
            "gelu_tanh": op.nn.gelu_tanh,
            "silu": op.nn.silu,
            "sigmoid": op.sigmoid,
            "tanh": op.tanh,
            "exp": op.exp,
            "log": op.log,
            "sqrt": op.sqrt,
            "rsqrt": op.rsqrt,
            "abs": op.abs,
            "negative": op.negative,
            "square": op.square,
            "softplus": op.nn.softplus,
            "leakyrelu": lambda x: op.nn.leakyrelu(x, 0.3),
            "clip": lambda x: op.clip(x, -0.25, 0.5),
        }.items()
    },
    "prelu": (lambda x: op.nn.prelu(x, const(6, low=0.1, high=0.5), axis=1), [X], ["prelu"]),
}


@pytest.mark.parametrize("name", CASES)
def test_operator(name):
    build, shapes, expected = CASES[name]
    mod = module(build, *shapes)
    inputs = inputs_for(mod)
    if name in ("log", "sqrt", "rsqrt"):
        inputs = list(map(np.abs, inputs))
    assert check(mod, inputs, keep_light_regions=True) == expected


# By name: what must stay in TVM, as oneDNN does something else, or nothing; and the operator.
REFUSED = {
    "float64": (op.nn.relu, [(3, 5)], "float64", "nn.relu"),
    "int32": (op.add, [(3, 5), (3, 5)], "int32", "add"),
    "a scalar": (op.exp, [()], "float32", "exp"),
    "layer_norm of two axes": (
        lambda x: op.nn.layer_norm(x, const(5, 7), const(5, 7), axes=[1, 2]),
        [(3, 5, 7)],
        "float32",
        "nn.layer_norm",
    ),
    "round": (op.round, [(3, 5)], "float32", "round"),
    "a slice with strides": (
        lambda x: op.strided_slice(x, [1], [0], [6], [2]),
        [(3, 7)],
        "float32",
        "strided_slice",
    ),
    "every second of an odd number": (
        lambda x: op.strided_slice(x, [1], [0], [7], [2]),
        [(3, 7)],
        "float32",
        "strided_slice",
    ),
    "broadcast_to along two axes": (
        lambda x: op.broadcast_to(x, (2, 3, 5)),
        [(1, 3, 1)],
        "float32",
        "broadcast_to",
    ),
    "broadcast_to, many copies": (
        lambda x: op.broadcast_to(x, (9, 3)),
        [(1, 3)],
        "float32",
        "broadcast_to",
    ),
    "a slice that reverses": (
        lambda x: op.strided_slice(x, [1], [-1], [-8], [-1]),
        [(3, 7)],
        "float32",
        "strided_slice",
    ),
    "batch_norm, training": (
        lambda x: op.nn.batch_norm(
            x, const(6), const(6), const(6), const(6, low=0.5, high=2.0), axis=1, training=True
        )[0],
        [X],
        "float32",
        "nn.batch_norm",
    ),
    "no data": (op.nn.relu, [(0, 5)], "float32", "nn.relu"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    build, shapes, dtype, left = REFUSED[name]
    mod = module(build, *shapes, dtype=dtype)
    partitioned = partition_for_dnnl(mod, keep_light_regions=True)
    assert ops_left(partitioned) == [left]
    assert check(mod, keep_light_regions=True) == []


def test_light_regions_are_dropped():
    mod = module(op.nn.relu, (3, 5))
    assert ops_left(partition_for_dnnl(mod)) == ["nn.relu"]
    assert check(mod) == []
