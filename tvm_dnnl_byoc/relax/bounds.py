"""Sizes that are known once it is made use of how large others can be.

torch.export says how large a size can be, and TVM's importer keeps it as an attribute of the
function; but the types that it infers do not use it. So the first n of 512 positions are
min(n, 512), also where n is at most 128, and their sum with n words has no known shape, for which
TVM has no code.
"""

import tvm
from tvm import relax
from tvm.ir import Op, Range

from ..ir.relax_expr import Analyzer, Size, Symbol, TensorType
from .compat import read_size, read_type, relax_type, tensor_type

_LOWER, _UPPER = "tir_var_lower_bound", "tir_var_upper_bound"
_RESHAPE = Op.get("relax.reshape")
_DONE = "dnnl_byoc.bounded_sizes"


def with_bounded_sizes(mod: tvm.IRModule) -> tvm.IRModule:
    """Return a module in whose types the bounds of symbolic sizes are made use of.

    Where a size follows from a bound, a run that does not keep to it fails.
    """
    for var, function in mod.functions.items():
        attrs = function.attrs or {}
        if isinstance(function, relax.Function) and _UPPER in attrs and _DONE not in attrs:
            mod = tvm.IRModule(mod.functions, attrs=mod.attrs)
            mod[var] = _Mutator(mod, function).visit_expr(function).with_attr(_DONE, True)
    return mod


@relax.expr_functor.mutator
class _Mutator(relax.PyExprMutator):
    def __init__(self, mod: tvm.IRModule, function: relax.Function):
        super().__init__(mod)
        self._analyzer = Analyzer()
        upper, lower = function.attrs[_UPPER], function.attrs.get(_LOWER, {})
        for var in relax.analysis.defined_symbolic_vars(function):
            if var.name in upper:
                low = int(lower.get(var.name, 0))
                self._analyzer.bind(var, Range(low, int(upper[var.name]) + 1))

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = self.builder_.normalize(self._with_bounded_shape(self.visit_expr_post_order(call)))
        type_ = read_type(relax_type(call))
        if not isinstance(type_, TensorType) or type_.shape is None:
            return call
        bounded = TensorType(tuple(map(self._bounded, type_.shape)), type_.dtype)
        if bounded == type_:
            return call
        # A run refuses a view that is larger than its tensor: both ways, so neither may be.
        for seen_as in (bounded, type_):
            call = _view(self.builder_.emit(call), seen_as)
        return _view(self.builder_.emit(call), bounded)

    def _with_bounded_shape(self, call: relax.Call) -> relax.Call:
        """Return a reshape to sizes that are seen to be bounded; a run checks their product."""
        if call.op != _RESHAPE or not isinstance(call.args[1], relax.ShapeExpr):
            return call
        shape = relax.ShapeExpr([self._analyzer.simplify(size) for size in call.args[1].values])
        return relax.Call(call.op, [call.args[0], shape], call.attrs)

    def _bounded(self, size: Size) -> Size:
        return read_size(self._analyzer.simplify(size.expr)) if isinstance(size, Symbol) else size


def _view(tensor: relax.Var, type_: TensorType) -> relax.Call:
    """Return the tensor under another type, of no more elements.

    With a ``match_cast``, TVM 0.27 would look for a value of n in min(n, 512) without end.
    """
    result = tensor_type(type_)
    shape = relax.ShapeExpr(list(result.shape))
    view = relax.ExternFunc("vm.builtin.reshape")
    return relax.Call(Op.get("relax.call_pure_packed"), [view, tensor, shape], None, [result])
