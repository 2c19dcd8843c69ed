"""Masks of attention: what torch.export writes around a softmax, and masks that mask nothing."""

import numpy as np
import pytest
from processor import HAS_BF16
from relax_helpers import (
    assert_close,
    build,
    check,
    const,
    module,
    ops_left,
    random,
    run,
    steps,
    symbol,
    var,
)
from tvm import relax
from tvm.relax import op

from tvm_dnnl_byoc import partition_for_dnnl

ATTENTION = {"q": (2, 3, 4, 9), "k": (2, 3, 9, 5), "v": (2, 3, 5, 8)}


def number(value):
    return relax.const(np.float32(value))


def masked_attention(mask=None, scores=lambda q, k, mask: op.add(op.matmul(q, k), mask), axis=-1):
    """Return torch's attention, guarded against a masked row; the mask may be an argument."""
    builder = relax.BlockBuilder()
    params = [var(name, shape) for name, shape in ATTENTION.items()]
    if mask is None:
        params.append(var("mask", (2, 1, 4, 5), "bool"))
    q, k, v = params[:3]
    with builder.function("main", params):
        with builder.dataflow():
            if mask is None:
                added = builder.emit(op.where(params[3], number(0), number(-np.inf)))
            else:
                added = relax.const(mask)
            x = builder.emit(scores(q, k, added))
            some = op.astype(op.logical_not(op.equal(x, number(-np.inf))), "int8")
            some = op.astype(op.max(some, axis=[axis], keepdims=True), "bool")
            zeros = op.full_like(x, number(0))
            guarded = op.where(op.logical_not(some), zeros, op.nn.softmax(x, axis=-1))
            result = builder.emit_output(op.matmul(guarded, v))
        builder.emit_func_output(result)
    return builder.get()


def inputs(mask=None):
    arrays = [random(*shape, seed=i) for i, shape in enumerate(ATTENTION.values())]
    return arrays if mask is None else [*arrays, mask]


def test_a_guard_that_cannot_be_needed_is_dropped():
    mask = random(2, 1, 4, 5)
    mask[0, 0, 1, 2:] = -np.inf
    assert check(masked_attention(mask)) == ["matmul:binary_add", "softmax", "matmul"]


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_of_a_row_that_is_masked_altogether_nothing_is_left(precision):
    """A constant mask, and one that only a run knows: 0 stands for NaN."""
    if precision == "bf16" and not HAS_BF16:
        pytest.skip("the processor has no instructions for bf16")
    tolerance = 1e-5 if precision == "f32" else 2e-2
    hidden = random(2, 1, 4, 5) < -0.3
    hidden[0, 0, 1] = True
    as_numbers = np.where(hidden, np.float32(-np.inf), np.float32(0))
    for mod, arrays in (
        (masked_attention(as_numbers), inputs()),
        (masked_attention(), inputs(~hidden)),
    ):
        ran = check(mod, arrays, tolerance=tolerance, precision=precision)
        assert [step.split(":")[0] for step in ran if "eltwise" not in step.split(":")[0]] == [
            "matmul",
            "softmax",
            "matmul",
        ]
        assert sum("relu" in step or step == "eltwise" for step in ran) == 1
        partitioned = partition_for_dnnl(mod, precision=precision)
        assert set(ops_left(partitioned)) <= {"where", "call_dps_packed"}
        (y,) = run(build(partitioned), arrays)
        np.testing.assert_array_equal(y[0, :, 1], 0)


