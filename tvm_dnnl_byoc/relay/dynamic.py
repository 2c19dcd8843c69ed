"""Regions with sizes that only a run knows, for the VM.

The VM asks a shape function how large the results of a call will be, and derives it from the body
of the function that is called: of each operator, of which many have none, it compiles one. So such
a region has as its body a single operator, ``dnnl_byoc.region``, and what it computes is beside it,
as the attribute ``computes``. The shape function of the operator asks the region's engine, which
compiles the plan for these sizes then.
"""

import tvm
from tvm import relay, te, tir
from tvm.relay.expr import Call, Tuple
from tvm.relay.op import op as relay_op

_NAME = "dnnl_byoc.region"
_INFER_SHAPES = "tvm_dnnl_byoc.infer_shapes"


def is_dynamic(type_: relay.Type) -> bool:
    """Whether a tensor, or a field of a tuple, has a symbolic size."""
    if isinstance(type_, relay.TupleType):
        return any(map(is_dynamic, type_.fields))
    return isinstance(type_, relay.TensorType) and not all(
        isinstance(size, tir.IntImm) for size in type_.shape
    )


def has_unknown_sizes(function: relay.Function) -> bool:
    """Whether a parameter has a size that only a run knows."""
    return any(is_dynamic(param.type_annotation) for param in function.params)


def computation_of(region: relay.Function) -> relay.Function:
    """Return what a region computes: the function itself unless it stands for another."""
    return (region.attrs and region.attrs.get("computes")) or region


def name_of(function: relay.Function, prefix: str) -> str:
    """Return a name for a region that no other has which computes something else.

    By it the shape function finds the region, among all that the process has loaded.
    """
    return f"{prefix}_{tvm.ir.structural_hash(function) & (1 << 64) - 1:016x}"


def standing_for(function: relay.Function) -> relay.Function:
    """Return a function that stands for a region, of which it has all attributes."""
    computes = relay.transform.InferType()(tvm.IRModule({"main": function}))["main"]
    params = [relay.var(p.name_hint, type_annotation=p.type_annotation) for p in function.params]
    attrs = {str(key): value for key, value in function.attrs.items()}
    how = tvm.ir.make_node("DictAttrs", symbol=attrs["global_symbol"], type=function.ret_type)
    body = Call(tvm.ir.Op.get(_NAME), [Tuple(params)], how)
    region = relay.Function(params, body, function.ret_type)
    return region.with_attr({**attrs, "computes": computes})


def _type_of_result(args: list, attrs: tvm.ir.Attrs) -> relay.Type:
    return attrs["type"]


def _shapes_of_results(attrs: tvm.ir.Attrs, shapes: list, ranks: list) -> list:
    """Return the shapes of a region's results, as tensors, for those of what it reads."""
    found = te.extern(
        [(int(rank),) for rank in ranks],
        list(shapes),
        lambda inputs, outputs: tir.call_packed(_INFER_SHAPES, attrs["symbol"], *inputs, *outputs),
        dtype=["int64"] * len(ranks),
        name="shapes",
    )
    return [found] if len(ranks) == 1 else list(found)


def _register() -> None:
    relay_op.register(_NAME, "A region of which only a run knows the sizes.")
    op = tvm.ir.Op.get(_NAME)
    op.set_num_inputs(1)
    op.add_argument("data", "Tuple of tensors", "What the region reads.")
    op.set_attrs_type_key("DictAttrs")
    op.add_type_rel("DnnlByocRegion", _type_of_result)
    relay_op.register_shape_func(_NAME, False, _shapes_of_results)


_register()
