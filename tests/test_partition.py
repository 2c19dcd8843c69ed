"""partition_for_dnnl on whole modules: what it must keep, leave, survive and repeat."""

import numpy as np
import pytest
import tvm
from helpers import (
    assert_close,
    build,
    build_plainly,
    check,
    const,
    conv2d,
    fused,
    in_tvm,
    inputs_for,
    module,
    offloaded,
    random,
    region_functions,
    run,
    run_vm,
    steps_of,
    var,
)
from tvm import relay
from tvm.relay.prelude import Prelude

from tvm_dnnl_byoc import partition_for_dnnl

N, C, H, W = 2, 6, 7, 5


def conv(x, channels=C, seed=1, inputs=C):
    return conv2d(x, const(channels, inputs, 3, 3, seed=seed), padding=(1, 1, 1, 1))


def small_model():
    """A network with its weights as parameters: the module, and the weights."""
    w1, b1, w2 = var("w1", C, 3, 3, 3), var("b1", C), var("w2", 4, C)
    y = conv2d(var("x", N, 3, H, W), w1, padding=(1, 0, 1, 1))
    y = relay.nn.relu(relay.nn.bias_add(y, b1))
    statistics = [var(name, C) for name in ("gamma", "beta", "mean", "variance")]
    y = relay.nn.batch_norm(conv(y), *statistics)[0]
    y = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(in_tvm(y)))
    y = relay.nn.softmax(relay.nn.dense(y, w2))
    shapes = {"w1": (C, 3, 3, 3), "b1": (C,), "w2": (4, C)}
    shapes |= {v.name_hint: (C,) for v in statistics}
    low = {"variance": 0.2}
    params = {
        name: random(*shape, seed=i, low=low.get(name, -1.0))
        for i, (name, shape) in enumerate(shapes.items())
    }
    return module(y), params


def inputs_without(mod, params):
    return {k: v for k, v in inputs_for(mod).items() if k not in params}


def check_vm(mod, inputs=None):
    """Check a module with the VM, partitioned and not; return the partitioned one."""
    inputs = inputs_for(mod) if inputs is None else inputs
    partitioned = partition_for_dnnl(mod)
    assert_close(run_vm(partitioned, inputs), run_vm(mod, inputs, opt_level=1))
    return partitioned


# --- what the caller sees -------------------------------------------------------------------------


def test_callers_module_is_not_changed():
    mod, params = small_model()
    arrays = {name: value.copy() for name, value in params.items()}
    before, text = tvm.ir.structural_hash(mod, map_free_vars=True), mod.astext()
    partitioned = partition_for_dnnl(mod, params)
    assert tvm.ir.structural_hash(mod, map_free_vars=True) == before
    assert mod.astext() == text
    assert [v.name_hint for v in mod.get_global_vars()] == ["main"]
    assert len(partitioned.get_global_vars()) == 3
    for name, value in params.items():
        np.testing.assert_array_equal(value, arrays[name])
    build(partitioned, params)
    assert tvm.ir.structural_hash(mod, map_free_vars=True) == before


def test_deterministic():
    mod, params = small_model()
    first, second = partition_for_dnnl(mod, params), partition_for_dnnl(mod, params)
    assert tvm.ir.structural_equal(first, second, map_free_vars=True)
    assert first.astext() == second.astext()


def test_twice_is_once():
    mod, params = small_model()
    once = partition_for_dnnl(mod, params)
    twice = partition_for_dnnl(once)
    assert tvm.ir.structural_equal(once, twice, map_free_vars=True)
    assert tvm.ir.structural_equal(once, partition_for_dnnl(once, params), map_free_vars=True)


def test_partitioned_module_is_extended():
    """A second call finds names for its regions that the first has not taken."""
    mod = partition_for_dnnl(module(conv(var("x", N, C, H, W))))
    (region,) = (v for v in mod.get_global_vars() if v.name_hint != "main")
    z = var("z", N, C, H, W)
    inner = relay.Call(region, [in_tvm(conv(z, seed=2))])
    mod["main"] = relay.Function([z], relay.nn.relu(inner))
    mod = relay.transform.InferType()(mod)
    again = partition_for_dnnl(mod)
    assert len(region_functions(again)) == 2
    plain = module(relay.nn.relu(conv(in_tvm(conv(z, seed=2)))))
    inputs = inputs_for(plain)
    assert_close(run(build(again), inputs), run(build_plainly(plain), inputs))


