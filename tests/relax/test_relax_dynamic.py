"""Models with sizes that only a run knows: a batch, a length, the size of an image."""

import numpy as np
import pytest
import tvm
from processor import HAS_BF16
from relax_helpers import (
    assert_close,
    build,
    const,
    inputs_for,
    module,
    ops_left,
    random,
    run,
    run_python,
    steps,
    symbol,
    tensor_type,
    var,
)
from tvm import relax
from tvm.relax import op

from tvm_dnnl_byoc import partition_for_dnnl, profile

N, S, H, W = (symbol(name) for name in "nshw")


class Model:
    """A partitioned module, and what plain TVM makes of it."""

    def __init__(self, mod, **options):
        self.mod = mod
        self.partitioned = partition_for_dnnl(mod, **options)
        self.executable = build(self.partitioned)
        self.plain = build(mod)

    def check(self, tolerance=1e-5, **sizes):
        """Run for the given sizes of the symbols."""
        inputs = inputs_for(self.mod, **sizes)
        expected = run(self.plain, inputs)
        assert_close(run(self.executable, inputs), expected, tolerance)

    def plans(self):
        """Return for each region how many plans it has, and how many were compiled."""
        return [(plan["plans"], plan["compiled"]) for plan in profile(self.executable).values()]


def number(value):
    return relax.const(np.float32(value))


def layer(x, outputs, inputs, seed=0):
    weights = op.permute_dims(const(outputs, inputs, seed=seed, low=-0.3, high=0.3))
    return op.add(op.matmul(x, weights), const(outputs, seed=seed))


def network(x):
    """A CNN with a residual block."""
    variance = const(16, low=0.5, high=1.5)
    y = op.nn.conv2d(x, const(16, 3, 3, 3), padding=1)
    y = op.nn.batch_norm(
        y, *(const(16, seed=i) for i in range(3)), variance, axis=1, training=False
    )[0]
    y = op.nn.relu(y)
    z = op.nn.conv2d(y, const(16, 16, 3, 3, seed=4, low=-0.2, high=0.2), padding=1)
    y = op.nn.max_pool2d(op.nn.relu(op.add(z, y)), 2, 2)
    y = op.mean(y, [2, 3])
    return layer(y, 10, 16)


