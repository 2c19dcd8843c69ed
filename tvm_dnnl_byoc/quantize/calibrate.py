"""Runs a model on real inputs, to see which values its tensors take."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import tvm

from ..front import Main
from ..inputs import Inputs
from ..ir import Expr, tuple_of
from .equalize import divisors, equalized, find_between
from .layers import FoundLayers, find_layers
from .observers import OBSERVERS, Means, MinMax, Observer, Ranges, to_six_digits
from .recipe import LEAST_SCALE, Layer, Recipe, Tensor
from .run import runner, with_progress


def calibrate(
    mod: tvm.IRModule,
    params: dict | None,
    data: Iterable[Inputs],
    observer: str = "mse",
    target: str = "llvm",
    bias_correction: bool = True,
    equalization: bool = False,
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
    equalization : bool
        Whether the channels of tensors between two layers are brought to ranges of like size, so
        that one scale suits all: for networks whose channels differ much, such as depthwise ones.
        The data is kept, and run twice.

    Returns
    -------
    Recipe

    Raises
    ------
    ValueError
        If there is no such observer, no layer to quantize, or no data; or if weights, or values of
        a tensor, are not finite.
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
    divided: dict[str, list[float]] = {}
    if equalization:
        data = list(data)
        divided = _divisors(main, found, data, target)
        main = equalized(main, find_between(main.body, found), divided)
        found = find_layers(main.body)
    seen: dict[str, MinMax] = {name: OBSERVERS[observer]() for name in found.tensors}
    means: dict[str, Means] = {
        name: Means(layer.data_axis)
        for name, layer in found.layers.items()
        if bias_correction and layer.data_axis is not None
    }
    watched = [(found.tensors[name], entry) for name, entry in seen.items()]
    watched += [(found.layers[name].call.args[0], entry) for name, entry in means.items()]
    _watch(main, watched, data, "calibrating", target)
    return Recipe(
        observer,
        {name: _tensor(entry, divided.get(name)) for name, entry in seen.items()},
        {
            name: Layer(layer.data, means=means[name].of_channels() if name in means else None)
            for name, layer in found.layers.items()
        },
    )


def _divisors(
    main: Main, found: FoundLayers, data: list[Inputs], target: str
) -> dict[str, list[float]]:
    """Return what the channels of each tensor between layers are divided by."""
    between = find_between(main.body, found)
    seen = {name: Ranges(place.producer.data_axis) for name, place in between.items()}
    watched = [(found.tensors[name], entry) for name, entry in seen.items()]
    _watch(main, watched, data, "equalizing", target)
    return {
        name: to_six_digits(divisors(place, seen[name].largest)) for name, place in between.items()
    }


def _watch(
    main: Main,
    watched: list[tuple[Expr, Observer]],
    data: Iterable[Inputs],
    what: str,
    target: str,
) -> None:
    """Run a model on inputs, and show the values of expressions to observers."""
    exprs = list(dict.fromkeys(expr for expr, _ in watched))
    if not exprs:
        return
    run = runner(main.with_body(tuple_of(exprs)), target)
    inputs = 0
    for given in with_progress(data, what):
        values = dict(zip(exprs, run(given), strict=True))
        for expr, observer in watched:
            observer.update(values[expr])
        inputs += 1
    if not inputs:
        raise ValueError("data: expected at least one input, got none")


def _tensor(seen: MinMax, divided: list[float] | None) -> Tensor:
    dtype, levels = ("s8", 127) if seen.negative else ("u8", 255)
    limit = seen.limit(levels)
    scale = max(float(np.float32(limit / levels)), LEAST_SCALE) if limit > 0 else 1.0
    return Tensor(dtype, scale, divided)
