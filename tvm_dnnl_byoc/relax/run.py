"""Runs a module in this process."""

from collections.abc import Callable, Mapping

import numpy as np
import tvm
from tvm import relax

from .compat import name_of
from .partition import partition_for_dnnl


def runner(mod: tvm.IRModule, target: str) -> Callable[[Mapping | np.ndarray], list[np.ndarray]]:
    """Return what runs ``main``, by oneDNN as far as may be, and gives all of its outputs.

    It takes the inputs by name, or an array alone for the first.
    """
    executable = tvm.compile(partition_for_dnnl(mod), tvm.target.Target(target))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    names = [name_of(param) for param in mod["main"].params]

    def run(inputs: Mapping | np.ndarray) -> list[np.ndarray]:
        values = inputs if isinstance(inputs, Mapping) else {names[0]: inputs}
        if set(values) != set(names):
            raise ValueError(f"expected inputs {', '.join(names)}, got {', '.join(values)}")
        return _flat(machine["main"](*(tvm.runtime.tensor(values[name]) for name in names)))

    return run


def _flat(value) -> list[np.ndarray]:
    if hasattr(value, "numpy"):
        return [value.numpy()]
    return [array for field in value for array in _flat(field)]