def transformer(x, batch=N, length=S, width=24, heads=4):
    """A transformer's layer: attention and a GELU, between layers of rows as torch writes them."""

    def rows_of(y, outputs, inputs, seed):
        y = op.reshape(y, (batch * length, inputs))
        return op.reshape(layer(y, outputs, inputs, seed), (batch, length, outputs))

    def head(seed, axes=(0, 2, 1, 3)):
        y = op.reshape(rows_of(x, width, width, seed), (batch, length, heads, width // heads))
        return op.permute_dims(y, axes)

    def norm(y, seed):
        return op.nn.layer_norm(y, const(width, seed=seed), const(width, seed=seed + 50), [-1])

    scale = number((width // heads) ** -0.5)
    scores = op.nn.softmax(op.multiply(op.matmul(head(1), head(2, (0, 2, 3, 1))), scale))
    mixed = op.permute_dims(op.matmul(scores, head(3)), (0, 2, 1, 3))
    mixed = op.reshape(mixed, (batch, length, width))
    y = norm(op.add(x, rows_of(mixed, width, width, 4)), 5)
    wide = op.nn.gelu(rows_of(y, 2 * width, width, 6))
    return norm(op.add(y, rows_of(wide, width, 2 * width, 7)), 8)


BF16 = pytest.param(
    *("bf16", 2e-2),
    marks=pytest.mark.skipif(not HAS_BF16, reason="the processor has no instructions for bf16"),
)


@pytest.mark.parametrize(("precision", "tolerance"), [("f32", 1e-5), BF16])
def test_a_batch(precision, tolerance):
    model = Model(module(network, (N, 3, 8, 8)), precision=precision)
    assert ops_left(model.partitioned) == ["call_dps_packed"]
    for batch, compiled in ((8, 1), (8, 1), (1, 2), (8, 2)):
        model.check(tolerance, n=batch)
        assert model.plans() == [(compiled, compiled)]


def test_images_of_any_size():
    model = Model(module(network, (N, 3, H, W)))
    assert ops_left(model.partitioned) == ["call_dps_packed"]
    for n, h, w in ((1, 8, 8), (2, 33, 17), (1, 64, 40), (2, 33, 17)):
        model.check(n=n, h=h, w=w)
    assert model.plans() == [(3, 3)]
    ran = steps(model.executable)
    assert ran[0] == "convolution:eltwise_relu", "the batch norm is in the weights"
    assert ran[1] in ("convolution:sum+eltwise_relu", "convolution:binary_add+eltwise_relu")


def test_a_transformers_layer():
    """Neither batch nor length is known, and torch merges them for each layer."""
    model = Model(module(transformer, (N, S, 24)))
    assert ops_left(model.partitioned) == ["call_dps_packed"]
    for n, s in ((2, 7), (1, 1), (3, 65), (2, 7)):
        model.check(n=n, s=s)
    assert model.plans() == [(3, 3)]
    ran = steps(model.executable)
    assert "matmul:eltwise_gelu_erf" in ran
    assert sum(step in ("matmul:binary_add", "matmul:sum") for step in ran) == 2


# By name: what is built around a product (n, s, 8), and the operators that stay in TVM.
AROUND = {
    "permute_dims": (lambda x: op.permute_dims(x, (1, 0, 2)), []),
    "reshape, one unknown": (lambda x: op.reshape(x, (N * S, 8)), []),
    "reshape, both kept": (lambda x: op.reshape(x, (N, S, 2, 4)), []),
    "reshape, one merged": (lambda x: op.reshape(x, (N, S * 2, 4)), []),
    "reshape to new sizes": (lambda x: op.reshape(x, (N * 2, S * 2, 2)), ["reshape"]),
    "expand_dims": (lambda x: op.expand_dims(x, 1), []),
    "squeeze": (lambda x: op.squeeze(op.expand_dims(x, 2), 2), []),
    "flatten": (op.flatten, []),
    "a slice of the known": (lambda x: op.strided_slice(x, [2], [1], [6]), []),
    "a slice of all": (lambda x: op.strided_slice(x, [0, 2], [0, 1], [N, 6]), []),
    "a slice of the unknown": (lambda x: op.strided_slice(x, [1], [0], [S - 1]), ["strided_slice"]),
    "with strides": (lambda x: op.strided_slice(x, [2], [0], [8], [3]), ["strided_slice"]),
    "every second": (lambda x: op.strided_slice(x, [2], [1], [8], [2]), []),
    "every second of the unknown": (
        lambda x: op.strided_slice(x, [1], [0], [S], [2]),
        ["strided_slice"],
    ),
    "one of the known": (lambda x: op.take(x, relax.const(np.int64(3)), 2), []),
    "the first of the unknown": (lambda x: op.take(x, relax.const(np.int64(0)), 1), []),
    "split": (lambda x: op.split(x, 2, axis=2)[1], []),
    "concat": (lambda x: op.concat([x, x], 1), []),
    "concat of the known": (lambda x: op.concat([x, op.nn.relu(x)], 2), []),
    "mean of the known": (lambda x: op.mean(x, 2), []),
    "softmax of the unknown": (lambda x: op.nn.softmax(x, 1), []),
    "log_softmax": (lambda x: op.exp(op.nn.log_softmax(x, 2)), []),
    "multiply": (lambda x: op.multiply(x, x), []),
    "add a vector": (lambda x: op.add(x, const(8, seed=9)), []),
    "add along the unknown": (lambda x: op.add(x, op.mean(x, 2, keepdims=True)), []),
    "add zeros of a size": (lambda x: op.add(x, op.zeros((S, 8), "float32")), ["zeros"]),
    "clip": (lambda x: op.clip(x, -0.2, 0.3), []),
    "broadcast_to its own": (lambda x: op.nn.relu(op.broadcast_to(x, (N, S, 8))), []),
}


@pytest.mark.parametrize("name", AROUND)
def test_operators_around_a_product(name):
    build, left = AROUND[name]
    model = Model(module(lambda x: build(op.matmul(x, const(6, 8))), (N, S, 6)))
    assert sorted(set(ops_left(model.partitioned)) - {"call_dps_packed"}) == left
    for n, s in ((2, 5), (1, 1), (3, 2)):
        model.check(n=n, s=s)


def test_sizes_that_may_differ_stay():
    """Of two symbols TVM does not know what their sum is like; nor do we."""
    mod = module(lambda x, y: op.add(op.matmul(x, const(6, 8)), y), (N, 6), (N, 8))
    assert ops_left(partition_for_dnnl(mod)) == ["call_dps_packed"]
    mod = module(lambda x, y: op.add(op.matmul(x, const(6, 8)), y), (N, 6), (S, 8))
    assert ops_left(partition_for_dnnl(mod)) == ["call_dps_packed", "add"]


def test_a_layer_of_other_rows():
    """n·s rows are those of (n, s), whichever way the product is written; not those of (s, n)."""

    def build(shape):
        def function(x):
            rows = op.reshape(x, (S * N, 6))
            return op.reshape(op.matmul(rows, op.permute_dims(const(8, 6))), (*shape, 8))

        return module(function, (N, S, 6))

    for shape, kind in (((N, S), "matmul"), ((S, N), "inner_product")):
        model = Model(build(shape))
        for n, s in ((2, 5), (3, 2)):
            model.check(n=n, s=s)
        assert steps(model.executable) == [kind]


def test_a_size_that_a_cast_gives():
    """The region comes after the match_cast by which alone a run knows k."""
    k = symbol("k")
    builder = relax.BlockBuilder()
    x = var("x", (N, 6))
    with builder.function("main", [x]):
        with builder.dataflow():
            rows = builder.emit(op.reshape(x, (N * 2, 3)))
            y = builder.match_cast(rows, tensor_type((k, 3)))
            z = builder.emit(op.matmul(y, const(3, 5)))
            result = builder.emit_output(op.add(op.round(z), op.zeros((k, 5), "float32")))
        builder.emit_func_output(result)
    model = Model(builder.get())
    assert "call_dps_packed" in ops_left(model.partitioned)
    for n in (2, 1, 2):
        model.check(n=n)


def positions(bound):
    """Return the sum of n words and the first n of 512 positions, for n up to a bound."""
    builder = relax.BlockBuilder()
    x = var("x", (N, 6))
    with builder.function("main", [x], attrs={"tir_var_upper_bound": {"n": bound}}):
        with builder.dataflow():
            first = builder.emit(op.strided_slice(const(512, 6), [0], [0], [N]))
            y = builder.emit(op.add(x, first))
            result = builder.emit_output(op.matmul(y, const(6, 8)))
        builder.emit_func_output(result)
    return builder.get()


def test_bounds_are_made_use_of():
    """torch.export's; plain TVM does not, and cannot compile the model."""
    mod = positions(128)
    partitioned = partition_for_dnnl(mod)
    views = ["call_pure_packed"] * 3
    assert ops_left(partitioned) == ["strided_slice", *views, "call_dps_packed"]
    executable = build(partitioned)
    for n in (5, 1, 128, 5):
        x = random(n, 6)
        table, weights = (random(*shape).astype("float64") for shape in ((512, 6), (6, 8)))
        assert_close(run(executable, [x]), [((x + table[:n]) @ weights).astype("float32")])
    with pytest.raises(ValueError, match=r"\[600, 6\]"):
        run(executable, [random(600, 6)])


def test_a_run_beyond_a_bound_fails_where_it_made_a_size_smaller():
    """Of at most 4 rows none are behind the fourth; but of 6, two."""
    builder = relax.BlockBuilder()
    x = var("x", (N, 6))
    with builder.function("main", [x], attrs={"tir_var_upper_bound": {"n": 4}}):
        with builder.dataflow():
            rest = builder.emit(op.strided_slice(x, [0], [4], [N]))
            y = builder.emit(op.concat([op.matmul(x, const(6, 6)), rest], 0))
            result = builder.emit_output(op.nn.relu(y))
        builder.emit_func_output(result)
    executable = build(partition_for_dnnl(builder.get()))
    x = random(3, 6)
    expected = np.maximum(x.astype("float64") @ random(6, 6), 0).astype("float32")
    assert_close(run(executable, [x]), [expected])
    # Whichever comes first: TVM plans its memory for the bounds, too.
    with pytest.raises((ValueError, RuntimeError), match=r"View with shape|storage allocation"):
        run(executable, [random(6, 6)])


def test_a_bound_that_does_not_suffice():
    assert "call_dps_packed" not in ops_left(partition_for_dnnl(positions(513)))


def test_partitioning_again_changes_nothing():
    once = partition_for_dnnl(positions(128))
    tvm.ir.assert_structural_equal(once["main"], partition_for_dnnl(once)["main"])


def test_the_wrong_shape():
    executable = build(partition_for_dnnl(module(network, (N, 3, 8, 8))))
    with pytest.raises((ValueError, RuntimeError), match="3"):
        run(executable, [random(2, 4, 8, 8)])


def test_a_fresh_process_gives_the_same_bits(tmp_path):
    executable = build(partition_for_dnnl(module(transformer, (N, S, 24))))
    executable.export_library(str(tmp_path / "model.so"))
    inputs = {f"x{i}": random(*shape, 24) for i, shape in enumerate([(2, 7), (1, 33), (2, 7)])}
    np.savez(tmp_path / "inputs.npz", **inputs)
    process = run_python(
        "import sys, numpy as np, tvm\n"
        "from tvm_dnnl_byoc import profile\n"
        "from relax_helpers import run\n"
        "loaded = tvm.runtime.load_module(sys.argv[1] + '/model.so')\n"
        "inputs = np.load(sys.argv[1] + '/inputs.npz')\n"
        "results = {name: run(loaded, [inputs[name]])[0] for name in inputs.files}\n"
        "np.savez(sys.argv[1] + '/there.npz', **results)\n"
        "((_, plan),) = profile(loaded).items()\n"
        "print(plan['plans'], plan['compiled'])\n",
        tmp_path,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == ["2", "2"]
    there = np.load(tmp_path / "there.npz")
    for name, x in inputs.items():
        np.testing.assert_array_equal(there[name], run(executable, [x])[0])


VISITS = """
from test_relax_dynamic import *
model = Model(module(transformer, (N, S, 24)))
lengths = np.random.default_rng(5).integers(1, 300, 200).tolist()

def resident_after(lengths):
    for length in lengths:
        run(model.executable, inputs_for(model.mod, n=1, s=length))
    return int(open("/proc/self/statm").read().split()[1]) * 4

first, second = resident_after(lengths[:100]), resident_after(lengths[100:])
((plans, compiled),) = model.plans()
model.check(n=1, s=lengths[-1])
assert model.plans() == [(plans, compiled)], "a second visit compiles nothing"
print(first, second, plans)
"""


def test_200_lengths_take_no_more_memory_than_100():
    limits = {"DNNL_BYOC_PLANS": "32", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "256"}
    process = run_python(VISITS, **limits)
    assert process.returncode == 0, process.stderr
    first, second, plans = map(int, process.stdout.split()[-3:])
    assert plans == 32
    assert second < 1.1 * first, (first, second)  # KiB
