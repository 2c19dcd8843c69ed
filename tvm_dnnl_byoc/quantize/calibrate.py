"""Runs a model on real inputs, to see which values its tensors take."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import tvm

from ..front import Main
from ..ir import tuple_of
from .layers import find_layers
from .observers import OBSERVERS, Means, MinMax
from .recipe import Layer, Recipe, Tensor
from .run import Inputs, runner, with_progress


def calibrate(
    mod: tvm.IRModule,
    params: dict | None,
    data: Iterable[Inputs],
    observer: str = "mse",
    target: str = "llvm",
    bias_correction: bool = True,
) -> Recipe:
    """Find the scales of a model's tensors.

    Parameters
    ----------
    mod : tvm.IRModule
        A float32 module with ``main``: Relay's with static shapes, or Relax's, with a pure
        ``main``. It is not changed.
    params : dict of str to numpy.ndarray, or to a tensor of TVM's
        The weights, without which there is nothing to quantize.
    data : iterable of dict of str to numpy.ndarray, or of numpy.ndarray
        Inputs like those to come, a hundred or so; an array alone for a model with one input.
    observer : str
        ``"minmax"``, ``"moving_average"``, ``"percentile"``, ``"entropy"`` or ``"mse"``.
    target : str
        For what stays in TVM.
    bias_correction : bool
        Whether biases make up for what the rounding of the weights does to the mean of each output
        channel: the change of the weights times the means of what they are multiplied with (M.
        Nagel et al.: Data-Free Quantization Through Weight Equalization and Bias Correction, 2019).

    Returns
    -------
    Recipe

    Raises
    ------
    ValueError
        If there is no such observer, no layer to quantize, or no data.
    """
    if observer not in OBSERVERS:
        raise ValueError(f"observer: expected one of {', '.join(OBSERVERS)}, got {observer!r}")
    main = Main.read(mod, params)
    found = find_layers(main.body)
    if not found.layers:
        raise ValueError(
            "calibrate: expected a model with convolutions or dense layers whose weights are "
            "constant, got none: are the params given?"
        )
    seen: dict[str, MinMax] = {name: OBSERVERS[observer]() for name in found.tensors}
    means: dict[str, Means] = {
        name: Means(layer.data_axis)
        for name, layer in found.layers.items()
        if bias_correction and layer.data_axis is not None
    }
    read = {name: found.layers[name].call.args[0] for name in means}
    looked_at = list(dict.fromkeys([*found.tensors.values(), *read.values()]))
    run = runner(main.with_body(tuple_of(looked_at)), target)
    inputs = 0
    for given in with_progress(data, "calibrating"):
        values = dict(zip(looked_at, run(given), strict=True))
        for name, entry in seen.items():
            entry.update(values[found.tensors[name]])
        for name, entry in means.items():
            entry.update(values[read[name]])
        inputs += 1
    if not inputs:
        raise ValueError("data: expected at least one input, got none")
    return Recipe(
        observer,
        {name: _tensor(entry) for name, entry in seen.items()},
        {
            name: Layer(layer.data, means=means[name].of_channels() if name in means else None)
            for name, layer in found.layers.items()
        },
    )


def _tensor(seen: MinMax) -> Tensor:
    dtype, levels = ("s8", 127) if seen.negative else ("u8", 255)
    limit = seen.limit(levels)
    return Tensor(dtype, float(np.float32(limit / levels)) if limit > 0 else 1.0)
