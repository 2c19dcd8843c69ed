"""The networks of ``scripts/bench_relax.py``: random weights, the same from each seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from . import models

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class TorchModel:
    """A network.

    Attributes
    ----------
    make : callable
        Gives the ``torch.nn.Module``, in evaluation.
    shape : tuple of int
        Of its one input, with the batch that is measured.
    """

    make: Callable[[], torch.nn.Module]
    shape: tuple[int, ...]


def _networks():
    from ..models import torch_networks

    return torch_networks


MODELS = {
    "resnet50": TorchModel(lambda: _networks().resnet50(), (1, 3, 224, 224)),
    "bert-base": TorchModel(lambda: _networks().BertEncoder().eval(), (1, 128, 768)),
}


def load(name: str, seed: int) -> tuple[torch.nn.Module, torch.Tensor]:
    """Return a network and an input."""
    import torch

    torch.manual_seed(seed)
    model = MODELS[name]
    return model.make(), torch.randn(model.shape)


def prepare(name: str, seed: int, directory: Path) -> None:
    """Write the input, torch's answer to it, and the network as ONNX, for the peers."""
    import torch

    network, data = load(name, seed)
    models.save_inputs([{models.INPUT_NAME: data.numpy()}], directory)
    with torch.no_grad():
        np.save(directory / "reference.npy", network(data).numpy())
        torch.onnx.export(
            network,
            (data,),
            directory / "model.onnx",
            input_names=[models.INPUT_NAME],
            dynamo=True,
            external_data=False,
        )
