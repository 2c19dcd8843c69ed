"""Builds and runs modules in this process."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tvm
from tvm import relax

from ..inputs import Inputs, by_name
from .compat import name_of

Run = Callable[[Inputs], list[np.ndarray]]


def build(
    mod: tvm.IRModule,
    params: Mapping[str, Any] | None = None,
    target: str | None = None,
    optimised: bool = True,
) -> Run:
    """Build a module; return what runs ``main``, and gives all of its outputs.

    It takes the inputs by name, or an array alone for the only one.

    Parameters
    ----------
    mod : tvm.IRModule
    params : dict, optional
        The weights.
    target : str, optional
        By default this machine's processor.
    optimised : bool
        Of no effect: Relax has one pipeline for processors.
    """
    if params:
        mod = relax.transform.BindParams("main", dict(params))(mod)
    host = {"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu()}
    machine = relax.VirtualMachine(tvm.compile(mod, tvm.target.Target(target or host)), tvm.cpu())
    names = [name_of(param) for param in mod["main"].params]

    def run(inputs: Inputs) -> list[np.ndarray]:
        values = by_name(inputs, names)
        return _flat(machine["main"](*(tvm.runtime.tensor(values[name]) for name in names)))

    return run


def _flat(value: Any) -> list[np.ndarray]:
    if hasattr(value, "numpy"):
        return [value.numpy()]
    return [array for field in value for array in _flat(field)]


def operators_outside(mod: tvm.IRModule) -> Counter[str]:
    """Count the operators of the function main by name, without regions, and branches."""
    calls = [
        binding.value
        for block in mod["main"].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call) and isinstance(binding.value.op, tvm.ir.Op)
    ]
    names = (call.op.name.removeprefix("relax.") for call in calls)
    return Counter(name for name in names if name != "call_dps_packed")
