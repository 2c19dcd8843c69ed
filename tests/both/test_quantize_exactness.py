"""Post-training quantization where it is easily a little wrong, or told of too late."""

import json

import numpy as np
import pytest
from front import const, conv2d, module, random, relay, var
from quantized_network import outputs

from tvm_dnnl_byoc import quantize
from tvm_dnnl_byoc.quantize.observers import OBSERVERS, Means
from tvm_dnnl_byoc.quantize.recipe import LEAST_SCALE
from tvm_dnnl_byoc.quantize.sensitivity import _noise

# Additions of layers ------------------------------------------------------------------------------


def added():
    """Two layers' sum, of which one operand is rounded, and a third layer beside."""
    x = var("x", 4, 16)
    y = relay.nn.dense(x, const(8, 16)) + relay.nn.dense(relay.tanh(x), const(8, 16, seed=1))
    return module(y, relay.nn.dense(relay.sigmoid(x), const(5, 16, seed=2)))


X = [{"x": random(4, 16, seed=seed)} for seed in range(3)]


def test_a_sum_of_layers_that_are_kept_stays():
    """Whatever else is quantized: nobody would compute it in whole numbers."""
    recipe = quantize.calibrate(added(), {}, X, "minmax")
    recipe.tensors["add_0.operand"].scale *= 20
    converted = quantize.convert(added(), {}, recipe.keep("dense_0", "dense_1"))
    _, got = outputs(converted, X)
    _, expected = outputs(added(), X)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    assert "int8" in str(converted)


@pytest.mark.parametrize("kept", ["dense_0", "dense_1"])
def test_a_sum_with_a_layer_that_is_not_kept(kept):
    """The near miss: one of the two is enough."""
    recipe = quantize.calibrate(added(), {}, X, "minmax")
    recipe.tensors["add_0.operand"].scale *= 20
    _, got = outputs(quantize.convert(added(), {}, recipe.keep(kept, "dense_2")), X)
    _, expected = outputs(added(), X)
    assert np.abs(np.subtract(got, expected)).max() > 0.1


# The correction of biases at the borders of images ------------------------------------------------


def coarse(*shape, axis=0):
    """Return weights of which one in each output channel makes the steps of the others large."""
    weights = np.moveaxis(random(*shape, seed=1), axis, 0).copy()
    weights[(slice(None), *(0,) * (len(shape) - 1))] = 60
    return relay.const(np.moveaxis(weights, 0, axis).copy())


def rows(x):
    weights = coarse(8, 6, 5)
    attrs = {"channels": 8, "kernel_size": (5,), "strides": (2,), "dilation": (3,)}
    return relay.nn.conv1d(x, weights, padding=(4, 7), **attrs)


def volumes(x):
    weights = coarse(8, 6, 3, 2, 3)
    attrs = {"channels": 8, "kernel_size": (3, 2, 3), "strides": (1, 1, 2)}
    return relay.nn.conv3d(x, weights, padding=(2, 0, 1, 1, 1, 2), **attrs)


