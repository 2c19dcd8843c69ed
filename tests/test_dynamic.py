"""Models with sizes that only a run knows, in the VM."""

import math

import numpy as np
import pytest
import tvm
from helpers import (
    assert_close,
    build_plainly,
    const,
    conv2d,
    flatten,
    module,
    offloaded,
    random,
    region_functions,
    run,
    run_python,
    var,
)
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl, profile

ANY = relay.Any()


class Model:
    """A partitioned module in the VM."""

    def __init__(self, mod, reference=None, keep_light=False, **options):
        self.mod = mod
        before = tvm.ir.structural_hash(mod, map_free_vars=True)
        self.partitioned = partition_for_dnnl(mod, keep_light_regions=keep_light, **options)
        assert tvm.ir.structural_hash(mod, map_free_vars=True) == before
        with tvm.transform.PassContext(opt_level=3):
            self.executable = relay.vm.compile(self.partitioned, "llvm")
        self.machine = tvm.runtime.vm.VirtualMachine(self.executable, tvm.cpu())
        self.numpy_reference = reference

    def reference(self, *inputs):
        """Return what NumPy makes of the inputs, if there is a function for it, or plain TVM.

        TVM is given a module of the inputs' shapes: few operators can be compiled without.
        """
        if self.numpy_reference is not None:
            return [np.asarray(y, "float32") for y in self.numpy_reference(*inputs)]
        main = self.mod["main"]
        named = {p.name_hint: x for p, x in zip(main.params, inputs, strict=True)}
        known = {p: var(p.name_hint, *named[p.name_hint].shape) for p in main.params}
        return run(build_plainly(module(relay.bind(main.body, known))), named)

    def check(self, *sizes, tolerance=1e-5):
        """Run for the given sizes of what is unknown, in the order of the parameters."""
        inputs = self.draw(*sizes)
        before = [x.tobytes() for x in inputs]
        got = flatten(self.machine.run(*inputs))
        assert_close(got, self.reference(*inputs), tolerance)
        assert [x.tobytes() for x in inputs] == before

    def draw(self, *sizes):
        sizes = iter(sizes)
        return [
            random(*(int(d) if isinstance(d, tvm.tir.IntImm) else next(sizes) for d in p.shape))
            for p in (param.type_annotation for param in self.mod["main"].params)
        ]

    def plans(self):
        """Return for each region how many plans it has, and how many were compiled."""
        return [(plan["plans"], plan["compiled"]) for plan in profile(self.executable).values()]

    def steps(self):
        return [
            (step["kind"], step["post_ops"])
            for plan in profile(self.executable).values()
            for step in plan["steps"]
            if step["kind"] != "reorder"
        ]


