"""Random graphs: the partitioned build against plain TVM; scripts/fuzz.py runs thousands."""

import choices
import pytest
from differential import check, judge, reproducer
from graph_strategies import programs
from helpers import const, conv2d, var
from hypothesis import HealthCheck, given, note, settings
from isolation import Crashed, Isolated
from tvm import relay

import tvm_dnnl_byoc.relay.partition
from tvm_dnnl_byoc import build_info


@pytest.fixture(scope="module")
def isolated():
    with Isolated(judge) as function:
        yield function


@pytest.fixture(scope="module")
def isolated_choices():
    with Isolated(choices.judge) as function:
        yield function


def random_graphs(max_examples):
    """Run a test with that many programs, the same ones each time."""

    def decorate(test):
        return settings(
            max_examples=max_examples,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )(given(programs())(test))

    return decorate


@random_graphs(25)
def test_random_graphs(isolated, program):
    note(reproducer(program, opt_level=0))
    isolated(program.source, 0)


@random_graphs(100)
def test_random_graphs_with_all_choices(isolated_choices, program):
    note(choices.reproducer(program, opt_level=0))
    isolated_choices(program.source, 0)


def test_choices_run_the_algorithm_of_winograd():
    """In blocks and channels last, by two tiles; where the layout is any, it may be either."""
    y = conv2d(var("x", 1, 16, 6, 7), const(16, 16, 3, 3), padding=(1, 1))
    found = choices.check([relay.nn.relu(y)])
    assert "chunks" not in found
    has_kernels = build_info()["isa"] not in ("SSE41", "AVX")
    assert (found.count("winograd") >= 4) == has_kernels


def test_choices_run_image_by_image():
    y = conv2d(var("x", 2, 3, 6, 7), const(5, 3, 3, 3))
    assert choices.check([relay.nn.relu(y)]).count("chunks") == 9


def test_a_wrong_choice_is_found(monkeypatch):
    def wrong(document):
        document["nodes"][0]["attrs"]["padding_l"] = [1, 0]
        document["nodes"][0]["attrs"]["padding_r"] = [0, 1]
        return original(document)

    original = choices.ways
    monkeypatch.setattr(choices, "ways", wrong)
    with pytest.raises(AssertionError, match="output 0, scale"):
        choices.check([conv2d(var("x", 1, 16, 5, 5), const(16, 16, 3, 3), padding=(0, 0, 1, 1))])


def test_a_wrong_number_is_found(monkeypatch):
    def wrong(function):
        return relay.Function(function.params, function.body + relay.const(1e-3))

    monkeypatch.setattr(tvm_dnnl_byoc.relay.partition, "canonicalize", wrong)
    with pytest.raises(AssertionError, match="output 0, scale"):
        check([conv2d(var("x", 1, 3, 5, 7), const(4, 3, 3, 3))])


def test_an_exception_is_found(monkeypatch):
    def refuse(function):
        raise ValueError("expected nothing, got something")

    monkeypatch.setattr(tvm_dnnl_byoc.relay.partition, "canonicalize", refuse)
    with pytest.raises(AssertionError, match="expected nothing, got something"):
        check([conv2d(var("x", 1, 3, 5, 7), const(4, 3, 3, 3))])


def test_a_crash_is_found_and_survived(isolated):
    with pytest.raises(Crashed, match="exit code 3"):
        isolated("import os; os._exit(3)", 0)
    x = "outputs = [relay.nn.dense(var('x', 2, 3), const(5, 3))]"
    assert isolated(x, 0) == ["nn.dense"]
