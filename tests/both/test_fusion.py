"""What oneDNN runs as one primitive, read from the profile; and beside each what it must not.

Every module is run with and without partitioning. A step is written as ``kind:post-op+post-op``;
a bias is an argument of its primitive and no post-op.
"""

import pytest
from front import check, const, conv2d, fused, in_tvm, module, relay, var

N, C, H, W = 2, 10, 7, 5


def data(*shape):
    return var("x", *(shape or (N, C, H, W)))


def conv(x, channels=C, kernel=3, seed=1, inputs=C):
    """A convolution that keeps the size."""
    pad = kernel // 2
    weights = const(channels, inputs, kernel, kernel, seed=seed)
    return conv2d(x, weights, padding=(pad, pad))


def depthwise(x, seed=1):
    return conv2d(x, const(C, 1, 3, 3, seed=seed), groups=C, padding=(1, 1, 1, 1))


def dense(x, units=16, inputs=32, seed=1):
    return relay.nn.dense(x, const(units, inputs, seed=seed))


def batch_norm(x, channels=C):
    low = {4: 0.3}
    statistics = [const(channels, seed=s, low=low.get(s, -1.0)) for s in (1, 2, 3, 4)]
    return relay.nn.batch_norm(x, *statistics, epsilon=2e-3)[0]


def bias(channels=C, seed=7):
    return const(channels, 1, 1, seed=seed)


def bias_add(x, channels=C):
    return relay.nn.bias_add(x, const(channels, seed=7))


def runs(mod, *steps, **kwargs):
    """Check the results of a module, and that these are the primitives, in this order."""
    assert fused(check(mod, **kwargs)) == list(steps)


def runs_without_bias(mod, kind, op, **kwargs):
    """Check that an addition, followed by an activation, is not taken for a bias.

    Whether it is a post-op, a primitive of its own or stays in TVM is oneDNN's decision; the
    activation goes with it. With a bias, it would be the first post-op.
    """
    steps = fused(check(mod, **kwargs))
    assert steps in ([f"{kind}:binary_add+{op}"], [kind, f"binary:{op}"], [kind])