def test_params_are_optional():
    """Without them, weights are inputs: nothing to fold, and right."""
    mod, params = small_model()
    inputs = inputs_without(mod, params)
    expected = run(build_plainly(mod, params), inputs)
    partitioned = partition_for_dnnl(mod)
    assert len(partitioned["main"].params) == len(mod["main"].params)
    assert_close(run(build(partitioned, params), inputs), expected)
    assert_close(run(build(partitioned), {**inputs, **params}), expected)
    assert "nn.batch_norm" in offloaded(partitioned)[0]


@pytest.mark.parametrize("convert", [np.asarray, tvm.nd.array], ids=["numpy", "nd"])
def test_params_of_either_kind(convert):
    mod, params = small_model()
    params = {name: convert(value) for name, value in params.items()}
    partitioned = partition_for_dnnl(mod, params)
    assert [p.name_hint for p in partitioned["main"].params] == ["x"]
    inside, outside = offloaded(partitioned)
    assert "nn.batch_norm" not in inside + outside
    steps = check(mod, params)
    assert [step["kind"] for step in steps] == ["convolution"] * 2 + [
        "pooling",
        "inner_product",
        "softmax",
    ]


def test_some_params():
    mod, params = small_model()
    rest = {name: params.pop(name) for name in ("w1", "mean")}
    inputs = {**inputs_without(mod, {**params, **rest}), **rest}
    check(mod, params, inputs)


def test_empty_params():
    mod, _ = small_model()
    assert tvm.ir.structural_equal(partition_for_dnnl(mod, {}), partition_for_dnnl(mod))


def test_weights_changed_between_runs():
    """CASE 12: weights that are inputs are read at every run."""
    mod, params = small_model()
    lib, plain = build(partition_for_dnnl(mod)), build_plainly(mod)
    inputs = inputs_without(mod, params)
    results = []
    for factor in (1.0, -0.7, 1.0):
        scaled = {name: np.abs(value) * np.float32(factor) for name, value in params.items()}
        scaled["variance"] = params["variance"]
        results += run(lib, {**inputs, **scaled})
        assert_close(results[-1:], run(plain, {**inputs, **scaled}))
    np.testing.assert_array_equal(results[0], results[2])
    assert np.abs(results[0] - results[1]).max() > 1e-3


def test_set_input_of_one_executor():
    """The same on one executor, of which only the weights are set anew."""
    w = var("w", 4, C, 3, 3)
    mod = module(relay.nn.relu(conv2d(var("x", N, C, H, W), w)))
    x = random(N, C, H, W)
    executor = tvm.contrib.graph_executor.GraphModule(
        build(partition_for_dnnl(mod))["default"](tvm.cpu())
    )
    executor.set_input("x", x)
    for seed in (1, 2):
        weights = random(4, C, 3, 3, seed=seed)
        executor.set_input("w", weights)
        executor.run()
        expected = run(build_plainly(mod), {"x": x, "w": weights})
        assert_close([executor.get_output(0).numpy()], expected)


@pytest.mark.parametrize("value", [None, 3, "main", relay.const(1.0), lambda: None])
def test_not_a_module(value):
    with pytest.raises(TypeError, match=r"expected a tvm\.IRModule, got"):
        partition_for_dnnl(value)


def test_module_without_main():
    mod = module(conv(var("x", N, C, H, W)))
    result = partition_for_dnnl(tvm.IRModule({relay.GlobalVar("other"): mod["main"]}))
    assert len(region_functions(result)) == 1


def test_empty_module():
    assert len(partition_for_dnnl(tvm.IRModule()).functions) == 0


def test_function_attributes_are_kept():
    mod = module(conv(var("x", N, C, H, W)))
    mod["main"] = mod["main"].with_attr("owner", "me")
    mod = mod.with_attr("origin", "here")
    result = partition_for_dnnl(mod)
    assert result["main"].attrs["owner"] == "me"
    assert result.attrs["origin"] == "here"


