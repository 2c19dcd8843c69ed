"""Builds the Relay function of a region."""

from collections.abc import Callable
from dataclasses import dataclass

from tvm import relay
from tvm.relay.expr import Constant, Expr, Tuple

from .composed import composed_of
from .dataflow import inputs_of, is_constant, op_name, with_inputs
from .units import UnitGraph


@dataclass
class Region:
    """A region's function, and the outer expressions that its inputs and outputs stand for."""

    function: relay.Function
    inputs: list[Expr]
    outputs: list[Expr]


def build_region(graph: UnitGraph, units: list[int]) -> Region:
    """Return a function of the given units; constants become part of it."""
    inside = {graph.value(unit) for unit in units}
    inputs = dict.fromkeys(
        e for unit in units for e in graph.inputs(unit) if e not in inside and not is_constant(e)
    )
    local: dict[Expr, Expr] = {e: _param(f"i{n}", e) for n, e in enumerate(inputs)}
    params = list(local.values())
    for unit in units:
        local[graph.value(unit)] = _chain_call(graph.units[unit], graph.inputs(unit), local)

    outputs = outputs_of(graph, units)
    results = [local[e] for e in outputs]
    # With its type: TVM may infer the caller, which takes the tuple apart, before the region.
    types = [e.checked_type for e in outputs]
    if len(results) == 1:
        function = relay.Function(params, results[0], types[0])
    else:
        function = relay.Function(params, Tuple(results), relay.TupleType(types))
    return Region(function, list(inputs), outputs)


def outputs_of(graph: UnitGraph, units: list[int]) -> list[Expr]:
    """Return what others than these units read of them, in order."""
    inside = set(units)
    read_outside = {graph.body} | {
        e for unit in range(len(graph.nodes)) if unit not in inside for e in graph.inputs(unit)
    }
    return [graph.value(unit) for unit in units if graph.value(unit) in read_outside]


def _chain_call(chain: list[Expr], inputs: list[Expr], local: dict[Expr, Expr]) -> Expr:
    """Return a chain as a call: of its operator, or of a composite function if there are more."""
    if len(chain) == 1:
        return _rebuild(chain[0], lambda e: local.get(e, e))
    inputs = [e for e in inputs if not isinstance(e, Constant)]
    inner: dict[Expr, Expr] = {e: _param(f"p{n}", e) for n, e in enumerate(inputs)}
    params = list(inner.values())
    for expr in chain:
        inner[expr] = _rebuild(expr, lambda e: inner.get(e, e))
    names = [composed_of(e) or (op_name(e) or "").removeprefix("nn.") for e in chain]
    composite = relay.Function(params, inner[chain[-1]]).with_attr(
        "Composite", "dnnl." + "_".join(filter(None, names))
    )
    return relay.Call(composite, [local.get(e, e) for e in inputs])


def _rebuild(expr: Expr, replace: Callable[[Expr], Expr]) -> Expr:
    inputs = [
        with_inputs(e, [replace(f) for f in e.fields]) if isinstance(e, Tuple) else replace(e)
        for e in inputs_of(expr)
    ]
    return with_inputs(expr, inputs)


def _param(name: str, stands_for: Expr) -> relay.Var:
    return relay.var(name, type_annotation=stands_for.checked_type)