def layer(x, width=24, heads=4):
    """A transformer's layer, in NumPy's words: attention and a GELU between dense layers."""
    rows = relay.reshape(x, (-1, width))

    def dense(y, *shape, seed):
        product = relay.nn.dense(y, const(*shape, seed=seed, low=-0.3, high=0.3))
        return relay.nn.bias_add(product, const(shape[0], seed=seed))

    def head(seed, axes):
        y = relay.reshape(dense(rows, width, width, seed=seed), (-1, 8, heads, width // heads))
        return relay.reshape(relay.transpose(y, axes), (-1, *SPLIT[axes]))

    query, key = head(1, (0, 2, 1, 3)), head(2, (0, 2, 1, 3))
    value = head(3, (0, 2, 3, 1))
    scores = relay.nn.softmax(
        relay.nn.batch_matmul(query, key) * relay.const(np.float32(1 / math.sqrt(width // heads)))
    )
    mixed = relay.reshape(relay.nn.batch_matmul(scores, value), (-1, heads, 8, width // heads))
    mixed = relay.reshape(relay.transpose(mixed, (0, 2, 1, 3)), (-1, width))
    y = norm(rows + dense(mixed, width, width, seed=4), width, seed=5)
    wide = dense(y, 2 * width, width, seed=6)
    half = relay.const(0.5)
    wide = wide * (relay.erf(wide / relay.const(np.float32(math.sqrt(2)))) * half + half)
    return norm(y + dense(wide, width, 2 * width, seed=7), width, seed=8)


SPLIT = {(0, 2, 1, 3): (8, 6), (0, 2, 3, 1): (6, 8)}


def norm(x, width, seed):
    return relay.nn.layer_norm(x, const(width, seed=seed), const(width, seed=seed + 50))


def numpy_layer(x, width=24, heads=4):
    x = x.astype(np.float64).reshape(-1, width)

    def constant(*shape, seed, **limits):
        return random(*shape, seed=seed, **limits).astype(np.float64)

    def dense(y, *shape, seed):
        return y @ constant(*shape, seed=seed, low=-0.3, high=0.3).T + constant(shape[0], seed=seed)

    def norm(y, seed):
        y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)
        return y * constant(width, seed=seed) + constant(width, seed=seed + 50)

    def split(y):
        return y.reshape(-1, 8, heads, width // heads).transpose(0, 2, 1, 3)

    query, key, value = (split(dense(x, width, width, seed=seed)) for seed in (1, 2, 3))
    scores = np.exp(query @ key.swapaxes(-1, -2) / math.sqrt(width // heads))
    scores /= scores.sum(-1, keepdims=True)
    mixed = (scores @ value).transpose(0, 2, 1, 3).reshape(-1, width)
    y = norm(x + dense(mixed, width, width, seed=4), 5)
    wide = dense(y, 2 * width, width, seed=6)
    wide = wide * 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(wide / math.sqrt(2)))
    return [norm(y + dense(wide, width, 2 * width, seed=7), 8)]


def network(batch=ANY, size=ANY):
    """A CNN with a residual block; a function, so that each call has variables of its own."""
    x = var("x", batch, 3, size, size)
    y = relay.nn.batch_norm(
        conv2d(x, const(16, 3, 3, 3), padding=(1, 1)),
        *(const(16, seed=i) for i in range(3)),
        const(16, seed=3, low=0.5, high=1.5),
    )[0]
    y = relay.nn.relu(y)
    z = conv2d(y, const(16, 16, 3, 3, seed=4, low=-0.2, high=0.2), padding=(1, 1))
    y = relay.nn.max_pool2d(relay.nn.relu(z + y), (2, 2), (2, 2))
    y = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y))
    return module(relay.nn.dense(y, const(10, 16)) + const(10))


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_a_batch(precision):
    model = Model(network(size=8), precision=precision)
    assert offloaded(model.partitioned)[1] == []
    for batch, compilations in ((8, 1), (8, 1), (1, 2), (8, 2)):
        model.check(batch, tolerance=1e-5 if precision == "f32" else 2e-2)
        assert model.plans() == [(compilations, compilations)]


def test_images_of_any_size():
    model = Model(network())
    inside, outside = offloaded(model.partitioned)
    assert outside == []
    assert "nn.batch_norm" not in inside  # it is in the weights, as of a static batch
    for sizes in ((1, 8, 8), (2, 33, 17), (1, 224, 224), (3, 9, 8), (2, 33, 17)):
        model.check(*sizes)
    assert model.plans() == [(4, 4)]
    assert [kind for kind, _ in model.steps()].count("convolution") == 2
    assert ("convolution", "sum+eltwise_relu") in model.steps() or (
        "convolution",
        "binary_add+eltwise_relu",
    ) in model.steps()


def test_a_transformers_layer():
    """Plain TVM cannot compile it: erf has no shape function there."""
    model = Model(module(layer(var("x", ANY, 8, 24))), numpy_layer)
    assert offloaded(model.partitioned)[1] == []
    assert len(region_functions(model.partitioned)) == 1
    for batch in (2, 1, 5, 2, 0):
        model.check(batch)
    assert model.plans() == [(4, 4)]
    posts = [post_ops for kind, post_ops in model.steps() if kind == "inner_product"]
    assert "eltwise_gelu_erf" in posts
    assert any("add" in post_ops or "sum" in post_ops for post_ops in posts)


def test_dense_layers_of_three_dimensions():
    """Neither batch nor length is known: the rows of one sequence are not merged with others'."""
    x = var("x", ANY, ANY, 12)
    y = relay.nn.relu(relay.nn.dense(x, const(16, 12)) + const(16))
    y = relay.nn.softmax(relay.nn.batch_matmul(y, y))

    def reference(x):
        y = np.maximum(x.astype(np.float64) @ random(16, 12).T + random(16), 0)
        y = np.exp(y @ y.swapaxes(1, 2) - (y * y).sum(-1).max())
        return [y / y.sum(-1, keepdims=True)]

    model = Model(module(y), reference)
    assert offloaded(model.partitioned)[1] == []
    for sizes in ((2, 5), (1, 1), (3, 65), (2, 5)):
        model.check(*sizes)
    assert model.steps() == [
        ("matmul", "eltwise_relu"),
        ("matmul", ""),
        ("softmax", ""),
    ]


@pytest.mark.parametrize(
    ("shape", "other"),
    [((ANY, 12), (ANY, 16)), ((ANY, 5, 12), (ANY, 5, 16)), ((ANY, ANY, 12), (ANY, ANY, 16))],
)
def test_either_of_two_unknown_sizes_may_be_broadcast(shape, other):
    """As far as types tell, the sum is the product's own; at some sizes it is larger."""
    x, y = var("x", *shape), var("y", *other)
    model = Model(
        module(relay.nn.relu(relay.nn.dense(x, const(16, 12)) + y)),
        lambda x, y: [np.maximum(x.astype(np.float64) @ random(16, 12).T + y, 0)],
    )
    assert len(region_functions(model.partitioned)) == 1
    unknown = sum(not isinstance(d, int) for d in shape)
    cases = {1: [(3, 3), (3, 1), (1, 3), (1, 1)], 2: [(2, 3, 2, 3), (2, 1, 1, 2), (1, 2, 2, 1)]}
    for sizes in cases[unknown]:
        model.check(*sizes)
    model.check(*cases[unknown][0])
    assert len([kind for kind, _ in model.steps() if kind != "binary"]) == 1, "it is a post-op"


def test_a_bias_is_one_only_along_a_known_axis():
    x, w = var("x", 3, 7), var("w", ANY, 7)
    b = var("b", ANY)
    model = Model(module(relay.nn.dense(x, w) + b))
    for sizes in ((5, 5), (5, 1), (1, 5)):
        model.check(*sizes)


def test_an_addition_along_the_width_is_no_bias():
    x, y = var("x", 1, 8, ANY, ANY), var("y", ANY)
    model = Model(module(conv2d(x, const(8, 8, 1, 1)) + y))
    for sizes in ((6, 8, 8), (8, 8, 8), (5, 7, 1)):
        model.check(*sizes)


MOVES = {
    "transpose": lambda x: relay.transpose(x, (1, 0, 2)),
    "reshape, one unknown": lambda x: relay.reshape(x, (-1, 4)),
    "reshape, both kept": lambda x: relay.reshape(x, (0, 0, 2, 4)),
    "reshape, all kept": lambda x: relay.reshape(x, (-2,)),
    "reshape, one left": lambda x: relay.reshape(x, (0, -1, 4)),
    "expand_dims": lambda x: relay.expand_dims(x, 1),
    "expand_dims, two at the end": lambda x: relay.expand_dims(x, -1, 2),
    "squeeze": lambda x: relay.squeeze(relay.expand_dims(x, 2), [2]),
    "batch_flatten": lambda x: relay.nn.batch_flatten(x),
    "slice": lambda x: relay.strided_slice(x, [2], [6], [1], axes=[2]),
    "split": lambda x: relay.split(x, 2, axis=2)[1],
    "concatenate": lambda x: relay.concatenate([x, x], 1),
    "concatenate along the known": lambda x: relay.concatenate([x, relay.nn.relu(x)], 2),
    "mean of the known": lambda x: relay.mean(x, 2),
    "mean of the unknown": lambda x: relay.mean(x, 1),
    "sum of both, kept": lambda x: relay.sum(x, (0, 1), keepdims=True),
    "max of all but": lambda x: relay.max(x, 1, exclude=True),
    "softmax of the unknown": lambda x: relay.nn.softmax(x, 1),
    "log_softmax": lambda x: relay.exp(relay.nn.log_softmax(x, 2)),
    "multiply": lambda x: x * x,
    "add a vector": lambda x: x + const(8, seed=9),
    "add a scalar": lambda x: x + relay.const(1.5),
    "add along the unknown": lambda x: x + relay.mean(x, 2, keepdims=True),
    "clip": lambda x: relay.clip(x, -0.2, 0.3),
    "sigmoid, then a tangent": lambda x: relay.tan(relay.sigmoid(x)),
}


@pytest.mark.parametrize("move", MOVES)
def test_operators_around_a_product(move):
    """The product's rows come from a batch and a length that are both unknown."""
    x = var("x", ANY, ANY, 6)
    y = MOVES[move](relay.nn.batch_matmul(x, const(1, 8, 6)))
    model = Model(module(y))
    for sizes in ((2, 5), (1, 1), (3, 2)):
        model.check(*sizes)
    _, outside = offloaded(model.partitioned)
    # oneDNN is not fast for sums across rows.
    allowed = {
        "sigmoid, then a tangent": {"tan"},
        "mean of the unknown": {"mean"},
        "sum of both, kept": {"sum"},
        "max of all but": {"max"},
    }
    assert set(outside) <= allowed.get(move, set())


WINDOWS = {
    "NHWC": lambda x: relay.nn.conv2d(
        relay.transpose(x, (0, 2, 3, 1)),
        const(3, 3, 4, 6),
        data_layout="NHWC",
        kernel_layout="HWIO",
        channels=6,
        kernel_size=(3, 3),
        padding=(1, 0, 1, 2),
    ),
    "depthwise": lambda x: conv2d(x, const(4, 1, 3, 3), groups=4, channels=4),
    "strides, dilation": lambda x: conv2d(x, const(6, 4, 3, 3), strides=(2, 1), dilation=(1, 2)),
    "transposed": lambda x: relay.nn.conv2d_transpose(
        x, const(4, 6, 2, 2), channels=6, kernel_size=(2, 2), strides=(2, 2)
    ),
    "padded before": lambda x: conv2d(
        relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (2, 0))), const(6, 4, 3, 3)
    ),
    "average": lambda x: relay.nn.avg_pool2d(
        conv2d(x, const(6, 4, 1, 1)), (3, 2), (2, 2), padding=(1, 1), count_include_pad=True
    ),
    "a bias and PReLU": lambda x: relay.nn.prelu(
        relay.nn.bias_add(conv2d(x, const(6, 4, 1, 1)), const(6)), const(6, seed=2)
    ),
    "per channel, not constant": lambda x: (
        conv2d(x, const(4, 4, 1, 1)) * relay.mean(x, (2, 3), keepdims=True)
    ),
    "concatenated": lambda x: relay.concatenate([conv2d(x, const(6, 4, 1, 1)), x], 1),
}


@pytest.mark.parametrize("window", WINDOWS)
def test_images(window):
    x = var("x", ANY, 4, ANY, ANY)
    model = Model(module(WINDOWS[window](x)))
    assert len(region_functions(model.partitioned)) == 1
    for sizes in ((1, 9, 8), (2, 16, 33), (1, 5, 6), (1, 9, 8)):
        model.check(*sizes)
    assert model.plans() == [(3, 3)]


def test_what_stays_says_why():
    x = var("x", ANY, 4, ANY, ANY)
    y = conv2d(x, const(6, 4, 1, 1))
    cases = {
        "nn.max_pool2d": relay.nn.max_pool2d(y, (3, 3), (2, 2), ceil_mode=True),
        "nn.adaptive_avg_pool2d": relay.nn.adaptive_avg_pool2d(y, (2, 3)),
        "strided_slice": relay.strided_slice(y, [0, 1], [2, 3], [1, 1], axes=[2, 3]),
        "nn.upsampling": relay.nn.upsampling(y, 2.0, 2.0),
    }
    refusal = tvm.get_global_func("tvm_dnnl_byoc.refusal")
    for name, result in cases.items():
        mod = relay.transform.InferType()(module(result))
        reason = refusal([mod["main"].body])
        assert reason.startswith(f"{name}: expected "), reason
        assert "known size" in reason or "output size" in reason or "static" in reason, reason


def test_static_and_dynamic_parts():
    x, y = var("x", 2, 12), var("y", ANY, 12)
    static = relay.nn.relu(relay.nn.dense(x, const(16, 12)))
    model = Model(module(static, relay.nn.dense(y, const(8, 12, seed=2))))
    for size in (3, 1, 3):
        model.check(size)
    regions = list(profile(model.executable).values())
    assert sorted("plans" in region for region in regions) == [False, True]


def test_regions_that_read_each_other():
    x = var("x", ANY, 12)
    y = relay.tan(relay.sigmoid(relay.nn.dense(x, const(16, 12))))
    model = Model(module(relay.nn.dense(y, const(8, 16)), y))
    assert len(region_functions(model.partitioned)) == 2
    for size in (3, 1, 3):
        model.check(size)
    assert model.plans() == [(2, 2), (2, 2)]


def test_several_outputs():
    x = var("x", ANY, 12)
    y = relay.nn.dense(x, const(16, 12))
    model = Model(module(y, relay.nn.relu(y), relay.transpose(y)))
    for size in (3, 1):
        model.check(size)


def test_outputs_of_known_size():
    x = var("x", 1, 4, ANY, ANY)
    model = Model(module(relay.nn.global_avg_pool2d(conv2d(x, const(6, 4, 3, 3)))))
    for sizes in ((9, 8), (33, 5)):
        model.check(*sizes)


@pytest.mark.parametrize("zero_point", [0, 3])
@pytest.mark.parametrize("leading", [1, 2])
def test_int8(leading, zero_point):
    """A model in QDQ form; what NumPy computes of the same numbers."""
    x = var("x", *[ANY] * leading, 16)
    numbers = random(8, 16, low=-100, high=100).round().astype("int8")
    scale, zero = relay.const(np.float32(0.01)), relay.const(zero_point)
    data = relay.qnn.dequantize(relay.qnn.quantize(x, scale, zero, out_dtype="uint8"), scale, zero)
    scales = np.linspace(0.01, 0.02, 8).astype("float32")
    weights = relay.qnn.dequantize(
        relay.const(numbers), relay.const(scales), relay.const(np.zeros(8, "int32")), axis=0
    )
    y = relay.nn.relu(relay.nn.dense(data, weights) + const(8))

    def reference(x):
        q = np.clip(np.rint(x / np.float32(0.01)) + zero_point, 0, 255)
        w = scales.astype(np.float64)[:, None] * numbers
        return [np.maximum(0.01 * (q - zero_point) @ w.T + random(8), 0)]

    model = Model(module(y), reference)
    for sizes in ((10, 3), (1, 1), (2, 60), (10, 3)):
        model.check(*sizes[:leading])
    (plan,) = profile(model.executable).values()
    (product,) = (s for s in plan["steps"] if s["kind"] in ("matmul", "inner_product"))
    # oneDNN 3.2 cannot pack the weights of a batch for numbers with a zero point.
    numbers = ["u8"] if leading == 1 or not zero_point else ["u8", "f32"]
    assert product["dtypes"]["src"] in numbers


def test_an_empty_batch():
    model = Model(network())
    shape = model.machine.run(np.zeros((0, 3, 8, 8), "float32")).shape
    assert shape == (0, 10)


def test_partitioning_is_deterministic_and_done_once():
    mod = network()
    once = partition_for_dnnl(mod)
    tvm.ir.assert_structural_equal(once, partition_for_dnnl(mod))
    tvm.ir.assert_structural_equal(once, partition_for_dnnl(once))
    assert list(region_functions(once)) == list(region_functions(partition_for_dnnl(mod)))


def test_regions_of_other_weights_have_other_names():
    def names(seed):
        y = relay.nn.dense(var("x", ANY, 12), const(16, 12, seed=seed))
        return set(region_functions(partition_for_dnnl(module(y))))

    assert names(1) == names(1)
    assert not names(1) & names(2)


def test_one_of_two_equal_models_is_dropped():
    first, second = Model(network(size=8)), Model(network(size=8))
    first.check(2)
    second.check(3)
    del first
    second.check(2)
    second.check(5)


def test_wrong_input():
    model = Model(module(relay.nn.dense(var("x", ANY, 12), const(16, 12))))
    with pytest.raises(ValueError, match=r"expected shape \(\?, 12\), got \(2, 13\)"):
        model.machine.run(np.zeros((2, 13), "float32"))
    model.check(2)


EXPORTED = """
import sys
import numpy as np
import tvm
from tvm.runtime.vm import Executable, VirtualMachine
from tvm_dnnl_byoc import profile
library = tvm.runtime.load_module(sys.argv[1])
executable = Executable.load_exec(open(sys.argv[2], "rb").read(), library)
machine = VirtualMachine(executable, tvm.cpu())
data = np.load(sys.argv[3])
for name in data.files:
    np.save(sys.argv[4] + name + ".npy", machine.run(data[name]).numpy())
((_, plan),) = profile(library).items()
print(plan["plans"], plan["compiled"], plan["repacked_bytes"])
"""


@pytest.mark.parametrize("runtime_only", [None, "1"])
def test_exported(tmp_path, runtime_only):
    model = Model(network())
    code, library = model.executable.save()
    library.export_library(str(tmp_path / "model.so"))
    (tmp_path / "code").write_bytes(code)
    inputs = {f"x{i}": model.draw(*sizes)[0] for i, sizes in enumerate([(1, 9, 8), (2, 32, 32)])}
    np.savez(tmp_path / "inputs.npz", **inputs)
    process = run_python(
        EXPORTED,
        *(tmp_path / name for name in ("model.so", "code", "inputs.npz", "out_")),
        TVM_USE_RUNTIME_LIB=runtime_only,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[-1].split()[:2] == ["2", "2"]
    for name, x in inputs.items():
        assert_close([np.load(tmp_path / f"out_{name}.npy")], model.reference(x))


VISITS = """
import sys
from test_dynamic import *
random_sizes = np.random.default_rng(5)
if sys.argv[1] == "lengths":
    model = Model(module(layer(var("x", ANY, 8, 24))), numpy_layer)
    sizes = lambda: random_sizes.integers(1, 300, 1)
else:
    model = Model(network())
    sizes = lambda: (1, *random_sizes.integers(8, 100, 2))

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4

visited = []
def visit(count):
    for _ in range(count):
        visited.append(tuple(map(int, sizes())))
        inputs = model.draw(*visited[-1])
        got = model.machine.run(*inputs)
        if len(visited) % 30 == 0:
            assert_close(flatten(got), model.reference(*inputs))
    return resident()

first, second = visit(200), visit(100)
((plans, compilations),) = model.plans()
model.check(*visited[-1])
assert model.plans() == [(plans, compilations)], "a second visit compiles nothing"
print(first, second, plans)
"""


@pytest.mark.parametrize("what", ["lengths", "images"])
def test_300_sizes_take_no_more_memory_than_200(what):
    from pathlib import Path

    path = str(Path(__file__).parent)
    process = run_python(
        f"import sys; sys.path.insert(0, {path!r})\n" + VISITS,
        what,
        DNNL_BYOC_PLANS="32",
        ONEDNN_PRIMITIVE_CACHE_CAPACITY="256",
    )
    assert process.returncode == 0, process.stderr
    first, second, plans = map(int, process.stdout.split()[-3:])
    assert plans == 32
    assert second < 1.1 * first, (first, second)  # KiB
