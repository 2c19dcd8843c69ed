"""Post-training quantization: what is observed, written down, and made of it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from front import (
    const,
    conv2d,
    fingerprint,
    fused,
    inputs_for,
    module,
    offloaded,
    random,
    relay,
    shape_of,
    steps_of,
    var,
)
from processor import WHOLE
from quantized_network import DATA, network, outputs

from tvm_dnnl_byoc import partition_for_dnnl, quantize
from tvm_dnnl_byoc.quantize.observers import OBSERVERS
from tvm_dnnl_byoc.quantize.recipe import Tensor

LAYERS = [*(f"conv2d_{i}" for i in range(7)), "dense_0"]


@pytest.fixture(scope="module")
def recipe():
    return quantize.calibrate(network(), {}, DATA, observer="minmax")


def cosine(a, b):
    a, b = a.ravel().astype("float64"), b.ravel().astype("float64")
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


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
    lines = path.read_text().splitlines()
    assert len(lines) == len(recipe.tensors) + len(recipe.layers) + 9  # one for each
    document = json.loads(path.read_text())
    document["layers"]["conv2d_3"]["quantize"] = False
    document["tensors"]["dense_0.data"]["scale"] = 0.5
    path.write_text(json.dumps(document))
    edited = quantize.Recipe.load(path)
    assert edited.layers["conv2d_3"] == replace(recipe.layers["conv2d_3"], quantize=False)
    assert edited.tensors["dense_0.data"] == Tensor("u8", 0.5)
    mod = quantize.convert(network(), {}, edited)
    assert "int8" in str(mod)
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
    assert "quantize" not in str(mod)


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
    before = fingerprint(mod)
    recipe = quantize.calibrate(mod, params, (inputs["x"] for inputs in DATA), observer="mse")
    converted = quantize.convert(mod, params, recipe)
    assert fingerprint(mod) == before
    assert list(inputs_for(converted)) == ["x"]
    with pytest.raises(ValueError, match="are the params given"):
        quantize.calibrate(mod, {}, [inputs_for(mod)])


def test_wrong_inputs():
    (array,) = DATA[0].values()
    with pytest.raises(ValueError, match="expected inputs x, got images"):
        quantize.calibrate(network(), {}, [{"images": array}])
    with pytest.raises(ValueError, match="expected inputs x, got x, y"):
        quantize.calibrate(network(), {}, [{"x": array, "y": array}])
    two = module(var("x", 1, 4) + relay.nn.dense(var("y", 1, 8), const(4, 8)))
    with pytest.raises(ValueError, match="expected inputs x, y, got x"):
        quantize.calibrate(two, {}, [random(1, 4)])


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"observer: expected one of minmax, .*, got 'max'"):
        quantize.calibrate(network(), {}, DATA, observer="max")
    with pytest.raises(ValueError, match="data: expected at least one input, got none"):
        quantize.calibrate(network(), {}, [])


def coarse(*shape):
    """Return weights of which one in each output channel makes the steps of the others large."""
    weights = random(*shape, seed=1)
    weights.reshape(shape[0], -1)[:, 0] = 60
    return relay.const(weights)


def channels_last():
    weights = coarse(8, 6, 3, 3).data.numpy().transpose(2, 3, 1, 0)
    return relay.nn.conv2d(
        var("x", 2, 9, 7, 6), relay.const(weights), channels=8, kernel_size=(3, 3),
        data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip


COARSE = {
    "convolution": (lambda: conv2d(var("x", 2, 6, 9, 7), coarse(8, 6, 3, 3)), 1),
    "groups": (lambda: conv2d(var("x", 2, 6, 9, 7), coarse(8, 3, 3, 3), groups=2), 1),
    "depthwise": (lambda: conv2d(var("x", 2, 6, 9, 7), coarse(6, 1, 3, 3), groups=6), 1),
    "depthwise with a multiplier": (
        lambda: conv2d(var("x", 2, 6, 9, 7), coarse(6, 2, 3, 3), channels=12, groups=6),
        1,
    ),
    "channels last": (channels_last, 3),
    "dense": (lambda: relay.nn.dense(var("x", 5, 40), coarse(8, 40)), 1),
}


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize(("make", "axis"), COARSE.values(), ids=COARSE)
def test_biases_make_up_for_the_rounding_of_weights(make, axis, with_bias):
    y = make()
    if with_bias:
        channels = shape_of(y)[axis]
        y = relay.add(y, const(channels, *(1,) * (len(shape_of(y)) - 1 - axis)))
    mod = module(y)
    (shape,) = (array.shape for array in inputs_for(mod).values())
    data = [{"x": random(*shape, seed=seed, low=0.2)} for seed in range(6)]
    _, expected = outputs(mod, data)
    errors = {}
    for corrected in (True, False):
        recipe = quantize.calibrate(mod, {}, data, "minmax", bias_correction=corrected)
        assert all((layer.means is not None) == corrected for layer in recipe.layers.values())
        converted = quantize.convert(mod, {}, recipe)
        assert str(converted).count("add(") == (corrected or with_bias)
        difference = np.asarray(outputs(converted, data)[1]) - expected
        others = tuple(i for i in range(difference.ndim) if i != axis + 1)
        errors[corrected] = np.abs(difference.mean(others)).max()
    assert errors[True] < 0.1 * errors[False]


def test_an_addition_that_is_no_bias():
    """The near miss: as many numbers as there are channels, but one for each place."""
    y = conv2d(var("x", 2, 6, 5, 5), coarse(9, 6, 3, 3))
    mod = module(relay.add(y, const(3, 3, seed=4)))
    data = [{"x": random(2, 6, 5, 5, seed=seed, low=0.2)} for seed in range(3)]
    converted = quantize.convert(mod, {}, quantize.calibrate(mod, {}, data, "minmax"))
    _, got = outputs(converted, data)
    _, expected = outputs(mod, data)
    places = (np.asarray(got) - expected).mean((0, 1, 2))
    assert np.abs(places).max() < 0.05 * np.abs(expected).max()


def test_means_of_other_channels(recipe):
    layers = {**recipe.layers, "conv2d_1": replace(recipe.layers["conv2d_1"], means=[0.5] * 3)}
    with pytest.raises(ValueError, match=r"expected 16 means of what nn.conv2d reads, got 3"):
        quantize.convert(network(), {}, replace(recipe, layers=layers))


def test_depthwise_weights_spread_over_two_axes_stay():
    """The near miss: there is no axis of the weights with a scale for each output channel."""
    x = var("x", 1, 9, 9, 6)
    y = relay.nn.conv2d(
        x, const(3, 3, 6, 2), channels=12, kernel_size=(3, 3), groups=6, data_layout="NHWC",
        kernel_layout="HWOI",
    )  # fmt: skip
    with pytest.raises(ValueError, match="got none"):
        quantize.calibrate(module(y), {}, [random(1, 9, 9, 6)])


def test_an_average_of_a_convolution():
    """It changes places with it before it is quantized, and is written again."""
    y = conv2d(var("x", 2, 16, 6, 8), const(32, 16, 1, 1))
    y = relay.add(y, const(32, 1, 1, seed=2))
    for head in (relay.nn.adaptive_avg_pool2d(y, (1, 1)), relay.nn.avg_pool2d(y, (2, 2), (2, 2))):
        mod = module(head)
        data = [{"x": random(2, 16, 6, 8, seed=seed)} for seed in range(3)]
        converted = quantize.convert(mod, {}, quantize.calibrate(mod, {}, data, "minmax"))
        lib, got = outputs(converted, data)
        assert fused(steps_of(lib))[0] == "pooling"
        np.testing.assert_allclose(got, outputs(mod, data)[1], atol=0.05)


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
