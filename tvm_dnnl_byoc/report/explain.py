"""Partitions a module, and reports what became of each operator."""

from collections import Counter
from collections.abc import Hashable, Iterable

import tvm

from ..front import calls_inside, partition
from ..ir import Call, Expr, Tuple, TupleGetItem, kind_of, op_name, type_text
from ..passes.composed import composed_of
from ..passes.dataflow import post_order
from ..passes.operators import operator_of
from ..passes.partitioned import Partitioned
from ..passes.units import UnitGraph, region_inputs, region_outputs
from ..passes.work import multiply_adds
from .model import Node, OperatorKind, Region, Report

LIGHT = (
    "its region would have no convolution or matrix product: "
    "the way over the border would cost more than oneDNN gains"
)
UNKNOWN = "not an operator that oneDNN is used for"
OPAQUE = "control flow, a call of a function, or a check of a shape: only TVM runs it"
INSIDE = "inside control flow or a nested function, which only TVM runs"
GROUPING = "nothing to compute: it groups results, or takes one out"


def explain(mod: tvm.IRModule, params: dict | None = None) -> Report:
    """Say what ``partition_for_dnnl`` offloads of a module, and why the rest stays in TVM.

    >>> explain(mod, params).print()

    Parameters
    ----------
    mod : tvm.IRModule
        A Relay or Relax module, whichever TVM has. It is not changed.
    params : dict of str to numpy.ndarray, or to a tensor of TVM's, optional
        The weights.

    Raises
    ------
    TypeError
        If ``mod`` is no module.
    """
    return report_of(partition(mod, params)[1])


def report_of(parts: Iterable[Partitioned]) -> Report:
    """Say what was offloaded of a module, by what partitioning says of its parts."""
    collector = _Collector()
    for part in parts:
        collector.add(part)
    return collector.report()


class _Collector:
    def __init__(self):
        self.alone: Counter[str] = Counter()  # by operator
        self.fused: Counter[tuple[str, str]] = Counter()  # by operator, and what it is fused into
        self.stayed: Counter[tuple[str, str]] = Counter()  # by operator and reason
        self.unfused: Counter[tuple[str, str]] = Counter()
        self.regions: list[Region] = []
        self.nodes: list[Node] = []
        self.given: dict[Hashable, int] = {}  # by what a function calls it: a node's number
        self.work: list[tuple[bool, int | None]] = []  # offloaded, multiply-adds

    def add(self, part: Partitioned) -> None:
        graph = part.graph
        symbol_of = {unit: symbol for symbol, units in part.regions.items() for unit in units}
        first = len(self.nodes)
        order = post_order(graph.body)
        seen = {call for expr in order for call in (expr, *_calls_of(expr))}
        work: list[int | None] = []
        for unit, chain in enumerate(graph.units):
            if part.gives is not None and chain[-1] is graph.body:  # the last, and made up
                break
            calls = [expr for expr in chain if _name(expr)]
            symbol = symbol_of.get(unit)
            hidden = [] if calls else _hidden_calls(chain[-1], seen)
            self.stayed.update((_name(call), INSIDE) for call in hidden)
            work.append(_work(calls or hidden))
            self.work.append((symbol is not None, work[-1]))
            reasons = [] if symbol else [self.reason(expr, graph) for expr in calls]
            reason = reasons[0] if reasons else _why_no_operator(chain[-1])
            if symbol:
                self.count_offloaded(calls, graph.found.unfused)
            else:
                self.stayed.update(zip(map(_name, calls), reasons, strict=True))
            read = [part.reads.get(e) for e in graph.inputs(unit)]
            self.nodes.append(
                Node(
                    operators=[_name(expr) for expr in calls] or [kind_of(chain[-1])],
                    shape=type_text(chain[-1]),
                    inputs=[first + j for j in graph.nodes[unit].inputs]
                    + [self.given[name] for name in read if name in self.given],
                    region=symbol,
                    reason="" if symbol else reason,
                )
            )
        for symbol, units in part.regions.items():
            self.regions.append(_region(symbol, units, part, work))
        if part.gives is not None:
            number = {graph.value(unit): first + unit for unit in range(len(work))}
            given = zip(part.gives, graph.body.fields, strict=True)
            self.given.update((name, number[e]) for name, e in given if e in number)

    def count_offloaded(self, calls: list[Expr], unfused: dict[Expr, str]) -> None:
        head, *rest = map(_name, calls)
        self.alone[head] += 1
        if calls[0] in unfused:
            self.unfused[head, unfused[calls[0]]] += 1
        self.fused.update((name, head) for name in rest)

    @staticmethod
    def reason(expr: Expr, graph: UnitGraph) -> str:
        if operator_of(expr) is None:
            return UNKNOWN
        reason = graph.found.refusals.get(expr)
        return reason.removeprefix(f"{_name(expr)}: ") if reason else LIGHT

    def report(self) -> Report:
        names = {*self.alone, *(name for name, _ in self.fused | self.stayed)}

        def texts(counter: Counter, name: str) -> dict[str, int]:
            return {text: n for (key, text), n in sorted(counter.items()) if key == name}

        kinds = []
        for name in names:
            fused, stayed = texts(self.fused, name), texts(self.stayed, name)
            offloaded = self.alone[name] + sum(fused.values())
            kinds.append(
                OperatorKind(
                    name,
                    count=offloaded + sum(stayed.values()),
                    offloaded=offloaded,
                    alone=self.alone[name],
                    fused=fused,
                    stayed=stayed,
                    unfused=texts(self.unfused, name),
                )
            )
        kinds.sort(key=lambda kind: (-kind.count, kind.name))
        return Report(
            kinds,
            self.regions,
            self.nodes,
            multiply_adds=_total([n for _, n in self.work]),
            offloaded_multiply_adds=_total([n for offloaded, n in self.work if offloaded]),
        )


def _region(symbol: str, units: list[int], part: Partitioned, work: list[int | None]) -> Region:
    graph = part.graph
    return Region(
        symbol,
        operators=sum(bool(_name(expr)) for unit in units for expr in graph.units[unit]),
        primitives=len(units),
        inputs=len(region_inputs(graph, units)),
        outputs=len(region_outputs(graph, units)),
        multiply_adds=_total([work[unit] for unit in units]),
    )


def _hidden_calls(expr: Expr, seen: set[Expr]) -> list[Expr]:
    """Return the operators under an opaque expression, but those seen, and add them to these."""
    hidden = [call for call in calls_inside(expr) if _name(call) and call not in seen]
    seen.update(hidden)
    return hidden


def _why_no_operator(expr: Expr) -> str:
    return GROUPING if isinstance(expr, Tuple | TupleGetItem) else OPAQUE


def _name(expr: Expr) -> str | None:
    """Return the name of an operator's call, or of a composed function's; None for the rest."""
    return composed_of(expr) or op_name(expr)


def _calls_of(expr: Expr) -> list[Call]:
    """Return the calls that a composed function's call stands for; none for the rest."""
    return [e for e in post_order(expr.op.body) if isinstance(e, Call)] if composed_of(expr) else []


def _work(calls: list[Call]) -> int | None:
    parts = [part for call in calls for part in (_calls_of(call) if composed_of(call) else [call])]
    try:
        return sum(map(multiply_adds, parts))
    except ValueError:  # a dynamic shape
        return None


def _total(counts: list[int | None]) -> int | None:
    return None if None in counts else sum(counts)
