"""Encoders of transformers, written by PyTorch for all backends."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import conversion, models, onnx_export

_STATE, _NAME = "network.pt", "network.txt"
FILES = (_STATE, _NAME)  # PyTorch's
_OPSET = 17
_VOCABULARY = 30522


@dataclass(frozen=True)
class Encoder:
    """The sizes of a BERT.

    Attributes
    ----------
    sequence : int
        Tokens of each sequence; a part of them is padding.
    layers, hidden, heads, inner : int
    """

    sequence: int
    layers: int = 12
    hidden: int = 768
    heads: int = 12
    inner: int = 3072


_ENCODERS = {
    "bert_base_128": Encoder(128),
    "bert_base_384": Encoder(384),
    "minilm_128": Encoder(128, layers=6, hidden=384, inner=1536),
    "bert_tiny_32": Encoder(32, layers=2, hidden=128, heads=2, inner=512),  # for tests
}


def model_names() -> list[str]:
    """All names, sorted."""
    return sorted(_ENCODERS)


def prepare_and_save(name: str, batch_size: int, seed: int, directory: Path) -> list[int]:
    """Write an encoder with random parameters as Relay, ONNX and PyTorch's state, and the arrays.

    Parameters
    ----------
    name : str
        Of `model_names`.
    batch_size : int
        Number of sequences.
    seed : int
        Seed of parameters and inputs.
    directory : Path
        Receives the files.

    Returns
    -------
    list of int
        The shape of the token ids.
    """
    import torch

    encoder = _ENCODERS[name]
    network = instantiate(name)
    _randomise(network, seed)
    inputs = _inputs(encoder, batch_size, np.random.default_rng(seed))
    tensors = tuple(map(torch.from_numpy, inputs.values()))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what tracing makes constant
        np.save(directory / "reference.npy", network(*tensors).numpy())
        models.save_inputs(inputs, directory)
        torch.save(network.state_dict(), directory / _STATE)
        (directory / _NAME).write_text(name)
        traced = torch.jit.trace(network, tensors)
        with conversion.attempt(directory, models.TO_RELAY):
            models.save_relay(*_to_relay(traced, inputs), directory)
        with onnx_export.attempt(directory) as file:
            torch.onnx.export(
                network,
                tensors,
                str(file),
                opset_version=_OPSET,
                input_names=list(inputs),
                output_names=["hidden"],
                dynamo=False,
            )
    return list(inputs["ids"].shape)


def instantiate(name: str):
    """Return an encoder with arbitrary parameters: a module of token ids and mask, (batch, S)."""
    import torch
    from transformers import BertConfig, BertModel

    encoder = _ENCODERS[name]
    config = BertConfig(
        vocab_size=_VOCABULARY,
        hidden_size=encoder.hidden,
        num_hidden_layers=encoder.layers,
        num_attention_heads=encoder.heads,
        intermediate_size=encoder.inner,
        attn_implementation="sdpa",
    )

    class LastHiddenState(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = BertModel(config, add_pooling_layer=False)

        def forward(self, ids, mask):
            return self.bert(input_ids=ids, attention_mask=mask, return_dict=False)[0]

    return LastHiddenState().eval()


def load_torch(directory: Path):
    """Return the encoder that `prepare_and_save` wrote, for PyTorch."""
    import torch

    network = instantiate((directory / _NAME).read_text())
    network.load_state_dict(torch.load(directory / _STATE))
    return network


def _randomise(network, seed: int) -> None:
    """Give parameters values of a trained network's size, with no bias 0 and no scale 1."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("LayerNorm.weight"):
                parameter.uniform_(0.5, 1.5, generator=generator)
            elif name.endswith("bias"):
                parameter.normal_(0.02, 0.1, generator=generator)
            else:
                parameter.normal_(0, 0.04, generator=generator)


def _inputs(encoder: Encoder, batch_size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    shape = (batch_size, encoder.sequence)
    lengths = rng.integers(encoder.sequence // 2, encoder.sequence, (batch_size, 1))
    return {
        "ids": rng.integers(0, _VOCABULARY, shape),
        "mask": (np.arange(encoder.sequence) < lengths).astype(np.int64),
    }


def _to_relay(traced, inputs: dict[str, np.ndarray]):
    from tvm import relay

    shapes = [(name, (array.shape, str(array.dtype))) for name, array in inputs.items()]
    return relay.frontend.from_pytorch(traced, shapes)
