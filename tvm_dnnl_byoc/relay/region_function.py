"""Builds the Relay function of a region."""

from collections.abc import Callable
from dataclasses import dataclass

from tvm import relay
from tvm.relay.expr import Constant, Expr, Tuple

from ..ir import op_name, parameter
from ..passes.composed import composed_of
from ..passes.dataflow import inputs_of, with_inputs
from ..passes.units import UnitGraph, region_inputs, region_outputs


@dataclass
class Region:
    """A region's function, and the outer expressions that its inputs and outputs stand for."""

    function: relay.Function
    inputs: list[Expr]
    outputs: list[Expr]


def build_region(graph: UnitGraph, units: list[int]) -> Region:
    """Return a function of the given units; constants become part of it."""
    inputs = region_inputs(graph, units)
    local: dict[Expr, Expr] = {e: parameter(f"i{n}", e) for n, e in enumerate(inputs)}
    params = list(local.values())
    for unit in units:
        local[graph.value(unit)] = _chain_call(graph.units[unit], graph.inputs(unit), local)

    outputs = region_outputs(graph, units)
    results = [local[e] for e in outputs]
    # With its type: TVM may infer the caller, which takes the tuple apart, before the region.
    types = [e.checked_type for e in outputs]
    if len(results) == 1:
        function = relay.Function(params, results[0], types[0])
    else:
        function = relay.Function(params, Tuple(results), relay.TupleType(types))
    return Region(function, inputs, outputs)


def _chain_call(chain: list[Expr], inputs: list[Expr], local: dict[Expr, Expr]) -> Expr:
    """Return a chain as a call: of its operator, or of a composite function if there are more."""
    if len(chain) == 1:
        return _rebuild(chain[0], lambda e: local.get(e, e))
    inputs = [e for e in inputs if not isinstance(e, Constant)]
    inner: dict[Expr, Expr] = {e: parameter(f"p{n}", e) for n, e in enumerate(inputs)}
    params = list(inner.values())
    for expr in chain:
        inner[expr] = _rebuild(expr, lambda e: inner.get(e, e))
    names = [(composed_of(e) or op_name(e) or "").removeprefix("nn.") for e in chain]
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
