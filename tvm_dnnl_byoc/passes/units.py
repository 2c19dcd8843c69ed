"""A function's body as units: chains that oneDNN can run, and single expressions for the rest."""

from ..ir import VALUES, Expr, Tuple
from .dataflow import inputs_of, is_constant, post_order
from .fuse import find_chains
from .operators import operator_of
from .regions import Node


class UnitGraph:
    """The units of a type-inferred body, each after those that it reads.

    Attributes
    ----------
    body : Expr
    found : Chains
    units : list of list of Expr
        Each a chain of expressions of which the last is its value.
    nodes : list of Node
        For each unit, what it reads and whether it can be offloaded.
    """

    def __init__(self, body: Expr):
        self.body = body
        self.found = find_chains(body)
        chains = {chain[-1]: chain for chain in self.found.chains}
        fused = {expr for chain in chains.values() for expr in chain}
        self.units: list[list[Expr]] = []
        self.nodes: list[Node] = []
        self._unit_of: dict[Expr, int] = {}
        order = post_order(body)
        # A tuple that only chains read is no unit: they read its fields.
        read = {e for reader in order if reader not in fused for e in inputs_of(reader)} | {body}
        for expr in order:
            if (
                (expr in fused and expr not in chains)
                or isinstance(expr, VALUES)
                or is_constant(expr)
            ):
                continue
            if expr in chains:
                self._add(chains[expr], supported=True)
            elif not isinstance(expr, Tuple) or expr in read:
                self._add([expr], supported=False)

    def value(self, unit: int) -> Expr:
        """Return the expression that a unit gives to others."""
        return self.units[unit][-1]

    def inputs(self, unit: int) -> list[Expr]:
        """Return what a unit reads from outside, each once, in order."""
        chain = self.units[unit]
        found: dict[Expr, None] = {}
        for expr in chain:
            for e in inputs_of(expr):
                parts = inputs_of(e) if isinstance(e, Tuple) and self._offloaded(unit) else [e]
                found.update(dict.fromkeys(p for p in parts if p not in chain))
        return list(found)

    def _offloaded(self, unit: int) -> bool:
        return self.nodes[unit].supported

    def _add(self, chain: list[Expr], supported: bool) -> None:
        unit = len(self.units)
        self.units.append(chain)
        heavy = any(operator.heavy for operator in map(operator_of, chain) if operator)
        node = Node((), supported, heavy)
        self.nodes.append(node)
        node.inputs = [self._unit_of[e] for e in self.inputs(unit) if e in self._unit_of]
        self._unit_of[chain[-1]] = unit


def region_inputs(graph: UnitGraph, units: list[int]) -> list[Expr]:
    """Return what these units read of others, each once, in order; constants are part of them."""
    inside = {graph.value(unit) for unit in units}
    reads = dict.fromkeys(e for unit in units for e in graph.inputs(unit))
    return [e for e in reads if e not in inside and not is_constant(e)]


def region_outputs(graph: UnitGraph, units: list[int]) -> list[Expr]:
    """Return what others than these units read of them, in order."""
    inside = set(units)
    read_outside = {graph.body} | {
        e for unit in range(len(graph.nodes)) if unit not in inside for e in graph.inputs(unit)
    }
    return [graph.value(unit) for unit in units if graph.value(unit) in read_outside]
