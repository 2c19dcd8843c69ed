"""Post-ops of what is not a convolution or a product: right wherever oneDNN accepts them."""

import numpy as np
import pytest
from helpers import (
    assert_close,
    build,
    build_plainly,
    const,
    conv2d,
    inputs_for,
    module,
    random,
    run,
    var,
)
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl

N, C, H, W = 2, 16, 9, 7


LIGHT = {
    "max_pool": lambda x: relay.nn.max_pool2d(x, (3, 3), strides=(2, 2), padding=(1, 1)),
    "avg_pool": lambda x: relay.nn.avg_pool2d(x, (3, 2), padding=(1, 0), count_include_pad=True),
    "global_avg_pool": relay.nn.global_avg_pool2d,
    "batch_norm": lambda x: relay.nn.batch_norm(
        x, *(const(C, seed=s, low=0.3) for s in (1, 2, 3, 4)), epsilon=2e-3
    )[0],
    "instance_norm": lambda x: relay.nn.instance_norm(x, const(C), const(C, seed=3)),
    "layer_norm": lambda x: relay.nn.layer_norm(x, const(W), const(W, seed=3)),
    "lrn": lambda x: relay.nn.lrn(x, size=5, alpha=0.01, beta=0.7, bias=1.5),
    "softmax over C": lambda x: relay.nn.softmax(x, axis=1),
    "softmax over W": lambda x: relay.nn.softmax(x, axis=3),
    "log_softmax": lambda x: relay.nn.log_softmax(x, axis=1),
    "mean over H, W": lambda x: relay.mean(x, axis=[2, 3], keepdims=True),
    "max over C": lambda x: relay.max(x, axis=1, keepdims=True),
    "sum over all but N": lambda x: relay.sum(x, axis=[1, 2, 3]),
    "nearest": lambda x: relay.nn.upsampling(x, 2, 3, method="nearest_neighbor"),
    "relu": relay.nn.relu,
    "prelu": lambda x: relay.nn.prelu(x, const(C)),
    "add": lambda x: relay.add(x, const(N, C, 1, W, seed=8)),
    "multiply": lambda x: relay.multiply(const(C, H, 1, seed=9), x),
    "concatenate": lambda x: relay.concatenate([x, relay.nn.relu(x)], axis=1),
    "transpose": lambda x: relay.transpose(x, (0, 2, 3, 1)),
    "slice": lambda x: relay.strided_slice(x, [0, 3, 1, 2], [N, 11, 8, 6]),
    "reshape": lambda x: relay.reshape(x, (N, C * H, W)),
}


def operand_shapes(shape):
    """Every way to broadcast to a shape: whole, and along each axis and pair of them."""
    whole = [size if size > 1 else 1 for size in shape]
    shapes = [tuple(whole), (1,) * len(shape)]
    for kept in range(1, 2 ** len(shape) - 1):
        shapes.append(tuple(s if kept >> i & 1 else 1 for i, s in enumerate(shape)))
    return list(dict.fromkeys(shapes))


OPS = {
    relay.add: np.add,
    relay.multiply: np.multiply,
    relay.maximum: np.maximum,
}


def producers(x):
    """Values in the caller's layout, and in those that convolutions write."""
    grouped = conv2d(x, const(C, 1, 3, 3), padding=(1, 1), groups=C)
    return x, conv2d(x, const(C, C, 3, 3, low=-0.2, high=0.2), padding=(1, 1)), grouped


@pytest.mark.parametrize("name", LIGHT)
def test_post_ops_with_operands(name):
    data = var("x", N, C, H, W)
    plain = module(*(LIGHT[name](x) for x in producers(data)))
    inputs = inputs_for(plain)
    results = run(build_plainly(plain), inputs)
    outputs, reference = [], []
    for number, (x, result) in enumerate(zip(producers(data), results, strict=True)):
        for i, shape in enumerate(operand_shapes(result.shape)):
            op = list(OPS)[(i + number) % len(OPS)]
            operand = random(*shape, seed=i)
            outputs.append(relay.tanh(op(LIGHT[name](x), relay.const(operand))))
            reference.append(np.tanh(OPS[op](result.astype(np.float64), operand)))
    # With something for the region to be made for.
    outputs.append(conv2d(data, var("w", 4, C, 1, 1)))
    mod = module(*outputs)
    inputs = inputs_for(mod)
    actual = run(build(partition_for_dnnl(mod)), inputs)
    assert_close(actual[:-1], [r.astype("float32") for r in reference], 1e-5)
