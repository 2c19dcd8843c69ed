"""Random graphs in all ways in which the engine may run regions; scripts/fuzz.py runs more."""

import choices
import pytest
from graph_strategies import programs, same_each_time
from helpers import const, conv2d, var
from hypothesis import given, note
from isolation import Isolated
from tvm import relay

from tvm_dnnl_byoc import build_info


@pytest.fixture(scope="module")
def isolated_choices():
    with Isolated(choices.judge) as function:
        yield function


@same_each_time(100)
@given(programs())
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


def test_results_of_another_dtype():
    y = relay.nn.dense(var("x", 2, 3), const(5, 3))
    assert "chunks" in choices.check([y, relay.expand_dims(var("z", 1, dtype="int8"), axis=0)])


def test_a_wrong_choice_is_found(monkeypatch):
    def wrong(document):
        document["nodes"][0]["attrs"]["padding_l"] = [1, 0]
        document["nodes"][0]["attrs"]["padding_r"] = [0, 1]
        return original(document)

    original = choices.ways
    monkeypatch.setattr(choices, "ways", wrong)
    with pytest.raises(AssertionError, match="output 0, scale"):
        choices.check([conv2d(var("x", 1, 16, 5, 5), const(16, 16, 3, 3), padding=(0, 0, 1, 1))])
