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
_AXES = {0: "batch", 1: "length"}


@dataclass(frozen=True)
class Encoder:
    """The sizes of a BERT.

    Attributes
    ----------
    sequence : int
        Tokens of each sequence; a part of them is padding.
    layers, hidden, heads, inner : int
    lengths : tuple of int
        Instead: one inference is a call for each, of sequences without padding. Then the network
        that the backends get is one of any batch and length.
    """

    sequence: int
    layers: int = 12
    hidden: int = 768
    heads: int = 12
    inner: int = 3072
    lengths: tuple[int, ...] = ()


_ENCODERS = {
    "bert_base_128": Encoder(128),
    "bert_base_384": Encoder(384),
    "minilm_128": Encoder(128, layers=6, hidden=384, inner=1536),
    "minilm_mixed": Encoder(
        128, layers=6, hidden=384, inner=1536, lengths=(9, 16, 23, 31, 45, 62, 87, 128)
    ),
    # For tests.
    "bert_tiny_32": Encoder(32, layers=2, hidden=128, heads=2, inner=512),
    "bert_tiny_mixed": Encoder(32, layers=2, hidden=128, heads=2, inner=512, lengths=(7, 32, 15)),
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
    calls = _inputs(encoder, batch_size, np.random.default_rng(seed))
    inputs = calls[-1]
    tensors = tuple(map(torch.from_numpy, inputs.values()))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what tracing makes constant
        answers = [network(*map(torch.from_numpy, call.values())).numpy() for call in calls]
        np.save(directory / "reference.npy", np.concatenate(answers, axis=1))
        models.save_inputs(calls, directory)
        torch.save(network.state_dict(), directory / _STATE)
        (directory / _NAME).write_text(name)
        with onnx_export.attempt(directory) as file:
            torch.onnx.export(
                network,
                tensors,
                str(file),
                opset_version=_OPSET,
                input_names=list(inputs),
                output_names=["hidden"],
                dynamic_axes=dict.fromkeys([*inputs, "hidden"], _AXES) if encoder.lengths else None,
                dynamo=False,
            )
        with conversion.attempt(directory, models.TO_RELAY):
            # TVM's PyTorch frontend knows no unknown sizes.
            module, params = (
                _of_any_size(file, inputs)
                if encoder.lengths
                else _to_relay(torch.jit.trace(network, tensors), inputs)
            )
            models.save_relay(module, params, directory)
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


def _inputs(
    encoder: Encoder, batch_size: int, rng: np.random.Generator
) -> list[dict[str, np.ndarray]]:
    if encoder.lengths:
        shapes = [(batch_size, length) for length in encoder.lengths]
        return [
            {"ids": rng.integers(0, _VOCABULARY, shape), "mask": np.ones(shape, np.int64)}
            for shape in shapes
        ]
    shape = (batch_size, encoder.sequence)
    lengths = rng.integers(encoder.sequence // 2, encoder.sequence, (batch_size, 1))
    mask = (np.arange(encoder.sequence) < lengths).astype(np.int64)
    return [{"ids": rng.integers(0, _VOCABULARY, shape), "mask": mask}]


def _of_any_size(file: Path, inputs: dict[str, np.ndarray]):
    import onnx
    from tvm import relay

    shapes = {name: (relay.Any(), relay.Any()) for name in inputs}
    return relay.frontend.from_onnx(onnx.load(file), shapes, freeze_params=True)


def _to_relay(traced, inputs: dict[str, np.ndarray]):
    from tvm import relay

    shapes = [(name, (array.shape, str(array.dtype))) for name, array in inputs.items()]
    return relay.frontend.from_pytorch(traced, shapes)
