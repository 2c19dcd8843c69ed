"""Encoder layers of transformers: each frontend's spelling becomes the same few primitives."""

import numpy as np
import pytest
from helpers import (
    assert_close,
    build,
    build_plainly,
    check,
    const,
    fused,
    inputs_for,
    module,
    offloaded,
    random,
    region_functions,
    run,
    steps_of,
    var,
)
from transformer_spellings import (
    EPSILON,
    SPELLINGS,
    B,
    C,
    D,
    H,
    S,
    attention_gluonnlp,
    encoder,
    linear_torch,
    numpy_layer_norm,
)
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl, profile

LAYER = [
    "layer_normalization",
    *["inner_product"] * 3,
    "matmul:eltwise_linear+binary_add",
    "softmax",
    "matmul",
    "inner_product:sum",
    "layer_normalization",
    "inner_product:eltwise_gelu_erf",
    "inner_product:sum",
    "layer_normalization",
]


def expected_steps(name, batch):
    steps = list(LAYER)
    if name == "onnx 14":  # which scales query and key
        steps[1:3] = ["inner_product:eltwise_linear"] * 2
        steps[4] = "matmul" if batch == 1 else "matmul:binary_add"  # (1, 1, 1, S) is a bias
    return sorted(steps)


@pytest.mark.parametrize("batch", [1, B])
@pytest.mark.parametrize("name", SPELLINGS)
def test_encoder_layer_is_twelve_primitives(name, batch):
    mod = module(encoder(SPELLINGS[name], batch))
    steps = fused(check(mod, tolerance=2e-5))
    if name in ("torch sdpa", "simplified") and batch == 1:
        steps.remove("binary")  # the mask plus 0, which for a batch is broadcast, and TVM's
    assert sorted(steps) == expected_steps(name, batch)

    partitioned = partition_for_dnnl(mod)
    assert len(region_functions(partitioned)) == 1
    assert set(offloaded(partitioned)[1]) <= {"full", "add"}  # of the mask
    (plan,) = profile(build(partitioned)).values()
    assert plan["reorders"] == 0  # heads are split and merged without a copy
    assert not [step for step in plan["steps"] if step["impl"].startswith("ref")]


@pytest.mark.parametrize("batch", [1, B])
def test_gluonnlp_attention(batch):
    """The layer for query, key and value is three, with its weights evaluated."""
    mod = module(attention_gluonnlp(batch))
    rng = np.random.default_rng(0)
    inputs = inputs_for(mod) | {"lengths": rng.integers(1, S + 1, batch * H * S).astype("int32")}
    assert sorted(fused(check(mod, inputs=inputs, tolerance=2e-5))) == sorted(
        [
            *["layer_normalization"] * 2,
            *["inner_product"] * 2,
            "inner_product:eltwise_linear",
            "matmul:binary_min",
            "softmax",
            "matmul",
            "inner_product:sum",
        ]
    )
    partitioned = partition_for_dnnl(mod)
    assert len(region_functions(partitioned)) == 1
    assert {"sequence_mask", "shape_of", "take", "stack", "concatenate"}.isdisjoint(
        offloaded(partitioned)[1]
    )


def test_layers_follow_each_other_in_one_region():
    mod = module(encoder(SPELLINGS["torch eager"], layers=2))
    assert sorted(fused(check(mod, tolerance=4e-5))) == sorted(LAYER + LAYER[1:])


@pytest.mark.parametrize("name", ["torch eager", "onnx 17"])
def test_encoder_layer_in_bf16(name):
    mod = module(encoder(SPELLINGS[name]))
    inputs = inputs_for(mod)
    expected = run(build_plainly(mod), inputs)
    lib = build(partition_for_dnnl(mod, precision="bf16"))
    actual = run(lib, inputs)
    assert np.abs(actual[0] - expected[0]).max() <= 2e-2 * np.abs(expected[0]).max()
    if steps_of(lib)[1]["dtypes"]["src"] != "f32":  # the processor computes in bf16
        products = [s for s in steps_of(lib) if s["kind"] in ("inner_product", "matmul")]
        assert {s["dtypes"]["src"] for s in products} == {"bf16"}
        (softmax,) = [s for s in steps_of(lib) if s["kind"] == "softmax"]
        assert softmax["dtypes"] == {"src": "f32", "dst": "bf16"}


