"""Group normalisation, and instance normalisation of a batch, as that of a single instance."""

import numpy as np
from tvm import relay
from tvm.relay.expr import Call

from ..ir import array_of, constant, op_name


def as_one_instance(call: Call, shape: tuple[int, ...]) -> Call | None:
    """Return a group or instance normalisation as one of a batch of 1, which oneDNN has.

    The statistics of each instance and group are those of a channel in a batch of 1 with as many
    channels: (N, C, …) is seen as (1, N · groups, …).

    Parameters
    ----------
    call : Call
    shape : tuple of int
        The shape of its data, float32.

    Returns
    -------
    Call or None
        None if scale or shift are not constant or not applied, if the
        channels are not dimension 1, or if it is one instance already.
    """
    name = op_name(call)
    if len(shape) < 3:
        return None
    attrs = call.attrs
    gamma, beta = (array_of(arg) for arg in call.args[1:])
    if gamma is None or beta is None or not (attrs.center and attrs.scale):
        return None
    batch, channels, *spatial = shape
    if attrs.axis % len(shape) != 1 or (name == "nn.instance_norm" and batch == 1):
        return None
    groups = int(attrs.num_groups) if name == "nn.group_norm" else channels
    rows = batch * groups
    data = relay.reshape(call.args[0], (1, rows, channels // groups * spatial[0], *spatial[1:]))
    per_row = groups == channels
    scale = np.tile(gamma, batch) if per_row else np.ones(rows, gamma.dtype)
    shift = np.tile(beta, batch) if per_row else np.zeros(rows, beta.dtype)
    normalised = relay.nn.instance_norm(
        data, constant(scale), constant(shift), epsilon=attrs.epsilon
    )
    result = relay.reshape(normalised, shape)
    if per_row:
        return result
    along_channels = (channels, *(1 for _ in spatial))
    result = relay.multiply(result, constant(gamma.reshape(along_channels)))
    return relay.add(result, constant(beta.reshape(along_channels)))