# --- regions --------------------------------------------------------------------------------------


def test_one_region():
    x = var("x", N, C, H, W)
    y = relay.nn.max_pool2d(conv(relay.nn.relu(conv(x))))
    partitioned = partition_for_dnnl(module(y))
    assert len(region_functions(partitioned)) == 1
    assert offloaded(partitioned)[1] == []


def test_tvm_operator_in_the_middle():
    y = conv(in_tvm(conv(var("x", N, C, H, W))), seed=2)
    mod = module(y)
    assert len(region_functions(partition_for_dnnl(mod))) == 2
    assert fused(check(mod)) == ["convolution", "convolution"]


def test_tvm_operator_beside_the_path():
    """A region around a TVM operator would need its own result: a cycle."""
    x = conv(var("x", N, C, H, W))
    y = relay.add(conv(x, seed=2), in_tvm(x))
    mod = module(relay.nn.relu(y))
    assert len(region_functions(partition_for_dnnl(mod))) == 2
    steps = fused(check(mod))
    assert len(steps) in (2, 3)
    assert steps[0] == "convolution"


def test_region_with_several_outputs():
    x = conv(var("x", N, C, H, W))
    a, b = relay.nn.relu(conv(x, seed=2)), relay.nn.max_pool2d(x)
    mod = module(in_tvm(a), in_tvm(b), x)
    partitioned = partition_for_dnnl(mod)
    (region,) = region_functions(partitioned).values()
    assert len(region.ret_type.fields) == 3
    check(mod)


def test_regions_without_heavy_operators_are_dissolved():
    x = var("x", N, C, H, W)
    y = relay.nn.softmax(relay.nn.max_pool2d(relay.nn.relu(x)), axis=1)
    partitioned = partition_for_dnnl(module(y))
    assert region_functions(partitioned) == {}
    y = relay.nn.max_pool2d(in_tvm(conv(in_tvm(relay.nn.relu(x)))))
    assert offloaded(partition_for_dnnl(module(y)))[0] == ["nn.conv2d"]


def test_two_branches_are_one_region():
    x = relay.nn.relu(conv(var("x", N, C, H, W)))
    y = relay.concatenate([conv(x, seed=i) for i in range(2, 5)], axis=1)
    mod = module(relay.nn.global_avg_pool2d(y))
    assert len(region_functions(partition_for_dnnl(mod))) == 1
    check(mod)


def test_region_names_are_unique_to_their_function():
    mod = module(relay.nn.relu(conv(var("x", N, C, H, W))))
    names = list(region_functions(partition_for_dnnl(mod)))
    assert names == ["tvmgen_default_dnnl_main_0"]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_doubled_value_of_a_region_that_is_an_output(dtype):
    """TVM's SimplifyExpr copies the call of the region for x + x, and its Inline pass fails."""
    x = conv(var("x", N, C, H, W))
    first, second = (relay.cast(in_tvm(x), dtype) for _ in range(2))
    check(module(first + second, x))
    check(module(x, first + first))


# --- what stays -----------------------------------------------------------------------------------


def f32(shape):
    return var("x", *shape)


def typed(dtype):
    return lambda shape: var("x", *shape, dtype=dtype)


