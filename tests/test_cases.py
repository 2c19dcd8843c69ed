"""What users of packages like this one reported, as far as no other file tests it.

The numbers are those of a list of 32 kinds of fault; most are tested where their subject is: look
for CASE in the other files.
"""

import json
from pathlib import Path

import numpy as np
import pytest
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
    run,
    run_python,
    var,
)
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl


def conv(x, seed=1, channels=6):
    return conv2d(x, const(channels, 6, 3, 3, seed=seed), padding=(1, 1))


def quantized(x, zero_point):
    return relay.qnn.op.quantize(
        x, relay.const(0.05), relay.const(zero_point), out_dtype="int8" if zero_point else "uint8"
    )


def dequantized(q, zero_point):
    return relay.qnn.op.dequantize(q, relay.const(0.05), relay.const(zero_point))


@pytest.mark.parametrize("zero_point", [0, -3])
def test_quantized_data_between_convolutions(zero_point):
    """CASE 6: int8 with a zero point and a clipped range stays in TVM, between two regions."""
    q = relay.clip(quantized(conv(var("x", 1, 6, 5, 4)), zero_point), 0, 40)
    mod = relay.qnn.transform.CanonicalizeOps()(
        relay.transform.InferType()(module(conv(dequantized(q, zero_point), seed=2)))
    )
    inside, outside = offloaded(partition_for_dnnl(mod))
    assert inside.count("nn.conv2d") == 2
    assert "clip" in outside
    check(mod, tolerance=0.05)  # a value at the border of two steps may fall to either side


def test_integers_between_convolutions():
    """CASE 30: TVM's int8 wraps, oneDNN's saturates: the sum is TVM's, bit by bit."""
    x, a = var("x", 1, 6, 5, 4), var("a", 1, 6, 5, 4, dtype="int8")
    total = relay.add(a, relay.const(np.int8(100)))
    data = np.arange(-60, 60, dtype="int8").reshape(1, 6, 5, 4)
    mod = module(total, conv(relay.add(x, relay.cast(total, "float32"))))
    wrapped = data + np.int8(100)
    assert (wrapped < 0).any()
    inputs = {"x": random(1, 6, 5, 4), "a": data}
    partitioned = partition_for_dnnl(mod)
    result = run(build(partitioned), inputs)
    np.testing.assert_array_equal(result[0], wrapped)
    assert fused(check(mod, inputs=inputs)) in (["binary", "convolution"], ["convolution"])


def test_int8_products_are_exact():
    """CASE 30: 64 products 255 · 127, which 16 bits do not hold."""
    x = var("x", 4, 64, dtype="uint8")
    w = relay.const(np.full((8, 64), 127, "int8"))
    mod = module(relay.nn.dense(relay.cast(x, "int32"), relay.cast(w, "int32"), out_dtype="int32"))
    result = run(build(partition_for_dnnl(mod)), {"x": np.full((4, 64), 255, "uint8")})
    np.testing.assert_array_equal(result[0], np.full((4, 8), 64 * 255 * 127))
    assert offloaded(partition_for_dnnl(mod))[0] == []


