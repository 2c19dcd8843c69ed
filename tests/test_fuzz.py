"""Random graphs: the partitioned build against plain TVM; scripts/fuzz.py runs thousands."""

import pytest
from differential import check, judge, reproducer
from graph_strategies import programs
from helpers import const, conv2d, var
from hypothesis import HealthCheck, given, note, settings
from isolation import Crashed, Isolated
from tvm import relay

import tvm_dnnl_byoc.relay.partition


@pytest.fixture(scope="module")
def isolated():
    with Isolated(judge) as function:
        yield function


@settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(programs())
def test_random_graphs(isolated, program):
    note(reproducer(program, opt_level=0))
    isolated(program.source, 0)


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