# By name: what is not that guard.
OTHERS = {
    "a power of a product": {"scores": lambda q, k, mask: op.add(op.exp(op.matmul(q, k)), mask)},
    "another axis": {"axis": -2},
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_that_guard_stays(name):
    mod = masked_attention(**OTHERS[name])
    assert "logical_not" in ops_left(partition_for_dnnl(mod))
    hidden = random(2, 1, 4, 5) < -0.3
    hidden[0, 0, :, 2] = True
    hidden[..., 0] = False
    check(mod, inputs(~hidden))


N, S = symbol("n"), symbol("s")


def positions(compare):
    """Return a product plus a mask by positions, for a length that only a run knows."""
    builder = relax.BlockBuilder()
    q, k = var("q", (N, 3, S, 8)), var("k", (N, 3, 8, S))
    with builder.function("main", [q, k]):
        with builder.dataflow():
            place = builder.emit(op.arange(0, S, 1, "int64"))
            place = builder.emit(op.expand_dims(op.add(place, relax.const(0, "int64")), [0, 1, 3]))
            seen = builder.emit(op.broadcast_to(compare(place), (N, 1, S, S)))
            mask = builder.emit(op.where(seen, number(0), number(-1e4)))
            result = builder.emit_output(op.add(op.matmul(q, k), mask))
        builder.emit_func_output(result)
    return builder.get()


def int64(value):
    return relax.const(value, "int64")


@pytest.mark.parametrize(
    ("compare", "ran"),
    [
        (lambda place: op.greater_equal(place, int64(0)), "matmul"),
        (lambda place: op.logical_not(op.less(place, int64(0))), "matmul"),
        (lambda place: op.bitwise_and(*[op.greater(place, int64(-1))] * 2), "matmul"),
        (lambda place: op.greater_equal(place, int64(1)), "matmul:binary_add"),
        (lambda place: op.less(place, int64(3)), "matmul:binary_add"),
        (lambda place: op.less(place, int64(0)), "matmul:binary_add"),
    ],
    ids=["all", "not one", "all, twice", "all but the first", "the first", "none"],
)
def test_a_mask_of_positions(compare, ran):
    """Only one that is zero whatever the length is nothing."""
    mod = positions(compare)
    executable, plain = build(partition_for_dnnl(mod)), build(mod)
    for n, s in ((2, 5), (1, 1), (2, 7)):
        arrays = [random(n, 3, s, 8), random(n, 3, 8, s, seed=1)]
        assert_close(run(executable, arrays), run(plain, arrays))
    assert steps(executable) == [ran]


def test_masks_that_are_made_of_constants_are_constants():
    """As those of shifted windows: positions, their rest, what is equal."""

    def build(x):
        places = op.arange(0, 12, 1, dtype="int64")
        rest = op.mod(op.add(places, int64(-5)), int64(4))
        half = op.floor_divide(op.add(places, int64(-3)), int64(5))
        same = op.not_equal(op.expand_dims(rest, 0), op.expand_dims(half, 1))
        mask = op.where(same, op.full((12, 12), number(0)), number(-1e4))
        return op.add(op.matmul(x, const(6, 12)), mask)

    mod = module(build, (12, 6))
    assert ops_left(partition_for_dnnl(mod)) == ["call_dps_packed"]
    assert check(mod) == ["inner_product:binary_add"]


def test_the_same_mask_of_several_layers_is_made_once():
    """And other masks are not the same: of other numbers, of another tensor, of other axes."""
    hidden, product = (2, 1, 4, 4), (2, 3, 4, 4)

    def build(mask, other, x):
        y = x
        for value, condition in ((-1e4, mask), (-1e4, mask), (-1e3, mask), (-1e4, other)):
            y = op.add(op.matmul(y, const(*product)), op.where(condition, number(0), number(value)))
        flipped = [op.flip(op.astype(mask, "float32"), axis) for axis in (2, 3)]
        return [y, op.matmul(flipped[0], const(4, 5)), op.matmul(flipped[1], const(4, 5))]

    builder = relax.BlockBuilder()
    params = [var("mask", hidden, "bool"), var("other", hidden, "bool"), var("x", product)]
    with builder.function("main", params):
        with builder.dataflow():
            values = [builder.emit(value) for value in build(*params)]
            result = builder.emit_output(relax.Tuple(values))
        builder.emit_func_output(result)
    mod = builder.get()
    left = ops_left(partition_for_dnnl(mod))
    assert (left.count("where"), left.count("flip")) == (3, 2)
    arrays = [random(*hidden) > 0, random(*hidden, seed=1) > 0, random(*product)]
    check(mod, arrays)


def test_what_may_be_rounded_is_not_decided():
    """Whole numbers beyond those that f32 has; casts to types that NumPy does not have."""

    def build(x):
        large = op.astype(op.full((6,), relax.const(2**24 + 1, "int64")), "float32")
        same = op.equal(large, number(2**24))  # true of f32
        y = op.add(op.matmul(x, const(4, 6)), op.where(same, number(1), number(0)))
        narrow = op.astype(op.arange(0, 6, 1, dtype="int64"), "bfloat16")
        return op.add(y, op.astype(op.where(op.less(narrow, narrow), narrow, narrow), "float32"))

    check(module(build, (3, 4)))
