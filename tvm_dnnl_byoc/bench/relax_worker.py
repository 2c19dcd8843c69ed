"""The worker of ``scripts/bench_relax.py``: as ``worker``, for networks of torch's."""

from __future__ import annotations

from pathlib import Path

from . import torch_models
from .backends import BuildOptions, onnxruntime, openvino, relax, torch
from .worker import Worker, serve

BACKENDS = (
    *("dnnl", "dnnl-bf16", "dnnl-int8"),
    *("relax", "torch", "torch-inductor", "torch-int8", "onnxruntime", "openvino"),
)


class RelaxWorker(Worker):
    """The commands that differ."""

    def prepare(self, model: str, seed: int, directory: str) -> dict:
        """Write what the others need into a directory."""
        torch_models.prepare(model, seed, Path(directory))
        return {}

    def build(self, backend: str, model: str, seed: int, directory: str, threads: int) -> dict:
        """Build for `backend`, run once, and compare with torch's answer."""
        self._network = _build(backend, model, seed, Path(directory), threads)
        self._network.run()
        return {
            "build_seconds": self._network.build_seconds,
            "max_error": self._compare(directory),
            "versions": self._network.versions,
            "facts": self._network.facts,
        }


def _build(backend: str, model: str, seed: int, directory: Path, threads: int):
    if backend in ("onnxruntime", "openvino"):
        peer = onnxruntime if backend == "onnxruntime" else openvino
        return peer.build(directory, BuildOptions(threads))
    if backend.startswith("dnnl"):
        relax.import_package()  # before torch, so that its OpenMP is told how to wait
    network, data = torch_models.load(model, seed)
    if backend == "torch-int8":
        network = torch.quantize_network(network, data)
    if backend.startswith("torch"):
        return torch.compile_network(network, [[data]], threads, backend == "torch-inductor")
    if backend == "relax":
        return relax.build_default(network, data)
    return relax.build_dnnl(network, data, backend.partition("-")[2] or "f32")


def main() -> None:
    """Serve the benchmark."""
    serve(RelaxWorker())