STAYS = {
    "add int32": lambda: relay.add(typed("int32")((3, 4)), relay.const(7)),
    "multiply float64": lambda: relay.multiply(
        typed("float64")((3, 4)), relay.const(2.5, "float64")
    ),
    "dense float64": lambda: relay.nn.dense(
        typed("float64")((3, 4)), relay.const(random(5, 4).astype("float64"), "float64")
    ),
    "conv float64": lambda: conv2d(
        typed("float64")((1, 3, 5, 6)),
        relay.const(random(4, 3, 3, 3).astype("float64"), "float64"),
        out_dtype="float64",
    ),
    "conv int8 to int32": lambda: conv2d(
        typed("int8")((1, 4, 5, 6)),
        relay.const((random(8, 4, 3, 3) * 9).astype("int8")),
        out_dtype="int32",
    ),
    "add of scalars": lambda: relay.add(var("x"), relay.const(2.0)),
    "relu of a scalar": lambda: relay.nn.relu(var("x")),
    "relu int8": lambda: relay.nn.relu(typed("int8")((3, 4))),
    "relu uint8": lambda: relay.nn.relu(typed("uint8")((3, 4))),
    "clip int32": lambda: relay.clip(typed("int32")((3, 4)), -3, 4),
    "logical_not bool": lambda: relay.logical_not(relay.greater(f32((3, 4)), relay.const(0.1))),
    "batch_norm axis 3": lambda: relay.nn.batch_norm(
        f32((2, 3, 4, 5)), *[const(5, low=0.2)] * 4, axis=3
    )[0],
    "layer_norm": lambda: relay.nn.layer_norm(f32((2, 3, 4)), const(4), const(4)),
    "conv2d in blocks of channels": lambda: relay.nn.conv2d(
        f32((2, 2, 6, 5, 4)), const(2, 2, 3, 3, 4, 4), channels=8, kernel_size=(3, 3),
        data_layout="NCHW4c", kernel_layout="OIHW4i4o", out_layout="NCHW4c",
    ),
    "conv2d_transpose float64": lambda: relay.nn.conv2d_transpose(
        typed("float64")((1, 3, 5, 6)),
        relay.const(random(3, 4, 3, 3).astype("float64"), "float64"),
        channels=4, kernel_size=(3, 3), out_dtype="float64",
    ),
    "matmul float64": lambda: relay.nn.matmul(
        typed("float64")((3, 4)), relay.const(random(4, 5).astype("float64"), "float64")
    ),
    "batch_matmul int32": lambda: relay.nn.batch_matmul(
        typed("int32")((2, 3, 4)), relay.const((random(2, 5, 4) * 9).astype("int32")),
        out_dtype="int32",
    ),
    "max_pool NHWC": lambda: relay.nn.max_pool2d(f32((2, 6, 5, 3)), (2, 2), layout="NHWC"),
    "global pool NHWC": lambda: relay.nn.global_avg_pool2d(f32((2, 6, 5, 3)), layout="NHWC"),
    "avg_pool1d": lambda: relay.nn.avg_pool1d(f32((2, 3, 9)), pool_size=(2,)),
    "softmax rank 1": lambda: relay.nn.softmax(f32((7,))),
    "log_softmax": lambda: relay.nn.log_softmax(f32((3, 7))),
    "divide": lambda: relay.divide(f32((3, 7)), const(7, low=1.0)),
    "concatenate int32": lambda: relay.concatenate([typed("int32")((3, 4))] * 2, axis=1),
    "concatenate of split": lambda: relay.concatenate(relay.split(f32((4, 6)), 3, axis=1), axis=0),
    "rank 7": lambda: relay.nn.relu(relay.add(f32((1, 2, 1, 3, 1, 2, 2)), const(2))),
    "relu of nothing": lambda: relay.nn.relu(f32((0, 4))),
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_stays(name):
    """CASES 28, 30: no dtype is taken for another; and what oneDNN does not have."""
    mod = module(STAYS[name]())
    assert region_functions(partition_for_dnnl(mod)) == {}
    check(mod)


def through_int32(x):
    y = relay.cast(relay.multiply(x, relay.const(50.0)), "int32")
    return relay.cast(relay.nn.relu(y), "float32")


def through_float64(x):
    return relay.cast(relay.add(relay.cast(x, "float64"), relay.const(1.0, "float64")), "float32")


def through_nhwc(x):
    y = relay.nn.relu(relay.layout_transform(x, "NCHW", "NHWC"))
    return relay.layout_transform(y, "NHWC", "NCHW")


def part_of_concatenated(x):
    y = relay.concatenate([x, x], axis=2)
    return relay.strided_slice(y, [0, 0, 3, 0], [N, C, 3 + H, W])


BETWEEN = {
    "batch_norm": (lambda x: relay.nn.batch_norm(x, *[const(5, low=0.2)] * 4, axis=3)[0], None),
    "int32": (through_int32, "nn.relu"),
    "float64": (through_float64, "add"),
    "where": (lambda x: relay.where(relay.greater(x, relay.const(0.5)), x, in_tvm(x)), "where"),
    "layout_transform": (through_nhwc, "layout_transform"),
    "split": (lambda x: relay.concatenate(relay.split(x, 2, axis=1), axis=1), ""),
    "strides": (lambda x: relay.strided_slice(x, [0, 0, 6, 0], [N, C, -8, W], [1, 1, -1, 1]),
                "strided_slice"),
    "axes": (lambda x: relay.strided_slice(x, [1], [6], axes=[2]), ""),
    "prelu": (lambda x: relay.nn.prelu(x, const(C)), ""),
    "maximum": (lambda x: relay.maximum(x, relay.const(0.1)), ""),
    "slice": (part_of_concatenated, ""),
    "softmax": (
        lambda x: relay.reshape(relay.nn.softmax(relay.reshape(x, (-1,))), (N, C, H, W)), ""
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BETWEEN)
def test_between_convolutions(name):
    """CASE 5: what stays in TVM, and what does not though it once did."""
    op, stays = BETWEEN[name]
    x = relay.nn.relu(conv(var("x", N, C, H, W)))
    mod = module(conv(op(x), seed=2))
    outside = offloaded(partition_for_dnnl(mod))[1]
    if stays is None:  # folded, or an operator of its own: the result decides
        assert "nn.conv2d" not in outside
    else:
        assert (stays in outside) if stays else (outside == [])
    check(mod)


def test_unsupported_conv_beside_supported():
    a = conv(var("x", N, C, H, W))
    weights = relay.const(random(4, C, 3, 3).astype("float64"), "float64")
    y = conv2d(relay.cast(a, "float64"), weights, out_dtype="float64")
    mod = module(relay.cast(y, "float32"))
    inside, outside = offloaded(partition_for_dnnl(mod))
    assert inside == ["nn.conv2d"]
    assert outside == ["cast", "nn.conv2d", "cast"]
    check(mod)


PARTITION_ONLY = {
    "conv2d to another layout": lambda: relay.nn.conv2d(
        var("x", 2, 3, 6, 5), const(4, 3, 3, 3), channels=4, kernel_size=(3, 3), out_layout="NHWC"
    ),
    "dense of nothing": lambda: relay.nn.dense(var("x", 0, 16), const(8, 16)),
    "conv of nothing": lambda: conv2d(var("x", 0, 3, 5, 6), const(4, 3, 3, 3)),
    "dense (0, K)": lambda: relay.nn.relu(relay.nn.dense(var("x", 0, 4), var("w", 5, 4))),
    "bfloat16 and float32": lambda: relay.add(
        relay.cast(var("x", 3, 4, dtype="bfloat16"), "float32"), var("y", 3, 4)
    ),
    "int4": lambda: relay.nn.relu(var("x", 4, 8, dtype="int4")),
}


@pytest.mark.parametrize("name", PARTITION_ONLY)
def test_valid_relay_that_tvm_may_not_build(name):
    mod = module(PARTITION_ONLY[name]())
    assert region_functions(partition_for_dnnl(mod)) == {}


@pytest.mark.parametrize("size", [1, 3])
def test_dynamic_batch(size):
    x = relay.var("x", shape=(relay.Any(), 3, H, W), dtype="float32")
    y = relay.nn.relu(conv2d(x, const(C, 3, 3, 3)))
    y = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)), const(4, C))
    mod = module(relay.nn.softmax(relay.add(y, const(4))))
    partitioned = check_vm(mod, {"x": random(size, 3, H, W)})
    assert len(region_functions(partitioned)) == 1
    assert offloaded(partitioned)[1] == []


