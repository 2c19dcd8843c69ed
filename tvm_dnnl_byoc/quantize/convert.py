"""Applies a recipe to a model."""

from __future__ import annotations

import numpy as np
import tvm

from ..front import Main
from ..ir import Expr, constant, dequantize, quantize
from ..passes.dataflow import rewrite, with_inputs
from .layers import FoundLayer, find_layers
from .recipe import Recipe, Tensor

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
        If the recipe is of another model, or was edited to something that cannot be.
    """
    main = Main.read(mod, params)
    found = find_layers(main.body)
    _expect_same("layers", found.layers, recipe.layers)
    _expect_same("tensors", found.tensors, recipe.tensors)
    layers = {
        layer.call: layer for name, layer in found.layers.items() if recipe.layers[name].quantize
    }
    read = {layer.data for layer in layers.values()}
    operands = {name for name in found.tensors if name.endswith(".operand")} if layers else set()
    tensors = {found.tensors[name]: recipe.tensors[name] for name in read | operands}

    def rule(new: Expr, old: Expr) -> Expr:
        if old in layers:
            data, _, *rest = new.args
            new = with_inputs(new, [data, _quantized_weights(layers[old]), *rest])
        return _rounded(new, tensors[old]) if old in tensors else new

    return main.with_body(rewrite(main.body, rule))


def _expect_same(what: str, expected, got) -> None:
    if list(expected) != list(got):
        raise ValueError(
            f"recipe: expected {len(expected)} {what} ({', '.join(list(expected)[:3])}, …), got "
            f"{len(got)} ({', '.join(list(got)[:3])}, …): it is of another model"
        )


def _quantized_weights(layer: FoundLayer) -> Expr:
    """Return weights as numbers from -127 to 127, with a scale for each output channel."""
    weights = layer.weights.astype(np.float64)
    others = tuple(i for i in range(weights.ndim) if i != layer.axis)
    largest = np.abs(weights).max(others, keepdims=True)
    scales = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    numbers = np.rint(weights / scales).clip(-127, 127).astype(np.int8)
    return dequantize(constant(numbers), scales.ravel(), layer.axis)


def _rounded(expr: Expr, tensor: Tensor) -> Expr:
    if tensor.dtype not in _DTYPES or not 0 < tensor.scale < np.inf:
        raise ValueError(f"recipe: expected dtype u8 or s8 and a scale > 0, got {tensor}")
    numbers = quantize(expr, tensor.scale, _DTYPES[tensor.dtype])
    return dequantize(numbers, np.float32(tensor.scale))
