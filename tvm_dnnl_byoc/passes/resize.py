"""Linear resizing as two matrix products: it is linear in the image, one dimension at a time."""

import numpy as np

from ..ir import Expr, batch_matmul, constant, dense, reshape

# How the centre of output pixel x is found in an input of n pixels, from an output of m.
_COORDINATES = {
    "align_corners": lambda x, n, m: x * ((n - 1) / max(m - 1, 1)),
    "asymmetric": lambda x, n, m: x * (n / m),
}


def linear_rule(method: str, coordinates: str, layout: str) -> str | None:
    """Return the rule of a linear resizing that oneDNN's resampling does not have; else None."""
    is_linear = method in ("linear", "bilinear") and layout == "NCHW"
    return coordinates if is_linear and coordinates in _COORDINATES else None


def as_products(images: Expr, shape: tuple[int, ...], new_size: tuple[int, int], rule: str) -> Expr:
    """Return images in another size.

    For an image X of height H and width W the result is A X Bᵀ, A having a row for each row of the
    result and B for each column, with at most two numbers in a row that are not 0. An infinity
    spoils the results of its row and column, not only those near it.

    Parameters
    ----------
    images : Expr
        float32 (N, C, H, W), which is `shape`.
    new_size : tuple of int
        The result's height and width.
    rule : str
        As `linear_rule` gives it.
    """
    batch, channels, height, width = shape
    new_height, new_width = new_size
    columns = constant(_weights(width, new_width, rule))
    rows = constant(_weights(height, new_height, rule)[None])
    planes = batch * channels
    lines = reshape(images, (planes * height, width))
    wide = reshape(dense(lines, columns), (planes, height, new_width))
    return reshape(batch_matmul(rows, wide), (batch, channels, new_height, new_width))


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
