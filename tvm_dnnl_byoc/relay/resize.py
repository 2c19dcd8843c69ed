"""Linear resizing as two matrix products: it is linear in the image, one dimension at a time."""

import numpy as np
from tvm import relay
from tvm.relay.expr import Call

from ..ir import constant, op_name

# How the centre of output pixel x is found in an input of n pixels, from an output of m.
_COORDINATES = {
    "align_corners": lambda x, n, m: x * ((n - 1) / max(m - 1, 1)),
    "asymmetric": lambda x, n, m: x * (n / m),
}


def resize_as_products(call: Call, shape: tuple[int, ...]) -> Call | None:
    """Return an ``image.resize2d`` that oneDNN's resampling has no rule for as matrix products.

    For an image X of height H and width W the result is A X Bᵀ, A having a row for each row of the
    result and B for each column, with at most two numbers in a row that are not 0.

    Parameters
    ----------
    call : Call
    shape : tuple of int
        The shape of its data, float32.

    Returns
    -------
    Call or None
        None if it is not linear, in another layout than NCHW, or if oneDNN's own resampling has
        its rule.
    """
    rule = _linear_rule(call)
    if rule is None:
        return None
    batch, channels, height, width = shape
    new_height, new_width = (int(size) for size in _new_size(call, shape))
    columns = constant(_weights(width, new_width, rule))
    images = relay.reshape(call.args[0], (batch * channels * height, width))
    wide = relay.reshape(relay.nn.dense(images, columns), (batch * channels, height, new_width))
    rows = constant(_weights(height, new_height, rule)[None])
    high = relay.nn.batch_matmul(rows, wide, transpose_b=False)
    return relay.reshape(high, (batch, channels, new_height, new_width))


def _linear_rule(call: Call) -> str | None:
    attrs = call.attrs
    if attrs.method not in ("linear", "bilinear"):
        return None
    if op_name(call) == "image.resize2d":
        rule = attrs.coordinate_transformation_mode
    else:
        rule = "align_corners" if attrs.align_corners else "asymmetric"
    return rule if rule in _COORDINATES and attrs.layout == "NCHW" else None


def _new_size(call: Call, shape: tuple[int, ...]) -> tuple[int, int]:
    if op_name(call) == "image.resize2d":
        return tuple(call.attrs.size)
    scales = call.attrs.scale_h, call.attrs.scale_w
    return tuple(round(size * scale) for size, scale in zip(shape[2:], scales, strict=True))


def _weights(size: int, new_size: int, rule: str) -> np.ndarray:
    """Return the matrix (new_size, size), float32, that interpolates along one dimension."""
    centre = _COORDINATES[rule](np.arange(new_size, dtype=np.float64), size, new_size)
    left = np.floor(centre).astype(int)
    weights = np.zeros((new_size, size))
    row = np.arange(new_size)
    # What lies beyond the image is its rim; both neighbours may be the same pixel.
    np.add.at(weights, (row, np.clip(left, 0, size - 1)), 1 - (centre - left))
    np.add.at(weights, (row, np.clip(left + 1, 0, size - 1)), centre - left)
    return weights.astype(np.float32)
