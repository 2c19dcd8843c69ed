"""The frameworks under test, each at its best documented settings and the same thread count."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from . import models


@dataclass
class Built:
    """A network ready to run.

    Attributes
    ----------
    run : callable
        One inference, complete when it returns; the input is already in place.
    output : callable
        The last inference's output.
    build_seconds : float
        Time from the framework's own representation to ``run``.
    versions : dict
        Versions of the libraries at work.
    facts : dict
        What is known about the compiled network, for the report.
    """

    run: Callable[[], None]
    output: Callable[[], np.ndarray]
    build_seconds: float
    versions: dict[str, str]
    facts: dict = field(default_factory=dict)


def build(name: str, directory: Path) -> Built:
    """Build the network saved in `directory` for the backend called `name`."""
    return BACKENDS[name](directory)


def environment(threads: int, pinned: bool) -> dict[str, str]:
    """Environment variables for a worker of any backend.

    Parameters
    ----------
    threads : int
        Number of threads of OpenMP and of TVM's pool.
    pinned : bool
        Whether the worker is bound to cores of its own.
    """
    settings = {
        "OMP_NUM_THREADS": str(threads),
        "TVM_NUM_THREADS": str(threads),
        "TOPHUB_LOCATION": "NONE",  # no download of tuning records
    }
    if pinned:
        # TVM's pool would bind its workers to the machine's first cores, whatever ours are.
        settings["TVM_BIND_THREADS"] = "0"
    return settings


def host_target() -> str:
    """Return TVM's target for this machine's processor."""
    from tvm.target.codegen import llvm_get_system_cpu

    return f"llvm -mcpu={llvm_get_system_cpu()}"


def _build_mxnet(directory: Path) -> Built:
    import mxnet as mx

    data = mx.nd.array(np.load(directory / "data.npy"))
    network = models.load_mxnet(directory)
    begin = time.perf_counter()
    network.optimize_for(data, backend="MKLDNN", static_alloc=True, static_shape=True)
    outputs = [network(data)]
    outputs[0].wait_to_read()
    build_seconds = time.perf_counter() - begin

    def run():
        outputs[0] = network(data)
        outputs[0].wait_to_read()

    return Built(
        run=run,
        output=lambda: outputs[0].asnumpy(),
        build_seconds=build_seconds,
        versions={"mxnet": mx.__version__},
        facts={"fused_subgraphs": _count_subgraphs(network)},
    )


def _count_subgraphs(network) -> int:
    """Number of oneDNN subgraph operators in the graph that MXNet runs.

    Raises
    ------
    RuntimeError
        If there is none: the peer would not be at its best.
    """
    _, graph = network._cached_graph
    operators = [node["op"] for node in json.loads(graph.tojson())["nodes"]]
    count = sum(operator.startswith("_sg_mkldnn") for operator in operators)
    if not count:
        got = ", ".join(sorted(set(operators)))
        raise RuntimeError(f"MXNet's oneDNN subgraph backend: expected fused operators, got {got}")
    return count


def _build_tvm(directory: Path) -> Built:
    module, params = models.load_relay(directory)
    begin = time.perf_counter()
    return _build_graph_executor(module, params, directory, begin)


def _build_dnnl(directory: Path) -> Built:
    package = import_package()
    from ..relay.flops import count_multiply_adds, count_regions

    module, params = models.load_relay(directory)
    begin = time.perf_counter()
    module = package.partition_for_dnnl(module, params)
    partition_seconds = time.perf_counter() - begin
    built = _build_graph_executor(module, None, directory, begin)
    info = package.build_info()
    built.versions["onednn"] = f"{info['onednn']} ({info['isa']}, {info['runtime']})"
    count = count_multiply_adds(module)
    built.facts |= {
        "partition_seconds": partition_seconds,
        "regions": count_regions(module),
        "multiply_adds": count.total,
        "offloaded_share": count.share,
    }
    return built


def import_package():
    """Return the package itself, executed now if this worker began without it (see `process`)."""
    package = sys.modules[__package__.partition(".")[0]]
    if not hasattr(package, "partition_for_dnnl"):
        package.__spec__.loader.exec_module(package)
    return package


def _build_graph_executor(module, params, directory: Path, begin: float) -> Built:
    import tvm
    from tvm import relay
    from tvm.contrib.graph_executor import GraphModule

    target = host_target()
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(module, target=target, params=params)
    executor = GraphModule(library["default"](tvm.cpu()))
    executor.set_input(models.INPUT_NAME, np.load(directory / "data.npy"))
    build_seconds = time.perf_counter() - begin
    return Built(
        run=executor.run,
        output=lambda: executor.get_output(0).numpy(),
        build_seconds=build_seconds,
        versions={"tvm": tvm.__version__},
        facts={"target": target},
    )


BACKENDS: dict[str, Callable[[Path], Built]] = {
    "dnnl": _build_dnnl,
    "tvm": _build_tvm,
    "mxnet": _build_mxnet,
}
