"""Builds and runs modules in this process."""

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.target.codegen import llvm_get_system_cpu

from ..ir import op_name
from .flops import calls_inside

Run = Callable[[Mapping[str, np.ndarray] | np.ndarray], list[np.ndarray]]


def build(
    mod: tvm.IRModule,
    params: dict | None = None,
    target: str | None = None,
    optimised: bool = True,
) -> Run:
    """Build a module; return what runs ``main``, and gives all of its outputs.

    It takes the inputs by name, or an array alone for the first.

    Parameters
    ----------
    mod : tvm.IRModule
    params : dict, optional
        The weights.
    target : str, optional
        By default this machine's processor.
    optimised : bool
        Whether the graph is, before kernels are chosen.
    """
    target = target or f"llvm -mcpu={llvm_get_system_cpu()}"
    with tvm.transform.PassContext(opt_level=3 if optimised else 0):
        lib = relay.build(mod, target, params=params)
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    first = mod["main"].params[0].name_hint if mod["main"].params else ""

    def run(inputs: Mapping[str, np.ndarray] | np.ndarray) -> list[np.ndarray]:
        executor.run(**(inputs if isinstance(inputs, Mapping) else {first: inputs}))
        return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]

    return run


def operators_outside(mod: tvm.IRModule) -> Counter[str]:
    """Count the operators of the function main by name; regions are not looked into."""
    return Counter(name for call in calls_inside(mod["main"]) if (name := op_name(call)))
