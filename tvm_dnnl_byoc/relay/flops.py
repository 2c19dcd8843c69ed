"""Multiply-adds of the compute-heavy operators in a Relay module."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import tvm
from tvm import relay

from ..passes.work import multiply_adds


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
        calls = calls_inside(function)
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


def calls_inside(expr: relay.Expr) -> list[relay.Call]:
    """Return the calls under an expression, those inside control flow and functions included."""
    # TVM's own visitor: a Python one would exceed the recursion limit on deep networks.
    calls: list[relay.Call] = []
    relay.analysis.post_order_visit(
        expr, lambda node: calls.append(node) if isinstance(node, relay.Call) else None
    )
    return calls