# --- control flow and structures ------------------------------------------------------------------


@pytest.mark.parametrize("flag", [True, False])
def test_if(flag):
    x = relay.nn.relu(conv(var("x", N, C, H, W)))
    cond = var("flag", dtype="bool")
    y = relay.If(cond, conv(x, seed=2), in_tvm(x))
    mod = module(relay.add(relay.nn.relu(x), relay.nn.max_pool2d(conv(y, seed=3))))
    inputs = {"x": random(N, C, H, W), "flag": np.array(flag)}
    check_vm(mod, inputs)


def test_if_is_the_body():
    x = var("x", N, C, H, W)
    mod = module(relay.If(var("flag", dtype="bool"), conv(x), relay.nn.relu(x)))
    check_vm(mod, {"x": random(N, C, H, W), "flag": np.array(True)})


def test_let():
    x = var("x", N, C, H, W)
    bound = relay.var("bound")
    body = relay.Let(bound, relay.nn.relu(conv(x)), relay.add(bound, relay.nn.max_pool2d(bound)))
    check_vm(module(conv(body, seed=2)))
    check_vm(module(body))


def test_nested_function():
    x, p = var("x", N, C, H, W), var("p", N, C, H, W)
    inner = relay.Function([p], relay.nn.relu(conv(p)))
    y = relay.Call(inner, [conv(x, seed=2)])
    check_vm(module(conv(y, seed=3)))


