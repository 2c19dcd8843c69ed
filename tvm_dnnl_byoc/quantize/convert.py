"""Applies a recipe to a model."""

from __future__ import annotations

import numpy as np
import tvm

from ..front import Main
from ..ir import Expr, add, array_of, constant, dequantize, op_name, quantize, shape_of
from ..passes.affine import along, mean_results
from ..passes.dataflow import rewrite, with_inputs
from .borders import shares_inside
from .equalize import Between, equalized, find_between
from .layers import FoundLayer, find_layers
from .recipe import LEAST_SCALE, Recipe, Tensor

_DTYPES = {"u8": "uint8", "s8": "int8"}


def convert(mod: tvm.IRModule, params: dict | None, recipe: Recipe) -> tvm.IRModule:
    """Quantize a model.

    Parameters
    ----------
    mod : tvm.IRModule
        The float32 module that the recipe was made for. It is not changed.
    params : dict of str to numpy.ndarray, or to a tensor of TVM's
        The weights; others than at calibration will do.
    recipe : Recipe

    Returns
    -------
    tvm.IRModule
        In the form of ONNX's QDQ: a layer reads ``qnn.dequantize`` (of Relax's: ``dequantize``)
        of weights in int8, one scale for each output channel, and of data in uint8 or int8. For
        ``partition_for_dnnl``.

    Raises
    ------
    ValueError
        If the recipe is of another model, or was edited to something that cannot be; or if a
        layer has weights that are not finite.
    """
    main = Main.read(mod, params)
    found = find_layers(main.body)
    _expect_same("layers", found.layers, recipe.layers)
    _expect_same("tensors", found.tensors, recipe.tensors)
    divided = {
        name: tensor.divisors
        for name, tensor in recipe.tensors.items()
        if tensor.divisors is not None
    }
    if divided:
        between = find_between(main.body, found)
        _expect_divisors(between, divided)
        main = equalized(main, between, divided)
        found = find_layers(main.body)
    layers = {
        layer.call: layer for name, layer in found.layers.items() if recipe.layers[name].quantize
    }
    read = {layer.data for layer in layers.values()}
    operands = {
        name
        for name, adding in found.operands.items()
        if any(recipe.layers[layer].quantize for layer in adding)
    }
    tensors = {found.tensors[name]: recipe.tensors[name] for name in read | operands}

    means = {layer.call: recipe.layers[name].means for name, layer in found.layers.items()}
    corrected: dict[Expr, tuple[Expr, np.ndarray]] = {}  # to the layer, and what is added to it

    def rule(new: Expr, old: Expr) -> Expr:
        if old in layers:
            data, _, *rest = new.args
            numbers, scales = _rounded_weights(layers[old])
            weights = dequantize(constant(numbers), scales.ravel(), layers[old].axis)
            new = layer = with_inputs(new, [data, weights, *rest])
            if means[old] is not None:
                shift = _correction(layers[old], numbers * scales, means[old])
                new = add(layer, constant(shift))
                corrected[new] = layer, shift
        elif op_name(new) == "add" and new.args[0] in corrected:
            # One constant for both: what reads the module looks for a layer and its bias.
            layer, shift = corrected[new.args[0]]
            bias = array_of(new.args[1])
            if bias is not None and np.broadcast(bias, shift).size == shift.size:
                new = add(layer, constant(bias + shift))
        return _rounded(new, tensors[old]) if old in tensors else new

    return main.with_body(rewrite(main.body, rule))


def _expect_same(what: str, expected, got) -> None:
    if list(expected) != list(got):
        raise ValueError(
            f"recipe: expected {len(expected)} {what} ({', '.join(list(expected)[:3])}, …), got "
            f"{len(got)} ({', '.join(list(got)[:3])}, …): it is of another model"
        )


def _expect_divisors(between: dict[str, Between], divided: dict[str, list[float]]) -> None:
    for name, divisors in divided.items():
        if name not in between:
            raise ValueError(f"recipe: expected divisors of tensors between layers, got {name}'s")
        channels = between[name].channels
        if len(divisors) != channels or not all(0 < divisor < np.inf for divisor in divisors):
            raise ValueError(f"recipe: {name}: expected {channels} divisors > 0, got {divisors}")


def _rounded_weights(layer: FoundLayer) -> tuple[np.ndarray, np.ndarray]:
    """Return weights as numbers from -127 to 127, and the scales, one for each output channel."""
    weights = layer.weights.astype(np.float64)
    others = tuple(i for i in range(weights.ndim) if i != layer.axis)
    largest = np.abs(weights).max(others, keepdims=True)
    scales = np.where(largest > 0, np.maximum(largest / 127, LEAST_SCALE), 1).astype(np.float32)
    return np.rint(weights / scales).clip(-127, 127).astype(np.int8), scales


def _correction(layer: FoundLayer, rounded: np.ndarray, means: list[float]) -> np.ndarray:
    """Return what has to be added to each channel of a layer's result for its mean to stay."""
    shape, axis = shape_of(layer.call.args[0]), layer.data_axis
    if axis is None or len(means) != shape[axis]:
        channels = "no" if axis is None else shape[axis]
        raise ValueError(
            f"recipe: expected {channels} means of what {op_name(layer.call)} reads, got "
            f"{len(means)}"
        )
    change = (layer.weights.astype(np.float64) - rounded) * shares_inside(layer.call)
    shift = mean_results(layer.call, change, np.asarray(means, np.float64))
    return along(shift, axis, len(shape)).astype(np.float32)


def _rounded(expr: Expr, tensor: Tensor) -> Expr:
    if tensor.dtype not in _DTYPES or not 0 < tensor.scale < np.inf:
        raise ValueError(f"recipe: expected dtype u8 or s8 and a scale > 0, got {tensor}")
    numbers = quantize(expr, tensor.scale, _DTYPES[tensor.dtype])
    return dequantize(numbers, np.float32(tensor.scale))
