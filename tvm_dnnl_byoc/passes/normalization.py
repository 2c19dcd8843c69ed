"""Group normalisation, and instance normalisation of a batch, as that of a single instance."""

import numpy as np

from ..ir import Call, Expr, add, array_of, constant, instance_norm, multiply, op_name, reshape


def as_one_instance(call: Call, shape: tuple[int, ...]) -> Expr | None:
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
    Expr or None
        None if scale or shift are not constant or not applied, if the
        channels are not dimension 1, or if it is one instance already.
    """
    name = op_name(call)
    if name not in ("nn.group_norm", "nn.instance_norm") or len(shape) < 3:
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
    data = reshape(call.args[0], (1, rows, channels // groups * spatial[0], *spatial[1:]))
    per_row = groups == channels
    scale = np.tile(gamma, batch) if per_row else np.ones(rows, gamma.dtype)
    shift = np.tile(beta, batch) if per_row else np.zeros(rows, beta.dtype)
    normalised = instance_norm(data, constant(scale), constant(shift), attrs.epsilon)
    result = reshape(normalised, shape)
    if per_row:
        return result
    along_channels = (channels, *(1 for _ in spatial))
    result = multiply(result, constant(gamma.reshape(along_channels)))
    return add(result, constant(beta.reshape(along_channels)))
