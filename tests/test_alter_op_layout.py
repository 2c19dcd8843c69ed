"""What stays in TVM between two regions works in the layout in which oneDNN leaves the data."""

import numpy as np
import pytest
from engine_graph import build_info
from helpers import (
    assert_close,
    build,
    build_plainly,
    const,
    conv2d,
    fingerprint,
    in_tvm,
    inputs_for,
    module,
    run,
    var,
)
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl, profile
from tvm_dnnl_byoc.ir import op_name, sizes_of

pytestmark = pytest.mark.skipif(
    build_info()["isa"] in ("SSE41", "AVX"),
    reason="without AVX2, oneDNN prefers other layouts, some of them row-major",
)

C, H, W = 32, 9, 7  # whole blocks of channels on each processor
SHAPE = (1, C, H, W)
VIEWS = ("reshape", "transpose")
LIMITS = const(C, 1, 1, seed=11)


def larger(x, limit):
    """Return the maximum in a spelling that stays in TVM."""
    return relay.where(relay.greater(x, limit), x, limit)


def nearest(x, height, width):
    """Return an image resized by fractions, which oneDNN rounds in another way."""
    return relay.image.resize2d(x, size=(height, width), method="nearest_neighbor")


def first_conv(x, channels=C):
    return relay.nn.relu(conv2d(x, const(channels, 16, 3, 3), padding=(1, 1)))


def between(stays, channels=C):
    """Return a module with something between two convolutions."""
    x = stays(first_conv(var("x", 1, 16, H, W), channels))
    return module(conv2d(x, const(24, channels, 1, 1, seed=5)))


def shapes_in_tvm(mod):
    """Return the shapes of what main computes itself, views left out."""
    shapes = set()

    def visit(expr):
        if op_name(expr) not in (None, *VIEWS):
            shapes.add(sizes_of(expr))

    relay.analysis.post_order_visit(mod["main"], visit)
    return shapes


def reorders(lib):
    return sum(plan["reorders"] for plan in profile(lib).values())


def compared(mod, altered=True):
    """Check the results with the pass and without it, and whether it did what it should."""
    inputs = inputs_for(mod)
    with_it, without = partition_for_dnnl(mod), partition_for_dnnl(mod, alter_op_layout=False)
    libs = build(with_it), build(without)
    results = [run(lib, inputs) for lib in libs]
    assert_close(results[0], run(build_plainly(mod), inputs))
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)
    if altered:
        assert reorders(libs[0]) < reorders(libs[1])
        assert shapes_in_tvm(with_it) != shapes_in_tvm(without)
    else:
        assert shapes_in_tvm(with_it) == shapes_in_tvm(without)
        assert fingerprint(with_it) == fingerprint(without)


STAYING = {
    "unary": relay.atan,
    "several": lambda x: relay.cos(relay.atan(x)),
    "a number": lambda x: larger(x, relay.const(0.3)),
    "a number with axes": lambda x: larger(x, const(1, 1, 1, low=0.2)),
    "by channel": lambda x: larger(x, LIMITS),
    "by row": lambda x: larger(x, const(H, 1)),
    "by column, of rank 4": lambda x: larger(x, const(1, 1, 1, W)),
    "by channel and row": lambda x: larger(x, const(C, H, 1)),
    "whole": lambda x: larger(x, const(*SHAPE)),
    "reads twice": lambda x: larger(relay.atan(x), relay.cos(x)),
    "cast": lambda x: relay.atan(relay.cast(relay.cast(x, "float64"), "float32")),
    "nearest": lambda x: nearest(x, 13, 11),
    "upsampling": lambda x: relay.nn.upsampling(x, 1.5, 1.5, method="nearest_neighbor"),
    "nearest, then unary": lambda x: relay.atan(nearest(x, H, 11)),
}


@pytest.mark.parametrize("stays", STAYING.values(), ids=STAYING)
def test_between_two_regions(stays):
    compared(between(stays))


def test_from_several_regions_into_several():
    x = var("x", 1, 16, H, W)
    a, b = first_conv(x), conv2d(relay.atan(in_tvm(x)), const(C, 16, 3, 3, seed=3), padding=(1, 1))
    stays = larger(a, relay.atan(b))
    compared(module(conv2d(stays, const(8, C, 1, 1)), conv2d(stays, const(8, C, 3, 3)), b))