def test_closure():
    x, p = conv(var("x", N, C, H, W)), var("p", N, C, H, W)
    inner = relay.Function([p], relay.add(p, relay.nn.relu(x)))
    check_vm(module(relay.Call(inner, [relay.tanh(x)])))


def test_several_global_functions():
    p, q = var("p", N, C, H, W), var("q", N, C, H, W)
    x = var("x", N, C, H, W)
    typ = relay.TensorType((N, C, H, W))
    left, right = relay.GlobalVar("left.one"), relay.GlobalVar("right")
    functions = {
        left: relay.Function([p], relay.nn.relu(conv(p, seed=1)), typ),
        right: relay.Function([q], relay.add(conv(relay.Call(left, [q]), seed=2), q), typ),
    }
    y = relay.add(relay.Call(left, [conv(x, seed=3)]), relay.Call(right, [x]))
    functions[relay.GlobalVar("main")] = relay.Function([x], y, typ)
    mod = relay.transform.InferType()(tvm.IRModule(functions))
    partitioned = check_vm(mod)
    assert len(region_functions(partitioned)) == 3


def test_recursion():
    """A loop, as frontends write it: a function that calls itself."""
    loop = relay.GlobalVar("loop")
    typ = relay.TensorType((N, C, H, W))
    i, p, x = var("i", dtype="int32"), var("p", N, C, H, W), var("x", N, C, H, W)
    step = relay.Call(loop, [relay.subtract(i, relay.const(1)), relay.tanh(conv(p))])
    mod = tvm.IRModule(
        {
            loop: relay.Function([i, p], relay.If(relay.equal(i, relay.const(0)), p, step), typ),
            relay.GlobalVar("main"): relay.Function([x], loop(relay.const(3), x), typ),
        }
    )
    check_vm(relay.transform.InferType()(mod))


def test_adt_list():
    mod = tvm.IRModule()
    prelude = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    x = var("x", N, C, H, W)
    y = relay.nn.relu(conv(x))
    mod["main"] = relay.Function([x], cons(y, cons(conv(y, seed=2), nil())))
    assert prelude.mod is mod
    partitioned = partition_for_dnnl(relay.transform.InferType()(mod))
    assert "List" in [t.name_hint for t in partitioned.get_global_type_vars()]
    assert len(region_functions(partitioned)) == 1


def test_references():
    x = var("x", N, C, H, W)
    ref = relay.RefCreate(conv(x))
    mod = module(relay.nn.relu(relay.RefRead(ref)))
    partition_for_dnnl(mod)


def test_tuple_parameter():
    p = relay.var("p", relay.TupleType([relay.TensorType((N, C, H, W))] * 2))
    y = relay.nn.relu(relay.add(conv(relay.TupleGetItem(p, 0)), relay.TupleGetItem(p, 1)))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([p], y)))
    partitioned = partition_for_dnnl(mod)
    assert len(region_functions(partitioned)) == 1
    arrays = tuple(tvm.nd.array(random(N, C, H, W, seed=s)) for s in (1, 2))
    results = []
    for m in (partitioned, mod):
        evaluate = relay.create_executor("vm", m, tvm.cpu(), "llvm").evaluate()
        results.append([evaluate(tvm.runtime.container.tuple_object(arrays)).numpy()])
    assert_close(*results)


