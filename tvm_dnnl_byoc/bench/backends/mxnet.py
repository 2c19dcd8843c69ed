"""MXNet with its oneDNN subgraph backends, and static memory."""

from __future__ import annotations

import json
import time
from pathlib import Path

from .. import models
from .network import BuildOptions, Network, link

_QUANTIZED = "quantized"
_QUANTIZED_FILES = (f"{_QUANTIZED}-symbol.json", f"{_QUANTIZED}-0000.params")  # as MXNet calls them


def build(directory: Path, options: BuildOptions) -> Network:
    """Load the network and let MXNet fuse it; a deployment does the same."""
    data, network = _input(directory), models.load_mxnet(directory)
    begin = time.perf_counter()
    network.optimize_for(data, backend="MKLDNN", static_alloc=True, static_shape=True)
    built = _network(network, data, begin)
    built.export = lambda folder: link(directory, folder, models.MXNET_FILES)
    return built


def build_int8(directory: Path, options: BuildOptions) -> Network:
    """Load the network and let MXNet fuse and quantize it."""
    data, network = _input(directory), models.load_mxnet(directory)
    begin = time.perf_counter()
    network = _quantized(network, data)
    network.hybridize(static_alloc=True, static_shape=True)
    built = _network(network, data, begin)
    built.export = lambda folder: network.export(str(folder / _QUANTIZED))
    return built


def load_int8(directory: Path, options: BuildOptions) -> Network:
    """Load what MXNet has quantized."""
    network = models.load_mxnet(directory, _QUANTIZED_FILES)
    network.hybridize(static_alloc=True, static_shape=True)
    return _network(network, _input(directory), time.perf_counter())


def _input(directory: Path):
    import mxnet as mx

    return mx.nd.array(models.load_inputs(directory)[0][models.INPUT_NAME])


def _network(network, data, begin: float) -> Network:
    """Return a network whose building began at that time, and ends with the first run."""
    import mxnet as mx

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
    )


def _quantized(network, data):
    """Return what MXNet's own quantizer makes of a network, with the scales of one input."""
    import mxnet as mx
    from mxnet.contrib.quantization import quantize_net_v2

    return quantize_net_v2(
        network,
        quantized_dtype="auto",  # uint8 where nothing is negative
        quantize_mode="smart",  # not what would only be converted there and back
        calib_mode="naive",  # by the smallest and largest values
        calib_data=mx.io.NDArrayIter(data=data, batch_size=data.shape[0]),
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