# --- linear layers --------------------------------------------------------------------------------


def shared(weights, batch, transposed):
    """Return weights (K, N), or (N, K), for each of a batch, with a detour over rank 4."""
    rows, columns = (9, 5) if transposed else (5, 9)
    weights = relay.broadcast_to(weights, [batch, 1, rows, columns])
    return relay.reshape(weights, [-1, rows, columns])


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_batch_matmul_with_shared_weights_is_dense(transposed, constant):
    shape = (9, 5) if transposed else (5, 9)
    weights = const(*shape) if constant else var("w", *shape)
    y = relay.nn.batch_matmul(
        var("x", 3, 4, 5), shared(weights, 3, transposed), transpose_b=transposed
    )
    assert fused(check(module(relay.tanh(y)))) == ["inner_product:eltwise_tanh"]
    if not transposed and not constant:
        return
    # The transpose of the weights is evaluated, or there is none.
    assert "transpose" not in offloaded(partition_for_dnnl(module(y)))[0]


def test_data_that_is_shared_by_the_batch():
    y = relay.nn.batch_matmul(var("x", 1, 4, 5), shared(const(5, 9), 3, False), transpose_b=False)
    check(module(y))


def weights_of_their_own(x):
    return relay.nn.batch_matmul(x, const(3, 5, 9), transpose_b=False)


def weights_that_change_their_rows(x):
    """(5, 9) seen as (9, 5) before it is repeated, and (9, 5) as (5, 9) after."""
    repeated = relay.broadcast_to(relay.reshape(const(5, 9), [9, 5]), [3, 9, 5])
    return relay.nn.batch_matmul(x, relay.reshape(repeated, [3, 5, 9]), transpose_b=False)


def transposed_data(x):
    return relay.nn.batch_matmul(
        relay.transpose(x, [0, 2, 1]), shared(const(5, 9), 3, False),
        transpose_a=True, transpose_b=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "product", [weights_of_their_own, weights_that_change_their_rows, transposed_data]
)
def test_batch_matmul_that_stays_one(product):
    steps = fused(check(module(relay.nn.relu(product(var("x", 3, 4, 5))))))
    assert steps == ["matmul:eltwise_relu"]


# --- layer normalisation --------------------------------------------------------------------------


def normalised(x, epsilon=EPSILON, axis=-1, mean_of=None, variance_of=None, unbiased=False):
    mean = relay.mean(mean_of or x, axis=[axis], keepdims=True)
    variance = relay.variance(
        variance_of or x, axis=[axis], keepdims=True, unbiased=unbiased, with_mean=mean
    )
    root = relay.sqrt(relay.add(variance, relay.const(epsilon)))
    return relay.divide(relay.subtract(x, mean), root)


def with_dense(y):
    return relay.nn.dense(y, const(4, int(relay.transform.InferTypeLocal(y).shape[-1])))


@pytest.mark.parametrize("epsilon", [1e-5, 1e-6, 1e-12])
def test_layer_norm_keeps_its_epsilon(epsilon):
    x = var("x", 3, 24)
    gamma, beta = random(24, seed=1), random(24, seed=2)
    y = relay.multiply(normalised(x, epsilon), relay.const(gamma))
    y = relay.add(relay.const(beta), y)
    data = random(3, 24) * 1e-3  # of which epsilon is a part that counts
    expected = numpy_layer_norm(data, gamma, beta, epsilon)
    weights = random(4, 24)
    mod = module(relay.nn.dense(y, relay.const(weights)))
    steps = check(
        mod, inputs={"x": data}, reference=[expected @ weights.T.astype("float64")], tolerance=1e-4
    )
    assert fused(steps) == ["layer_normalization", "inner_product"]


@pytest.mark.parametrize("constant", [False, True])
def test_layer_norm_without_scale_or_shift(constant):
    x = var("x", 3, 24)
    gamma = const(24, seed=1) if constant else var("gamma", 24)
    for y in (normalised(x), relay.multiply(normalised(x), gamma), relay.add(normalised(x), gamma)):
        assert fused(check(module(with_dense(y)))) == ["layer_normalization", "inner_product"]


