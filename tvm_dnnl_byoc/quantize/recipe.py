"""What a model is quantized by: data, to be looked at, edited, and used without calibration."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

_FORMAT, _VERSION = "dnnl_byoc.quantization", 1
# The smallest that float32 has all digits for: by less, processors may divide as by 0.
LEAST_SCALE = float(np.finfo(np.float32).tiny)


@dataclass
class Tensor:
    """Numbers that stand for a tensor: real = scale · number.

    Attributes
    ----------
    dtype : str
        ``"u8"`` if it was never negative, else ``"s8"``.
    scale : float
    divisors : list of float or None
        What each of its channels is divided by before, to be equalized: the layers around it get
        other weights. None for none.
    """

    dtype: str
    scale: float
    divisors: list[float] | None = None


@dataclass
class Layer:
    """A convolution or dense layer.

    Attributes
    ----------
    data : str
        The name of the tensor that it reads.
    quantize : bool
        Whether it computes in int8.
    means : list of float or None
        Of each channel that it reads: by them, its bias is corrected. None for no correction.
    """

    data: str
    quantize: bool = True
    means: list[float] | None = None


@dataclass
class Recipe:
    """How a model is quantized.

    Attributes
    ----------
    observer : str
        That chose the scales.
    tensors : dict of str to Tensor
    layers : dict of str to Layer
        In the order of the model, called ``conv2d_0``, ``conv2d_1``, …, ``dense_0``, ….
    """

    observer: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    layers: dict[str, Layer] = field(default_factory=dict)

    def keep(self, *names: str) -> Recipe:
        """Keep layers in float32, by name, or as ``"first"`` and ``"last"``; returns the recipe.

        Raises
        ------
        ValueError
            If there is no such layer.
        """
        order = list(self.layers)
        ends = {"first": order[:1], "last": order[-1:]}
        for name in names:
            found = ends.get(name, [name])
            if not found or found[0] not in self.layers:
                raise ValueError(f"keep: expected one of {', '.join(order)}, got {name!r}")
            self.layers[found[0]].quantize = False
        return self

    def save(self, path: str | Path) -> None:
        """Write it as JSON, with a line for each tensor and each layer, to be edited."""
        head = {"format": _FORMAT, "version": _VERSION, "observer": self.observer}
        parts = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        for key, entries in (("tensors", self.tensors), ("layers", self.layers)):
            lines = [f"  {json.dumps(n)}: {json.dumps(asdict(e))}" for n, e in entries.items()]
            parts.append(f"{json.dumps(key)}: {{\n" + ",\n".join(lines) + "\n }")
        Path(path).write_text("{\n " + ",\n ".join(parts) + "\n}\n")

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read what `save` wrote.

        Raises
        ------
        ValueError
            If the file is something else, or of another version.
        """
        try:
            document = json.loads(Path(path).read_text())
            got = f"{document['format']} {document['version']}"
            if got == f"{_FORMAT} {_VERSION}":
                return cls(
                    document["observer"],
                    {name: Tensor(**entry) for name, entry in document["tensors"].items()},
                    {name: Layer(**entry) for name, entry in document["layers"].items()},
                )
        except (AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(
                f"{path}: expected a recipe as Recipe.save writes it: {error}"
            ) from None
        raise ValueError(f"{path}: expected {_FORMAT} {_VERSION}, got {got}")
