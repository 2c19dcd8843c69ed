"""apache-tvm: with oneDNN, through this package, and as it is."""

from __future__ import annotations

import time

import numpy as np

from .dnnl import import_package
from .network import Network
from .torch import Loaded


def build_dnnl(loaded: Loaded, precision: str = "f32") -> Network:
    """Partition the network and compile the rest."""
    package = import_package()
    module = _import_network(loaded)
    begin = time.perf_counter()
    network = _compile(package.partition_for_dnnl(module, precision=precision), loaded, begin)
    network.facts["regions"] = len(package.profile(network.library))
    info = package.build_info()
    network.versions["onednn"] = f"{info['onednn']} ({info['isa']}, {info['runtime']})"
    return network


def build_default(loaded: Loaded) -> Network:
    """Compile with Relax's default pipeline."""
    module = _import_network(loaded)
    return _compile(module, loaded, time.perf_counter())


def _import_network(loaded: Loaded):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    with torch.no_grad():
        program = torch.export.export(loaded.network, (loaded.data,))
    return from_exported_program(program, keep_params_as_input=False)


def _compile(module, loaded: Loaded, begin: float) -> Network:
    import tvm
    from tvm import relax

    cpu = tvm.target.codegen.llvm_get_system_cpu()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu})
    executable = tvm.compile(module, target)
    machine = relax.VirtualMachine(executable, tvm.cpu())
    build_seconds = time.perf_counter() - begin
    data = tvm.runtime.tensor(np.ascontiguousarray(loaded.data.numpy()))
    results = []

    def run() -> None:
        results[:] = [machine["main"](data)]

    def output() -> np.ndarray:
        value = results[0]
        return (value if hasattr(value, "numpy") else value[0]).numpy()

    return Network(
        run=run,
        output=output,
        build_seconds=build_seconds,
        versions={"apache-tvm": tvm.__version__},
        library=executable,
    )