def test_layer_norm_of_an_addition():
    x, y = var("x", 3, 24), var("y", 3, 6)
    total = relay.add(relay.nn.dense(y, const(24, 6)), x)
    steps = fused(check(module(with_dense(normalised(total)))))
    assert steps == ["inner_product:binary_add", "layer_normalization", "inner_product"]


NOT_LAYER_NORM = {
    "unbiased variance": lambda x: normalised(x, unbiased=True),
    "another axis": lambda x: normalised(x, axis=0),
    "mean of another tensor": lambda x: normalised(x, mean_of=var("y", 3, 24)),
    "variance of another tensor": lambda x: normalised(x, variance_of=var("y", 3, 24)),
    "divided the other way": lambda x: relay.divide(
        relay.sqrt(relay.variance(x, [1], True) + relay.const(0.1)),
        relay.subtract(x, relay.mean(x, [1], True)) + relay.const(9.0),
    ),
    "squares of x itself": lambda x: relay.divide(
        relay.subtract(x, relay.mean(x, [1], True)),
        relay.sqrt(relay.mean(relay.multiply(x, x), [1], True) + relay.const(1e-5)),
    ),
    "the third power": lambda x: relay.divide(
        relay.subtract(x, relay.mean(x, [1], True)),
        relay.sqrt(
            relay.mean(
                relay.abs(relay.power(relay.subtract(x, relay.mean(x, [1], True)),
                                      relay.const(3.0))), [1], True
            ) + relay.const(1e-5)
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_LAYER_NORM)
def test_what_is_no_layer_norm(name):
    steps = fused(check(module(with_dense(NOT_LAYER_NORM[name](var("x", 3, 24)))), tolerance=2e-5))
    assert "layer_normalization" not in steps


def test_scale_that_is_no_channels_is_not_absorbed():
    x = var("x", 3, 24)
    y = relay.multiply(normalised(x), var("gamma", 3, 1))
    assert "layer_normalization" in fused(check(module(with_dense(y))))
    twice = relay.nn.layer_norm(x, const(24, seed=1), const(24, seed=2))
    y = relay.multiply(twice, const(24, seed=3))  # would scale the shift as well
    assert fused(check(module(with_dense(y))))[0].startswith("layer_normalization")


# --- batched products -----------------------------------------------------------------------------


def product(a, b, **transposed):
    return relay.nn.batch_matmul(
        relay.reshape(a, [-1, *shape_of(a)[-2:]]), relay.reshape(b, [-1, *shape_of(b)[-2:]]),
        **{"transpose_b": False, **transposed},
    )  # fmt: skip


def shape_of(x):
    return [int(size) for size in relay.transform.InferTypeLocal(x).shape]


def scores(shape=(B, H, S, 5), **transposed):
    y = product(var("a", B, H, S, D), var("b", B, H, D, 5), **transposed)
    return relay.reshape(y, shape)


@pytest.mark.parametrize("mask", [(B, 1, 1, 5), (B, 1, S, 5), (B, H, S, 5), (5,)])
def test_mask_is_a_post_op_of_a_batched_product(mask):
    y = relay.add(relay.multiply(scores(), relay.const(0.3)), var("mask", *mask))
    assert fused(check(module(y))) == ["matmul:eltwise_linear+binary_add"]


@pytest.mark.parametrize("mask", [(B, 1, 1, 1), (1, H, 1, 5), (B, H, S, 1), (S, 5), (1, 1, S, 1)])
def test_mask_that_onednn_cannot_broadcast_is_right(mask):
    y = relay.add(relay.multiply(scores(), relay.const(0.3)), var("mask", *mask))
    steps = fused(check(module(relay.nn.softmax(y))))
    assert steps[0].startswith("matmul:eltwise_linear")


def test_mask_that_widens_the_result_is_none():
    y = relay.add(
        relay.reshape(product(var("a", 1, H, S, D), var("b", 1, H, D, 5)), [1, H, S, 5]),
        var("mask", B, 1, 1, 5),
    )
    assert "matmul" in fused(check(module(y)))


def test_operands_are_transposed_by_the_product():
    a, b = var("a", B, H, D, S), var("b", B, H, 5, D)
    y = relay.reshape(product(a, b, transpose_a=True, transpose_b=True), [B, H, S, 5])
    assert fused(check(module(relay.nn.relu(y)))) == ["matmul:eltwise_relu"]


def test_product_with_itself():
    a = var("a", B, H, S, D)
    y = relay.reshape(product(a, a, transpose_b=True), [B, H, S, S])
    assert fused(check(module(relay.nn.relu(y)))) == ["matmul:eltwise_relu"]


@pytest.mark.parametrize("shape", [(H, B, S, 5), (B, H, 5, S), (B * H, S * 5)])
def test_result_of_another_shape_is_no_batched_product(shape):
    steps = check(module(relay.nn.relu(scores(shape))))
    assert len(steps) <= 2
    assert steps[0]["layouts"]["src"] == "abc"


def test_product_that_is_read_merged_too_is_computed_once():
    y = product(var("a", B, H, S, D), var("b", B, H, D, 5))
    mod = module(relay.tanh(relay.reshape(y, [B, H, S, 5])), relay.nn.relu(y))
    assert [s["kind"] for s in check(mod)].count("matmul") == 1


def test_merged_heads_need_no_copy():
    y = relay.reshape(product(var("a", B, H, S, 5), var("b", B, H, 5, D)), [B, H, S, D])
    y = relay.reshape(relay.transpose(y, [0, 2, 1, 3]), [B * S, C])
    lib = build(partition_for_dnnl(module(relay.nn.dense(y, const(8, C)))))
    (plan,) = profile(lib).values()
    assert [s["kind"] for s in plan["steps"]] == ["matmul", "inner_product"]
    check(module(relay.nn.dense(y, const(8, C))))


# --- softmax --------------------------------------------------------------------------------------


def softmax_of_masked(zero=0.0):
    """As PyTorch's ONNX exporter writes it, with one row that is masked completely."""
    mask = np.zeros((S, 5), "float32")
    mask[2] = mask[3, 1:] = -np.inf
    y = relay.nn.softmax(relay.add(relay.nn.dense(var("x", S, 8), const(5, 8)), relay.const(mask)))
    return relay.where(relay.isnan(y), relay.const(np.array([zero], "float32")), y)


def test_zero_for_nan_is_a_post_op_of_softmax():
    mod = module(softmax_of_masked())
    steps = check(mod)
    assert fused(steps) == ["inner_product:binary_add", "softmax:eltwise_relu"]
    assert not steps[1]["impl"].startswith("ref")  # whose ReLU of a NaN may be another
    (y,) = run(build(partition_for_dnnl(mod)), inputs_for(mod))
    assert (y[2] == 0).all()
    np.testing.assert_array_equal(y[3], [1, 0, 0, 0, 0])


def test_another_number_for_nan_stays():
    mod = module(softmax_of_masked(0.5))
    assert "where" in offloaded(partition_for_dnnl(mod))[1]
    check(mod)


def test_zero_for_nan_of_what_may_be_negative_stays():
    y = relay.log(relay.nn.dense(var("x", 3, 8), const(4, 8)))
    mod = module(relay.where(relay.isnan(y), relay.const(0.0), y))
    assert "where" in offloaded(partition_for_dnnl(mod))[1]
    check(mod)


# --- views ----------------------------------------------------------------------------------------


def dense_2d(seed=1):
    return relay.nn.dense(relay.reshape(var("x", 2, 3, 8), [6, 8]), const(4, 8, seed=seed))


BEHIND_A_RESHAPE = {
    "bias": (lambda y: relay.add(const(4), relay.reshape(y, [2, 3, 4])), "inner_product"),
    "bias of rank 3": (
        lambda y: relay.add(relay.reshape(y, [2, 3, 4]), const(1, 1, 4)),
        "inner_product",
    ),
    "bias_add": (
        lambda y: relay.nn.bias_add(relay.reshape(y, [2, 3, 4]), const(4), axis=2),
        "inner_product",
    ),
    "residual": (
        lambda y: relay.add(relay.reshape(y, [2, 3, 4]), var("z", 2, 3, 4)),
        "inner_product:binary_add",
    ),
    "activation": (
        lambda y: relay.nn.relu(relay.reshape(y, [3, 8])),
        "inner_product:eltwise_relu",
    ),
    "number": (
        lambda y: relay.subtract(relay.const(2.0), relay.reshape(y, [24])),
        "inner_product:eltwise_linear",
    ),
    "number, transposed": (
        lambda y: relay.multiply(relay.transpose(y, [1, 0]), relay.const(0.3)),
        "inner_product:eltwise_linear",
    ),
    "swish": (
        lambda y: relay.multiply(
            relay.sigmoid(relay.reshape(y, [2, 12])), relay.reshape(y, [2, 12])
        ),
        "inner_product:eltwise_swish",
    ),
}


@pytest.mark.parametrize("name", BEHIND_A_RESHAPE)
def test_post_op_behind_a_view(name):
    after, expected = BEHIND_A_RESHAPE[name]
    assert fused(check(module(after(dense_2d())))) == [expected]


NOT_BEHIND_A_RESHAPE = {
    "along another axis": lambda y: relay.add(relay.reshape(y, [2, 3, 4]), const(3, 1)),
    "other rows": lambda y: relay.add(relay.reshape(y, [3, 8]), const(8)),
    "other rows, softmax": lambda y: relay.nn.softmax(relay.reshape(y, [3, 8])),
    "the first axis": lambda y: relay.nn.softmax(relay.reshape(y, [2, 3, 4]), axis=1),
    "wider than the reshaped": lambda y: relay.add(relay.reshape(y, [1, 6, 4]), const(2, 1, 4)),
    "reshaped from another shape": lambda y: relay.add(
        relay.reshape(y, [2, 12]), relay.reshape(relay.tanh(var("z", 4, 6)), [2, 12])
    ),
}


@pytest.mark.parametrize("name", NOT_BEHIND_A_RESHAPE)
def test_what_stays_behind_a_reshape(name):
    steps = fused(check(module(NOT_BEHIND_A_RESHAPE[name](dense_2d()))))
    assert "inner_product" in steps or name == "reshaped from another shape"


def rows():
    """A dense layer of rank 3, in the form that TVM compiles."""
    return relay.reshape(dense_2d(), [2, 3, 4])


def test_vector_that_is_made_a_row_stays_one():
    x = relay.reshape(var("x", 24), [1, 24])
    y = relay.nn.layer_norm(x, const(24, seed=1), const(24, seed=2))
    y = relay.nn.dense(relay.add(y, const(24, seed=3)), const(5, 24))
    steps = fused(check(module(y)))
    assert steps[0].startswith("layer_normalization")
    assert steps[-1] == "inner_product"


@pytest.mark.parametrize("index", [0, 2])
def test_take_of_one_index_is_a_view(index):
    y = relay.take(rows(), relay.const(index, "int32"), axis=1, mode="wrap")
    mod = module(relay.nn.dense(y, const(6, 4)))
    assert fused(check(mod)) == ["inner_product", "inner_product"]
    assert offloaded(partition_for_dnnl(mod))[1] == []


@pytest.mark.parametrize(
    ("index", "axis"), [(-1, 1), (3, 1), (np.array([1], "int32"), 1), (5, None)]
)
def test_take_that_stays(index, axis):
    index = relay.const(index, "int32") if isinstance(index, int) else relay.const(index)
    mod = module(relay.take(rows(), index, axis=axis, mode="wrap"))
    assert "take" in offloaded(partition_for_dnnl(mod))[1]
    check(mod)


def test_dense_of_rank_3_that_stays_is_one_of_matrices(monkeypatch):
    """TVM cannot compile the former, which a reshape that is moved behind it leaves."""
    mod = module(relay.add(const(4), relay.reshape(dense_2d(), [2, 3, 4])))
    monkeypatch.setattr("tvm_dnnl_byoc.relay.partition.find_regions", lambda *args: [])
    partitioned = partition_for_dnnl(mod)
    assert region_functions(partitioned) == {}
    inputs = inputs_for(mod)
    assert_close(run(build(partitioned), inputs), run(build_plainly(mod), inputs))


# --- parts of a layer -----------------------------------------------------------------------------


def qkv():
    """As timm's ViT: (batch, S, 3 · C) as (3, batch, H, S, D)."""
    y = linear_torch(var("x", B, S, C), C, 3 * C, seed=1)
    return relay.transpose(relay.reshape(y, [B, S, 3, H, D]), [2, 0, 3, 1, 4])


def weighted(parts):
    """Return what keeps an order of parts: sums of a part times its number."""
    return relay.add(relay.nn.relu(parts[0]), relay.add(relay.tanh(parts[1]), parts[2]))


@pytest.mark.parametrize("by", ["take", "split", "unbind", "slice"])
def test_parts_of_a_layer_are_layers(by):
    y = qkv()
    if by == "take":
        parts = [relay.take(y, relay.const(i), axis=0) for i in range(3)]
    elif by == "unbind":
        parts = relay.Tuple([relay.squeeze(part, axis=[0]) for part in relay.split(y, 3, 0)])
        parts = [relay.TupleGetItem(parts, i) for i in range(3)]
    elif by == "split":
        parts = [relay.squeeze(part, axis=[0]) for part in relay.split(y, 3, 0)]
    else:
        parts = [relay.strided_slice(y, [i, 0, 0, 0, 0], [i + 1, B, H, S, D]) for i in range(3)]
    mod = module(weighted(parts))
    assert len(region_functions(partition_for_dnnl(mod))) == 1
    steps = check(mod)
    layers = [s for s in steps if s["kind"] == "inner_product"]
    assert len(layers) == 3
    assert all(s["layouts"]["src"] == "ab" for s in layers)


NOT_PARTS_OF_A_LAYER = {
    "rows": lambda y: relay.take(y, relay.const(1), axis=1),
    "no constant weights": lambda y: relay.take(
        relay.reshape(relay.nn.dense(var("z", 4, 8), var("w", 192, 8)), [4, 2, 96]),
        relay.const(1), axis=1,
    ),
    "few columns": lambda y: relay.strided_slice(y, [0], [1], axes=[3]),
    "channels and rows together": lambda y: relay.take(
        relay.reshape(relay.nn.dense(var("z", 4, 6), const(192, 6)), [8, 96]),
        relay.const(1), axis=0,
    ),
    "of a sum": lambda y: relay.take(
        relay.reshape(
            relay.add(relay.nn.dense(var("z", 4, 8), const(192, 8)), var("r", 4, 192)),
            [4, 2, 96],
        ),
        relay.const(1), axis=1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_PARTS_OF_A_LAYER)
def test_what_is_no_part_of_a_layer(name):
    mod = module(relay.tanh(NOT_PARTS_OF_A_LAYER[name](qkv())))
    assert "strided_slice" in offloaded(partition_for_dnnl(mod))[0]
    check(mod)


def masked_by_lengths(value, axis=1, softmax=True):
    y = relay.nn.dense(var("x", 6, 8), const(5, 8))
    lengths = var("lengths", 6 if axis == 1 else 5, dtype="int32")
    y = relay.sequence_mask(y, lengths, value, axis=axis)
    return relay.nn.softmax(y) if softmax else relay.tanh(y)


def test_softmax_masked_by_lengths():
    mod = module(masked_by_lengths(float(np.finfo("float32").min)))
    inputs = inputs_for(mod) | {"lengths": np.array([5, 0, 1, 3, 9, 2], "int32")}
    assert fused(check(mod, inputs=inputs)) == ["inner_product:binary_min", "softmax"]


@pytest.mark.parametrize(
    "wrong", [{"value": -1e4}, {"axis": 0}, {"softmax": False}], ids=lambda wrong: str(wrong)
)
def test_other_masks_by_lengths_stay(wrong):
    mod = module(masked_by_lengths(**{"value": float(np.finfo("float32").min), **wrong}))
    assert "sequence_mask" in offloaded(partition_for_dnnl(mod))[1]
    lengths = np.array([5, 0, 1, 3, 9, 2][: 6 if wrong.get("axis", 1) == 1 else 5], "int32")
    check(mod, inputs=inputs_for(mod) | {"lengths": lengths})
