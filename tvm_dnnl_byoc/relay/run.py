"""Runs a module in this process."""

from collections.abc import Callable, Mapping

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor

from .partition import partition_for_dnnl


def runner(mod: tvm.IRModule, target: str) -> Callable[[Mapping | np.ndarray], list[np.ndarray]]:
    """Return what runs ``main``, by oneDNN as far as may be, and gives all of its outputs.

    It takes the inputs by name, or an array alone for the first.
    """
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(partition_for_dnnl(mod), target)
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    first = mod["main"].params[0].name_hint

    def run(inputs: Mapping | np.ndarray) -> list[np.ndarray]:
        executor.run(**(inputs if isinstance(inputs, Mapping) else {first: inputs}))
        return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]

    return run