ACTIVATIONS = {
    "eltwise_relu": relay.nn.relu,
    "eltwise_relu (leaky)": lambda x: relay.nn.leaky_relu(x, 0.3),
    "eltwise_clip": lambda x: relay.clip(x, -0.2, 0.7),
    "eltwise_logistic": relay.sigmoid,
    "eltwise_tanh": relay.tanh,
    "eltwise_linear": lambda x: relay.multiply(relay.nn.relu(x), relay.const(1.5)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize(
    ("layer", "with_bias"),
    [("conv", False), ("conv", True), ("depthwise", True), ("dense", False)],
)
def test_activation(layer, with_bias, name):
    if layer == "dense":
        y, shift, kind = dense(data(4, 32)), const(16), "inner_product"
    else:
        y, shift = (conv if layer == "conv" else depthwise)(data()), bias()
        kind = "convolution"
    if with_bias:
        y = relay.add(y, shift)
    post_op = name.split()[0]
    if post_op == "eltwise_linear":
        post_op = "eltwise_relu+eltwise_linear"
    runs(module(ACTIVATIONS[name](y)), f"{kind}:{post_op}")


# --- bias -----------------------------------------------------------------------------------------

BIASES = {
    "bias_add": bias_add,
    "bias_add axis -3": lambda y: relay.nn.bias_add(y, const(C, seed=7), axis=-3),
    "(C, 1, 1)": lambda y: relay.add(y, bias()),
    "(1, C, 1, 1)": lambda y: relay.add(y, const(1, C, 1, 1)),
    "on the left": lambda y: relay.add(bias(), y),
    "expand_dims": lambda y: relay.add(y, relay.expand_dims(const(C), 1, 2)),
    "input": lambda y: relay.add(y, var("b", C, 1, 1)),
    "bias_add of an input": lambda y: relay.nn.bias_add(y, var("b", C)),
    "scalar": lambda y: relay.add(y, relay.const(0.7)),
}


@pytest.mark.parametrize("name", BIASES)
def test_conv_bias(name):
    runs(module(relay.nn.relu(BIASES[name](conv(data())))), "convolution:eltwise_relu")


NOT_BIASES = {
    "along W": lambda: const(W),
    "along W, as high as C": lambda: const(1, 1, W),
    "along H": lambda: const(H, 1),
    "(1, 1, H, 1)": lambda: const(1, 1, H, 1),
    "per element": lambda: const(1, C, H, W),
    "per element of C": lambda: const(C, H, W),
    "per image": lambda: const(N, 1, 1, 1),
    "input along W": lambda: var("b", W),
}


@pytest.mark.parametrize(
    ("name", "op"),
    [(name, "eltwise_tanh") for name in NOT_BIASES]
    + [(name, op) for name in list(NOT_BIASES)[::4] for op in ("eltwise_logistic", "eltwise_clip")],
)
def test_add_that_is_no_bias(name, op):
    y = ACTIVATIONS[op](relay.add(conv(data()), NOT_BIASES[name]()))
    runs_without_bias(module(y), "convolution", op)


@pytest.mark.parametrize("size", [C, 8])
def test_add_along_w_of_a_square_result(size):
    """CASE 1: where the shapes alone do not tell channels and columns apart."""
    x = data(1, size, size, size)
    y = conv(x, size, inputs=size)
    for z in (
        relay.add(y, const(size)),
        relay.add(y, const(1, 1, size, 1)),
        relay.add(y, const(1, size, size, size)),
        relay.nn.bias_add(y, const(size), axis=3),
    ):
        runs_without_bias(module(relay.nn.relu(z)), "convolution", "eltwise_relu")
    runs(module(relay.nn.relu(relay.nn.bias_add(y, const(size)))), "convolution:eltwise_relu")


@pytest.mark.parametrize("shape", [(C, H, W), (1, C, H, W), (W,)])
def test_grouped_conv_with_constants_that_are_no_bias(shape):
    y = conv2d(data(), const(C, 5, 3, 3), groups=2, padding=(1, 1))
    runs_without_bias(
        module(relay.tanh(relay.add(y, const(*shape)))), "convolution", "eltwise_tanh"
    )


@pytest.mark.parametrize(
    ("operands", "post_ops"),
    [
        ([(16,)], ""),
        ([(1, 16)], ""),
        ([(4, 16)], "binary_add"),
        ([(16,), (4, 16)], "binary_add"),
        ([(4, 16), (16,)], "binary_add+binary_add"),
    ],
)
def test_dense_operands(operands, post_ops):
    """CASE 17, of inputs: constants would be folded into one."""
    y = dense(data(4, 32))
    for i, shape in enumerate(operands):
        y = relay.add(y, var(f"b{i}", *shape))
    y = relay.nn.relu(y)
    runs(module(y), "inner_product:" + (post_ops + "+" if post_ops else "") + "eltwise_relu")


@pytest.mark.parametrize("operand", [const(4, 1), const(4, 16), var("b", 4, 1)])
def test_dense_operands_that_are_no_bias(operand):
    y = relay.tanh(relay.add(dense(data(4, 32)), operand))
    runs_without_bias(module(y), "inner_product", "eltwise_tanh")


def test_dense_of_as_many_rows_as_units():
    y = relay.add(dense(data(16, 32)), const(16, 1))
    runs_without_bias(module(relay.nn.relu(y)), "inner_product", "eltwise_relu")


@pytest.mark.parametrize("op", ["eltwise_relu", "eltwise_tanh", "eltwise_logistic"])
def test_dense_bias(op):
    y = relay.nn.bias_add(dense(data(4, 32)), const(16, seed=3), axis=-1)
    runs(module(ACTIVATIONS[op](y)), f"inner_product:{op}")


# --- batch_norm, and several shifts ---------------------------------------------------------------


def test_conv_batch_norm():
    runs(module(batch_norm(conv(data()))), "convolution")


def test_conv_batch_norm_relu():
    runs(module(relay.nn.relu(batch_norm(conv(data())))), "convolution:eltwise_relu")


def test_conv_bias_batch_norm_relu():
    y = batch_norm(bias_add(conv(data())))
    runs(module(relay.nn.relu(y)), "convolution:eltwise_relu")


def test_depthwise_batch_norm_clip():
    y = relay.clip(batch_norm(depthwise(data())), 0.0, 0.6)
    runs(module(y), "convolution:eltwise_clip")


def test_conv_add_add_relu():
    y = relay.nn.relu(relay.add(relay.add(conv(data()), bias()), const(1, C, 1, 1, seed=9)))
    runs(module(y), "convolution:eltwise_relu")


def test_conv_batch_norm_add():
    y = relay.add(batch_norm(conv(data())), bias())
    runs(module(relay.nn.relu(y)), "convolution:eltwise_relu")


def test_conv_two_batch_norms():
    y = batch_norm(batch_norm(conv(data())))
    runs(module(relay.nn.relu(y)), "convolution:eltwise_relu")


def test_conv_scale_shift():
    y = relay.add(relay.multiply(conv(data()), const(C, 1, 1, seed=4)), bias())
    runs(module(relay.tanh(y)), "convolution:eltwise_tanh")


def test_conv_dropout_batch_norm():
    y = batch_norm(relay.nn.dropout(conv(data())))
    runs(module(relay.nn.relu(y)), "convolution:eltwise_relu")


def test_dense_batch_norm():
    y = relay.nn.relu(batch_norm(dense(data(4, 32)), 16))
    runs(module(y), "inner_product:eltwise_relu")


def test_relu_between_conv_and_batch_norm():
    """Near miss: after relu, batch_norm is no longer part of the weights."""
    y = batch_norm(relay.nn.relu(conv(data())))
    runs(module(y), "convolution:eltwise_relu", "batch_normalization")


def test_batch_norm_of_a_result_read_twice():
    y = conv(data())
    z = relay.add(batch_norm(y), relay.tanh(y))
    steps = fused(check(module(z)))
    assert [s.split(":")[0] for s in steps[:1]] == ["convolution"]
    assert steps[0] == "convolution"
    assert len([s for s in steps if s.startswith("batch_normalization")]) == 1


def test_scale_along_w_is_not_folded():
    y = relay.add(relay.multiply(conv(data()), const(W, seed=4)), bias())
    steps = fused(check(module(y)))
    assert steps in (["convolution:binary_mul+binary_add"], ["convolution", "binary:binary_add"])


# --- sums -----------------------------------------------------------------------------------------


def test_sum_in_place():
    """The operand dies here: accumulated into, in oneDNN's own layout."""
    x = relay.nn.relu(conv(data()))
    y = conv(x, seed=2)
    z = relay.nn.relu(relay.add(batch_norm(y), conv(x, kernel=1, seed=3)))
    steps = fused(check(module(z)))
    assert len(steps) == 3
    assert steps[0] == "convolution:eltwise_relu"
    assert sorted(steps[1:]) == ["convolution", "convolution:sum+eltwise_relu"]


@pytest.mark.parametrize("order", [0, 1])
def test_residual_block(order):
    """ResNet's: conv, bias, sum, relu as one primitive; the operand is an earlier result."""
    x = relay.nn.relu(conv(data(), seed=5))
    y = relay.nn.relu(bias_add(conv(x)))
    y = bias_add(conv(y, seed=2))
    z = relay.nn.relu(relay.add(*((y, x) if order == 0 else (x, y))))
    runs(
        module(z),
        "convolution:eltwise_relu",
        "convolution:eltwise_relu",
        "convolution:sum+eltwise_relu",
    )


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("order", [0, 1])
def test_sum_of_the_convs_own_input(kernel, order):
    """CASE 2: in place, the convolution would overwrite what it still reads."""
    x = relay.nn.relu(conv(data()))
    y = bias_add(conv(x, kernel=kernel, seed=2))
    z = relay.nn.relu(relay.add(*((y, x) if order == 0 else (x, y))))
    runs(module(z), "convolution:eltwise_relu", "convolution:binary_add+eltwise_relu")


def test_sum_operand_read_later():
    """CASE 3: in place, later readers would see the sum."""
    x = relay.nn.max_pool2d(conv(data()))
    y = relay.nn.relu(relay.add(bias_add(conv(x)), x))
    z = conv(y, seed=2)
    runs(
        module(relay.add(z, x), x),
        "convolution",
        "pooling",
        "convolution:binary_add+eltwise_relu",
        "convolution:binary_add",
    )


def test_sum_operand_read_by_tvm_later():
    x = relay.nn.relu(conv(data()))
    y = relay.nn.relu(conv(x, seed=2))
    z = relay.add(conv(y, seed=3), x)
    runs(
        module(z, in_tvm(x)),
        "convolution:eltwise_relu",
        "convolution:eltwise_relu",
        "convolution:binary_add",
    )


def test_last_sum_may_be_in_place_after_others():
    """Read by two sums: the first leaves it alone, the second may overwrite it."""
    x = relay.nn.relu(conv(data()))
    y = relay.add(conv(relay.nn.relu(conv(x, seed=2)), seed=3), x)
    z = relay.add(conv(relay.nn.relu(y), seed=4), x)
    steps = fused(check(module(z)))
    assert len(steps) == 4
    assert steps[2] == "convolution:binary_add+eltwise_relu"
    assert steps[3] == "convolution:sum"


OPERANDS = {
    "input": (lambda x: var("other", N, C, H, W), "binary_add", []),
    "input of the conv": (lambda x: x, "binary_add", []),
    "max_pool": (lambda x: relay.nn.max_pool2d(x), "sum", ["pooling"]),
    "transposed": (lambda x: relay.transpose(var("t", N, C, W, H), (0, 1, 3, 2)), "binary_add", []),
    "constant": (lambda x: const(N, C, H, W, seed=3), "binary_add", []),
}


@pytest.mark.parametrize("name", OPERANDS)
@pytest.mark.parametrize("order", [0, 1])
def test_sum_operands(name, order):
    """CASES 4, 23: whatever its layout and its side."""
    make, post_op, others = OPERANDS[name]
    x = data()
    y, other = bias_add(conv(x)), make(x)
    z = relay.nn.relu(relay.add(*((y, other) if order == 0 else (other, y))))
    runs(module(z), *others, f"convolution:{post_op}+eltwise_relu")


@pytest.mark.parametrize("order", [0, 1])
def test_sum_operand_per_channel_of_each_image(order):
    y, other = bias_add(conv(data())), var("other", N, C, 1, 1)
    z = relay.add(*((y, other) if order == 0 else (other, y)))
    runs_without_bias(module(relay.nn.relu(z)), "convolution", "eltwise_relu")


@pytest.mark.parametrize("pool", [relay.nn.max_pool2d, relay.nn.avg_pool2d])
def test_pooling_does_not_accumulate(pool):
    """oneDNN's plain pooling accepts a sum, and leaves it out."""
    x = data()
    y = pool(x, pool_size=(3, 3), padding=(1, 1))
    steps = fused(check(module(relay.nn.relu(relay.add(y, relay.nn.max_pool2d(conv(x)))))))
    assert not [step for step in steps if step.startswith("pooling") and "sum" in step]


def test_sum_then_sum():
    x, a, b = data(), var("a", N, C, H, W), var("b", N, C, H, W)
    y = relay.add(relay.add(bias_add(conv(x)), a), relay.nn.relu(b))
    runs(module(relay.nn.relu(y)), "eltwise", "convolution:binary_add+sum+eltwise_relu")


def test_activation_before_sum():
    """SqueezeNet, DarkNet: conv, bias, leaky_relu, then the sum."""
    x = data()
    y = relay.add(relay.nn.leaky_relu(bias_add(conv(x)), 0.1), x)
    runs(module(y), "convolution:eltwise_relu+binary_add")


def test_dense_sum_in_place():
    x = relay.tanh(dense(data(4, 32)))
    y = relay.nn.relu(relay.add(relay.add(dense(relay.tanh(dense(x, 8, 16)), 16, 8), const(16)), x))
    runs(
        module(y),
        "inner_product:eltwise_tanh",
        "inner_product:eltwise_tanh",
        "inner_product:sum+eltwise_relu",
    )


def test_add_of_variable_and_biased_conv():
    """CASE 23, the root is never the first argument."""
    y = relay.add(var("v", N, C, H, W), relay.add(bias(), conv(data())))
    runs(module(y), "convolution:binary_add")


def test_squeeze_and_excitation():
    """The gate scales each channel of each image: a post-op of nothing, a multiplication."""
    x = relay.nn.relu(conv(data()))
    gate = relay.sigmoid(bias_add(conv(relay.nn.global_avg_pool2d(x), kernel=1, seed=2)))
    runs(
        module(relay.nn.relu(relay.multiply(x, gate))),
        "convolution:eltwise_relu",
        "pooling",
        "convolution:eltwise_logistic",
        "binary:eltwise_relu",
    )


def test_biased_by_another_conv():
    """(1, C, 1, 1) of another primitive, in its layout, looks like a bias and may be one."""
    x = data(1, C, H, W)
    a = conv2d(x, const(C, C, H, W, seed=1))
    b = conv2d(x, const(C, C, H, W, seed=2))
    steps = fused(check(module(relay.nn.relu(relay.add(a, b)))))
    assert len(steps) == 2
    assert steps[1].endswith("eltwise_relu")


# --- scalar operations ----------------------------------------------------------------------------


def test_relu6_of_scalars():
    """Hard swish as exporters write it: conv and x · relu6(x + 3) / 6."""
    x = bias_add(conv(data()))
    y = relay.multiply(x, relay.clip(relay.add(x, relay.const(3.0)), 0.0, 6.0))
    y = relay.multiply(y, relay.const(1 / 6))
    runs(module(y), "convolution:eltwise_hardswish")


def test_hard_sigmoid():
    y = relay.add(conv(data()), relay.const(3.0))
    y = relay.multiply(relay.clip(y, 0.0, 6.0), relay.const(1 / 6))
    runs(module(y), "convolution:eltwise_hardsigmoid")


def test_scalar_after_activation():
    y = relay.multiply(relay.const(0.5), relay.add(relay.tanh(conv(data())), relay.const(1.0)))
    runs(module(y), "convolution:eltwise_tanh+eltwise_linear")


def test_long_chain():
    """More post-ops than oneDNN takes (32) are divided."""
    y = conv(data())
    for i in range(40):
        y = relay.tanh(y) if i % 2 else relay.multiply(y, relay.const(1.0 + 0.02 * (i + 1)))
    steps = check(module(y))
    assert steps[0]["kind"] == "convolution"
    assert len(steps[0]["post_ops"].split("+")) == 32


# --- results that are needed ----------------------------------------------------------------------


def test_output_in_between():
    """CASE 13: the convolution's own result is an output: nothing may be fused into it."""
    y = conv(data())
    runs(module(y, relay.nn.relu(y)), "convolution", "eltwise")


def test_output_after_bias():
    y = bias_add(conv(data()))
    runs(module(relay.nn.relu(y), y), "convolution", "eltwise")


def test_second_reader():
    y = conv(data())
    z = relay.add(relay.nn.relu(y), relay.tanh(y))
    runs(module(z), "convolution", "eltwise", "eltwise", "binary")


def test_read_by_three():
    y = relay.nn.relu(conv(data()))
    z = [in_tvm(y), conv(y, seed=2), relay.nn.max_pool2d(y)]
    runs(module(*z, y), "convolution:eltwise_relu", "convolution", "pooling")


def test_read_by_tvm_and_by_us():
    y = conv(data())
    runs(module(relay.nn.relu(y), in_tvm(y)), "convolution", "eltwise")


def test_add_to_itself():
    y = conv(data())
    runs(module(relay.nn.relu(relay.add(y, y))), "convolution:eltwise_linear+eltwise_relu")


def test_multiply_by_itself():
    y = relay.nn.relu(bias_add(conv(data())))
    runs(module(relay.multiply(y, y)), "convolution:eltwise_relu+eltwise_square")


@pytest.mark.parametrize(
    ("end", "post_op"),
    [
        (lambda y: relay.add(y, var("other", N, C, H, W)), ":binary_add"),
        (bias_add, ""),
        (relay.nn.relu, ":eltwise_relu"),
        (lambda y: relay.multiply(y, var("other", C, 1, 1)), ":binary_mul"),
    ],
)
def test_graph_ends_at_fused_op(end, post_op):
    runs(module(end(conv(data()))), "convolution" + post_op)


def test_duplicate_outputs():
    y = relay.nn.relu(conv(data()))
    runs(module(y, y, in_tvm(y)), "convolution:eltwise_relu")


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        (lambda x: relay.nn.softmax(x, axis=1), "softmax"),
        (relay.nn.relu, "eltwise"),
        (lambda x: relay.clip(x, -0.2, 0.4), "eltwise"),
        (batch_norm, "batch_normalization"),
        (relay.tanh, "eltwise"),
    ],
    ids=["softmax", "relu", "clip", "batch_norm", "tanh"],
)
def test_in_place_op_of_a_value_read_later(op, kind):
    """CASE 16: its data is read after it, so it must not be overwritten."""
    x = relay.nn.max_pool2d(conv(data()))
    y = op(x)
    steps = fused(check(module(relay.add(y, x), x)))
    assert steps[:2] == ["convolution", "pooling"]
    assert steps[2].startswith(kind)


