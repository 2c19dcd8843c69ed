"""Steps done a few rows at a time: the same results, and only where nobody else sees them."""

import json
import os

import numpy as np
import pytest
from engine_graph import (
    Engine,
    Graph,
    binary,
    eltwise,
    one_thread,
    pack,
    reference,
    relu,
    run,
    start,
)
from networks_of_floats import convolution
from processor import AVX512

pytestmark = pytest.mark.skipif(not AVX512, reason="these kernels need AVX-512")

CHANNELS, WIDTH = 16, 96
# What a step leaves to the next has to be larger than a quarter of the second cache.
SC_LEVEL2_CACHE_SIZE = 191  # glibc's; Python has no name for it
CACHE = os.sysconf(SC_LEVEL2_CACHE_SIZE) or 1 << 20
HEIGHT = CACHE // 4 // (CHANNELS * WIDTH * 4) + 8
CLIP = eltwise("clip", -9.0, 11.0)  # so that all sums are exact


def pointwise(graph, x, channels=CHANNELS, out=CHANNELS, post_ops=(CLIP,)):
    return convolution(graph, x, channels, out, post_ops=list(post_ops))


def depthwise(graph, x, channels=CHANNELS, post_ops=(CLIP,), **window):
    window = {"padding_l": 1, "padding_r": 1, **window}
    return convolution(
        graph, x, channels, channels, (3, 3), post_ops=list(post_ops), groups=channels, **window
    )


def window(graph, x, kernel=(3, 3), channels=CHANNELS, out=CHANNELS, post_ops=(CLIP,), **more):
    return convolution(graph, x, channels, out, kernel, post_ops=list(post_ops), **more)


def image(graph, batch=1, height=HEIGHT):
    return graph.input(batch, CHANNELS, height, WIDTH)


def exact(graph):
    rng = np.random.default_rng(0)
    for array in graph.input_data + graph.constant_data:
        array[...] = rng.integers(-2, 3, array.shape)
    return graph


def cascades(graph, **tuned):
    """Require the very same numbers on one thread, twice; return which steps are in cascades."""
    exact(graph).tune("channels_last", **{"cascades": True, **tuned})
    expected = reference(graph)
    with one_thread():
        engine = start(graph)
        for _ in range(2):
            got = run(engine, graph.input_data, [e.shape for e in expected])
            for a, b in zip(got, expected, strict=True):
                assert np.array_equal(a, b)
        profile = engine.profile()
    impls = [step["impl"] for step in profile["steps"]]
    return [impls[first:end] for first, end in profile["cascades"]]


def test_mobilenet():
    graph = Graph()
    x = graph.input(1, 3, 2 * HEIGHT, 2 * WIDTH)
    x = window(graph, x, channels=3, strides=2, padding_l=1, padding_r=1)
    x = pointwise(graph, depthwise(graph, x), out=64)
    x = pointwise(graph, depthwise(graph, x, 64, strides=2), 64, 64)
    graph.output(depthwise(graph, x, 64, strides=2))
    names = ["windows", "depthwise", "pointwise", "depthwise", "pointwise", "depthwise"]
    assert cascades(graph) == [names]


WINDOWS = {
    "no padding": {},
    "padding": {"padding_l": 1, "padding_r": 1},
    "padding above": {"padding_l": [2, 0], "padding_r": [0, 1]},
    "much padding": {"padding_l": [5, 1], "padding_r": [4, 3]},
    "strides": {"strides": 2, "padding_l": 1, "padding_r": 1},
    "other strides": {"strides": [3, 1], "padding_r": [2, 0]},
    "rows that nobody needs": {"kernel": (1, 3), "strides": [2, 1]},
    "many such rows": {"kernel": (2, 1), "strides": [5, 1], "padding_l": [1, 0]},
    "columns": {"kernel": (5, 1), "padding_l": [2, 0], "padding_r": [2, 0]},
    "rows": {"kernel": (1, 7), "padding_l": [0, 3], "padding_r": [0, 3]},
    "even": {"kernel": (4, 2), "padding_l": [1, 0], "padding_r": [2, 1]},
}


@pytest.mark.parametrize("first", ["pointwise", "window"])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name, first):
    graph = Graph()
    x = pointwise(graph, image(graph)) if first == "pointwise" else window(graph, image(graph))
    graph.output(pointwise(graph, window(graph, x, **WINDOWS[name])))
    (names,) = cascades(graph)
    assert len(names) >= 2
    assert "windows" in names


@pytest.mark.parametrize("strides", [1, 2])
@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_depthwise_of_all_remainders(rows, strides):
    graph = Graph()
    x = depthwise(graph, pointwise(graph, image(graph, height=HEIGHT + rows)), strides=strides)
    graph.output(x)
    assert cascades(graph) == [["pointwise", "depthwise"]]


