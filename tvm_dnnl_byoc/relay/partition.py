"""Moves what oneDNN runs well into functions of their own."""

import warnings
from collections.abc import Callable
from graphlib import TopologicalSorter

import tvm
from tvm import relay
from tvm.relay.build_module import bind_params_by_name
from tvm.relay.expr import Expr, Tuple

from ..ir import op_name
from ..passes.composed import combine_activations, composed_of, spelled_out
from ..passes.dataflow import inputs_of, with_body, with_inputs
from ..passes.partitioned import Partitioned
from ..passes.pooling import convolve_first
from ..passes.regions import find_regions
from ..passes.units import UnitGraph
from .alter_op_layout import alter_layouts
from .canonicalize import canonicalize
from .dynamic import has_unknown_sizes, name_of, standing_for
from .products import as_matrices, combine_products
from .qnn import has_qnn, qdq_of_qnn
from .region_function import build_region
from .sizes import forget_sizes, has_named_sizes, name_sizes
from .views import sink_views
from .widen import precision_of, widen

PRECISIONS = ("f32", "bf16", "f16")


def partition_for_dnnl(
    mod: tvm.IRModule,
    params: dict | None = None,
    keep_light_regions: bool = False,
    precision: str | None = None,
    alter_op_layout: bool = True,
) -> tvm.IRModule:
    """Offload to oneDNN what it runs well; the rest stays as it is, for TVM.

    Parameters
    ----------
    mod : tvm.IRModule
        A Relay module. It is not changed.
    params : dict of str to tvm.nd.NDArray or numpy.ndarray, optional
        The weights. Without them nothing can be folded or prepacked: weights are then arguments
        like any other, repacked at every call.
    keep_light_regions : bool
        Whether to keep the regions in which no operator is worth the way over their border, such
        as a lone softmax. This makes models slower; it is for tests of the operators.
    precision : str, optional
        ``"f32"``; or ``"bf16"`` or ``"f16"``: what convolutions and matrix products in regions
        read, and what operators in a region leave to each other. Sums are in f32, as are the inputs
        and outputs of regions, what a softmax reads, and whatever oneDNN is not fast for otherwise.
        On a processor without instructions for it, all is in f32, with a warning. By default, it is
        that of the model: one whose convolutions and matrix products are in bf16 or f16, such as
        TVM's ToMixedPrecision makes, becomes one in f32 with that precision. Its parameters and
        results keep their types.
    alter_op_layout : bool
        Whether what stays in TVM between two regions may work on data in the layout in which oneDNN
        leaves it, such as NCHW16c: elementwise operators and resizing. No global state is changed.

    Returns
    -------
    tvm.IRModule
        For ``relay.build``. Each region is a function with the attribute ``Compiler="dnnl"``, in
        which composite functions hold what oneDNN runs as one primitive.

    Raises
    ------
    TypeError
        If ``mod`` is not a Relay module.
    ValueError
        If there is no such precision.
    """
    return partition(mod, params, keep_light_regions, precision, alter_op_layout)[0]


def partition(
    mod: tvm.IRModule,
    params: dict | None = None,
    keep_light_regions: bool = False,
    precision: str | None = None,
    alter_op_layout: bool = True,
) -> tuple[tvm.IRModule, list[Partitioned]]:
    """Do as ``partition_for_dnnl``, and say what became of each function."""
    if precision not in (None, *PRECISIONS):
        raise ValueError(f"precision: expected one of {', '.join(PRECISIONS)}, got {precision!r}")
    result, own_precision = canonical(mod, params)
    attrs = {
        "Compiler": "dnnl",
        "Primitive": 1,
        "Inline": 1,
        **_precision_attrs(precision or own_precision),
    }
    for change in (convolve_first, combine_products, combine_activations):
        result = _changed(result, change)
    functions = []
    for var, function in _partitionable(result):
        graph, groups = _regions_of(function, keep_light_regions)
        body = alter_layouts(graph, groups, attrs) if alter_op_layout else None
        if body is not None:
            result[var] = with_body(function, body)
            result = relay.transform.InferType()(result)
            graph, groups = _regions_of(result[var], keep_light_regions)
        functions.append(_partition(result, var, graph, groups, attrs))
        if has_named_sizes(function):
            result[var] = forget_sizes(result[var])
    return relay.transform.InferType()(result), functions


def canonical(mod: tvm.IRModule, params: dict | None = None) -> tuple[tvm.IRModule, str]:
    """Return a module with its parameters bound, in the form that partitioning looks for.

    Returns
    -------
    tuple of tvm.IRModule and str
        Type-inferred and in f32, and the precision that most of its products came in.

    Raises
    ------
    TypeError
        If ``mod`` is not a Relay module.
    """
    if not isinstance(mod, tvm.IRModule):
        raise TypeError(f"expected a tvm.IRModule, got {type(mod).__name__}")
    result = tvm.IRModule(mod.functions, mod.type_definitions, attrs=mod.attrs)
    if params:
        result["main"] = bind_params_by_name(result["main"], params)
    # Also the fields of tuples: TVM's MXNet frontend writes batch_norm(…).0 anew for each reader.
    # What is equal but not one would look like several readers.
    result = relay.transform.EliminateCommonSubexpr()(relay.transform.InferType()(result))
    precision = precision_of(function for _, function in _partitionable(result))
    for wanted, simplify in (
        (has_unknown_sizes, lambda function: name_sizes(function) or function),
        (lambda function: precision != "f32", widen),
        (has_qnn, qdq_of_qnn),
        (_always, canonicalize),
        (_always, sink_views),
    ):
        result = _changed(result, simplify, wanted)
    return result, precision


