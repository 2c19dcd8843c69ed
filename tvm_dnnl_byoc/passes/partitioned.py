"""What partitioning says of its result."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from ..ir import Expr
from .units import UnitGraph


@dataclass(frozen=True)
class Partitioned:
    """What became of a function, or of one block of it.

    Attributes
    ----------
    graph : UnitGraph
        Its canonical body. That of a block is a tuple made of what the block gives to others.
    regions : dict of str to list of int
        By the region's symbol: the units of the graph that are in it.
    reads : dict of Expr to object
        Of a block, by leaf of the graph: what the function calls it.
    gives : sequence of object, or None
        Of a block, what the function calls the fields of the body.
    """

    graph: UnitGraph
    regions: dict[str, list[int]]
    reads: Mapping[Expr, Hashable] = field(default_factory=dict)
    gives: Sequence[Hashable] | None = None
