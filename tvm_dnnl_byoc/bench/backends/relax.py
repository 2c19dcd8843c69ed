"""apache-tvm: with oneDNN, through this package, and as it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from .dnnl import import_package
from .network import Network

if TYPE_CHECKING:
    import torch


def build_dnnl(network: torch.nn.Module, data: torch.Tensor, precision: str = "f32") -> Network:
    """Partition a network of one input and compile the rest; int8 is calibrated on the input."""
    package = import_package()
    module = _import_network(network, data)
    if precision == "int8":
        recipe = package.quantize.calibrate(module, None, [data.numpy()], observer="minmax")
        module, precision = package.quantize.convert(module, None, recipe), "f32"
    begin = time.perf_counter()
    result = _compile(package.partition_for_dnnl(module, precision=precision), data, begin)
    result.facts["regions"] = len(package.profile(result.library))
    info = package.build_info()
    result.versions["onednn"] = f"{info['onednn']} ({info['isa']}, {info['runtime']})"
    return result


def build_default(network: torch.nn.Module, data: torch.Tensor) -> Network:
    """Compile a network of one input with Relax's default pipeline."""
    module = _import_network(network, data)
    return _compile(module, data, time.perf_counter())


def _import_network(network: torch.nn.Module, data: torch.Tensor):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    with torch.no_grad():
        program = torch.export.export(network, (data,))
    return from_exported_program(program, keep_params_as_input=False)


def _compile(module, data: torch.Tensor, begin: float) -> Network:
    import tvm
    from tvm import relax

    cpu = tvm.target.codegen.llvm_get_system_cpu()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu})
    executable = tvm.compile(module, target)
    machine = relax.VirtualMachine(executable, tvm.cpu())
    build_seconds = time.perf_counter() - begin
    argument = tvm.runtime.tensor(np.ascontiguousarray(data.numpy()))
    results = []

    def run() -> None:
        results[:] = [machine["main"](argument)]

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
