"""Which layers of a model lose most by quantization."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import tvm

from ..front import Main
from ..inputs import Inputs
from .convert import convert
from .recipe import Recipe
from .run import runner, with_progress


def sensitivity(
    mod: tvm.IRModule,
    params: dict | None,
    data: Iterable[Inputs],
    recipe: Recipe,
    target: str = "llvm",
) -> dict[str, float]:
    """Quantize one layer at a time, and compare the model's outputs with those in float32.

    Takes a build for each layer: seconds for each.

    Parameters
    ----------
    mod, params
        As for `convert`.
    data : iterable of dict of str to numpy.ndarray, or of numpy.ndarray
        A few inputs, as for `calibrate`.
    recipe : Recipe
        Only the layers that it quantizes are looked at.
    target : str
        For what stays in TVM.

    Returns
    -------
    dict of str to float
        By layer, the worst first: the sum of the squares of the outputs' error, divided by that of
        the outputs, or by 1 if all of them are 0. Outputs that are not finite are left out.
    """
    inputs = list(data)
    main = Main.read(mod, params)
    exact = _outputs(main.with_body(main.body), inputs, target)
    chosen = [name for name, layer in recipe.layers.items() if layer.quantize]
    noise = {}
    for name in with_progress(chosen, "quantizing one layer at a time"):
        layers = {
            other: replace(layer, quantize=other == name) for other, layer in recipe.layers.items()
        }
        alone = convert(mod, params, replace(recipe, layers=layers))
        noise[name] = _noise(_outputs(alone, inputs, target), exact)
    return dict(sorted(noise.items(), key=lambda item: -item[1]))


def _noise(got: np.ndarray, exact: np.ndarray) -> float:
    finite = np.isfinite(got) & np.isfinite(exact)
    power = np.square(exact[finite]).sum()
    return float(np.square(got[finite] - exact[finite]).sum() / (power or 1))


def _outputs(mod: tvm.IRModule, inputs: list[Inputs], target: str) -> np.ndarray:
    """Return all outputs for all inputs, one after the other, in float64."""
    run = runner(mod, target)
    return np.concatenate(
        [output.astype("float64").ravel() for values in inputs for output in run(values)]
    )
