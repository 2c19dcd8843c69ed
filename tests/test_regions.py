"""Regions of graphs with unsupported nodes: maximal pieces that can run as one, without cycles."""

import graphlib
from pathlib import Path

import pytest
from engine_graph import PACKAGE, load_module
from hypothesis import given, settings
from hypothesis import strategies as st

regions = load_module(Path(PACKAGE, "passes", "regions.py"))
find_regions = regions.find_regions


def graph(*rows):
    """Return nodes from "kind inputs…": h(eavy), l(ight) or u(nsupported)."""
    nodes = []
    for row in rows:
        kind, *inputs = row.split()
        nodes.append(
            regions.Node([int(i) for i in inputs], supported=kind != "u", heavy=kind == "h")
        )
    return nodes


def check(nodes):
    """Return the regions, which have what they promise."""
    found = find_regions(nodes)
    region_of = {i: r for r, region in enumerate(found) for i in region}
    assert len(region_of) == sum(map(len, found)), "regions overlap"
    assert found == sorted(sorted(region) for region in found), "not in order"
    for region in found:
        assert all(nodes[i].supported for i in region)
        assert any(nodes[i].heavy for i in region), "light region"
        assert connected(nodes, region)
    for i, node in enumerate(nodes):
        if node.supported and node.heavy:
            assert i in region_of, f"heavy node {i} is left out"
    quotient = graphlib.TopologicalSorter()
    for i, node in enumerate(nodes):
        own = region_of.get(i, f"node {i}")
        others = {region_of.get(j, f"node {j}") for j in node.inputs}
        quotient.add(own, *(others - {own}))
    quotient.prepare()  # raises CycleError
    return found


def connected(nodes, region):
    """Whether a region is one piece, edges taken in both directions."""
    members, reached = set(region), {region[0]}
    edges = [(i, j) for i in region for j in nodes[i].inputs if j in members]
    for _ in region:
        for i, j in edges:
            if i in reached or j in reached:
                reached |= {i, j}
    return reached == members


CASES = {
    "nothing": ([], []),
    "nothing supported": (["u", "u 0"], []),
    "one heavy node": (["h"], [[0]]),
    "one light node": (["l"], []),
    "a chain": (["u", "h 0", "l 1", "h 2", "u 3"], [[1, 2, 3]]),
    "light nodes join heavy ones": (["l", "h 0", "l 1", "l 2"], [[0, 1, 2, 3]]),
    "a chain cut in two": (["h", "u 0", "h 1"], [[0], [2]]),
    "a light piece is dissolved": (["h", "u 0", "l 1", "l 2", "u 3", "h 4"], [[0], [5]]),
    # 0 -> 1 (unsupported) -> 2 and 0 -> 2: together they would have to run before and after 1.
    "a diamond through an unsupported node": (["h", "u 0", "h 0 1"], [[0], [2]]),
    "a diamond of supported nodes": (["h", "l 0", "h 0", "l 1 2"], [[0, 1, 2, 3]]),
    "both arms of the diamond unsupported": (["h", "u 0", "u 0", "h 1 2"], [[0], [3]]),
    # The arm 2 belongs to the first region; 3 needs the unsupported node.
    "a diamond with one supported arm": (["h", "u 0", "h 0", "h 1 2"], [[0, 2], [3]]),
    "a long way round": (["h", "u 0", "u 1", "u 2", "h 0 3"], [[0], [4]]),
    "an input of two": (["u", "h 0", "h 0", "u 1 2"], [[1], [2]]),
    "two pieces that never meet": (["h", "h", "l 0", "l 1"], [[0, 2], [1, 3]]),
    "joined by a later node": (["h", "h", "l 0 1"], [[0, 1, 2]]),
    "a node reads another twice": (["h", "h 0 0"], [[0, 1]]),
    "nodes without inputs": (["l", "u", "h 0 1"], [[0, 2]]),
    "a light piece between and a path around it": (
        ["h", "u 0", "l 1", "l 2", "u 3", "h 4 0"],
        [[0], [5]],
    ),
    "two heavy neighbours of one unsupported node": (["u", "h 0", "l 0", "h 1 2"], [[1, 2, 3]]),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    rows, expected = CASES[name]
    assert check(graph(*rows)) == expected


def test_dissolving_lets_others_grow():
    """While 2 is a region, 5 has to wait for it and 4 has not; without it they are one region."""
    rows = ["u", "u", "h 0", "u 2", "h 1", "h 3 4", "h 5"]
    assert check(graph(*rows)) == [[2], [4], [5, 6]]
    rows[2] = "l 0"
    assert check(graph(*rows)) == [[4, 5, 6]]


def test_many_nodes_take_no_long_time():
    nodes = graph("h", *(f"{'u' if i % 7 == 0 else 'h'} {i - 1} {i // 2}" for i in range(1, 3000)))
    assert len(find_regions(nodes)) > 100


@st.composite
def graphs(draw):
    nodes = []
    for i in range(draw(st.integers(0, 24))):
        inputs = draw(st.lists(st.integers(0, i - 1), max_size=3)) if i else []
        kind = draw(st.sampled_from("hhlllu"))
        nodes.append(regions.Node(inputs, supported=kind != "u", heavy=kind == "h"))
    return nodes


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(graphs())
def test_properties(nodes):
    found = check(nodes)
    assert find_regions(nodes) == found
