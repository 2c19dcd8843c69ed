"""Applies a recipe to a model."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relay
from tvm.relay.expr import Expr

from ..ir import constant
from ..passes.dataflow import rewrite, with_body, with_inputs
from ..relay.partition import canonical
from .layers import FoundLayer, find_layers
from .recipe import Recipe, Tensor

_RELAY_DTYPES = {"u8": "uint8", "s8": "int8"}


def convert(mod: tvm.IRModule, params: dict | None, recipe: Recipe) -> tvm.IRModule:
    """Quantize a model.

    Parameters
    ----------
    mod : tvm.IRModule
        The float32 Relay module that the recipe was made for. It is not changed.
    params : dict of str to tvm.nd.NDArray or numpy.ndarray
        The weights; others than at calibration will do.
    recipe : Recipe

    Returns
    -------
    tvm.IRModule
        In the form of ONNX's QDQ: a layer reads ``qnn.dequantize`` of weights in int8, one scale
        for each output channel, and of data in uint8 or int8. For ``partition_for_dnnl``.

    Raises
    ------
    ValueError
        If the recipe is of another model, or was edited to something that cannot be.
    """
    module, _ = canonical(mod, params)
    main = module["main"]
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

    module["main"] = with_body(main, rewrite(main.body, rule))
    return relay.transform.InferType()(module)


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
    scales = scales.ravel()
    return relay.qnn.dequantize(
        constant(numbers),
        constant(scales),
        constant(np.zeros(scales.shape, np.int32)),
        axis=layer.axis,
    )


def _rounded(expr: Expr, tensor: Tensor) -> Expr:
    if tensor.dtype not in _RELAY_DTYPES or not 0 < tensor.scale < np.inf:
        raise ValueError(f"recipe: expected dtype u8 or s8 and a scale > 0, got {tensor}")
    scale, zero_point = relay.const(tensor.scale, "float32"), relay.const(0, "int32")
    numbers = relay.qnn.quantize(expr, scale, zero_point, out_dtype=_RELAY_DTYPES[tensor.dtype])
    return relay.qnn.dequantize(numbers, scale, zero_point)
