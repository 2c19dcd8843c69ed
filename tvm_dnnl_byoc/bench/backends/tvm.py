"""TVM by itself, with the schedules that it comes with, on its graph executor."""

from __future__ import annotations

import os
import time
from pathlib import Path

from .. import models
from .network import BuildOptions, Network

_LIBRARY = "network.so"


def host_target() -> str:
    """Return TVM's target for this machine's processor."""
    from tvm.target.codegen import llvm_get_system_cpu

    return f"llvm -mcpu={llvm_get_system_cpu()}"


def build(directory: Path, options: BuildOptions) -> Network:
    """Build the network for the graph executor."""
    module, params = models.load_relay(directory)
    return build_graph_executor(module, params, directory, time.perf_counter())


def build_graph_executor(
    module, params, directory: Path, begin: float, config: dict | None = None
) -> Network:
    """Build a Relay module, `config` being that of TVM's pass context; `begin` is when it began."""
    import tvm
    from tvm import relay

    target = host_target()
    with tvm.transform.PassContext(opt_level=3, config=config):
        library = relay.build(module, target=target, params=params)
    network = _graph_executor(library, directory)
    network.build_seconds = time.perf_counter() - begin
    network.facts["target"] = target
    network.export = lambda folder: library.export_library(str(folder / _LIBRARY))
    return network


def load(directory: Path, options: BuildOptions) -> Network:
    """Load the exported library into TVM's runtime, without the compiler."""
    os.environ["TVM_USE_RUNTIME_LIB"] = "1"  # read when TVM is imported
    import tvm

    return _graph_executor(tvm.runtime.load_module(str(directory / _LIBRARY)), directory)


def _graph_executor(library, directory: Path) -> Network:
    import tvm
    from tvm.contrib.graph_executor import GraphModule

    executor = GraphModule(library["default"](tvm.cpu()))
    executor.set_input(**models.load_inputs(directory))
    return Network(
        run=executor.run,
        output=lambda: executor.get_output(0).numpy(),
        versions={"tvm": tvm.__version__},
        library=library,
    )
