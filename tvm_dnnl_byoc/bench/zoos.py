"""Where the networks of a benchmark come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import models, transformers


@dataclass(frozen=True)
class Zoo:
    """A family of networks.

    Attributes
    ----------
    what : str
        What they are, for the help text.
    source : str
        What knows their names, for error messages.
    default : str
        The network that is measured if none is asked for.
    reference : tuple of str
        Those that ``reference`` stands for.
    unit : str
        What a batch is made of.
    needs : str
        What error messages say of the frameworks that define the networks.
    names : callable
        Returns the names of all networks.
    save : callable
        ``save(name, batch_size, seed, directory)`` prepares one, and writes it for the backends.
        Returns the shape of its (first) input.
    """

    what: str
    source: str
    default: str
    reference: tuple[str, ...]
    unit: str
    needs: str
    names: Callable[[], list[str]]
    save: Callable[[str, int, int, Path], list[int]]


ZOOS = {
    "gluoncv": Zoo(
        what="GluonCV networks",
        source="gluoncv.model_zoo",
        default="resnet50_v1b",
        reference=(
            *("resnet50_v1b", "inceptionv3", "vgg11_bn", "mobilenet1.0", "mobilenetv2_1.0"),
            *("densenet121", "se_resnext50_32x4d"),
        ),
        unit="images",
        needs="the models come from GluonCV and MXNet (Python 3.11 or older)",
        names=models.model_names,
        save=models.prepare_and_save,
    ),
    "transformers": Zoo(
        what="transformers",
        source="this benchmark",
        default="bert_base_128",
        reference=("bert_base_128", "bert_base_384", "minilm_128", "minilm_mixed"),
        unit="sequences",
        needs="the models come from PyTorch and transformers",
        names=transformers.model_names,
        save=transformers.prepare_and_save,
    ),
}
