"""Small models in which a rewriting that is nearly right would give other numbers than TVM."""

import numpy as np
import pytest
from relax_helpers import build, module, random, run, symbol
from tvm import relax
from tvm.relax import op

from tvm_dnnl_byoc import partition_for_dnnl

N = symbol("n")


def const(array, dtype=None):
    return relax.const(np.asarray(array, dtype or np.float32))


WEIGHTS = const(random(8, 8, seed=9))


def same_as_tvm(build_body, shape, *arrays, **options):
    mod = module(build_body, shape)
    for got, expected in zip(
        run(build(partition_for_dnnl(mod, keep_light_regions=True, **options)), arrays),
        run(build(mod), arrays),
        strict=True,
    ):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def chosen(condition, x):
    return op.where(condition, x, op.negative(x))


# By name: a condition of which the numbers are known, for x of n rows of 4.
CONDITIONS = {
    "a number that is cut off": lambda x: op.less_equal(
        op.astype(op.broadcast_to(const([[0.5]]), (N, 4)), "int32"), const(0, "int32")
    ),
    "full of another dtype": lambda x: op.less_equal(
        op.full((N, 4), const(0.5), "int32"), const(0, "int32")
    ),
    "full_like of another dtype": lambda x: op.less_equal(
        op.full_like(x, const(0.5), "int32"), const(0, "int32")
    ),
    "a byte below zero": lambda x: op.greater(
        op.subtract(op.astype(op.greater(x, const(0)), "uint8"), const(1, "uint8")),
        const(0, "uint8"),
    ),
    "a byte above 255": lambda x: op.less(
        op.add(op.full((N, 4), const(200, "uint8"), "uint8"), const(100, "uint8")),
        const(100, "uint8"),
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_ranges(name):
    same_as_tvm(lambda x: chosen(CONDITIONS[name](x), x), (N, 4), random(3, 4))


@pytest.mark.parametrize(
    "differ", [{"cubic_alpha": -0.75}, {"cubic_exclude": 1}, {"roi": (0.0, 0.0, 0.5, 0.5)}]
)
def test_resizings_that_differ_are_not_one(differ):
    """In attributes that the engine has no use for."""
    mode = "tf_crop_and_resize" if "roi" in differ else "half_pixel"

    def resized(x, **more):
        options = {"method": "cubic", "coordinate_transformation_mode": mode, **more}
        return op.image.resize2d(x, (9, 9), **options)

    same_as_tvm(
        lambda x: op.subtract(resized(x), resized(x, **differ)), (1, 2, 5, 5), random(1, 2, 5, 5)
    )


def test_a_size_that_may_be_that_of_the_result_is_not_repeated():
    same_as_tvm(lambda x: op.matmul(op.broadcast_to(x, (4, 8)), WEIGHTS), (N, 8), random(4, 8))


def guarded(x, axis=-1, keepdims=True):
    """Return torch's softmax, 0 for rows that are masked altogether."""
    numbers = op.astype(op.logical_not(op.equal(x, const(-np.inf))), "int8")
    some = op.astype(op.max(numbers, axis=axis, keepdims=keepdims), "bool")
    return op.where(op.logical_not(some), const(0), op.nn.softmax(x))


def hiding(*places, shape=(8, 8)):
    mask = np.zeros(shape, np.float32)
    for place in places:
        mask[place] = -np.inf
    return const(mask)


LEFT, RIGHT = (1, slice(None, 4)), (1, slice(4, None))
# By name: a guarded softmax of a product (8, 8).
GUARDED = {
    "two masks, which hide a row together": lambda y: guarded(
        op.add(op.add(y, hiding(LEFT)), hiding(RIGHT))
    ),
    "a mask before a reshape": lambda y: guarded(
        op.reshape(op.add(y, hiding(LEFT)), (2, 8, 4)),
    ),
    "columns that are masked altogether": lambda y: guarded(op.add(y, hiding(3)), keepdims=False),
    "a zero for more than there is": lambda y: op.where(
        op.isnan(op.nn.softmax(y)), const(np.zeros((3, 8, 8))), op.nn.softmax(y)
    ),
}


@pytest.mark.parametrize("name", GUARDED)
def test_guards(name):
    same_as_tvm(lambda x: GUARDED[name](op.matmul(x, WEIGHTS)), (8, 8), random(8, 8))


@pytest.mark.parametrize("combine", [op.maximum, op.minimum])
def test_constants_that_are_no_number(combine):
    def body(x):
        numbers = combine(const([np.nan, 1, -1, 0]), const([0, 0, 0, 0]))
        return op.matmul(op.add(x, numbers), const(random(4, 8)))

    same_as_tvm(body, (3, 4), random(3, 4))


def test_divisors_of_which_the_inverse_is_not_a_float():
    divisor = const([1e-42, 2, -3, 1, 1, 4, 5, 6])
    same_as_tvm(
        lambda x: op.divide(op.nn.relu(op.matmul(x, WEIGHTS)), divisor), (3, 8), random(3, 8)
    )
