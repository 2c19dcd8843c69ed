"""Random graphs: the partitioned build against plain TVM; scripts/fuzz.py runs thousands."""

import numpy as np
import pytest
from differential import DYNAMIC, check, judge, reproducer
from front import RELAY, const, conv2d, relay, var
from graph_strategies import programs, same_each_time
from hypothesis import given, note
from isolation import Crashed, Isolated

from tvm_dnnl_byoc import ir

if RELAY:
    from tvm_dnnl_byoc.relay import partition
else:
    from tvm_dnnl_byoc.relax import partition


@pytest.fixture(scope="module")
def isolated():
    with Isolated(judge) as function:
        yield function


@same_each_time(25)
@given(programs())
def test_random_graphs(isolated, program):
    note(reproducer(program, opt_level=0))
    isolated(program.source, 0)


@same_each_time(10)
@given(programs())
def test_random_graphs_of_any_batch(isolated, program):
    note(reproducer(program, DYNAMIC))
    isolated(program.source, DYNAMIC)


def test_a_batch_is_dynamic(isolated):
    source = "v0 = var('x0', batch, 3)\nv1 = relay.nn.dense(v0, const(5, 3))\noutputs = [v1]"
    assert len(isolated(f"batch = 2\n{source}", DYNAMIC)) == 1


def test_a_wrong_number_is_found(monkeypatch):
    def more(expr):
        result = ir.add(expr, ir.constant(np.float32(1e-3)))
        if not RELAY:
            result.var = expr.var
        return result

    def wrong(given):
        if RELAY:
            return relay.Function(given.params, more(given.body))
        return ir.Tuple(given.checked_type, list(map(more, given.fields))), set()

    monkeypatch.setattr(partition, "canonicalize", wrong)
    with pytest.raises(AssertionError, match="output 0, scale"):
        check([conv2d(var("x", 1, 3, 5, 7), const(4, 3, 3, 3))])


def test_an_exception_is_found(monkeypatch):
    def refuse(function):
        raise ValueError("expected nothing, got something")

    monkeypatch.setattr(partition, "canonicalize", refuse)
    with pytest.raises(AssertionError, match="expected nothing, got something"):
        check([conv2d(var("x", 1, 3, 5, 7), const(4, 3, 3, 3))])


def test_a_crash_is_found_and_survived(isolated):
    with pytest.raises(Crashed, match="exit code 3"):
        isolated("batch = 2\nimport os; os._exit(3)", 0)
    x = "batch = 2\noutputs = [relay.nn.dense(var('x', batch, 3), const(5, 3))]"
    assert len(isolated(x, 0)) == 1
