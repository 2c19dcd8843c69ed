"""Divides a graph of supported and unsupported nodes into regions. Knows nothing of TVM."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Node:
    """A node: the numbers of the nodes that it reads, all smaller than its own."""

    inputs: Sequence[int]
    supported: bool
    heavy: bool = False


def find_regions(nodes: Sequence[Node], keep_light: bool = False) -> list[list[int]]:
    """Group the supported nodes into regions that can each run as one unit.

    A node's level is the number of borders between supported and unsupported nodes on the worst
    path to it; a path that leaves a level never comes back, so the supported nodes of one level
    can be merged without making a cycle. A region is a connected piece of a level. Regions with
    no heavy node are dissolved, which may let others grow together, unless `keep_light`.

    Returns
    -------
    list of list of int
        The nodes of each region, ascending; the regions in the order of their first nodes.
    """
    supported = [node.supported for node in nodes]
    while True:
        regions = _connected_levels(nodes, supported)
        light = [r for r in regions if not any(nodes[i].heavy for i in r)]
        if not light or keep_light:
            return regions
        for region in light:
            for i in region:
                supported[i] = False


def _connected_levels(nodes: Sequence[Node], supported: Sequence[bool]) -> list[list[int]]:
    level: list[int] = []
    parent = list(range(len(nodes)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, node in enumerate(nodes):
        lowest = 0 if supported[i] else -1
        level.append(
            max((level[j] + (supported[j] != supported[i]) for j in node.inputs), default=lowest)
        )
        level[i] = max(level[i], lowest)
        for j in node.inputs:
            if supported[i] and supported[j] and level[i] == level[j]:
                parent[root(i)] = root(j)

    regions: dict[int, list[int]] = {}
    for i in range(len(nodes)):
        if supported[i]:
            regions.setdefault(root(i), []).append(i)
    return sorted(regions.values())
