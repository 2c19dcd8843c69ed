"""Equalization: channels of different ranges between two layers get one scale that suits all."""

from dataclasses import replace

import numpy as np
import pytest
from front import const, conv2d, inputs_for, module, random, relay, shape_of, var
from quantized_network import outputs

from tvm_dnnl_byoc import quantize

C = 8
SPREAD = np.logspace(-1.5, 1.5, C, dtype="float32")[[3, 0, 7, 1, 6, 2, 5, 4]]


def spread(weights, axis=0, by=SPREAD):
    shape = [1] * weights.ndim
    shape[axis] = len(by)
    return relay.const(weights * by.reshape(shape))


def first(x, with_bias=True):
    """Results whose channels have ranges that differ by a factor of a thousand."""
    y = conv2d(x, spread(random(C, 5, 3, 3, seed=1)))
    return relay.add(y, spread(random(C, 1, 1, seed=2))) if with_bias else y


def second(x, seed=3, groups=1, outputs=6):
    """Reads all channels alike: the wider they are, the smaller are the weights."""
    weights = random(outputs, C // groups, 3, 3, seed=seed)
    if groups > 1:
        return conv2d(x, relay.const(weights), groups=groups)
    return conv2d(x, spread(weights, 1, 1 / SPREAD))


def image():
    return var("x", 2, 5, 12, 11)


def dense_layers():
    y = relay.nn.dense(var("x", 4, 20), spread(random(C, 20, seed=1)))
    y = relay.nn.relu(relay.add(y, spread(random(C, seed=2))))
    return relay.nn.dense(y, spread(random(6, C, seed=3), 1, 1 / SPREAD))


def channels_last(pool=lambda x: x):
    x = relay.nn.conv2d(
        var("x", 2, 12, 11, 5), spread(random(3, 3, 5, C, seed=1), 3), channels=C,
        kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip
    x = pool(relay.nn.relu(relay.add(x, spread(random(C, seed=2)))))
    weights = spread(random(6, C, 1, 1, seed=3), 1, 1 / SPREAD)
    return relay.nn.conv2d(
        x, weights, channels=6, kernel_size=(1, 1), data_layout="NHWC", kernel_layout="OIHW"
    )


def two_readers():
    y = relay.nn.relu(first(image()))
    return second(y) + second(y, 4)


EQUALIZED = {
    "directly": lambda: second(first(image())),
    "through a ReLU": lambda: second(relay.nn.relu(first(image()))),
    "without a bias": lambda: second(relay.nn.relu(first(image(), False))),
    "through a leaky ReLU": lambda: second(relay.nn.leaky_relu(first(image()), 0.1)),
    "through an average": lambda: second(
        relay.nn.avg_pool2d(relay.nn.relu(first(image())), (2, 2), (2, 2))
    ),
    "through a maximum": lambda: second(
        relay.nn.max_pool2d(relay.nn.relu(first(image())), (2, 2), (2, 2))
    ),
    "for two readers": two_readers,
    "for groups": lambda: conv2d(
        relay.nn.relu(first(image())),
        relay.const(
            random(6, C // 2, 3, 3, seed=3)
            * np.repeat(1 / SPREAD.reshape(2, 1, C // 2, 1, 1), 3, 1).reshape(6, C // 2, 1, 1)
        ),
        groups=2,
    ),
    "for dense layers": dense_layers,
    "with channels last": channels_last,
    "through an average with channels last": lambda: channels_last(
        lambda x: relay.nn.avg_pool2d(x, (2, 2), (2, 2), layout="NHWC")
    ),
    "through a maximum with channels last": lambda: channels_last(
        lambda x: relay.nn.max_pool2d(x, (2, 2), (2, 2), layout="NHWC")
    ),
}


def errors(mod, data, **options):
    """Return the error of each channel of the result relative to its size; and the recipe."""
    recipe = quantize.calibrate(mod, {}, data, "minmax", bias_correction=False, **options)
    _, got = outputs(quantize.convert(mod, {}, recipe), data)
    _, expected = outputs(mod, data)
    return np.square(np.array(got) - expected).mean() / np.square(expected).mean(), recipe


def data_for(mod):
    (shape,) = (array.shape for array in inputs_for(mod).values())
    return [{"x": random(*shape, seed=seed)} for seed in range(4)]


@pytest.mark.parametrize("name", EQUALIZED)
def test_channels_are_equalized(name, tmp_path):
    mod = module(EQUALIZED[name]())
    data = data_for(mod)
    plain, without = errors(mod, data)
    equalized, recipe = errors(mod, data, equalization=True)
    assert equalized < 0.2 * plain
    assert all(tensor.divisors is None for tensor in without.tensors.values())
    (divisors,) = (t.divisors for t in recipe.tensors.values() if t.divisors is not None)
    assert np.argsort(divisors).tolist() == np.argsort(SPREAD).tolist()
    recipe.save(tmp_path / "recipe.json")
    assert quantize.Recipe.load(tmp_path / "recipe.json") == recipe


def test_depthwise_readers_get_channels_of_one_range():
    mod = module(second(relay.nn.relu(first(image())), groups=C, outputs=C))
    data = data_for(mod)
    _, recipe = errors(mod, data, equalization=True)
    (divisors,) = (t.divisors for t in recipe.tensors.values() if t.divisors is not None)
    (plain,) = outputs(module(relay.nn.relu(first(image()))), data)[1:]
    ranges = np.array(plain).max((0, 1, 3, 4)) / divisors
    # The two narrowest of a factor of a thousand are taken for a hundredth of the widest.
    np.testing.assert_allclose(np.sort(ranges)[2:], ranges.max(), rtol=1e-4)


def residual():
    y = relay.nn.relu(first(image()))
    return relay.nn.relu(second(relay.nn.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1))), outputs=C) + y)


def read_by_the_caller():
    y = relay.nn.relu(first(image()))
    return second(y), y


def bias_read_by_another():
    y = first(image())
    return second(relay.nn.relu(y)), relay.sigmoid(y)


def read_along_another_axis():
    y = relay.nn.relu(first(var("x", 2, 5, 12, C + 2)))
    return relay.nn.dense(y, const(6, C, seed=3))


def read_along_two_axes():
    y = relay.nn.relu(first(var("x", 2, 5, 12, C + 2)))
    return second(y), relay.nn.dense(y, const(6, C, seed=3))


def pooled_over_channels(pool, layer=lambda: first(image()), layout="NHWC"):
    """Of windows of three channels, all of which are there after it."""
    size = {"NHWC": (3, 1), "NCHW": (1, 3)}[layout]
    padding = {"NHWC": (1, 0, 1, 0), "NCHW": (0, 1, 0, 1)}[layout]
    return pool(layer(), size, (1, 1), padding=padding, layout=layout)


STAY = {
    "an average over channels": lambda: [second(pooled_over_channels(relay.nn.avg_pool2d))],
    "a maximum over channels": lambda: [second(pooled_over_channels(relay.nn.max_pool2d))],
    "an average over channels that are last": lambda: [
        channels_last(lambda x: pooled_over_channels(relay.nn.avg_pool2d, lambda: x, "NCHW"))
    ],
    "an activation that bends": lambda: [second(relay.sigmoid(first(image())))],
    "an activation with an end": lambda: [second(relay.clip(first(image()), 0, 6))],
    "a residual": lambda: [residual()],
    "a result": read_by_the_caller,
    "what another reads before": bias_read_by_another,
    "what is read along another axis": lambda: [read_along_another_axis()],
    "what is read along two axes": read_along_two_axes,
    "channels in rows": lambda: [
        relay.nn.dense(
            relay.nn.batch_flatten(relay.nn.relu(first(var("x", 2, 5, 4, 3)))), const(6, 2 * C)
        )
    ],
    "the input": lambda: [second(var("x", 2, C, 6, 6))],
}


@pytest.mark.parametrize("name", STAY)
def test_what_is_not_equalized(name):
    mod = module(*STAY[name]())
    recipe = quantize.calibrate(mod, {}, data_for(mod), "minmax", equalization=True)
    assert all(tensor.divisors is None for tensor in recipe.tensors.values())
    assert recipe == quantize.calibrate(mod, {}, data_for(mod), "minmax")


def test_divisors_of_other_channels():
    mod = module(second(relay.nn.relu(first(image()))))
    recipe = quantize.calibrate(mod, {}, data_for(mod), "minmax", equalization=True)

    def converted(**divisors):
        tensors = {n: replace(t, divisors=divisors.get(n)) for n, t in recipe.tensors.items()}
        return quantize.convert(mod, {}, replace(recipe, tensors=tensors))

    (name,) = (name for name, tensor in recipe.tensors.items() if tensor.divisors)
    (other,) = (name for name, tensor in recipe.tensors.items() if not tensor.divisors)
    assert shape_of(first(image()))[1] == C
    with pytest.raises(ValueError, match=rf"{name}: expected {C} divisors > 0, got \[1.0\]"):
        converted(**{name: [1.0]})
    with pytest.raises(ValueError, match=f"expected {C} divisors > 0, got"):
        converted(**{name: [0.0] * C})
    with pytest.raises(ValueError, match=f"tensors between layers, got {other}'s"):
        converted(**{other: [1.0] * 5})
