"""Equalization: the channels between two layers in ranges of like size.

A tensor has one scale, which suits the channels of the widest range. But each channel that a layer
leaves to others may be divided by any positive number: the layer's weights and bias are, too, the
weights that read it are multiplied, and a ReLU or a pooling in between lets it through.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..front import Main
from ..ir import Call, Expr, add, array_of, constant, op_name, shape_of
from ..passes.affine import (
    Affine,
    along,
    apply_to_inputs,
    apply_to_outputs,
    channel_axis,
    outputs_first,
    taps,
)
from ..passes.dataflow import count_uses, inputs_by_expr, rewrite
from ..passes.pooling import AVERAGES
from .layers import FoundLayer, FoundLayers

_MAXIMA = {f"nn.max_pool{dims}d" for dims in (1, 2, 3)}
_POOLINGS = {*AVERAGES, *_MAXIMA}
# f(x / s) is f(x) / s; a pooling's only if it works on each channel alone.
_LET_THROUGH = {"nn.relu", "nn.leaky_relu", *_POOLINGS}
# The most that two channels' ranges are taken to differ: what was hardly seen may come.
_LEAST = 1e-2


@dataclass(frozen=True)
class Between:
    """A tensor between layers.

    Attributes
    ----------
    producer : FoundLayer
        The layer that gives it.
    bias : Expr or None
        The addition of the layer's bias.
    readers : list of FoundLayer
        All that read it.
    """

    producer: FoundLayer
    bias: Expr | None
    readers: list[FoundLayer]

    @property
    def channels(self) -> int:
        """How many it has."""
        return shape_of(self.producer.call)[self.producer.data_axis]


def find_between(body: Expr, found: FoundLayers) -> dict[str, Between]:
    """Return, by name, the tensors whose channels may be divided without changing a result."""
    uses = count_uses(body)
    reading: dict[Expr, list[Expr]] = {}
    for expr, inputs in inputs_by_expr(body).items():
        for value in inputs:
            reading.setdefault(value, []).append(expr)
    layers = {layer.call: layer for layer in found.layers.values()}

    def readers_of(tensor: Expr, axis: int) -> list[FoundLayer] | None:
        readers = []
        for reader in reading.get(tensor, []):
            layer = layers.get(reader)
            if layer is None:
                is_maximum = op_name(reader) in _MAXIMA and _pools_each(reader, axis)
                more = readers_of(reader, axis) if is_maximum else None
                if more is None:
                    return None
                readers += more
            elif layer.data_axis == axis and outputs_first(reader):
                readers.append(layer)
            else:
                return None
        return readers if len(reading.get(tensor, [])) == uses[tensor] else None

    def read_once(expr: Expr, tensor: Expr) -> bool:
        return expr.same_as(tensor) or uses[expr] == 1

    between = {}
    for name, tensor in found.tensors.items():
        root, bias, poolings = tensor, None, []
        while op_name(root) in _LET_THROUGH and read_once(root, tensor):
            poolings += [root] if op_name(root) in _POOLINGS else []
            root = root.args[0]
        is_bias = op_name(root) == "add" and array_of(root.args[1]) is not None
        if is_bias and read_once(root, tensor):
            bias, root = root, root.args[0]
        producer = layers.get(root)
        if producer is None or producer.data_axis is None or not read_once(root, tensor):
            continue
        axis = producer.data_axis
        readers = readers_of(tensor, axis)
        each = all(_pools_each(pooling, axis) for pooling in poolings)
        if readers and each and (bias is None or shape_of(bias) == shape_of(root)):
            between[name] = Between(producer, bias, readers)
    return between


def _pools_each(pooling: Call, axis: int) -> bool:
    """Whether a pooling works on each channel alone, of data that has them along an axis."""
    layout = str(pooling.attrs.layout)
    plain = layout.isalpha() and pooling.attrs.out_layout in ("", layout)
    return plain and layout.find("C") == axis


def divisors(between: Between, ranges: np.ndarray) -> np.ndarray:
    """Return what each channel is divided by.

    As in G. Xiao et al.: SmoothQuant, 2022, eq. 4 with α = 1/2: the ranges of a channel and of the
    weights that read it become the same. Where each channel has weights, and so a scale, of its
    own, the ranges of all channels do.

    Parameters
    ----------
    ranges : np.ndarray
        (channels,): the largest absolute values that were seen.
    """
    weights = [
        np.abs(taps(reader.call, reader.weights, between.channels)) for reader in between.readers
    ]
    heavy = np.max([group.max((1, 3)).ravel() for group in weights], axis=0)
    if not ranges.max() or not heavy.max():
        return np.ones_like(ranges)
    wide, heavy = (np.maximum(x, _LEAST * x.max()) for x in (ranges, heavy))
    depthwise = all(group.shape[2] == 1 for group in weights)
    result = wide if depthwise else np.sqrt(wide / heavy)
    return result / np.exp(np.log(result).mean())


def equalized(main: Main, between: dict[str, Between], by: dict[str, list[float]]) -> Main:
    """Divide the channels of tensors, by name; returns a function with the same results."""
    arrays = {name: np.array(divisor, np.float64) for name, divisor in by.items()}
    outputs = {between[name].producer.call: divisor for name, divisor in arrays.items()}
    biases = {
        between[name].bias: (divisor, between[name].producer.data_axis)
        for name, divisor in arrays.items()
        if between[name].bias is not None
    }
    inputs = {
        reader.call: divisor for name, divisor in arrays.items() for reader in between[name].readers
    }

    def scaling(data: Expr, scale: np.ndarray, like: Expr, layer: Expr) -> Affine:
        shape = shape_of(like)
        axis = channel_axis(layer, len(shape))
        return Affine(data, along(scale, axis, len(shape)), np.float64(0), shape)

    def rule(new: Expr, old: Expr) -> Expr:
        if old in inputs:
            new = apply_to_inputs(new, scaling(new.args[0], inputs[old], old.args[0], old))
        if old in outputs:
            new = apply_to_outputs(new, None, scaling(new, 1 / outputs[old], old, old))
        if old in biases:
            divisor, axis = biases[old]
            bias = array_of(new.args[1])
            scaled = bias / along(divisor, axis, len(shape_of(old)))
            new = add(new.args[0], constant(scaled.astype(bias.dtype)))
        return new

    return Main.read(main.with_body(rewrite(main.body, rule)))
