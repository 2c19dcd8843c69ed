"""TVM by itself, with the schedules that it comes with, on its graph executor."""

from __future__ import annotations

import os
import time
from pathlib import Path

from .. import models
from .network import BuildOptions, Network, joined

_LIBRARY, _CODE = "network.so", "network.ro"  # the latter is the VM's


def host_target() -> str:
    """Return TVM's target for this machine's processor."""
    from tvm.target.codegen import llvm_get_system_cpu

    return f"llvm -mcpu={llvm_get_system_cpu()}"


def build(directory: Path, options: BuildOptions) -> Network:
    """Build the network for the graph executor, or for the VM if its sizes vary."""
    module, params = models.load_relay(directory)
    begin = time.perf_counter()
    if is_dynamic(module):
        return build_vm(module, params, directory, begin)
    return build_graph_executor(module, params, directory, begin)


def is_dynamic(module) -> bool:
    """Whether a parameter of a Relay module has a size that only a run knows."""
    from tvm import tir

    shapes = (param.type_annotation.shape for param in module["main"].params)
    return any(isinstance(size, tir.Any) for shape in shapes for size in shape)


def build_vm(module, params, directory: Path, begin: float) -> Network:
    """Compile a Relay module for the VM; `begin` is when it began."""
    import tvm
    from tvm import relay

    target = host_target()
    with tvm.transform.PassContext(opt_level=3):
        executable = relay.vm.compile(module, target=target, params=params)
    network = _vm(executable, directory)
    network.build_seconds = time.perf_counter() - begin
    network.facts["target"] = target

    def export(folder: Path) -> None:
        code, library = executable.save()
        (folder / _CODE).write_bytes(code)
        library.export_library(str(folder / _LIBRARY))

    network.export = export
    return network


def _vm(executable, directory: Path) -> Network:
    import tvm
    from tvm.runtime.vm import VirtualMachine

    machine = VirtualMachine(executable, tvm.cpu())
    names = [str(name) for name in executable.get_function_params("main")]
    calls = [
        [tvm.nd.array(call[name]) for name in names if name in call]
        for call in models.load_inputs(directory)
    ]
    outputs: list = []

    def run() -> None:
        outputs[:] = [machine.invoke("main", *inputs) for inputs in calls]

    return Network(
        run=run,
        output=lambda: joined([output.numpy() for output in outputs]),
        versions={"tvm": tvm.__version__},
    )


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

    library = tvm.runtime.load_module(str(directory / _LIBRARY))
    code = directory / _CODE
    if code.exists():
        from tvm.runtime.vm import Executable

        return _vm(Executable.load_exec(code.read_bytes(), library), directory)
    return _graph_executor(library, directory)


def _graph_executor(library, directory: Path) -> Network:
    import tvm
    from tvm.contrib.graph_executor import GraphModule

    executor = GraphModule(library["default"](tvm.cpu()))
    (inputs,) = models.load_inputs(directory)
    executor.set_input(**inputs)
    return Network(
        run=executor.run,
        output=lambda: executor.get_output(0).numpy(),
        versions={"tvm": tvm.__version__},
        library=library,
    )