# --- kernels without post-ops, alone --------------------------------------------------------------


def test_pool_concat_softmax_alone():
    x = conv(data())
    y = relay.concatenate([relay.nn.max_pool2d(x), relay.nn.avg_pool2d(x)], axis=1)
    runs(
        module(relay.nn.softmax(y, axis=1)),
        "convolution",
        "pooling",
        "pooling",
        "concat",
        "softmax",
    )


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("shape", [(N, C, H, W), (C, 1, 1), (W,), ()])
def test_operand_after_softmax(axis, shape):
    """oneDNN's softmax accepts operands that are broadcast along its axis, and misreads them."""
    y = relay.multiply(relay.nn.softmax(data(), axis=axis), var("v", *shape))
    steps = fused(check(module(conv(y))))
    assert not [step for step in steps if step.startswith("softmax:")]


def test_nothing_is_fused_into_concat():
    x = conv(data())
    y = relay.nn.relu(relay.concatenate([x, relay.nn.max_pool2d(x)], axis=1))
    runs(module(y), "convolution", "pooling", "concat", "eltwise")


def test_relu_before_conv_is_no_post_op():
    """ResNet v2: batch_norm and relu come before the convolution."""
    y = conv(relay.nn.relu(batch_norm(data())))
    runs(module(y), "batch_normalization:eltwise_relu", "convolution")


