"""Multiply-adds of the compute-heavy operators in a Relay module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import tvm
from tvm import relay, tir


@dataclass(frozen=True)
class MultiplyAdds:
    """Multiply-adds of one inference (one multiply-add is two FLOPs)."""

    total: int
    offloaded: int

    @property
    def share(self) -> float:
        """Offloaded part, 0 to 1; 0 for a module without compute-heavy operators."""
        return self.offloaded / self.total if self.total else 0.0


def count_multiply_adds(mod: tvm.IRModule, compiler: str = "dnnl") -> MultiplyAdds:
    """Count the multiply-adds of convolutions and matrix products, grouped convolutions included.

    Parameters
    ----------
    mod : tvm.IRModule
        Partitioned or not; every shape static.
    compiler : str
        A function whose attribute ``Compiler`` has this value counts as offloaded.

    Raises
    ------
    ValueError
        If a counted operator has a dynamic shape.
    """
    mod = relay.transform.InferType()(mod)
    per_function: dict[str, int] = {}
    uses: Counter[str] = Counter()
    for var, function in mod.functions.items():
        calls = calls_in(function)
        per_function[var.name_hint] = sum(multiply_adds(call) for call in calls)
        uses.update(call.op.name_hint for call in calls if isinstance(call.op, tvm.ir.GlobalVar))

    offloaded = _offloaded(mod, compiler)
    weighted = {name: count * max(uses[name], 1) for name, count in per_function.items()}
    return MultiplyAdds(
        total=sum(weighted.values()), offloaded=sum(weighted[name] for name in offloaded)
    )


def count_regions(mod: tvm.IRModule, compiler: str = "dnnl") -> int:
    """Count the functions that are handed to an external compiler."""
    return len(_offloaded(mod, compiler))


def _offloaded(mod: tvm.IRModule, compiler: str) -> set[str]:
    return {
        var.name_hint
        for var, function in mod.functions.items()
        if function.attrs is not None and function.attrs.get("Compiler") == compiler
    }


def calls_in(expr: relay.Expr) -> list[relay.Call]:
    """Return the calls under an expression, those inside control flow and functions included."""
    # TVM's own visitor: a Python one would exceed the recursion limit on deep networks.
    calls: list[relay.Call] = []
    relay.analysis.post_order_visit(
        expr, lambda node: calls.append(node) if isinstance(node, relay.Call) else None
    )
    return calls


def multiply_adds(call: relay.Call) -> int:
    """Return the multiply-adds of one type-inferred call; 0 if it is none of those counted.

    Raises
    ------
    ValueError
        If a counted operator has a dynamic shape.
    """
    rule = _RULES.get(call.op.name) if isinstance(call.op, tvm.ir.Op) else None
    return rule(call) if rule else 0


def _shape(call: relay.Call, expr: relay.Expr) -> tuple[int, ...]:
    dims = expr.checked_type.shape
    if not all(isinstance(dim, tir.IntImm) for dim in dims):
        got = ", ".join(str(dim) if isinstance(dim, tir.IntImm) else "?" for dim in dims)
        raise ValueError(f"{call.op.name}: expected a static shape, got ({got})")
    return tuple(int(dim) for dim in dims)


def _channels(call: relay.Call, axis: str) -> int:
    """Extent of a weight's channel axis, ``O`` or ``I``, in any plain or blocked layout."""
    layout = call.attrs.kernel_layout
    plain = "".join(letter for letter in layout if letter.isupper())
    shape = _shape(call, call.args[1])
    if layout != plain:
        shape = tir.bijective_layout(plain, layout).backward_shape(shape)
    return int(shape[plain.index(axis)])


def _convolution(call: relay.Call) -> int:
    weights = prod(_shape(call, call.args[1]))  # O * I/groups * kernel
    return prod(_shape(call, call)) // _channels(call, "O") * weights


def _transposed_convolution(call: relay.Call) -> int:
    weights = prod(_shape(call, call.args[1]))  # I * O/groups * kernel
    return prod(_shape(call, call.args[0])) // _channels(call, "I") * weights


def _dense(call: relay.Call) -> int:
    return prod(_shape(call, call)) * _shape(call, call.args[0])[-1]


def _matmul(call: relay.Call) -> int:
    reduction = _shape(call, call.args[0])[-2 if call.attrs.transpose_a else -1]
    return prod(_shape(call, call)) * reduction


_RULES: dict[str, Callable[[relay.Call], int]] = {
    **{f"nn.conv{rank}d": _convolution for rank in (1, 2, 3)},
    **{f"nn.conv{rank}d_transpose": _transposed_convolution for rank in (1, 2, 3)},
    "nn.contrib_conv2d_NCHWc": _convolution,
    "nn.contrib_depthwise_conv2d_NCHWc": _convolution,
    "nn.dense": _dense,
    "nn.matmul": _matmul,
    "nn.batch_matmul": _matmul,
}
