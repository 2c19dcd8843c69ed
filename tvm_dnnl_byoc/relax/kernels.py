"""Kernels of TVM's own that are an operator, as the ONNX importer writes a Clip."""

import tvm
import tvm_ffi
from tvm import relax, topi

from ..ir.relax_expr import TensorType
from .compat import read_type, relax_type

_OPERATORS = {"maximum": topi.maximum, "minimum": topi.minimum}


class Kernels:
    """The kernels of a module."""

    def __init__(self, mod: tvm.IRModule):
        self._mod = mod
        self._operators: dict[relax.GlobalVar, str | None] = {}

    def operator_of(self, call: relax.Call) -> str | None:
        """Return the operator that a ``call_tir`` computes, None if it is none of those here."""
        kernel, args = call.args[:2]
        if len(call.args) > 2 or not isinstance(args, relax.Tuple) or len(args.fields) != 2:
            return None
        if kernel not in self._operators:
            fits = _is_tensor_and_number(*args.fields)
            self._operators[kernel] = self._recognised(kernel, args.fields) if fits else None
        return self._operators[kernel]

    def _recognised(self, kernel: relax.GlobalVar, args: list[relax.Expr]) -> str | None:
        function = self._mod[kernel].without_attr("global_symbol")
        for name, compute in _OPERATORS.items():
            builder = relax.BlockBuilder()
            made = builder.call_te(compute, *(relax.Var("x", relax_type(arg)) for arg in args))
            same = builder.get()[made.args[0]].without_attr("global_symbol")
            if tvm_ffi.structural_equal(function, same, map_free_vars=True):
                return name
        return None


def _is_tensor_and_number(x: relax.Expr, y: relax.Expr) -> bool:
    types = [read_type(relax_type(arg)) for arg in (x, y)]
    if any(not isinstance(t, TensorType) or t.shape is None or t.dtype != "float32" for t in types):
        return False
    return types[1].shape == ()