def test_nested_tuple_result():
    x = conv(var("x", N, C, H, W))
    y = relay.nn.relu(x)
    body = relay.Tuple([relay.Tuple([y, x]), relay.Tuple([relay.tanh(y)]), relay.Tuple([])])
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    check_vm(mod)


def test_tuple_that_is_read_and_returned():
    x = conv(var("x", N, C, H, W))
    parts = relay.Tuple([x, relay.nn.relu(x)])
    y = relay.concatenate(parts, axis=1)
    body = relay.Tuple([parts, y])
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    check_vm(mod)


def test_duplicate_outputs():
    x = conv(var("x", N, C, H, W))
    y = relay.nn.relu(x)
    check(module(y, x, y, y))


def test_identity_and_constants():
    x = var("x", 3, 4)
    check(module(x))
    check_vm(module(const(2, 3)))
    check(module(conv(var("x", N, C, H, W)), const(2, 3), var("x2", 3)))


def test_unused_parameter():
    x, unused = var("x", N, C, H, W), var("unused", 3)
    mod = tvm.IRModule.from_expr(relay.Function([x, unused], conv(x)))
    partitioned = partition_for_dnnl(mod)
    assert [p.name_hint for p in partitioned["main"].params] == ["x", "unused"]
    run(build(partitioned), {"x": random(N, C, H, W)})


def test_parameters_of_one_name():
    """Relay tells variables apart by identity, not by name."""
    a, b = var("x", N, C, H, W), var("x", N, C, H, W)
    mod = tvm.IRModule.from_expr(relay.Function([a, b], relay.nn.relu(relay.add(conv(a), b))))
    (region,) = region_functions(partition_for_dnnl(mod)).values()
    assert len(region.params) == 2


def test_deep_chain():
    """Deeper than Python's stack: supported operators, and borders at every second one."""
    x = conv2d(var("x", 1, 2, 3, 4), const(2, 2, 1, 1))
    y = z = x
    for i in range(1000):
        y = relay.add(relay.nn.relu(y), relay.const(0.001 * i))
        z = relay.nn.relu(in_tvm(z))
    partitioned = partition_for_dnnl(module(y))
    assert len(offloaded(partitioned)[0]) == 2001
    assert offloaded(partition_for_dnnl(module(z)))[0] == ["nn.conv2d"]


def test_wide_graph():
    x = conv(var("x", 1, C, 3, 4))
    y = relay.concatenate([relay.multiply(x, relay.const(1.0 + i)) for i in range(100)], axis=1)
    mod = module(y)
    partitioned = partition_for_dnnl(mod)
    assert len(region_functions(partitioned)) == 1
    assert offloaded(partitioned)[1] == []


# --- executors ------------------------------------------------------------------------------------


def test_vm_and_graph_executor_agree():
    mod, params = small_model()
    inputs = inputs_without(mod, params)
    expected = run(build_plainly(mod, params), inputs)
    partitioned = partition_for_dnnl(mod, params)
    graph = run(build(partitioned), inputs)
    assert_close(graph, expected)
    machine = run_vm(partitioned, inputs)
    np.testing.assert_array_equal(machine[0], graph[0])


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_opt_levels(opt_level):
    mod, params = small_model()
    inputs = inputs_without(mod, params)
    lib = build(partition_for_dnnl(mod, params), opt_level=opt_level)
    assert_close(run(lib, inputs), run(build_plainly(mod, params), inputs))
    assert len(steps_of(lib)) == 5


def test_partition_inside_a_pass_context():
    mod, params = small_model()
    with tvm.transform.PassContext(opt_level=0, disabled_pass=["AlterOpLayout"]):
        inside = partition_for_dnnl(mod, params)
    assert tvm.ir.structural_equal(inside, partition_for_dnnl(mod, params))


def test_module_name():
    """The symbols of regions are independent of the name that relay.build is given."""
    mod, params = small_model()
    partitioned = partition_for_dnnl(mod, params)
    inputs = inputs_without(mod, params)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(partitioned, "llvm", mod_name="special")
    executor = tvm.contrib.graph_executor.GraphModule(lib["special"](tvm.cpu()))
    executor.set_input(**inputs)
    executor.run()
    expected = run(build(partitioned), inputs)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), expected[0])