def test_a_residual_that_passes_by():
    x = first_conv(var("x", 1, 16, H, W))
    compared(module(relay.add(conv2d(relay.atan(x), const(C, C, 1, 1)), x)))


@pytest.mark.parametrize(("conv", "sizes"), [(relay.nn.conv1d, (6,)), (relay.nn.conv3d, (5, 4, 6))])
def test_other_ranks(conv, sizes):
    ones = (1,) * len(sizes)
    x = conv(var("x", 1, 16, *sizes), const(C, 16, *ones), kernel_size=ones)
    compared(module(conv(relay.atan(x), const(8, C, *ones), kernel_size=ones)))


def test_after_a_transposed_convolution():
    weights = const(16, C, 3, 3)
    x = relay.nn.conv2d_transpose(
        var("x", 1, 16, H, W), weights, channels=C, kernel_size=(3, 3), strides=(2, 2)
    )
    compared(module(conv2d(relay.atan(x), const(8, C, 1, 1))))


def test_after_a_pooling_and_a_concat():
    """It is the region that is asked, not the operator before."""
    x = first_conv(var("x", 1, 16, H, W))
    pooled = relay.nn.max_pool2d(x, (3, 3), padding=(1, 1))
    both = relay.concatenate([pooled, conv2d(x, const(C, C, 1, 1))], axis=1)
    compared(module(conv2d(relay.atan(both), const(8, 2 * C, 1, 1))))


NEAR_MISSES = {
    "along an axis": in_tvm,
    "mixes channels": lambda x: relay.cumsum(x, axis=1),
    "an operand from elsewhere": lambda x: larger(x, var("limit", C, 1, 1)),
    "an operand that is broadcast": lambda x: larger(x, relay.atan(relay.mean(x, [2, 3], True))),
    "also along an axis": lambda x: relay.reverse(relay.atan(x), 3),
}


@pytest.mark.parametrize("stays", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_near_misses(stays):
    compared(between(stays), altered=False)


def test_what_is_a_result_stays_row_major():
    stays = relay.atan(first_conv(var("x", 1, 16, H, W)))
    compared(module(stays, conv2d(stays, const(8, C, 1, 1))), altered=False)


def test_nothing_is_altered_before_the_first_region():
    x = relay.atan(var("x", *SHAPE))
    compared(module(conv2d(x, const(8, C, 1, 1))), altered=False)


def test_blocks_of_channels_that_are_not_full():
    """Channels last has no blocks; whatever oneDNN prefers, the numbers are right."""
    mod = between(relay.atan, channels=20)
    inputs = inputs_for(mod)
    lib = build(partition_for_dnnl(mod))
    assert_close(run(lib, inputs), run(build_plainly(mod), inputs))


def test_channels_last_models():
    """Their operators see what they saw: rows of channels."""
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    x, weights = var("x", 1, H, W, 16), const(3, 3, 16, C)
    x = relay.nn.conv2d(x, weights, channels=C, kernel_size=(3, 3), **layouts)
    y = relay.nn.conv2d(relay.atan(x), const(1, 1, C, 8), channels=8, kernel_size=(1, 1), **layouts)
    compared(module(y), altered=False)


@pytest.mark.filterwarnings("ignore:precision:RuntimeWarning")
def test_in_bf16():
    """Regions leave f32 to TVM, in the layout of their bf16."""
    mod = between(relay.sin)
    inputs = inputs_for(mod)
    lib = build(partition_for_dnnl(mod, precision="bf16"))
    assert_close(run(lib, inputs), run(build_plainly(mod), inputs), 2e-2)


def test_sizes_that_only_a_run_knows():
    """There is no layout to ask for; the regions stay as they are."""
    x = relay.var("x", shape=(relay.Any(), 16, H, W))
    mod = module(conv2d(relay.atan(first_conv(x)), const(8, C, 1, 1)))
    one, other = (partition_for_dnnl(mod, alter_op_layout=on) for on in (True, False))
    assert fingerprint(one) == fingerprint(other)
