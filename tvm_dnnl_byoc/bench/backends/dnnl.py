"""TVM with oneDNN, through this package."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from .. import models
from . import tvm
from .network import BuildOptions, Network


def build(directory: Path, options: BuildOptions, precision: str = "f32") -> Network:
    """Partition the network and build it for the graph executor, or the VM if its sizes vary."""
    package = import_package()
    from ...relay.flops import count_multiply_adds, count_regions

    module, params = (
        (models.load_quantized(directory), None)
        if precision == "int8"
        else models.load_relay(directory)
    )
    dynamic = tvm.is_dynamic(module)
    begin = time.perf_counter()
    module = package.partition_for_dnnl(
        module, params, precision=None if precision == "int8" else precision
    )
    partition_seconds = time.perf_counter() - begin
    build_for = tvm.build_vm if dynamic else tvm.build_graph_executor
    network = build_for(module, None, directory, begin)
    info = package.build_info()
    network.versions["onednn"] = f"{info['onednn']} ({info['isa']}, {info['runtime']})"
    network.facts |= {
        "partition_seconds": partition_seconds,
        "regions": count_regions(module),
    }
    if not dynamic:
        count = count_multiply_adds(module)
        network.facts |= {"multiply_adds": count.total, "offloaded_share": count.share}
    return network


def load(directory: Path, options: BuildOptions) -> Network:
    """Load the exported library into TVM's runtime and ours, without the compiler."""
    os.environ["TVM_USE_RUNTIME_LIB"] = "1"  # read when TVM is imported
    import_package()
    return tvm.load(directory, options)


def import_package():
    """Return the package itself, executed now if this worker began without it (see `process`)."""
    package = sys.modules[__name__.partition(".")[0]]
    if not hasattr(package, "build_info"):
        package.__spec__.loader.exec_module(package)
    return package