def _always(function: relay.Function) -> bool:
    return True


def _changed(
    mod: tvm.IRModule,
    change: Callable[[relay.Function], relay.Function],
    wanted: Callable[[relay.Function], bool] = _always,
) -> tvm.IRModule:
    """Change those functions of a type-inferred module that are wanted, and infer types anew."""
    changes = False
    for var, function in _partitionable(mod):
        changed = change(function) if wanted(function) else function
        if not changed.same_as(function):
            mod[var] = changed
            changes = True
    return relay.transform.InferType()(mod) if changes else mod  # it takes a while


def _partitionable(mod: tvm.IRModule) -> list[tuple[relay.GlobalVar, relay.Function]]:
    """Return the functions that no compiler has claimed, in the order of their names."""
    items = [
        (var, function)
        for var, function in mod.functions.items()
        if isinstance(function, relay.Function)
        and not any(function.attrs and key in function.attrs for key in ("Compiler", "Primitive"))
    ]
    return sorted(items, key=lambda item: item[0].name_hint)


def _precision_attrs(precision: str) -> dict:
    """Return what tells the codegen of a precision; nothing if it is f32 here."""
    if precision == "f32":
        return {}
    refusal = tvm.get_global_func("tvm_dnnl_byoc.refusal_of_precision")(precision)
    if refusal:
        warnings.warn(f"{refusal}: the model stays in f32", RuntimeWarning, stacklevel=4)
        return {}
    return {"precision": precision}


def _regions_of(function: relay.Function, keep_light: bool) -> tuple[UnitGraph, list[list[int]]]:
    """Return a type-inferred function's graph, and the units of each region."""
    graph = UnitGraph(function.body)
    return graph, find_regions(graph.nodes, keep_light)


def _partition(
    mod: tvm.IRModule,
    var: relay.GlobalVar,
    graph: UnitGraph,
    groups: list[list[int]],
    attrs: dict,
) -> Partitioned:
    """Replace the regions of one function by calls, and add them to the module with `attrs`."""
    function = mod[var]
    regions = len(groups)
    done = Partitioned(graph, {})
    grouped = {unit for group in groups for unit in group}
    groups = groups + [[unit] for unit in range(len(graph.units)) if unit not in grouped]
    group_of = {unit: number for number, group in enumerate(groups) for unit in group}
    reads = {
        number: {group_of[j] for unit in group for j in graph.nodes[unit].inputs} - {number}
        for number, group in enumerate(groups)
    }

    new: dict[Expr, Expr] = {}  # by expression of the function: what stands for it now

    def now(expr: Expr) -> Expr:
        if expr not in new and isinstance(expr, Tuple):  # no unit: only chains read it
            return with_inputs(expr, [now(field) for field in expr.fields])
        return new.get(expr, expr)

    for number in TopologicalSorter(reads).static_order():
        if number >= regions:
            for expr in graph.units[groups[number][0]]:
                new[expr] = _staying(expr, [now(e) for e in inputs_of(expr)])
            continue
        region = build_region(graph, groups[number])
        symbol = _free_name(mod, f"tvmgen_default_dnnl_{var.name_hint}_", number)
        called = region.function
        dynamic = has_unknown_sizes(called)
        if dynamic:
            called = forget_sizes(called)
            symbol = name_of(called.with_attr(attrs), symbol)
        called = called.with_attr({"global_symbol": symbol, **attrs})
        if dynamic:
            called = standing_for(called)
        done.regions[symbol] = groups[number]
        region_var = relay.GlobalVar(symbol)
        mod[region_var] = called
        call = relay.Call(region_var, [now(e) for e in region.inputs])
        for i, output in enumerate(region.outputs):
            new[output] = call if len(region.outputs) == 1 else relay.TupleGetItem(call, i)
    mod[var] = with_body(function, now(function.body))
    return done


def _staying(expr: Expr, inputs: list[Expr]) -> Expr:
    """Return an expression, on other inputs, in a form that TVM compiles."""
    if composed_of(expr):
        return spelled_out(expr, inputs)
    return (as_matrices if op_name(expr) == "nn.dense" else with_inputs)(expr, inputs)


def _free_name(mod: tvm.IRModule, prefix: str, number: int) -> str:
    """Return prefix + number, or the next number that no function of the module has."""
    names = {var.name_hint for var in mod.get_global_vars()}
    while f"{prefix}{number}" in names:
        number += 1
    return f"{prefix}{number}"
