"""Post-training quantization: what is observed, written down, and made of it."""

import json

import numpy as np
import pytest
import tvm
from helpers import (
    build,
    const,
    conv2d,
    fused,
    inputs_for,
    module,
    offloaded,
    random,
    run,
    steps_of,
    var,
)
from test_engine_quantization import WHOLE
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl, quantize
from tvm_dnnl_byoc.quantize.observers import OBSERVERS
from tvm_dnnl_byoc.quantize.recipe import Layer, Tensor


def network(seed=0):
    """Two residual blocks, one with a convolution beside it, a max pooling and a dense layer."""

    def conv(x, channels, inputs, kernel, number, **attrs):
        size = 1 / np.sqrt(inputs * kernel * kernel)
        shape = (channels, inputs, kernel, kernel)
        w = const(*shape, seed=seed + number, low=-1.25 * size, high=0.75 * size)
        y = conv2d(x, w, padding=(kernel // 2,) * 4, **attrs)
        return relay.add(y, const(channels, 1, 1, seed=seed + number, low=-0.1, high=0.1))

    x = relay.nn.relu(conv(var("x", 1, 3, 24, 24), 16, 3, 3, 1))
    x = relay.nn.max_pool2d(x, (2, 2), (2, 2))
    y = relay.nn.relu(conv(x, 16, 16, 3, 2))
    x = relay.nn.relu(conv(y, 16, 16, 3, 3) + x)
    y = relay.nn.relu(conv(x, 32, 16, 3, 4))
    x = relay.nn.relu(conv(y, 32, 32, 3, 5) + conv(x, 32, 16, 1, 6))
    x = relay.nn.relu(conv(x, 32, 32, 1, 8))
    x = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x))
    return module(relay.nn.dense(x, const(10, 32, seed=seed + 7)))


LAYERS = [*(f"conv2d_{i}" for i in range(7)), "dense_0"]
DATA = [{"x": random(1, 3, 24, 24, seed=seed)} for seed in range(8)]


@pytest.fixture(scope="module")
def recipe():
    return quantize.calibrate(network(), {}, DATA, observer="minmax")


def cosine(a, b):
    a, b = a.ravel().astype("float64"), b.ravel().astype("float64")
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def outputs(mod, data=DATA):
    lib = build(partition_for_dnnl(mod))
    return lib, [run(lib, inputs)[0] for inputs in data]


@pytest.mark.parametrize("observer", OBSERVERS)
def test_the_answers_stay(observer):
    recipe = quantize.calibrate(network(), {}, DATA, observer=observer)
    _, got = outputs(quantize.convert(network(), {}, recipe))
    _, expected = outputs(network())
    assert min(map(cosine, got, expected)) > 0.995
    assert not np.array_equal(got[0], expected[0])


def test_all_layers_compute_with_numbers(recipe):
    """And leave them to each other; of the two operands of a sum, also the one that is beside."""
    converted = quantize.convert(network(), {}, recipe)
    lib, _ = outputs(converted)
    steps = steps_of(lib)
    assert offloaded(partition_for_dnnl(converted))[1] == []
    if WHOLE:
        heavy = [s for s in steps if s["kind"] in ("convolution", "inner_product")]
        assert [s["dtypes"]["weights"] for s in heavy] == ["s8"] * 8
        assert [s["dtypes"]["dst"] for s in heavy].count("f32") == 2  # before the pooling, and last
        sums = [text for text in fused(steps) if "sum" in text]
        assert sums == ["convolution:sum+eltwise_relu"] * 2


def test_what_is_written_down(recipe):
    assert list(recipe.layers) == LAYERS
    tensors = {layer.data for layer in recipe.layers.values()}
    assert set(recipe.tensors) == tensors | {"add_0.operand"}
    assert {name: tensor.dtype for name, tensor in recipe.tensors.items()} == {
        "conv2d_0.data": "s8",
        **dict.fromkeys(sorted(tensors - {"conv2d_0.data"}), "u8"),
        "add_0.operand": "s8",
    }
    largest = max(np.abs(inputs["x"]).max() for inputs in DATA)
    assert recipe.tensors["conv2d_0.data"].scale == np.float32(largest / 127)


