"""PyTorch by itself, eager or compiled by its inductor."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .. import models, transformers
from .network import BuildOptions, Network, joined, link

if TYPE_CHECKING:
    import torch


def build(
    directory: Path, options: BuildOptions, precision: str = "f32", compiled: bool = False
) -> Network:
    """Load the network's state, and compile it if that is wanted; a deployment does the same."""
    import torch

    network = transformers.load_torch(directory)
    calls = [
        [torch.from_numpy(array) for array in call.values()]
        for call in models.load_inputs(directory)
    ]
    if precision == "bf16":
        network = network.bfloat16()
    result = compile_network(network, calls, options.threads, compiled)
    result.export = lambda folder: link(directory, folder, transformers.FILES)
    return result


def quantize_network(network: torch.nn.Module, data: torch.Tensor) -> torch.nn.Module:
    """Quantize a network of one input to int8 for x86, as torch's documentation advises.

    That of convolutions in its FX graph mode, calibrated on the input, traced and frozen; that of
    linear layers alone dynamically.
    """
    import torch
    from torch.ao import quantization
    from torch.ao.quantization import quantize_fx

    torch.backends.quantized.engine = "x86"
    if not any(isinstance(module, torch.nn.Conv2d) for module in network.modules()):
        return quantization.quantize_dynamic(network, {torch.nn.Linear}, torch.qint8)
    mapping = quantization.get_default_qconfig_mapping("x86")
    prepared = quantize_fx.prepare_fx(network, mapping, (data,))
    with torch.no_grad():
        prepared(data)
        quantized = quantize_fx.convert_fx(prepared)
        return torch.jit.freeze(torch.jit.trace(quantized.eval(), data))


def compile_network(
    network: torch.nn.Module,
    calls: Sequence[Sequence[torch.Tensor]],
    threads: int,
    compiled: bool = False,
) -> Network:
    """Compile a network of torch's if that is wanted, and run it once; `calls`: their inputs."""
    import torch

    torch.set_num_threads(threads)
    begin = time.perf_counter()
    if compiled:
        import torch._inductor.config as inductor

        inductor.freezing = True  # the weights are constant, and may be packed
        network = torch.compile(network)
    outputs = []

    def run() -> None:
        with torch.inference_mode(not compiled), torch.no_grad():
            outputs[:] = [network(*inputs) for inputs in calls]

    run()
    return Network(
        run=run,
        output=lambda: joined([output.float().numpy() for output in outputs]),
        build_seconds=time.perf_counter() - begin,
        versions={"torch": torch.__version__},
    )
