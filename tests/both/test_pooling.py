"""Averages and 1 × 1 convolutions change places where that is less work, and only there."""

import pytest
from front import check, const, conv2d, fused, module, relay, var

N, C, H, W, O = 2, 6, 8, 6, 4  # noqa: E741


def image(channels=C):
    return var("x", N, channels, H, W)


def conv(x, to=O, channels=C, kernel=1, **attrs):
    return conv2d(x, const(to, channels, kernel, kernel, seed=1), **attrs)


def biased(x, to=O):
    return relay.nn.bias_add(x, const(to, seed=2))


def average(x, size=2, strides=2, **attrs):
    return relay.nn.avg_pool2d(x, (size, size), strides=(strides, strides), **attrs)


def smooth(x, **attrs):
    attrs.setdefault("count_include_pad", True)
    return average(x, 3, 1, padding=(1, 1), **attrs)


def nhwc():
    x = relay.nn.conv2d(
        var("x", N, H, W, C), const(1, 1, C, O), channels=O, kernel_size=(1, 1), data_layout="NHWC",
        kernel_layout="HWIO",
    )  # fmt: skip
    return relay.nn.avg_pool2d(x, (2, 2), strides=(2, 2), layout="NHWC")


def in_one_dimension():
    x = relay.nn.conv1d(var("x", N, C, H), const(O, C, 1), channels=O, kernel_size=1)
    return relay.nn.avg_pool1d(x, (2,), strides=(2,))


def in_three_dimensions():
    x = relay.nn.conv3d(
        var("x", N, C, 4, H, W), const(O, C, 1, 1, 1), channels=O, kernel_size=(1, 1, 1)
    )
    return relay.nn.avg_pool3d(x, (2, 2, 2), strides=(2, 2, 2))


def normalized(x):
    gamma, beta, mean = (const(O, seed=i) for i in range(3))
    return relay.nn.batch_norm(x, gamma, beta, mean, const(O, seed=3, low=0.1, high=3.0))[0]


FEWER_PIXELS = {
    "of a convolution": lambda: average(conv(image())),
    "of one with a bias": lambda: average(biased(conv(image()))),
    "with padding that does not count": lambda: average(
        biased(conv(image())), 3, padding=(1, 1), count_include_pad=False
    ),
    "with padding that counts, without a bias": lambda: average(
        conv(image()), 3, padding=(1, 1), count_include_pad=True
    ),
    "normalized before": lambda: average(normalized(conv(image()))),
    "normalized after": lambda: normalized(average(biased(conv(image())))),
    "of all pixels": lambda: relay.nn.global_avg_pool2d(biased(conv(image()))),
    "to so many pixels": lambda: relay.nn.adaptive_avg_pool2d(biased(conv(image())), (4, 3)),
    "without strides": lambda: average(conv(image()), 3, 1),
    "to more channels": lambda: average(conv(image(), 2 * C)),
    "NHWC": nhwc,
    "in one dimension": in_one_dimension,
    "in three dimensions": in_three_dimensions,
}


@pytest.mark.parametrize("name", FEWER_PIXELS)
def test_an_average_of_fewer_pixels_comes_first(name):
    assert fused(check(module(FEWER_PIXELS[name]()))) == ["pooling", "convolution"]


FEWER_CHANNELS = {
    "plain": (lambda: conv(smooth(image())), "pooling"),
    "with a bias": (lambda: biased(conv(smooth(image()))), "pooling:binary_add"),
    "with an activation": (
        lambda: relay.nn.relu(biased(conv(smooth(image())))),
        "pooling:binary_add+eltwise_relu",
    ),
    "with padding that does not count": (
        lambda: biased(conv(smooth(image(), count_include_pad=False))),
        "pooling:binary_add",
    ),
    "normalized": (lambda: normalized(conv(smooth(image()))), "pooling:binary_add"),
}


@pytest.mark.parametrize("name", FEWER_CHANNELS)
def test_a_convolution_to_fewer_channels_comes_first(name):
    build, pooling = FEWER_CHANNELS[name]
    assert fused(check(module(build()))) == ["convolution", pooling]


STAY = {
    "an average whose padding counts, of a bias": (
        lambda: average(biased(conv(image())), 3, padding=(1, 1), count_include_pad=True),
        ["convolution", "pooling"],
    ),
    "an average of as many pixels": (lambda: smooth(conv(image())), ["convolution", "pooling"]),
    "an average of an activation": (
        lambda: average(relay.nn.relu(conv(image()))),
        ["convolution:eltwise_relu", "pooling"],
    ),
    "an average of a 3 × 3 convolution": (
        lambda: average(conv(image(), kernel=3)),
        ["convolution", "pooling"],
    ),
    "an average of a convolution with strides": (
        lambda: average(conv(image(), strides=(2, 2))),
        ["convolution", "pooling"],
    ),
    "an average of a padded convolution": (
        lambda: average(conv(image(), padding=(1, 1))),
        ["convolution", "pooling"],
    ),
    "an average of a convolution by groups": (
        lambda: average(conv(image(), 6, 3, groups=2)),
        ["convolution", "pooling"],
    ),
    "an average of something of its own for each pixel": (
        lambda: average(conv(image()) + const(1, O, H, W, seed=2)),
        ["convolution", "binary", "pooling"],
    ),
    "an average along rows of something of its own for each": (
        lambda: relay.nn.avg_pool2d(
            conv(image()) + const(1, O, H, 1, seed=2),
            (3, 3),
            strides=(1, 2),
            padding=(1, 1),
            count_include_pad=False,
        ),
        ["convolution"],
    ),
    "an average of many channels' convolution to one": (
        lambda: average(conv(image(), 1), 3, 1),
        ["convolution", "pooling"],
    ),
    "a maximum": (
        lambda: relay.nn.max_pool2d(conv(image()), (2, 2), strides=(2, 2)),
        ["convolution", "pooling"],
    ),
    "a convolution to more channels": (
        lambda: biased(conv(smooth(image()), 2 * C), 2 * C),
        ["pooling", "convolution"],
    ),
    "a convolution of an average of fewer pixels": (
        lambda: biased(conv(average(image()))),
        ["pooling", "convolution"],
    ),
    "a 3 × 3 convolution of an average": (
        lambda: conv(smooth(image()), kernel=3),
        ["pooling", "convolution"],
    ),
}


@pytest.mark.parametrize("name", STAY)
def test_what_stays(name):
    build, steps = STAY[name]
    assert fused(check(module(build()))) == steps


def test_what_another_reads_stays():
    x = biased(conv(image()))
    steps = fused(check(module(average(x), relay.nn.relu(x))))
    assert steps.index("convolution") < steps.index("pooling")
    x = smooth(image())
    steps = fused(check(module(conv(x), relay.nn.relu(x))))
    assert "convolution" in steps
    assert steps[0].startswith("pooling")