def test_saved_edited_and_loaded(recipe, tmp_path):
    path = tmp_path / "recipe.json"
    recipe.save(path)
    assert quantize.Recipe.load(path) == recipe
    document = json.loads(path.read_text())
    document["layers"]["conv2d_3"]["quantize"] = False
    document["tensors"]["dense_0.data"]["scale"] = 0.5
    path.write_text(json.dumps(document))
    edited = quantize.Recipe.load(path)
    assert edited.layers["conv2d_3"] == Layer("conv2d_3.data", quantize=False)
    assert edited.tensors["dense_0.data"] == Tensor("u8", 0.5)
    mod = quantize.convert(network(), {}, edited)
    assert mod["main"].astext().count("int8") > 0
    if WHOLE:
        lib, _ = outputs(mod, DATA[:1])
        heavy = [s for s in steps_of(lib) if s["kind"] == "convolution"]
        assert [s["dtypes"]["weights"] for s in heavy].count("f32") == 1


@pytest.mark.parametrize("text", ["[]", "{", '{"format": "x", "version": 1}', "{}"])
def test_not_a_recipe(text, tmp_path):
    path = tmp_path / "recipe.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="expected"):
        quantize.Recipe.load(path)


def test_layers_that_are_kept():
    recipe = quantize.calibrate(network(), {}, DATA[:1], observer="minmax")
    recipe.keep("first", "last", "conv2d_2")
    kept = [name for name, layer in recipe.layers.items() if not layer.quantize]
    assert kept == ["conv2d_0", "conv2d_2", "dense_0"]
    with pytest.raises(ValueError, match=r"keep: expected one of conv2d_0, .*, got 'conv2d_9'"):
        recipe.keep("conv2d_9")
    mod = quantize.convert(network(), {}, recipe.keep(*LAYERS))
    assert "qnn" not in mod.astext()


def test_of_another_model(recipe):
    other = module(relay.nn.dense(var("x", 1, 8), const(3, 8)))
    with pytest.raises(ValueError, match="it is of another model"):
        quantize.convert(other, {}, recipe)


def test_other_weights_will_do(recipe):
    _, got = outputs(quantize.convert(network(seed=50), {}, recipe), DATA[:1])
    _, expected = outputs(network(seed=50), DATA[:1])
    assert cosine(got[0], expected[0]) > 0.98


def test_the_callers_module_and_its_parameters():
    """Weights as parameters, inputs as bare arrays; nothing is changed."""
    w = var("w", 8, 3, 3, 3)
    mod = module(relay.nn.relu(conv2d(var("x", 1, 3, 24, 24), w)))
    params = {"w": random(8, 3, 3, 3)}
    before = tvm.ir.structural_hash(mod)
    recipe = quantize.calibrate(mod, params, (inputs["x"] for inputs in DATA), observer="mse")
    converted = quantize.convert(mod, params, recipe)
    assert tvm.ir.structural_hash(mod) == before
    assert [p.name_hint for p in converted["main"].params] == ["x"]
    with pytest.raises(ValueError, match="are the params given"):
        quantize.calibrate(mod, {}, [inputs_for(mod)])


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"observer: expected one of minmax, .*, got 'max'"):
        quantize.calibrate(network(), {}, DATA, observer="max")
    with pytest.raises(ValueError, match="data: expected at least one input, got none"):
        quantize.calibrate(network(), {}, [])


def test_depthwise_weights_spread_over_two_axes_stay():
    """The near miss: there is no axis of the weights with a scale for each output channel."""
    x = var("x", 1, 9, 9, 6)
    y = relay.nn.conv2d(
        x, const(3, 3, 6, 2), channels=12, kernel_size=(3, 3), groups=6, data_layout="NHWC",
        kernel_layout="HWOI",
    )  # fmt: skip
    with pytest.raises(ValueError, match="got none"):
        quantize.calibrate(module(y), {}, [random(1, 9, 9, 6)])


def test_sensitivity():
    """A layer whose scale is far too coarse is the worst, and only those quantized are there."""
    recipe = quantize.calibrate(network(), {}, DATA[:2], observer="minmax")
    recipe.tensors["conv2d_4.data"].scale *= 200
    noise = quantize.sensitivity(network(), {}, DATA[:2], recipe.keep("first", "last"))
    assert list(noise) != LAYERS[1:-1]
    assert sorted(noise) == LAYERS[1:-1]
    worst, *others = noise.values()
    assert next(iter(noise)) == "conv2d_4"
    assert worst > 10 * max(others)
    assert min(others) > 0


