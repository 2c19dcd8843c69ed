import pytest
import tvm
from tvm import relay

from tvm_dnnl_byoc.relay.flops import count_multiply_adds, count_regions


def module(*outputs):
    expr = outputs[0] if len(outputs) == 1 else relay.Tuple(outputs)
    return tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(expr), expr))


def var(name, *shape):
    return relay.var(name, shape=shape, dtype="float32")


def conv2d():
    # 3 groups, 24 outputs of 5 x 4, each of 2 channels * 3 * 2 taps
    return relay.nn.conv2d(
        var("x", 2, 6, 7, 5), var("w", 24, 2, 3, 2), kernel_size=(3, 2), channels=24, groups=3
    ), 2 * 24 * 5 * 4 * (2 * 3 * 2)


def conv2d_blocked():
    return relay.nn.contrib_conv2d_nchwc(
        var("x", 1, 2, 9, 8, 8),
        var("w", 3, 2, 3, 3, 8, 16),
        kernel_size=(3, 3),
        channels=48,
        data_layout="NCHW8c",
        kernel_layout="OIHW8i16o",
        out_layout="NCHW16c",
    ), 48 * 7 * 6 * (16 * 3 * 3)


def conv2d_nhwc():
    return relay.nn.conv2d(
        var("x", 1, 7, 5, 6),
        var("w", 3, 3, 6, 11),
        kernel_size=(3, 3),
        data_layout="NHWC",
        kernel_layout="HWIO",
    ), 11 * 5 * 3 * (6 * 3 * 3)


def conv1d():
    return relay.nn.conv1d(var("x", 1, 4, 11), var("w", 6, 4, 3), kernel_size=3), 6 * 9 * (4 * 3)


def conv3d():
    return relay.nn.conv3d(
        var("x", 1, 4, 5, 6, 7), var("w", 3, 4, 2, 3, 1), kernel_size=(2, 3, 1), strides=(2, 1, 3)
    ), 3 * 2 * 4 * 3 * (4 * 2 * 3 * 1)


def conv2d_transpose():
    # every one of the 6 * 7 * 5 inputs goes to 4 channels * 3 * 2 taps
    return relay.nn.conv2d_transpose(
        var("x", 1, 6, 7, 5), var("w", 6, 4, 3, 2), kernel_size=(3, 2), channels=4, strides=(2, 2)
    ), 6 * 7 * 5 * (4 * 3 * 2)


def dense():
    return relay.nn.dense(var("x", 3, 7), var("w", 5, 7)), 3 * 5 * 7


def matmul():
    return relay.nn.matmul(var("x", 7, 3), var("w", 7, 5), transpose_a=True), 3 * 5 * 7


def batch_matmul():
    return relay.nn.batch_matmul(var("x", 2, 3, 7), var("y", 2, 5, 7)), 2 * 3 * 5 * 7


@pytest.mark.parametrize(
    "case",
    [
        *(conv1d, conv2d, conv2d_blocked, conv2d_nhwc, conv3d, conv2d_transpose),
        *(dense, matmul, batch_matmul),
    ],
)
def test_operator(case):
    expr, expected = case()
    assert count_multiply_adds(module(relay.nn.relu(expr))).total == expected


def test_share_of_an_external_function_and_each_of_its_calls():
    x = var("x", 3, 7)
    w = relay.var("w", shape=(7, 7), dtype="float32")
    region = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))
    region = region.with_attr("Compiler", "dnnl").with_attr("global_symbol", "dnnl_0")
    region = region.with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    symbol = relay.GlobalVar("dnnl_0")
    data, weight, rest = var("data", 3, 7), var("weight", 7, 7), var("rest", 5, 7)
    twice = relay.Call(symbol, [relay.Call(symbol, [data, weight]), weight])
    body = relay.nn.dense(twice, rest)
    mod = tvm.IRModule({"main": relay.Function([data, weight, rest], body), symbol: region})

    found = count_multiply_adds(mod)
    assert found.offloaded == 2 * 3 * 7 * 7
    assert found.total == found.offloaded + 3 * 5 * 7
    assert found.share == pytest.approx(294 / 399)
    assert count_regions(mod) == 1
    assert count_multiply_adds(mod, compiler="other").offloaded == 0
    assert count_regions(mod, compiler="other") == 0


def test_module_without_heavy_operators():
    assert count_multiply_adds(module(relay.nn.relu(var("x", 3, 7)))).share == 0


def test_dynamic_shape():
    x = relay.var("x", shape=(relay.Any(), 7), dtype="float32")
    with pytest.raises(ValueError, match=r"nn.dense: expected a static shape, got \(\?, [57]\)"):
        count_multiply_adds(module(relay.nn.dense(x, var("w", 5, 7))))