MIXED = {
    "add": lambda a, b: relay.add(relay.cast(a, "bfloat16"), relay.cast(b, "bfloat16")),
    "concatenate": lambda a, b: relay.concatenate(
        [relay.cast(a, "bfloat16"), relay.cast(b, "bfloat16")], axis=1
    ),
    "float16": lambda a, b: relay.nn.relu(
        relay.add(relay.cast(a, "float16"), relay.cast(b, "float16"))
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_dtypes_stay(name):
    """CASES 20, 28: beside float32 convolutions in the same module."""
    a, b = conv(var("x", 1, 6, 5, 4)), conv(var("z", 1, 6, 5, 4), seed=2)
    y = relay.cast(MIXED[name](a, b), "float32")
    channels = 12 if name == "concatenate" else 6
    mod = module(conv2d(y, const(4, channels, 1, 1)))
    inside, outside = offloaded(partition_for_dnnl(mod))
    # But for the views by which what stays reads the convolutions' layout.
    assert [op for op in inside if op not in ("reshape", "transpose")] == ["nn.conv2d"] * 3
    assert outside.count("cast") == 3
    if name == "float16":  # TVM's own conversion of bfloat16 depends on LLVM's
        check(mod, tolerance=5e-3)


CAPPED = """
import sys, json
import numpy as np
sys.path.insert(0, sys.argv[1])
from helpers import check, const, conv2d, fused, module, var
from tvm import relay
from tvm_dnnl_byoc import build_info

x = var("x", 2, 17, 7, 5)
y = relay.nn.relu(relay.nn.bias_add(conv2d(x, const(10, 17, 3, 3), padding=(1, 1)), const(10)))
z = relay.add(conv2d(y, const(10, 10, 1, 1, seed=2)), relay.nn.max_pool2d(y))
z = relay.nn.layer_norm(relay.nn.softmax(z, axis=1), const(5), const(5, seed=1))
d = relay.nn.batch_matmul(relay.reshape(z, (2, 10, 35)), const(2, 9, 35))
steps = check(module(d, relay.cast(relay.cast(y, "bfloat16"), "float32")), tolerance=1e-2)
print(json.dumps({"isa": build_info()["isa"], "steps": fused(steps),
                  "impl": [s["impl"] for s in steps]}))
"""


@pytest.mark.parametrize("isa", ["SSE41", "AVX2"])
def test_capped_instruction_set(isa):
    """CASE 20: what is offloaded may differ; what comes out may not."""
    process = run_python(CAPPED, Path(__file__).parent, ONEDNN_MAX_CPU_ISA=isa)
    assert process.returncode == 0, process.stderr[-2000:]
    result = json.loads(process.stdout.splitlines()[-1])
    assert result["isa"] == isa
    assert "convolution:eltwise_relu" in result["steps"]
    assert not [impl for impl in result["impl"] if impl.startswith("ref") or "avx512" in impl]


def test_aot_executor_is_refused():
    """CASE 12: it would crash the process that loads the library; the other executors are not."""
    mod = module(relay.nn.relu(conv2d(var("x", 1, 6, 5, 4), const(6, 6, 3, 3))))
    partitioned = partition_for_dnnl(mod)
    executor = relay.backend.Executor("aot", {"interface-api": "packed"})
    with pytest.raises(ValueError, match=r"expected the graph executor .* got the ahead-of-time"):
        relay.build(partitioned, "llvm", executor=executor, runtime=relay.backend.Runtime("cpp"))
    graph = relay.build(partitioned, "llvm", executor=relay.backend.Executor("graph"))
    inputs = inputs_for(mod)
    assert_close(run(graph, inputs), run(build_plainly(mod), inputs))
    relay.build(mod, "llvm", executor=executor, runtime=relay.backend.Runtime("cpp"))


SHARED_CPU = """
import os, sys, threading, time
sys.path.insert(0, sys.argv[1])
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from helpers import *

y = var("x", 1, 6, 9, 8)
for i in range(2):
    y = in_tvm(relay.nn.relu(conv2d(y, const(6, 6, 3, 3, seed=i), padding=(1, 1))))
mod = module(y)
inputs = inputs_for(mod)
libs = [build(partition_for_dnnl(mod)) for _ in range(2)]
expected = run(libs[0], inputs)
def work(lib):
    for _ in range(20):
        assert_close(run(lib, inputs), expected)
threads = [threading.Thread(target=work, args=(lib,)) for lib in libs]
start = time.perf_counter()
for t in threads: t.start()
for t in threads: t.join()
print(time.perf_counter() - start)
"""


@pytest.mark.parametrize("policy", ["passive", None])
def test_all_instances_on_one_core(policy):
    """CASES 24, 31: two instances and both thread pools on one core come to an end, with code 0."""
    process = run_python(SHARED_CPU, Path(__file__).parent, OMP_WAIT_POLICY=policy)
    assert process.returncode == 0, process.stderr[-2000:]
    assert float(process.stdout.splitlines()[-1]) < 60  # 40 runs of some milliseconds


def test_batches_of_many_sizes():
    """CASE 25: one module per shape, as Relay is static: 8, 8, 1, 8 give what each gives alone."""
    w = const(4, 6, 3, 3)
    libs, results = {}, {}
    for batch in (8, 8, 1, 8, 3, 2):
        x = random(batch, 6, 5, 4)
        if batch not in libs:
            y = relay.nn.relu(conv2d(var("x", batch, 6, 5, 4), w))
            libs[batch] = build(partition_for_dnnl(module(y)))
        (result,) = run(libs[batch], {"x": x})
        np.testing.assert_array_equal(results.setdefault(batch, result), result)
    (one,) = run(libs[1], {"x": random(8, 6, 5, 4)[:1]})
    assert_close([results[8][:1]], [one])


@pytest.mark.parametrize("shape", [(0, 6, 5, 4), (1, 6, 0, 4)])
def test_empty_tensors_stay(shape):
    """CASE 29."""
    x = var("x", *shape)
    for y in (relay.nn.relu(x), relay.add(x, relay.const(1.0)), conv2d(x, const(4, 6, 1, 1))):
        assert offloaded(partition_for_dnnl(module(y)))[0] == []


def test_0d_tensors_beside_a_convolution():
    """CASE 29: a scalar that is computed, as an operand and as a result."""
    y = conv(var("x", 1, 6, 5, 4))
    scale = relay.sum(relay.nn.relu(var("s", 3)))
    check(module(relay.multiply(y, scale), relay.mean(y), relay.tanh(scale)))


def test_constants_of_activations_are_not_assumed():
    """CASE 14: near misses of GELU, mish, swish and hardswish are what their arithmetic says."""
    y = conv(var("x", 1, 6, 5, 4))
    one, c = relay.const(1.0), relay.const
    softplus = relay.log(relay.add(c(2.0), relay.exp(y)))

    def gelu(half, root):
        normal = relay.add(one, relay.erf(relay.divide(y, c(root))))
        return relay.multiply(relay.multiply(y, c(half)), normal)

    outputs = [
        gelu(0.5, 2.0),
        gelu(0.25, 1.41421356),
        relay.multiply(y, relay.tanh(softplus)),
        relay.multiply(y, relay.sigmoid(relay.multiply(y, c(1.5)))),
        relay.divide(relay.multiply(y, relay.clip(relay.add(y, c(2.0)), 0.0, 6.0)), c(6.0)),
    ]  # fmt: skip
    check(module(*outputs))


def test_random_data_is_no_special_case():
    """CASE 19: what tests compare is neither zero, constant nor symmetric."""
    x = random(3, 17, 5)
    assert len(np.unique(x)) == x.size
    assert abs(x.mean()) > 0.01
    with pytest.raises(AssertionError):
        assert_close([x], [x * np.float32(1 + 1e-4)])
    with pytest.raises(AssertionError):  # a check of what oneDNN ran fails where it ran nothing
        check(module(in_tvm(var("x", 3, 4))), taken=["nn.relu"])