def channels_last(x):
    return relay.nn.conv2d(
        x, coarse(3, 5, 6, 8, axis=3), channels=8, kernel_size=(3, 5), padding=(1, 3, 2, 4),
        strides=(2, 1), dilation=(1, 2), data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip


def depthwise(x):
    return conv2d(x, coarse(6, 1, 3, 5), groups=6, padding=(2, 4, 2, 4), strides=(2, 3))


AT_BORDERS = {
    "on all sides": (lambda x: conv2d(x, coarse(8, 6, 5, 5), padding=(2, 2, 2, 2)), (6, 2, 3), 1),
    "of one pixel": (lambda x: conv2d(x, coarse(8, 6, 5, 5), padding=(2, 2, 2, 2)), (6, 1, 1), 1),
    "of a row": (rows, (6, 11), 1),
    "of a volume": (volumes, (6, 3, 4, 5), 1),
    "with channels last": (channels_last, (5, 7, 6), 3),
    "of each channel alone": (depthwise, (6, 5, 4), 1),
    "none": (lambda x: conv2d(x, coarse(8, 6, 2, 3)), (6, 4, 5), 1),
}


@pytest.mark.parametrize(("make", "shape", "axis"), AT_BORDERS.values(), ids=AT_BORDERS)
def test_biases_are_corrected_by_what_is_inside_the_image(make, shape, axis):
    """Exactly, for data that is rounded to itself and has one value in all of a channel."""
    shape = (2, *shape)
    mod = module(make(var("x", *shape)))
    values = [np.random.default_rng(seed).integers(0, 256, (2, 6)) / 255 for seed in range(4)]
    values[0][0, 0] = 1
    ones = [1] * len(shape)
    ones[0], ones[axis] = 2, 6
    data = [{"x": np.broadcast_to(v.reshape(ones), shape).astype("float32")} for v in values]
    _, expected = outputs(mod, data)
    errors = {}
    for corrected in (True, False):
        recipe = quantize.calibrate(mod, {}, data, "minmax", bias_correction=corrected)
        difference = np.subtract(outputs(quantize.convert(mod, {}, recipe), data)[1], expected)
        others = tuple(i for i in range(difference.ndim) if i != axis + 1)
        errors[corrected] = np.abs(difference.mean(others)).max()
    assert errors[True] < 1e-3 * errors[False]


def test_means_are_of_all_values():
    """However they come."""
    values = random(7, 3, 5)
    one, parts = Means(1), Means(1)
    one.update(values)
    parts.update(values[:1])
    parts.update(values[1:])
    assert one.of_channels() == pytest.approx(values.mean((0, 2)), rel=1e-5)
    assert parts.of_channels() == pytest.approx(one.of_channels(), rel=1e-5)


# Numbers at the ends of float32 -------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan])
def test_weights_that_are_not_finite(wrong):
    weights = random(8, 12)
    weights[3, 4] = wrong

    def two_layers(second):
        x = relay.nn.relu(relay.nn.dense(var("x", 4, 16), const(12, 16)))
        return module(relay.nn.dense(x, relay.const(second)))

    with pytest.raises(ValueError, match=f"dense_1: expected finite weights, got {wrong}"):
        quantize.calibrate(two_layers(weights), {}, X)
    recipe = quantize.calibrate(two_layers(random(8, 12)), {}, X)
    with pytest.raises(ValueError, match=f"dense_1: expected finite weights, got {wrong}"):
        quantize.convert(two_layers(weights), {}, recipe)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("observer", OBSERVERS)
def test_values_that_are_hardly_different_from_0(observer):
    mod = module(relay.nn.dense(var("x", 4, 16), relay.const(random(8, 16) * np.float32(1e-43))))
    data = [{"x": inputs["x"] * np.float32(1e-43)} for inputs in X]
    recipe = quantize.calibrate(mod, {}, data, observer)
    assert recipe.tensors["dense_0.data"].scale == LEAST_SCALE
    _, got = outputs(quantize.convert(mod, {}, recipe), data)
    assert not np.any(got)


# What is compared, and what is read ---------------------------------------------------------------


def test_sensitivity_of_outputs_that_are_not_finite():
    """They are left out: a mask of -∞ would be the error of every layer."""
    y = relay.nn.relu(relay.nn.dense(var("x", 4, 16), const(12, 16)))
    mask = np.where(np.arange(8) < 5, 0, -np.inf).astype("float32")
    mod = module(relay.nn.dense(y, const(8, 12)) * const(8, seed=3) + relay.const(mask))
    plain = module(relay.nn.dense(y, const(5, 12)) * const(5, seed=3))
    recipe = quantize.calibrate(plain, {}, X, "minmax", bias_correction=False)
    noise = quantize.sensitivity(mod, {}, X, recipe)
    assert sorted(noise) == ["dense_0", "dense_1"]
    assert all(0 < value < 0.01 for value in noise.values())


def test_sensitivity_of_outputs_that_are_all_0():
    y = relay.nn.dense(var("x", 4, 16), const(8, 16)) - const(1, low=100, high=101)
    mod = module(relay.nn.relu(y))
    recipe = quantize.calibrate(mod, {}, X, "minmax")
    assert quantize.sensitivity(mod, {}, X, recipe) == {"dense_0": 0}


def test_noise():
    exact = np.array([3.0, -np.inf, np.nan, 4.0])
    assert _noise(np.array([3.0, 1.0, 2.0, 4.5]), exact) == 0.01
    assert _noise(np.array([3.0, 1.0, 2.0, np.inf]), exact) == 0
    assert _noise(np.array([1.0, 2.0]), np.zeros(2)) == 5
    assert _noise(np.array([1.0]), np.array([np.inf])) == 0


@pytest.mark.parametrize("key", ["tensors", "layers"])
@pytest.mark.parametrize("value", [[], None, "x", {"conv2d_0": 3}])
def test_recipes_of_other_kinds_of_entries(key, value, tmp_path):
    path = tmp_path / "recipe.json"
    quantize.Recipe("minmax").save(path)
    assert quantize.Recipe.load(path) == quantize.Recipe("minmax")
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(ValueError, match=r"expected a recipe as Recipe\.save writes it"):
        quantize.Recipe.load(path)
