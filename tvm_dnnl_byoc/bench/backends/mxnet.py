"""MXNet with its oneDNN subgraph backend, and static memory."""

from __future__ import annotations

import json
import time
from pathlib import Path

from .. import models
from .network import BuildOptions, Network, link


def build(directory: Path, options: BuildOptions) -> Network:
    """Load the network and let MXNet fuse it; a deployment does the same."""
    import mxnet as mx

    data = mx.nd.array(models.load_inputs(directory)[0][models.INPUT_NAME])
    network = models.load_mxnet(directory)
    begin = time.perf_counter()
    network.optimize_for(data, backend="MKLDNN", static_alloc=True, static_shape=True)
    outputs = [network(data)]
    outputs[0].wait_to_read()
    build_seconds = time.perf_counter() - begin

    def run():
        outputs[0] = network(data)
        outputs[0].wait_to_read()

    return Network(
        run=run,
        output=lambda: outputs[0].asnumpy(),
        build_seconds=build_seconds,
        versions={"mxnet": mx.__version__},
        facts={"fused_subgraphs": _count_subgraphs(network)},
        export=lambda folder: link(directory, folder, models.MXNET_FILES),
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
