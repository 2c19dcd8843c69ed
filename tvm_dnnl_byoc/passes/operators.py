"""The operators that are offloaded: what partitioning has to know of each.

Whether oneDNN takes a particular call is not decided here. ``src/adapter`` translates it, or says
what it expected instead, and the engine asks oneDNN.
"""

from dataclasses import dataclass

from ..ir import Expr, op_name
from .composed import composed_of


@dataclass(frozen=True)
class Operator:
    """A Relay operator.

    Attributes
    ----------
    name : str
        Relay's name.
    heavy : bool
        Whether a region is worth its border for this operator alone.
    post_op : bool
        Whether it may be fused into the operator that gives its input.
    fuses : bool
        Whether post-ops may be fused into it.
    """

    name: str
    heavy: bool = False
    post_op: bool = False
    fuses: bool = True


_HEAVY = (
    "nn.conv1d nn.conv2d nn.conv3d nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose "
    "nn.dense nn.matmul nn.batch_matmul matmul"
)
_FUSING = (
    "nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d "
    "nn.global_max_pool2d nn.global_avg_pool2d nn.adaptive_max_pool1d nn.adaptive_max_pool2d "
    "nn.adaptive_max_pool3d nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d "
    "nn.batch_norm nn.layer_norm nn.instance_norm nn.lrn nn.softmax nn.fast_softmax "
    "nn.log_softmax mean sum max min image.resize1d image.resize2d image.resize3d nn.upsampling "
    "nn.upsampling3d repeat"
)
_POST_OPS = (
    "nn.bias_add nn.prelu add subtract multiply divide maximum minimum power nn.relu "
    "nn.leaky_relu clip sigmoid tanh fast_tanh exp fast_exp log sqrt rsqrt abs negative"
)
_ALONE = (
    "concatenate nn.batch_flatten reshape squeeze expand_dims reshape_like transpose strided_slice "
    "take qnn.quantize qnn.dequantize"
)

_OPERATORS = {
    operator.name: operator
    for operator in (
        *(Operator(name, heavy=True) for name in _HEAVY.split()),
        *(Operator(name) for name in _FUSING.split()),
        *(Operator(name, post_op=True) for name in _POST_OPS.split()),
        *(Operator(name, fuses=False) for name in _ALONE.split()),
    )
}

_ACTIVATION = Operator("activation", post_op=True)
_COMPOSED = {name: _OPERATORS[name] for name in ("nn.batch_matmul",)}


def operator_of(expr: Expr) -> Operator | None:
    """Return the operator that an expression calls, None if it is not one of those offloaded."""
    composed = composed_of(expr)
    if composed:
        return _COMPOSED.get(composed, _ACTIVATION)
    return _OPERATORS.get(op_name(expr) or "")
