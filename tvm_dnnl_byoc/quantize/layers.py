"""The layers of a canonical function that can compute in int8, and the tensors that they read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from ..ir import Call, Constant, Expr, array_of, op_name, shape_of
from ..passes.affine import CONVOLUTIONS, channel_axis, output_axis
from ..passes.dataflow import post_order

# What only moves values is done with their numbers.
MOVES = {
    *("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.batch_flatten", "reshape", "squeeze"),
    *("expand_dims", "transpose"),
}
_AFTER_A_PRODUCT = {"nn.bias_add", "nn.relu", "clip", "nn.leaky_relu"}


@dataclass(frozen=True)
class FoundLayer:
    """A layer.

    Attributes
    ----------
    call : Call
    data : str
        The name of the tensor that it reads.
    axis : int
        Of the weights: the one along which each index gives another output channel.
    data_axis : int or None
        Of what it reads, and of its result: that of the channels; None if they have several.
    """

    call: Call
    data: str
    axis: int
    data_axis: int | None

    @property
    def weights(self) -> np.ndarray:
        """The weights, in float32."""
        return array_of(self.call.args[1])


@dataclass
class FoundLayers:
    """What can be quantized in a function.

    Attributes
    ----------
    layers : dict of str to FoundLayer
    tensors : dict of str to Expr
        Those that layers read, through what only moves values; and of additions of two layers'
        results the second, which would be kept in float32 else.
    operands : dict of str to list of str
        Those second ones, and the layers whose results are added.
    """

    layers: dict[str, FoundLayer] = field(default_factory=dict)
    tensors: dict[str, Expr] = field(default_factory=dict)
    operands: dict[str, list[str]] = field(default_factory=dict)


def find_layers(body: Expr) -> FoundLayers:
    """Find the layers of a type-inferred canonical body whose weights are constant.

    Raises
    ------
    ValueError
        If the weights of one are not finite: there is no scale for them.
    """
    found = FoundLayers()
    names: dict[Expr, str] = {}
    numbers: Counter[str] = Counter()

    def name_of(tensor: Expr, name: str) -> str:
        if tensor not in names:
            names[tensor] = name
            found.tensors[name] = tensor
        return names[tensor]

    order = post_order(body)
    for expr in order:
        kind = op_name(expr)
        if not _is_product(expr) or not isinstance(expr.args[1], Constant):
            continue
        kind = kind.removeprefix("nn.")
        layer = f"{kind}_{numbers[kind]}"
        numbers[kind] += 1
        data = _origin(expr.args[0])
        axis = output_axis(expr)
        if shape_of(data) and not isinstance(data, Constant) and axis is not None:
            found.layers[layer] = FoundLayer(
                expr,
                name_of(data, f"{layer}.data"),
                axis,
                channel_axis(expr, len(shape_of(expr.args[0]))),
            )
            _expect_finite(layer, found.layers[layer].weights)
    layers = {layer.call: name for name, layer in found.layers.items()}
    for expr in order:
        if op_name(expr) != "add":
            continue
        first, second = expr.args
        if all(e not in names and _is_product(_root(e)) for e in (first, second)):
            name = name_of(second, f"add_{numbers['add']}.operand")
            roots = (_root(first), _root(second))
            found.operands[name] = [layers[root] for root in roots if root in layers]
            numbers["add"] += 1
    return found


def _expect_finite(layer: str, weights: np.ndarray) -> None:
    others = weights[~np.isfinite(weights)]
    if others.size:
        raise ValueError(f"{layer}: expected finite weights, got {others[0]}")


def _is_product(expr: Expr) -> bool:
    return op_name(expr) in (*CONVOLUTIONS, "nn.dense")


def _origin(expr: Expr) -> Expr:
    while op_name(expr) in MOVES:
        expr = expr.args[0]
    return expr


def _root(expr: Expr) -> Expr:
    """Return what an expression is computed from by post-ops that have no operand."""
    while op_name(expr) in _AFTER_A_PRODUCT or (
        op_name(expr) == "add" and isinstance(expr.args[1], Constant)
    ):
        expr = expr.args[0]
    return expr
