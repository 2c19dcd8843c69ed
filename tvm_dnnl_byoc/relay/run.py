"""Builds and runs modules in this process."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.target.codegen import llvm_get_system_cpu

from ..inputs import Inputs, by_name
from ..ir import op_name
from .flops import calls_inside

Run = Callable[[Inputs], list[np.ndarray]]


def build(
    mod: tvm.IRModule,
    params: dict | None = None,
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
        Whether the graph is, before kernels are chosen.
    """
    target = target or f"llvm -mcpu={llvm_get_system_cpu()}"
    with tvm.transform.PassContext(opt_level=3 if optimised else 0):
        lib = relay.build(mod, target, params=params)
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    all_names = [param.name_hint for param in mod["main"].params]
    names = [name for name in all_names if name not in (params or {})]

    def run(inputs: Inputs) -> list[np.ndarray]:
        for name, value in by_name(inputs, names).items():
            executor.set_input(name, value)
        executor.run()
        return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]

    return run


def operators_outside(mod: tvm.IRModule) -> Counter[str]:
    """Count the operators of the function main by name; regions are not looked into."""
    return Counter(name for call in calls_inside(mod["main"]) if (name := op_name(call)))