@pytest.mark.parametrize("seed", range(25))
def test_at_random(seed):
    rng = np.random.default_rng(seed)
    graph = Graph()
    x, height, width = image(graph), HEIGHT, WIDTH
    for _ in range(rng.integers(2, 6)):
        kind = rng.choice(["pointwise", "depthwise", "window"])
        kernel = {"pointwise": [1, 1], "depthwise": [3, 3], "window": rng.integers(1, 5, 2)}[kind]
        more = {}
        if kind != "pointwise":
            same = int(rng.integers(1, 3))
            strides = [same, same] if kind == "depthwise" else rng.integers(1, 3, 2)
            padding_l, padding_r = rng.integers(0, 3, 2), rng.integers(0, 3, 2)
            sizes = (np.array([height, width]) + padding_l + padding_r - kernel) // strides + 1
            height, width = (int(size) for size in sizes)
            more = {"strides": strides, "padding_l": padding_l, "padding_r": padding_r}
            more = {key: [int(n) for n in value] for key, value in more.items()}
        if kind == "window":
            more["kernel"] = tuple(int(n) for n in kernel)
        x = {"pointwise": pointwise, "depthwise": depthwise, "window": window}[kind](
            graph, x, post_ops=[CLIP if rng.integers(2) else relu(), CLIP], **more
        )
    graph.output(x)
    assert sum(map(len, cascades(graph))) != 1


def test_addition_in_place():
    """The rows of the addend would be gone that the first step reads for its next."""
    graph = Graph()
    x = pointwise(graph, image(graph))
    y = window(graph, x, padding_l=1, padding_r=1)
    graph.output(depthwise(graph, pointwise(graph, y, post_ops=[binary("add", x), CLIP])))
    assert cascades(graph) == []


@pytest.mark.parametrize("kind", ["pointwise", "window"])
def test_addition_of_an_image_from_before(kind):
    graph = Graph()
    other = pointwise(graph, image(graph))
    x = depthwise(graph, image(graph))
    post_ops = [binary("add", other), CLIP]
    if kind == "pointwise":
        x = pointwise(graph, x, post_ops=post_ops)
    else:
        x = window(graph, x, padding_l=1, padding_r=1, post_ops=post_ops)
    graph.output(pointwise(graph, x))
    graph.output(other)
    names = ["depthwise", "windows" if kind == "window" else kind, "pointwise"]
    assert names in cascades(graph)


def test_memory_and_times():
    graph = Graph()
    x = depthwise(graph, pointwise(graph, image(graph, height=4 * HEIGHT)), strides=2)
    graph.output(exact(graph).eltwise(x, "tanh"))
    profiles = []
    for chosen in (False, True):
        graph.tune("channels_last", cascades=chosen)
        with one_thread():
            profiles.append(start(graph).profile(5))
    without, with_cascades = profiles
    assert len(with_cascades["cascades"]) == 1
    assert without["cascades"] == []
    between = 4 * HEIGHT * WIDTH * CHANNELS * 4
    assert with_cascades["arena_bytes"] < without["arena_bytes"] - between / 2
    times = [step["ms"] for step in with_cascades["steps"]]
    assert all(ms > 0 for ms in times)
    assert sum(times) == pytest.approx(with_cascades["ms"], rel=0.5)


def test_in_chunks_each_thread_has_its_own():
    graph = Graph()
    graph.output(depthwise(graph, pointwise(graph, image(graph, batch=2))))
    exact(graph).tune("channels_last", chunk=1, cascades=True)
    engine = start(graph)
    (expected,) = reference(graph)
    (got,) = run(engine, graph.input_data, [expected.shape])
    assert np.array_equal(got, expected)
    profile = engine.profile()
    assert profile["chunks"] == 2
    assert len(profile["cascades"]) == 1


def two_steps(between=lambda graph, x: None, **shape):
    graph = Graph()
    x = pointwise(graph, image(graph, **shape))
    between(graph, x)
    return graph.output(depthwise(graph, x))


NEAR_MISSES = {
    "not chosen": (two_steps, {"cascades": False}),
    "two images": (lambda: two_steps(batch=2), {}),
    "a small image": (lambda: two_steps(height=HEIGHT // 2), {}),
    "an output": (lambda: two_steps(lambda graph, x: graph.output(x)), {}),
    "another reader": (
        lambda: two_steps(lambda graph, x: graph.output(graph.eltwise(x, "linear", 0.5))),
        {},
    ),
    "by oneDNN": (two_steps, {"implementations": [[1, "jit_dw:avx512_core"]]}),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses(name):
    make, tuned = NEAR_MISSES[name]
    assert cascades(make(), **tuned) == []


def test_two_threads():
    graph = exact(two_steps()).tune("channels_last", cascades=True)
    engine = start(graph)
    if engine.profile()["threads"] < 2:
        pytest.skip("this process may use one thread only")
    assert engine.profile()["cascades"] == []
    # Of what was chosen for one thread, the results are the same.
    (expected,) = reference(graph)
    (got,) = run(engine, graph.input_data, [expected.shape])
    assert np.array_equal(got, expected)


def test_they_are_measured():
    """Whatever is faster: it is said, and the results are the same."""
    graph = Graph()
    x = pointwise(graph, image(graph, height=4 * HEIGHT), out=64)
    graph.output(pointwise(graph, depthwise(graph, x, 64), 64, 64))
    exact(graph)
    with one_thread():
        text, packed = pack(graph, graph.constant_data, tune="all")
        assert json.loads(text)["tuned"]["cascades"] in (True, False)
        engine = Engine(text)
        engine.set_constants(packed)
        (expected,) = reference(graph)
        (got,) = run(engine, graph.input_data, [expected.shape])
    assert np.array_equal(got, expected)
