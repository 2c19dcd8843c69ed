"""The borders of an image, where some of a convolution's taps lie on padding."""

from __future__ import annotations

import numpy as np

from ..ir import Call, op_name, shape_of
from ..passes.affine import CONVOLUTIONS, along


def shares_inside(layer: Call) -> np.ndarray:
    """Return for each tap the share of the result's positions at which it lies inside the image.

    A size that only a run knows is taken for so large that its borders do not count.

    Returns
    -------
    np.ndarray
        float64, to be broadcast against the layer's weights; 1 for a dense layer.
    """
    shares = np.float64(1)
    if op_name(layer) not in CONVOLUTIONS:
        return shares
    attrs, weights = layer.attrs, shape_of(layer.args[1])
    layout, kernel_layout = str(attrs.data_layout), str(attrs.kernel_layout)
    for i, letter in enumerate(letter for letter in "DHW" if letter in layout):
        size, positions = (
            shape_of(image)[layout.index(letter)] for image in (layer.args[0], layer)
        )
        if size is None or positions is None:
            continue
        axis, padding = kernel_layout.index(letter), attrs.padding
        before = int(padding[i % len(padding)])  # of one size, one for each dimension, or all
        first = np.arange(positions) * int(attrs.strides[i]) - before
        taps = np.arange(weights[axis]) * int(attrs.dilation[i])
        places = first[:, None] + taps
        inside = (places >= 0) & (places < size)
        shares = shares * along(inside.mean(0), axis, len(weights))
    return shares
