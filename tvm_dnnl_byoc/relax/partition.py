"""Moves what oneDNN runs well into external functions."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import tvm
from tvm import relax

from ..ir import Call, Constant, Expr, Function, Op, Tuple
from ..ir.encode import encode_region
from ..ir.relax_expr import Var
from ..passes.composed import combine_activations
from ..passes.dataflow import is_constant
from ..passes.partitioned import Partitioned
from ..passes.pooling import convolve_first
from ..passes.regions import find_regions
from ..passes.units import UnitGraph, region_inputs, region_outputs
from .bounds import with_bounded_sizes
from .canonicalize import canonicalize
from .compat import read_type, relax_type, symbols_in, tensor_type, tuple_type
from .kernels import Kernels
from .read import Block
from .widen import precision_of
from .words import are_made_indices, in_words

PRECISIONS = ("f32", "bf16", "f16")


def partition_for_dnnl(
    mod: tvm.IRModule,
    params: Mapping[str, Any] | None = None,
    keep_light_regions: bool = False,
    precision: str | None = None,
) -> tvm.IRModule:
    """Offload to oneDNN what it runs well; the rest stays as it is, for TVM.

    Parameters
    ----------
    mod : tvm.IRModule
        A Relax module. It is not changed.
    params : dict of str to tvm.runtime.Tensor or numpy.ndarray, optional
        The weights, by the names of the parameters of ``main``. Without them nothing can be folded
        or prepacked: weights are then arguments like any other, repacked at every call.
    keep_light_regions : bool
        Whether to keep the regions in which no operator is worth the way over their border, such
        as a lone softmax. This makes models slower; it is for tests of the operators.
    precision : str, optional
        ``"f32"``; or ``"bf16"`` or ``"f16"``: what convolutions and matrix products in regions
        read, and what operators in a region leave to each other. On a processor without
        instructions for it, all is in f32, with a warning. By default, it is that of the model: one
        whose convolutions and matrix products are in bf16 or f16, as of a torch module in bfloat16,
        is read as one in f32 with that precision. Its parameters and results keep their types, as
        does what stays in TVM.

    Returns
    -------
    tvm.IRModule
        For ``tvm.compile``, in the execution mode ``"bytecode"``, its default. Each region is a
        call of an external function, and is compiled: its runtime module is in the attribute
        "external_mods".

    Raises
    ------
    TypeError
        If ``mod`` is not a Relax module.
    ValueError
        If there is no such precision.
    """
    return partition(mod, params, keep_light_regions, precision)[0]


def partition(
    mod: tvm.IRModule,
    params: Mapping[str, Any] | None = None,
    keep_light_regions: bool = False,
    precision: str | None = None,
) -> tuple[tvm.IRModule, list[Partitioned]]:
    """Do as ``partition_for_dnnl``, and say what became of each block of each function."""
    if precision not in (None, *PRECISIONS):
        raise ValueError(f"precision: expected one of {', '.join(PRECISIONS)}, got {precision!r}")
    if not isinstance(mod, tvm.IRModule):
        raise TypeError(f"expected a tvm.IRModule, got {type(mod).__name__}")
    if params:
        mod = relax.transform.BindParams("main", dict(params))(mod)
    mod = relax.transform.ConvertToDataflow(min_size=1)(with_bounded_sizes(mod))
    functions = sorted(
        (item for item in mod.functions.items() if _is_partitionable(item[1])),
        key=lambda item: item[0].name_hint,
    )
    own_precision = precision_of(function for _, function in functions)
    partitioner = _Partitioner(
        mod,
        keep_light_regions,
        precision=_supported(precision or own_precision),
        widened=own_precision != "f32",
    )
    for var, function in functions:
        partitioner.partition(var, function)
    return partitioner.result(), partitioner.blocks


def _is_partitionable(function: Any) -> bool:
    return (
        isinstance(function, relax.Function)
        and isinstance(function.body, relax.SeqExpr)
        and not any(key in (function.attrs or {}) for key in ("Codegen", "Composite", "Primitive"))
    )


def _supported(precision: str) -> str:
    """Return the precision, or "", which is f32, where the processor has none such."""
    if precision == "f32":
        return ""
    refusal = tvm.get_global_func("tvm_dnnl_byoc.refusal_of_precision")(precision)
    if refusal:
        warnings.warn(f"{refusal}: the model stays in f32", RuntimeWarning, stacklevel=4)
        return ""
    return precision


@dataclass(eq=False)
class _Region:
    """A region: what it is called, and the expressions that go in and out."""

    symbol: str
    inputs: list[Expr]
    outputs: list[Expr]


class _Partitioner:
    """Partitions the functions of a module, one after the other.

    Attributes
    ----------
    blocks : list of Partitioned
    """

    def __init__(self, mod: tvm.IRModule, keep_light_regions: bool, precision: str, widened: bool):
        self._mod = tvm.IRModule(mod.functions, attrs=mod.attrs)
        self._keep_light_regions = keep_light_regions
        self._precision = precision
        self._widened = widened
        self._kernels = Kernels(mod)
        self.blocks: list[Partitioned] = []
        self._modules = list((mod.attrs or {}).get("external_mods", []))
        self._symbols = {
            module["get_symbol"]() for module in self._modules if module.kind == "dnnl_byoc"
        } | {var.name_hint for var in mod.get_global_vars()}

    def result(self) -> tvm.IRModule:
        """Return the module, with the code of its regions."""
        mod = self._mod
        if self._modules:
            mod = mod.with_attr("external_mods", self._modules)
        return relax.transform.Normalize()(mod)

    def partition(self, var: relax.GlobalVar, function: relax.Function) -> None:
        """Replace the regions of a function by calls."""
        body = function.body
        blocks = [self._partitioned(block, var.name_hint) for block in body.blocks]
        self._mod[var] = relax.Function(
            function.params,
            relax.SeqExpr(blocks, body.body),
            _return_type(function),
            function.is_pure,
            function.attrs,
        )

    def _partitioned(self, block: relax.BindingBlock, name: str) -> relax.BindingBlock:
        read = Block.read(block, self._widened, self._kernels)
        if not isinstance(block, relax.DataflowBlock):  # it stays as it is
            self._report(read, UnitGraph(read.body), {})
            return block
        graph, groups = self._regions(*canonicalize(read.body))
        if groups is None:
            graph, groups = self._regions(read.body, set())
        groups = groups or []
        regions = [self._compile(graph, units, name) for units in groups]
        symbols = [region.symbol for region in regions]
        self._report(read, graph, dict(zip(symbols, groups, strict=True)))
        return _write(read, graph.body, regions) if regions else block

    def _report(self, read: Block, graph: UnitGraph, regions: dict[str, list[int]]) -> None:
        self.blocks.append(Partitioned(graph, regions, read.inputs, read.outputs))

    def _regions(self, body: Expr, altered: set) -> tuple[UnitGraph, list[list[int]] | None]:
        """Return the units of a body, and which of them make regions.

        None for these if a region would read or leave what has no variable, or one with another
        value: what is not in regions keeps its bindings. It takes a layer that oneDNN refuses after
        something was folded into it.
        """
        function = combine_activations(convolve_first(Function([], body)))
        graph = UnitGraph(function.body)
        groups = find_regions(graph.nodes, self._keep_light_regions)
        for units in groups:
            inputs, outputs = region_inputs(graph, units), region_outputs(graph, units)
            variables = [e for e in inputs if not are_made_indices(e)]
            if any(e.var is None for e in variables) or any(
                e.var in altered for e in variables + outputs
            ):
                return graph, None
        return graph, groups

    def _compile(self, graph: UnitGraph, units: list[int], name: str) -> _Region:
        inputs = region_inputs(graph, units)
        outputs = region_outputs(graph, units)
        region = _Region(self._free_symbol(name), inputs, outputs)
        reads = dict.fromkeys(e for unit in units for e in graph.inputs(unit) if is_constant(e))
        dequantized = [[e] for e in reads if not isinstance(e, Constant)]
        chains = [*dequantized, *(graph.units[unit] for unit in units)]
        text, constants = encode_region(region.inputs, chains, outputs, self._precision)
        compile_region = tvm.get_global_func("tvm_dnnl_byoc.compile")
        self._modules.append(compile_region(region.symbol, text, constants))
        return region

    def _free_symbol(self, name: str) -> str:
        number = 0
        while f"dnnl_{name}_{number}" in self._symbols:
            number += 1
        self._symbols.add(f"dnnl_{name}_{number}")
        return f"dnnl_{name}_{number}"


def _return_type(function: relax.Function) -> Any:
    return function.ret_ty if hasattr(function, "ret_ty") else function.ret_struct_info


def _write(read: Block, body: Tuple, regions: list[_Region]) -> relax.DataflowBlock:
    """Return a block with calls of its regions; what they leave is bound as it was.

    A variable's value is a region's if the expression for it is a region's output. Others keep
    their bindings, and so do not read what became of other expressions inside of regions. What was
    made for regions to read gets variables.
    """
    region_of = {output: region for region in regions for output in region.outputs}
    values = dict(read.values)
    outputs = read.outputs
    values.update(zip(outputs, body.fields, strict=True))
    for output in region_of:
        if output.var is None:
            output.var = relax.DataflowVar("dnnl", tensor_type(output.checked_type))
    by_var = {output.var: output for output in region_of}
    values.update((var, by_var[e.var]) for var, e in read.values.items() if e.var in by_var)
    widen = _Widen()
    for region in regions:
        region.inputs = list(map(widen, region.inputs))

    def reads(item: Any) -> list[Any]:
        """Return what must come before a variable, a region, or an expression that was made."""
        if isinstance(item, _Region):
            return [*map(_item, item.inputs), *(c for o in item.outputs for c in casts(o.var))]
        if isinstance(item, Expr):
            return list(map(_item, item.args))
        value = values.get(item)
        if value in region_of:
            return [region_of[value]] if value.var.same_as(item) else [value.var]
        if item not in read.bindings:
            return []
        return [*relax.analysis.free_vars(read.bindings[item].value), *casts(item)]

    def casts(var: Any) -> list[Any]:
        """Return the variables whose bindings give the symbolic sizes of one their values."""
        found = (read.casts.get(symbol) for symbol in symbols_in(relax_type(var)))
        return [cast for cast in found if cast is not None and not cast.same_as(var)]

    needed: dict[Any, list[Any]] = {}
    stack: list[Any] = list(outputs)
    while stack:
        item = stack.pop()
        if item not in needed:
            needed[item] = reads(item)
            stack.extend(needed[item])

    bindings = []
    made: dict[Expr, relax.DataflowVar] = {}
    for item in TopologicalSorter(needed).static_order():
        if isinstance(item, _Region):
            bindings += _call(item, made)
        elif isinstance(item, Expr):
            made[item] = relax.DataflowVar("made", tensor_type(item.checked_type))
            args = [made.get(arg, arg.var) for arg in item.args]
            bindings.append(relax.VarBinding(made[item], in_words(_left_inside, item, *args)))
        elif values.get(item) in region_of:
            if not values[item].var.same_as(item):
                bindings.append(relax.VarBinding(item, _as(item, values[item].var)))
        elif item in read.bindings:
            bindings.append(read.bindings[item])
    return relax.DataflowBlock(bindings)


class _Widen:
    """Gives what is read in single precision of a variable that is in bf16 or f16."""

    def __init__(self):
        self._wide: dict[Any, Expr] = {}

    def __call__(self, expr: Expr) -> Expr:
        if expr.var is None or _dtype(expr.var) == expr.checked_type.dtype:
            return expr
        if expr.var not in self._wide:
            narrow = Var(read_type(relax_type(expr.var)), var=expr.var)
            self._wide[expr.var] = Call(Op("cast"), [narrow], checked_type=expr.checked_type)
        return self._wide[expr.var]


def _item(expr: Expr) -> Any:
    """Return what stands for something that a region reads: its variable, or itself if made."""
    if expr.var is None and not are_made_indices(expr):
        raise AssertionError(f"expected a variable for what a region reads, got {expr}")
    return expr if expr.var is None else expr.var


def _left_inside(part: relax.Expr) -> relax.Expr:
    return part  # the module is normalised at the end


def _dtype(var: Any) -> str:
    return str(relax_type(var).dtype)


def _as(var: Any, value: Any) -> relax.Expr:
    """Return a value in the dtype of a variable."""
    return value if _dtype(var) == _dtype(value) else relax.op.astype(value, _dtype(var))


def _call(region: _Region, made: Mapping[Expr, Any]) -> list[relax.VarBinding]:
    """Return the call of a region, and the bindings of the variables of its outputs."""
    types = [tensor_type(output.checked_type) for output in region.outputs]
    args = relax.Tuple([made.get(expr, expr.var) for expr in region.inputs])
    call = relax.call_dps_packed(region.symbol, args, types[0] if len(types) == 1 else types)
    if len(types) == 1:
        return _bound(region.outputs[0], call)
    results = relax.DataflowVar(region.symbol, tuple_type(types))
    bindings = [relax.VarBinding(results, call)]
    for index, output in enumerate(region.outputs):
        bindings += _bound(output, relax.TupleGetItem(results, index))
    return bindings


def _bound(output: Expr, value: relax.Expr) -> list[relax.VarBinding]:
    """Return the bindings that give a region's output, in single precision, its variable."""
    if _dtype(output.var) == output.checked_type.dtype:
        return [relax.VarBinding(output.var, value)]
    wide = relax.DataflowVar("wide", tensor_type(output.checked_type))
    return [relax.VarBinding(wide, value), relax.VarBinding(output.var, _as(output.var, wide))]
