"""CASE 18: fusion of what is not conv2d NCHW: one composite, and one primitive, for each layer."""

import numpy as np
import pytest
from front import RELAY, check, const, conv2d, fused, module, random, relay, var

from tvm_dnnl_byoc import partition_for_dnnl
from tvm_dnnl_byoc.passes.dataflow import post_order


def conv1d(x):
    return relay.nn.conv1d(x, const(10, 3, 3), channels=10, kernel_size=3, padding=(1, 1))


def conv3d(x):
    w = const(10, 3, 3, 1, 3)
    return relay.nn.conv3d(x, w, channels=10, kernel_size=(3, 1, 3), padding=(1, 0, 1))


def conv2d_nhwc(x):
    return relay.nn.conv2d(
        x, const(3, 3, 3, 10), channels=10, kernel_size=(3, 3), padding=(1, 1),
        data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip


def conv1d_transpose(x):
    w = const(3, 10, 3)
    return relay.nn.conv1d_transpose(
        x, w, channels=10, kernel_size=(3,), padding=(1, 1), kernel_layout="IOW"
    )


def conv2d_transpose(x):
    w = const(3, 10, 3, 3)
    return relay.nn.conv2d_transpose(x, w, channels=10, kernel_size=(3, 3), padding=(1, 1))


def conv3d_transpose(x):
    w = const(3, 10, 3, 3, 3)
    return relay.nn.conv3d_transpose(x, w, channels=10, kernel_size=(3, 3, 3), padding=(1, 1, 1))


def matmul(x):
    return relay.nn.matmul(x, const(7, 10))


def batch_matmul(x):
    return relay.nn.batch_matmul(x, const(2, 10, 7))


# The layer, its data and result, the axis of its channels, and oneDNN's primitive.
LAYERS = {
    "conv1d": (conv1d, (2, 3, 9), (2, 10, 9), 1, "convolution"),
    "conv2d NHWC": (conv2d_nhwc, (2, 6, 5, 3), (2, 6, 5, 10), 3, "convolution"),
    "conv3d": (conv3d, (1, 3, 4, 5, 6), (1, 10, 4, 5, 6), 1, "convolution"),
    "conv1d_transpose": (conv1d_transpose, (2, 3, 9), (2, 10, 9), 1, "deconvolution"),
    "conv2d_transpose": (conv2d_transpose, (1, 3, 6, 5), (1, 10, 6, 5), 1, "deconvolution"),
    "conv3d_transpose": (conv3d_transpose, (1, 3, 3, 4, 5), (1, 10, 3, 4, 5), 1, "deconvolution"),
    "matmul": (matmul, (5, 7), (5, 10), 1, "inner_product"),
    "batch_matmul": (batch_matmul, (2, 5, 7), (2, 5, 10), 2, "matmul"),
}
ACTIVATIONS = {
    "eltwise_relu": relay.nn.relu,
    "eltwise_logistic": relay.sigmoid,
    "eltwise_tanh": relay.tanh,
    "eltwise_clip": lambda x: relay.clip(x, -0.3, 0.9),
    "eltwise_exp": relay.exp,
    "eltwise_abs": relay.abs,
}


def calls(mod):
    """Return what Relay's regions call: operators, and composites, without looking into them."""
    from helpers import region_functions

    bodies = [f.body for f in region_functions(partition_for_dnnl(mod)).values()]
    return [e for body in bodies for e in post_order(body) if isinstance(e, relay.Call)]


def runs(mod, steps):
    """Check results and primitives, and that each primitive is one composite in Relay."""
    if RELAY:
        assert all(isinstance(call.op, relay.Function) for call in calls(mod))
        assert len(calls(mod)) == len(steps)
    assert sorted(fused(check(mod))) == sorted(steps)


@pytest.mark.parametrize("name", LAYERS)
def test_bias_and_activation(name):
    layer, data, _, axis, kind = LAYERS[name]
    x = var("x", *data)
    outputs = [
        op(relay.nn.bias_add(layer(x), const(10, seed=i), axis=axis))
        for i, op in enumerate(ACTIVATIONS.values())
    ]
    runs(module(*outputs), [f"{kind}:{post_op}" for post_op in ACTIVATIONS])


@pytest.mark.parametrize("name", LAYERS)
def test_bias_sum_and_relu(name):
    """CASES 4, 23: the residual operand on either side."""
    layer, data, result, axis, kind = LAYERS[name]
    x, other = var("x", *data), var("other", *result)
    outputs = []
    for left in (False, True):
        y = relay.nn.bias_add(layer(x), const(10, seed=left), axis=axis)
        outputs.append(relay.nn.relu(relay.add(other, y) if left else relay.add(y, other)))
    runs(module(*outputs), [f"{kind}:binary_add+eltwise_relu"] * 2)


@pytest.mark.parametrize("name", LAYERS)
def test_add_that_is_no_bias(name):
    """CASE 1: near misses of the bias, by axis. They would be no post-op if they were one."""
    layer, data, result, axis, kind = LAYERS[name]
    x = var("x", *data)
    other = len(result) - 1 if axis == 1 else 1
    shape = [1] * len(result)
    if name == "matmul":
        other, shape = 0, [1, 1]
    shape[other] = result[other]
    y = relay.tanh(relay.add(layer(x), const(*shape)))
    steps = fused(check(module(y)))
    assert steps in ([f"{kind}:binary_add+eltwise_tanh"], [kind, "binary:eltwise_tanh"], [kind])


@pytest.mark.parametrize("name", [n for n in LAYERS if n not in ("matmul", "batch_matmul")])
def test_read_twice(name):
    """CASE 13: the layer's own result is an output."""
    layer, data, _, _, kind = LAYERS[name]
    y = layer(var("x", *data))
    assert fused(check(module(y, relay.nn.relu(y)))) == [kind, "eltwise"]


def test_dense_of_rank_3():
    """CASES 5, 17. TVM 0.19 itself builds none, so NumPy says what is right."""
    x, w, b = random(2, 5, 7), random(10, 7), random(10)
    z, rows = random(2, 5, 10, seed=2), random(5, 1, seed=3)
    dense = x.astype("float64") @ w.T

    def layer():
        return relay.nn.dense(var_x, relay.const(w))

    var_x, var_z = var("x", *x.shape), var("z", *z.shape)
    biased = relay.add(layer(), relay.const(b))
    other = relay.add(var_z, relay.nn.bias_add(layer(), relay.const(b), axis=-1))
    steps = check(
        module(relay.nn.relu(biased), relay.nn.relu(other), relay.add(layer(), relay.const(rows))),
        inputs={"x": x, "z": z},
        reference=[(dense + b).clip(0), (dense + b + z).clip(0), dense + rows],
    )
    expected = {"inner_product:binary_add+eltwise_relu", "inner_product:eltwise_relu"}
    assert expected <= set(fused(steps))


@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_matrix_products(transpose_a, transpose_b):
    """Of inputs, whose layouts are taken as they lie; batches of 1 are broadcast."""
    a, b = random(5, 7), random(7, 17, seed=1)
    p, q, r = random(3, 5, 7), random(3, 7, 17, seed=1), random(1, 7, 17, seed=2)

    def turned(array, turn):
        return np.ascontiguousarray(array.swapaxes(-1, -2)) if turn else array

    given = {
        "a": turned(a, transpose_a), "b": turned(b, transpose_b), "p": turned(p, transpose_a),
        "q": turned(q, transpose_b), "r": turned(r, transpose_b),
    }  # fmt: skip
    v = {name: var(name, *array.shape) for name, array in given.items()}
    attrs = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    steps = check(
        module(
            relay.nn.matmul(v["a"], v["b"], **attrs),
            relay.nn.batch_matmul(v["p"], v["q"], **attrs),
            relay.nn.batch_matmul(v["p"], v["r"], **attrs),
        ),
        inputs=given,
        reference=[a.astype("float64") @ b, p.astype("float64") @ q, p.astype("float64") @ r],
    )
    assert sorted(fused(steps)) == ["inner_product", "matmul", "matmul"]


def test_fusions_of_the_request():
    """The fusions that the request for this integration lists, one primitive each."""
    x, z, d = var("x", 1, 3, 6, 5), var("z", 1, 10, 6, 5), var("d", 4, 7)

    def conv(seed):
        return conv2d(x, const(10, 3, 3, 3, seed=seed), padding=(1, 1))

    def bias(y, seed):
        return relay.nn.bias_add(y, const(10, seed=seed))

    def dense(seed):
        return bias(relay.nn.dense(d, const(10, 7, seed=seed)), seed)

    mod = module(
        relay.nn.relu(relay.add(bias(conv(1), 1), z)),
        relay.nn.relu(bias(conv(2), 2)),
        bias(conv(3), 3),
        relay.nn.relu(dense(4)),
        dense(5),
    )
    assert sorted(fused(check(mod))) == [
        "convolution",
        "convolution:binary_add+eltwise_relu",
        "convolution:eltwise_relu",
        "inner_product",
        "inner_product:eltwise_relu",
    ]
    if RELAY:
        names = [call.op.attrs["Composite"] for call in calls(mod)]
        assert sorted(names) == [
            "dnnl.conv2d_add",
            "dnnl.conv2d_add_add_relu",
            "dnnl.conv2d_add_relu",
            "dnnl.dense_add",
            "dnnl.dense_add_relu",
        ]


def test_chains_of_layers():
    """In a network the operand of the sum dies: it is accumulated into, where oneDNN can."""
    x = relay.nn.relu(relay.nn.bias_add(conv1d(var("x", 2, 3, 9)), const(10)))
    y = relay.nn.conv1d(x, const(10, 10, 3, seed=2), channels=10, kernel_size=3, padding=(1, 1))
    y = relay.nn.relu(relay.nn.bias_add(y, const(10)))
    w = const(10, 10, 3, seed=3)
    y = relay.nn.conv1d(y, w, channels=10, kernel_size=3, padding=(1, 1))
    y = relay.nn.relu(relay.add(x, relay.nn.bias_add(y, const(10))))
    assert fused(check(module(y))) == [
        "convolution:eltwise_relu",
        "convolution:eltwise_relu",
        "convolution:sum+eltwise_relu",
    ]


def test_redundant_clip_does_not_end_a_match():
    """CASE 18."""
    y = conv1d(var("x", 2, 3, 9))
    y = relay.clip(relay.nn.relu(relay.clip(y, -1e9, 1e9)), 0.0, 6.0)
    (step,) = fused(check(module(relay.add(y, var("other", 2, 10, 9)))))
    assert step.startswith("convolution:")
    assert step.endswith("+binary_add")