# For other runtimes -------------------------------------------------------------------------------


def test_onnx(recipe):
    """ONNX Runtime's answers from the file are as near to f32 as ours, and nearer to ours."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="its wheels end with Python 3.11 here")
    converted = quantize.convert(network(), {}, recipe)
    model = quantize.to_onnx(converted)
    assert [value.name for value in model.graph.input] == ["x"]
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    _, ours = outputs(converted)
    for inputs, our in zip(DATA, ours, strict=True):
        (theirs,) = session.run(None, inputs)
        assert np.abs(theirs - our).max() < 0.02 * np.abs(our).max()
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("Conv") == 7
    assert kinds.count("Gemm") == 1
    assert all(len(n.input) == 3 for n in model.graph.node if n.op_type == "Conv")  # with a bias


def test_onnx_of_dense_of_rank_3():
    """Which canonical form makes of one between reshapes."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="its wheels end with Python 3.11 here")
    y = relay.nn.dense(relay.reshape(var("x", 2, 5, 24), [10, 24]), const(7, 24))
    mod = module(relay.nn.relu(relay.add(relay.reshape(y, [2, 5, 7]), const(7))))
    data = [{"x": random(2, 5, 24, seed=seed)} for seed in range(3)]
    converted = quantize.convert(mod, {}, quantize.calibrate(mod, {}, data, observer="minmax"))
    model = quantize.to_onnx(converted)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for inputs in data:
        (theirs,) = session.run(None, inputs)
        (our,) = run(build(partition_for_dnnl(converted)), inputs)
        assert np.abs(theirs - our).max() < 0.02 * np.abs(our).max()
    assert "MatMul" in [node.op_type for node in model.graph.node]


def test_onnx_of_what_it_does_not_know():
    mod = relay.transform.InferType()(module(relay.reverse(var("x", 2, 3), -1)))
    with pytest.raises(ValueError, match=r"to_onnx: expected one of add, .*, got reverse"):
        quantize.to_onnx(mod)


# The observers ------------------------------------------------------------------------------------


def observed(name, *arrays):
    observer = OBSERVERS[name]()
    for array in arrays:
        observer.update(array)
    return observer


@pytest.mark.parametrize("name", OBSERVERS)
def test_not_a_number(name):
    with pytest.raises(ValueError, match="expected finite values in all tensors"):
        observed(name, np.float32([1, np.inf]))


def test_minmax():
    observer = observed("minmax", np.float32([0, 3]), np.float32([-4, 1]))
    assert observer.negative
    assert observer.limit(127) == 4
    assert not observed("minmax", np.float32([0, 3])).negative


def test_moving_average():
    observer = observed("moving_average", np.float32([10]), np.float32([20]))
    assert observer.limit(255) == pytest.approx(11)


@pytest.mark.parametrize("first", [1.0, 0.01, 100.0])
def test_percentile(first):
    """Whatever comes first, and so sets the width of the bins."""
    rng = np.random.default_rng(0)
    values = rng.uniform(0, 1, 100_000).astype("float32")
    values[:5] = 50
    observer = observed("percentile", np.float32([first]), values, values)
    assert observer.limit(255) == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(("name", "most"), [("entropy", 20), ("mse", 55)])
def test_outliers_are_clipped(name, most):
    rng = np.random.default_rng(0)
    values = np.abs(rng.standard_normal(200_000)).astype("float32")
    values[0] = 60
    assert 3 < observed(name, values).limit(255) < most
    assert observed("minmax", values).limit(255) == 60


@pytest.mark.parametrize("name", OBSERVERS)
def test_uniform_values_are_not_clipped(name):
    values = np.random.default_rng(0).uniform(-1, 1, 100_000).astype("float32")
    observer = observed(name, values)
    assert observer.negative
    assert observer.limit(127) == pytest.approx(1, rel=0.03)


@pytest.mark.parametrize("name", OBSERVERS)
def test_nothing_but_zeros(name):
    assert observed(name, np.zeros(9, "float32")).limit(255) == 0
