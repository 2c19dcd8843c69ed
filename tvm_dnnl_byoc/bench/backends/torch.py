"""PyTorch: eager, and compiled by its inductor."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .network import Network

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Loaded:
    """A network of torch's and its input."""

    network: torch.nn.Module
    data: torch.Tensor


def build(loaded: Loaded, threads: int, inductor: bool = False) -> Network:
    """Compile it if that is wanted."""
    import torch

    torch.set_num_threads(threads)
    begin = time.perf_counter()
    network = torch.compile(loaded.network) if inductor else loaded.network
    results = []

    def run() -> None:
        with torch.inference_mode():
            results[:] = [network(loaded.data)]

    run()
    return Network(
        run=run,
        output=lambda: results[0].numpy(),
        build_seconds=time.perf_counter() - begin,
        versions={"torch": torch.__version__},
    )
