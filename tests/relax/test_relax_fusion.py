"""What one primitive runs, and what must not become one; read from what oneDNN ran."""

import numpy as np
import pytest
from relax_helpers import check, const, module, var
from tvm import relax
from tvm.relax import op

X = (2, 6, 9, 7)


def conv(x, outputs=5, kernel=3, seed=0):
    inputs = (
        int((x.ty if hasattr(x, "ty") else x.struct_info).shape.values[1])
        if isinstance(x, relax.Var)
        else 6
    )
    return op.nn.conv2d(x, const(outputs, inputs, kernel, kernel, seed=seed), padding=kernel // 2)


def layer(x, outputs=5, inputs=7, seed=0):
    return op.matmul(x, op.permute_dims(const(outputs, inputs, seed=seed)))


def number(value):
    return relax.const(np.float32(value))


def gelu(x, root=1.41421356):
    return op.multiply(
        op.multiply(x, number(0.5)), op.add(number(1), op.erf(op.divide(x, number(root))))
    )


def hard_swish(x, bound=6.0):
    return op.divide(op.multiply(x, op.clip(op.add(x, number(3)), 0, bound)), number(6))


def batch_norm(x, channels):
    variance = const(channels, low=0.5, high=2.0)
    args = (const(channels, seed=1), const(channels, seed=2), const(channels, seed=3), variance)
    return op.nn.batch_norm(x, *args, axis=1, training=False)[0]


# By name: what is built, the shapes of the inputs, and what oneDNN runs.
FUSED = {
    "bias, ReLU": (
        lambda x: op.nn.relu(op.add(conv(x), const(5, 1, 1))),
        [X],
        ["convolution:eltwise_relu"],
    ),
    "the bias first": (
        lambda x: op.nn.relu(op.add(const(1, 5, 1, 1), conv(x))),
        [X],
        ["convolution:eltwise_relu"],
    ),
    "batch_norm, ReLU": (
        lambda x: op.nn.relu(batch_norm(conv(x), 5)),
        [X],
        ["convolution:eltwise_relu"],
    ),
    "bias, batch_norm, ReLU": (
        lambda x: op.nn.relu(batch_norm(op.add(conv(x), const(5, 1, 1)), 5)),
        [X],
        ["convolution:eltwise_relu"],
    ),
    "a sum with an input, ReLU": (
        lambda x, y: op.nn.relu(op.add(conv(x), y)),
        [X, (2, 5, 9, 7)],
        ["convolution:binary_add+eltwise_relu"],
    ),
    "a sum with a convolution": (
        lambda x: op.nn.relu(op.add(conv(x), conv(x, kernel=1, seed=1))),
        [X],
        ["convolution", "convolution:sum+eltwise_relu"],
    ),
    "hard-swish": (lambda x: hard_swish(conv(x)), [X], ["convolution:eltwise_hardswish"]),
    "SiLU": (lambda x: op.nn.silu(conv(x)), [X], ["convolution:eltwise_swish"]),
    "a layer's bias, GELU": (
        lambda x: op.nn.gelu(op.add(layer(x), const(5))),
        [(4, 7)],
        ["inner_product:eltwise_gelu_erf"],
    ),
    "a layer's bias, GELU, spelled out": (
        lambda x: gelu(op.add(layer(x), const(5))),
        [(2, 3, 7)],
        ["inner_product:eltwise_gelu_erf"],
    ),
    "a layer of rows between reshapes": (
        lambda x, y: op.add(
            op.reshape(op.add(const(5), layer(op.reshape(x, (6, 7)))), (2, 3, 5)), y
        ),
        [(2, 3, 7), (2, 3, 5)],
        ["inner_product:binary_add"],
    ),
    "attention": (
        lambda q, k, v: op.matmul(
            op.nn.softmax(
                op.add(op.divide(op.matmul(q, op.permute_dims(k, (0, 1, 3, 2))), number(3)), M),
                axis=-1,
            ),
            v,
        ),
        [(2, 3, 4, 9), (2, 3, 5, 9), (2, 3, 5, 8)],
        ["matmul:eltwise_linear+binary_add", "softmax", "matmul"],
    ),
    "products between reshapes, of all batches": (
        lambda x, y: op.add(
            op.reshape(op.matmul(op.reshape(x, (6, 4, 9)), op.reshape(y, (6, 9, 5))), (2, 3, 4, 5)),
            M,
        ),
        [(2, 3, 4, 9), (2, 3, 9, 5)],
        ["matmul:binary_add"],
    ),
    "a scale behind the heads": (
        lambda x: op.matmul(
            op.multiply(op.permute_dims(op.reshape(layer(x, 6), (2, 4, 2, 3)), (0, 2, 1, 3)), HALF),
            const(2, 2, 3, 5),
        ),
        [(2, 4, 7)],
        ["inner_product", "matmul"],
    ),
}
M = const(2, 1, 4, 5, seed=7)
HALF = number(0.5)


@pytest.mark.parametrize("name", FUSED)
def test_fused(name):
    build, shapes, expected = FUSED[name]
    assert check(module(build, *shapes)) == expected


# Each is almost one of the above.
NOT_FUSED = {
    "no bias: it adds along the width": (
        lambda x: op.nn.relu(op.add(conv(x), const(7))),
        [X],
        ["convolution", "binary:eltwise_relu"],
    ),
    "no GELU: another root": (
        lambda x: gelu(op.add(layer(x), const(5)), root=1.414),
        [(4, 7)],
        None,
    ),
    "no hard-swish: another bound": (lambda x: hard_swish(conv(x), bound=5.0), [X], None),
    "a convolution that is read twice": (
        lambda x: [y := relax.op.nn.relu(conv(x)), op.add(y, y)],
        [X],
        None,
    ),
    "a product of other rows": (
        lambda x: op.reshape(layer(op.reshape(x, (6, 7))), (3, 2, 5)),
        [(2, 3, 7)],
        ["inner_product"],
    ),
}


@pytest.mark.parametrize("name", NOT_FUSED)
def test_not_fused(name):
    build, shapes, expected = NOT_FUSED[name]
    ran = check(module(build, *shapes))
    if expected is not None:
        assert ran == expected
    assert not any(alg in step for step in ran for alg in ("gelu", "hardswish"))


def test_batch_norm_of_what_is_read_elsewhere_is_not_folded():
    """CASE 21, 26: the convolution's own result is an output, too."""
    builder = relax.BlockBuilder()
    x = var("x", X)
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(conv(x))
            z = builder.emit(op.nn.relu(batch_norm(y, 5)))
            result = builder.emit_output(relax.Tuple([y, z]))
        builder.emit_func_output(result)
    assert check(builder.get()) == ["convolution", "batch_normalization:eltwise_relu"]
