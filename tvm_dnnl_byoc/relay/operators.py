"""The operators that are offloaded: what partitioning has to know of each.

Whether oneDNN takes a particular call is not decided here. ``src/relay`` translates it, or says
what it expected instead, and the engine asks oneDNN.
"""

from dataclasses import dataclass


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


OPERATORS = {
    operator.name: operator
    for operator in (
        Operator("nn.conv2d", heavy=True),
        Operator("nn.dense", heavy=True),
        Operator("nn.max_pool2d"),
        Operator("nn.avg_pool2d"),
        Operator("nn.global_max_pool2d"),
        Operator("nn.global_avg_pool2d"),
        Operator("nn.batch_norm"),
        Operator("nn.softmax"),
        Operator("nn.bias_add", post_op=True),
        Operator("add", post_op=True),
        Operator("multiply", post_op=True),
        Operator("nn.relu", post_op=True),
        Operator("nn.leaky_relu", post_op=True),
        Operator("clip", post_op=True),
        Operator("sigmoid", post_op=True),
        Operator("tanh", post_op=True),
        Operator("concatenate", fuses=False),
        Operator("nn.batch_flatten", fuses=False),
        Operator("reshape", fuses=False),
    )
}
