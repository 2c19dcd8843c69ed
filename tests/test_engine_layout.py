"""Results in the layout that oneDNN prefers: asking for it, and giving it as it is."""

import ctypes
import re

import pytest
from engine_graph import Graph, InvalidArgument, build_info, call, check, json_bytes

pytestmark = pytest.mark.skipif(
    build_info()["isa"] in ("SSE41", "AVX"),
    reason="without AVX2, oneDNN prefers other layouts, some of them row-major",
)

BATCH, C, SIZES = 2, 32, (5, 7, 3)


def result_layout(graph, output=0):
    text = ctypes.c_char_p()
    call("result_layout", json_bytes(graph), ctypes.c_size_t(output), ctypes.byref(text))
    return text.value.decode()


def convolution(graph, src, dims):
    return graph.convolution(src, (C, C, *(3, 3, 1)[:dims]), padding_l=1, padding_r=1)


def one_convolution(dims):
    graph = Graph()
    return graph.output(convolution(graph, graph.input(BATCH, C, *SIZES[:dims]), dims))


def sizes_of_result(dims):
    return [*SIZES[:2], SIZES[2] + 2][:dims]


def preferred_block(dims):
    """Return how many channels of a convolution's result lie in a block; None if all do."""
    found = re.fullmatch(r"aB[cde]+(\d+)b", result_layout(one_convolution(dims)))
    return int(found[1]) if found else None


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_what_a_convolution_prefers(dims):
    letters = "cde"[:dims]
    expected = {f"aB{letters}16b", f"aB{letters}8b", f"a{letters}b"}
    assert result_layout(one_convolution(dims)) in expected


def test_each_result_has_its_own():
    graph = Graph()
    x = graph.input(BATCH, C, *SIZES[:2])
    graph.output(graph.eltwise(x), convolution(graph, x, 2))
    assert result_layout(graph, 0) == "abcd"
    assert result_layout(graph, 1) == result_layout(one_convolution(2))
    with pytest.raises(InvalidArgument, match="the number of one of 2 results, got 2"):
        result_layout(graph, 2)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("block", [None, 4, 8, 16])
def test_given_as_it_is(dims, block):
    """A transpose, of channels taken apart into blocks, costs nothing if oneDNN has them so."""
    graph = Graph()
    x = convolution(graph, graph.input(BATCH, C, *SIZES[:dims]), dims)
    if block is None:
        axes = [0, *range(2, 2 + dims), 1]
    else:
        x = graph.reshape(x, BATCH, C // block, block, *sizes_of_result(dims))
        axes = [0, 1, *range(3, 3 + dims), 2]
    profile = check(graph.output(graph.node("transpose", [x], axes=axes))).profile
    out = profile["steps"][-1]["kind"] == "reorder"
    assert out == (block != preferred_block(dims))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("block", [None, 4, 8, 16])
def test_taken_as_it_is(dims, block):
    graph = Graph()
    sizes = SIZES[:dims]
    if block is None:
        x, axes = graph.input(BATCH, *sizes, C), [0, 1 + dims, *range(1, 1 + dims)]
    else:
        x = graph.input(BATCH, C // block, *sizes, block)
        axes = [0, 1, 2 + dims, *range(2, 2 + dims)]
    x = graph.node("transpose", [x], axes=axes)
    if block is not None:
        x = graph.reshape(x, BATCH, C, *sizes)
    profile = check(graph.output(convolution(graph, x, dims))).profile
    into = profile["steps"][0]["kind"] == "reorder"
    assert into == (block != preferred_block(dims))


def test_blocks_that_are_not_those_of_channels():
    """Near misses: other dimensions are taken apart, or put together in another order."""
    graph = Graph()
    x = convolution(graph, graph.input(BATCH, C, 6, 8), 2)
    rows_apart = graph.reshape(x, BATCH, C, 2, 3, 8)
    reversed_blocks = graph.reshape(x, BATCH, 16, C // 16, 6, 8)
    graph.output(
        graph.node("transpose", [rows_apart], axes=[0, 1, 3, 4, 2]),
        graph.node("transpose", [reversed_blocks], axes=[0, 1, 3, 4, 2]),
    )
    check(graph)
    graph = Graph()
    x = graph.node("transpose", [graph.input(BATCH, 16, 6, 8, C // 16)], axes=[0, 4, 1, 2, 3])
    graph.output(convolution(graph, graph.reshape(x, BATCH, C, 6, 8), 2))
    check(graph)