def test_shared_weights():
    """CASE 12: the same weights for conv, relu and for conv, tanh."""
    w = const(C, C, 3, 3)
    x, z = data(), var("z", N, C, H, W)
    a = relay.nn.relu(conv2d(x, w, padding=(1, 1)))
    b = relay.tanh(conv2d(z, w, padding=(1, 1)))
    steps = fused(check(module(a, b)))
    assert sorted(steps) == ["convolution:eltwise_relu", "convolution:eltwise_tanh"]


def test_residual_network():
    """Two blocks with a pooled shortcut: six primitives and the head; no reorder in between."""
    x = data(N, C, 14, 10)
    x = relay.nn.relu(batch_norm(conv(x)))
    for seed in (2, 4):
        y = relay.nn.relu(batch_norm(conv(x, seed=seed)))
        y = batch_norm(conv(y, seed=seed + 1))
        x = relay.nn.relu(relay.add(y, x))
    x = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x))
    y = relay.nn.softmax(relay.add(relay.nn.dense(x, const(5, C)), const(5)))
    runs(
        module(y),
        "convolution:eltwise_relu",
        "convolution:eltwise_relu",
        "convolution:sum+eltwise_relu",
        "convolution:eltwise_relu",
        "convolution:sum+eltwise_relu",
        "pooling",
        "inner_product",
        "softmax",
    )
