"""What is fused into what: the rows and columns of the table in README.md, as Relay expressions."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from front import const, relay, shape_of


def number(value):
    return relay.const(np.float32(value))


def sigmoid_times(x):
    return relay.multiply(x, relay.sigmoid(x))


def gelu_erf(x):
    return x * number(0.5) * (number(1) + relay.erf(x / number(2**0.5)))


def gelu_tanh(x):
    inner = number((2 / np.pi) ** 0.5) * (x + number(0.044715) * relay.power(x, number(3)))
    return number(0.5) * x * (number(1) + relay.tanh(inner))


def hardswish(x):
    return x * relay.clip(x + number(3), 0, 6) / number(6)


def elu(x):
    return number(-1.3) * relay.nn.relu(number(1) - relay.exp(x)) + relay.nn.relu(x)


def mish(x):
    return x * relay.tanh(relay.log(number(1) + relay.exp(x)))


def softplus(x):
    return relay.log(relay.exp(x) + number(1))


def bias(x, axis, seed=7):
    return relay.nn.bias_add(x, const(shape_of(x)[axis], seed=seed), axis=axis)


def same_shape(x, seed):
    return const(*shape_of(x), seed=seed)


# By name: the post-ops that oneDNN reports, and the expression of an anchor's result x, another
# one's that is read only here, and the channel axis.
PATTERNS = {
    "bias": ("", lambda x, y, c: bias(x, c)),
    "bias, ReLU": ("eltwise_relu", lambda x, y, c: relay.nn.relu(bias(x, c))),
    "bias, sum": ("sum", lambda x, y, c: bias(x, c) + y),
    "bias, sum, ReLU": ("sum+eltwise_relu", lambda x, y, c: relay.nn.relu(y + bias(x, c))),
    "bias, sigmoid": ("eltwise_logistic", lambda x, y, c: relay.sigmoid(bias(x, c))),
    "bias, sigmoid · x (SiLU)": ("eltwise_swish", lambda x, y, c: sigmoid_times(bias(x, c))),
    "bias, tanh": ("eltwise_tanh", lambda x, y, c: relay.tanh(bias(x, c))),
    "clip (HardTanh, ReLU6)": ("eltwise_clip", lambda x, y, c: relay.clip(x, -0.2, 0.7)),
    "leaky ReLU": ("eltwise_relu", lambda x, y, c: relay.nn.leaky_relu(x, 0.3)),
    "ELU": ("eltwise_elu", lambda x, y, c: elu(x)),
    "bias, GELU (erf)": ("eltwise_gelu_erf", lambda x, y, c: gelu_erf(bias(x, c))),
    "bias, GELU (tanh)": ("eltwise_gelu_tanh", lambda x, y, c: gelu_tanh(bias(x, c))),
    "hard-swish": ("eltwise_hardswish", lambda x, y, c: hardswish(x)),
    "Mish": ("eltwise_mish", lambda x, y, c: mish(x)),
    "softplus": ("eltwise_soft_relu", lambda x, y, c: softplus(x)),
    "PReLU": ("prelu", lambda x, y, c: relay.nn.prelu(x, const(shape_of(x)[c], seed=5), axis=c)),
    "add a constant tensor": ("binary_add", lambda x, y, c: x + same_shape(x, 9)),
    "multiply by a tensor": ("binary_mul", lambda x, y, c: x * same_shape(x, 9)),
    "divide by a number, add": (
        "eltwise_linear+binary_add",
        lambda x, y, c: x / number(1.7) + same_shape(x, 9),
    ),
    "maximum with a tensor": ("binary_max", lambda x, y, c: relay.maximum(x, same_shape(x, 9))),
    "ReLU, add, ReLU": (
        "eltwise_relu+binary_add+eltwise_relu",
        lambda x, y, c: relay.nn.relu(relay.nn.relu(x) + same_shape(x, 9)),
    ),
}


def conv(dims, layout="NC", transposed=False, groups=1):
    """The shape of the data, and a convolution of any kind: odd sizes, 6 channels to 4."""
    spatial = "DHW"[3 - dims :]
    sizes = (5, 7, 6)[:dims]
    channels_last = layout == "NHWC"
    shape = (2, *sizes, 6) if channels_last else (2, 6, *sizes)
    outputs = 6 if groups == 6 else 4
    kernel = (3,) * dims
    if transposed:
        weights, layouts = (6, outputs, *kernel), {"kernel_layout": "IO" + spatial}
    elif channels_last:
        weights = (*kernel, 6, outputs)
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    else:
        weights, layouts = (outputs, 6 // groups, *kernel), {}
    function = getattr(relay.nn, f"conv{dims}d" + ("_transpose" if transposed else ""))
    return shape, lambda x, seed: function(
        x, const(*weights, seed=seed), channels=outputs, kernel_size=kernel, padding=(1,) * dims,
        groups=groups, **layouts,
    )  # fmt: skip


class Anchor(NamedTuple):
    """An operator with weights that others are fused into."""

    kind: str  # of the primitive
    shape: tuple  # of the data
    expression: Callable  # of the data, and of a seed for the weights
    axis: int  # of the channels
    plain: Callable | None = None  # the same in a form that TVM builds, too


def dense(x, seed):
    return relay.nn.dense(x, const(10, 24, seed=seed))


def flat_dense(x, seed):
    rows = dense(relay.reshape(x, (-1, 24)), seed)
    return relay.reshape(rows, (2, 5, 10))


ANCHORS = {
    "conv1d": Anchor("convolution", *conv(1), 1),
    "conv2d": Anchor("convolution", *conv(2), 1),
    "conv2d, NHWC": Anchor("convolution", *conv(2, "NHWC"), 3),
    "conv2d, depthwise": Anchor("convolution", *conv(2, groups=6), 1),
    "conv3d": Anchor("convolution", *conv(3), 1),
    "conv1d_transpose": Anchor("deconvolution", *conv(1, transposed=True), 1),
    "conv2d_transpose": Anchor("deconvolution", *conv(2, transposed=True), 1),
    "conv3d_transpose": Anchor("deconvolution", *conv(3, transposed=True), 1),
    "dense": Anchor("inner_product", (5, 24), dense, 1),
    "dense, 3-D": Anchor("inner_product", (2, 5, 24), dense, 2, flat_dense),
    "matmul": Anchor(
        "inner_product", (5, 24), lambda x, seed: relay.nn.matmul(x, const(24, 10, seed=seed)), 1
    ),
    "batch_matmul": Anchor(
        "matmul",
        (3, 5, 24),
        lambda x, seed: relay.nn.batch_matmul(x, const(3, 10, 24, seed=seed)),
        2,
    ),
}

# oneDNN's PReLU has a weight for each channel, dimension 1, and no other.
APART = {("batch_matmul", "PReLU")}


def markdown():
    """The table as README.md has it; each cell is a test."""
    lines = [
        "| | " + " | ".join(ANCHORS) + " |",
        "|---|" + ":-:|" * len(ANCHORS),
    ]
    for pattern in PATTERNS:
        cells = ["" if (anchor, pattern) in APART else "✓" for anchor in ANCHORS]
        lines.append(f"| {pattern} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
