"""Lets operators that stay in TVM between two regions work on the data as oneDNN leaves it.

A region takes and gives row-major tensors. Where a convolution's result goes through an operator of
TVM's into the next convolution, that would be two reorders of the tensor, which take as long as the
operator itself. TVM's own pass of this name alters the layout of each convolution and has all
others follow. Inside of a region the engine does that, and its build packs the weights, so what is
left to alter is the few operators between regions: they are given views of the data, of which those
on the side of a region cost nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import relay
from tvm.relay.expr import Expr

from ..ir import array_of, constant, op_name, sizes_of, with_attrs
from ..passes.dataflow import is_constant, rewrite, with_inputs
from ..passes.units import UnitGraph, region_outputs
from .dynamic import has_unknown_sizes
from .region_function import build_region

# Elementwise operators do not look at the shape, unless an attribute says where.
_ELEMENTWISE, _BROADCAST = 0, 1  # values of TOpPattern
_ATTRS_OF_ANY_SHAPE = {"a_min", "a_max", "alpha", "dtype"}
# Operators that do not mix channels, of any layout that their attribute `layout` names.
_WITH_LAYOUT = {"image.resize2d", "nn.upsampling"}

_SPATIAL = {3: "W", 4: "HW", 5: "DHW"}


@dataclass(frozen=True)
class Layout:
    """A layout of data (N, C, …): channels last, or in blocks, (N, C / block, …, block).

    Attributes
    ----------
    block : int or None
        None if all channels come last.
    """

    block: int | None

    def name(self, rank: int) -> str:
        """Return TVM's name, such as "NCHW16c"."""
        spatial = _SPATIAL[rank]
        return f"N{spatial}C" if self.block is None else f"NC{spatial}{self.block}c"

    def applied(self, data: Expr, shape: Sequence[int]) -> Expr:
        """Return a tensor of that shape in this layout."""
        if self.block is not None:
            data = relay.reshape(data, self._blocks_apart(shape))
        return relay.transpose(data, self._axes(len(shape)))

    def undone(self, data: Expr, shape: Sequence[int]) -> Expr:
        """Return what is a tensor of that shape in this layout as it was."""
        data = relay.transpose(data, np.argsort(self._axes(len(shape))).tolist())
        return data if self.block is None else relay.reshape(data, shape)

    def of_array(self, array: np.ndarray, rank: int) -> np.ndarray:
        """Return an operand that is broadcast to a tensor of that rank, in this layout."""
        if array.ndim == 0:
            return array
        array = array.reshape((1,) * (rank - array.ndim) + array.shape)
        if self.block is not None:
            array = array.reshape(self._blocks_apart(array.shape))
        return array.transpose(self._axes(rank))

    def takes(self, shape: Sequence[int]) -> bool:
        """Whether its channels fill whole blocks."""
        return self.block is None or shape[1] % self.block == 0

    def _blocks_apart(self, shape: Sequence[int]) -> tuple[int, ...]:
        n, channels, *spatial = shape
        block = 1 if channels == 1 else self.block  # of what is broadcast along them
        return (n, channels // block, block, *spatial)

    def _axes(self, rank: int) -> list[int]:
        if self.block is None:
            return [0, *range(2, rank), 1]
        return [0, 1, *range(3, rank + 1), 2]


# By oneDNN's name of the format tag.
_LAYOUTS = {
    **{tag: Layout(None) for tag in ("acb", "acdb", "acdeb")},
    **{f"aB{rest}{block}b": Layout(block) for rest in ("c", "cd", "cde") for block in (8, 16)},
}


def alter_layouts(graph: UnitGraph, regions: list[list[int]], attrs: dict) -> Expr | None:
    """Return a body in which what stays between regions reads and writes their layouts.

    Altered are connected elementwise operators and resizings, on data (N, C, …) of known sizes, if
    all that they read but constants comes of regions that would leave it in one and the same
    layout, and only regions read their results.

    Parameters
    ----------
    graph : UnitGraph
    regions : list of list of int
        The units of each.
    attrs : dict
        Of the regions' functions.

    Returns
    -------
    Expr
        Without types; its regions are others. None if there is nothing to alter.
    """
    layouts: dict[Expr, Layout] = {}  # by result of an operator that is altered
    layout_of = _layouts_of_results(graph, regions, attrs)
    region_of = {unit: number for number, region in enumerate(regions) for unit in region}
    for component in _components(graph, region_of):
        layout = _common_layout(graph, component, region_of, layout_of)
        if layout:
            layouts.update((graph.value(unit), layout) for unit in component)
    if not layouts:
        return None
    inside: dict[Expr, Expr] = {}  # by result of an altered operator: it in its layout

    def alter(new: Expr, old: Expr) -> Expr | None:
        layout = layouts.get(old)
        if layout is None:
            return None
        shape = sizes_of(old)

        def operand(arg: Expr, typed: Expr) -> Expr:
            array = array_of(arg)
            if array is not None:
                return constant(layout.of_array(array, len(shape)))
            return inside[arg] if arg in inside else layout.applied(arg, sizes_of(typed))

        args = [operand(arg, typed) for arg, typed in zip(new.args, old.args, strict=True)]
        if op_name(new) in _WITH_LAYOUT:
            altered = with_attrs(new, args, layout=layout.name(len(shape)))
        else:
            altered = with_inputs(new, args)
        result = layout.undone(altered, shape)
        inside[result] = altered
        return result

    return rewrite(graph.body, alter)


def _layouts_of_results(
    graph: UnitGraph, regions: list[list[int]], attrs: dict
) -> Callable[[int, Expr], Layout | None]:
    """Return a function that asks the engine for the layout of a region's result."""
    ask = tvm.get_global_func("tvm_dnnl_byoc.layout_of_result")
    functions: dict[int, relay.Function] = {}

    def layout_of(region: int, result: Expr) -> Layout | None:
        if region not in functions:
            function = build_region(graph, regions[region]).function
            mod = tvm.IRModule.from_expr(function.with_attr(attrs) if attrs else function)
            functions[region] = relay.transform.InferType()(mod)["main"]
        if has_unknown_sizes(functions[region]):
            return None
        output = region_outputs(graph, regions[region]).index(result)
        return _LAYOUTS.get(ask(functions[region], output))

    return layout_of


def _components(graph: UnitGraph, region_of: dict[int, int]) -> list[list[int]]:
    """Return the units that stay and can be altered, connected ones together."""
    component_of: dict[int, list[int]] = {}
    for unit, node in enumerate(graph.nodes):
        if unit in region_of or not _is_of_any_layout(graph.value(unit)):
            continue
        merged = [unit]
        for other in {id(c): c for i in node.inputs if (c := component_of.get(i))}.values():
            merged = other + merged
        for i in merged:
            component_of[i] = merged
    return list({id(component): component for component in component_of.values()}.values())


def _is_of_any_layout(expr: Expr) -> bool:
    """Whether an expression calls an operator that computes the same in each layout."""
    name, shape = op_name(expr), _static(expr)
    if name is None or shape is None or len(shape) not in _SPATIAL:
        return False
    if name in _WITH_LAYOUT:
        return expr.attrs.layout == "NCHW" and (_static(expr.args[0]) or ())[:2] == shape[:2]
    if expr.op.get_attr("TOpPattern") not in (_ELEMENTWISE, _BROADCAST):
        return False
    keys = set(expr.attrs.keys()) if expr.attrs else set()
    data = [arg for arg in expr.args if array_of(arg) is None]
    return keys <= _ATTRS_OF_ANY_SHAPE and all(_static(arg) == shape for arg in data)


def _static(expr: Expr) -> tuple[int, ...] | None:
    """Return the shape of a tensor; None if a size is unknown, or nothing is in it."""
    shape = sizes_of(expr)
    return None if shape is None or None in shape or 0 in shape else shape


def _common_layout(
    graph: UnitGraph,
    component: list[int],
    region_of: dict[int, int],
    layout_of: Callable[[int, Expr], Layout | None],
) -> Layout | None:
    """Return the layout of all that a component reads; None if it does not lie between regions."""
    unit_of = {graph.value(unit): unit for unit in range(len(graph.units))}
    members = set(component)
    read: dict[Expr, int | None] = {}  # by what comes from outside: its region
    for unit in component:
        for expr in graph.inputs(unit):
            if unit_of.get(expr) not in members and not is_constant(expr):
                read[expr] = region_of.get(unit_of.get(expr, -1))
    readers = {
        unit
        for unit, node in enumerate(graph.nodes)
        if unit not in members and not members.isdisjoint(node.inputs)
    }
    values = [graph.value(unit) for unit in component]
    if None in read.values() or graph.body in values or not readers <= region_of.keys():
        return None
    found = {layout_of(region, expr) for expr, region in read.items()}
    layout = found.pop() if len(found) == 1 else None
    takes = layout and all(layout.takes(sizes_of(expr)) for expr in (*read, *values))
    return layout if takes else None
