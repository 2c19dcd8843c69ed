"""Convolutions and poolings of any rank in float64, on arrays (N, C, spatial dimensions…)."""

import numpy as np


def _steps(start, count, step):
    return slice(start, start + (count - 1) * step + 1, step)


def _grouped(array, groups):
    """(N, C, …) as (N, groups, C / groups, …)."""
    return array.reshape(array.shape[0], groups, -1, *array.shape[2:]).astype("float64")


def _per_dimension(dims, strides, padding, dilation):
    return (
        strides or (1,) * dims,
        (padding or (0,) * 2 * dims)[:dims],
        (padding or (0,) * 2 * dims)[dims:],
        dilation or (1,) * dims,
    )


def convolution(x, w, strides=None, padding=None, dilation=None, groups=1):
    """Return x convolved with w, (O, I / groups, kernel…); padding is all begins, then all ends."""
    kernel = w.shape[2:]
    strides, begin, end, dilation = _per_dimension(len(kernel), strides, padding, dilation)
    x = _grouped(np.pad(x, [(0, 0), (0, 0), *zip(begin, end, strict=True)]), groups)
    w = w.reshape(groups, -1, *w.shape[1:]).astype("float64")
    sizes = [
        (size - d * (k - 1) - 1) // s + 1
        for size, d, k, s in zip(x.shape[3:], dilation, kernel, strides, strict=True)
    ]
    y = 0
    for at in np.ndindex(*kernel):
        window = tuple(map(_steps, np.multiply(at, dilation), sizes, strides))
        y = y + np.einsum("ngi...,goi->ngo...", x[(..., *window)], w[(..., *at)])
    return y.reshape(y.shape[0], -1, *sizes)


def transposed_convolution(
    x, w, strides=None, padding=None, dilation=None, groups=1, output_padding=None
):
    """Return what a convolution with w, (I, O / groups, kernel…), gives x for: its transpose."""
    kernel, spatial = w.shape[2:], x.shape[2:]
    strides, begin, end, dilation = _per_dimension(len(kernel), strides, padding, dilation)
    extra = output_padding or (0,) * len(kernel)
    x = _grouped(x, groups)
    w = w.reshape(groups, -1, *w.shape[1:]).astype("float64")
    full = [
        (size - 1) * s + d * (k - 1) + 1 + e
        for size, s, d, k, e in zip(spatial, strides, dilation, kernel, extra, strict=True)
    ]
    y = np.zeros((x.shape[0], groups, w.shape[2], *full))
    for at in np.ndindex(*kernel):
        window = tuple(map(_steps, np.multiply(at, dilation), spatial, strides))
        y[(..., *window)] += np.einsum("ngi...,gio->ngo...", x, w[(..., *at)])
    y = y.reshape(y.shape[0], -1, *full)
    return y[(..., *(slice(b, n - e) for b, n, e in zip(begin, full, end, strict=True)))]


def pooling(x, reduce, pool_size, strides=None, padding=None, dilation=None):
    """Return reduce(window, axes) of each window; padding is NaN to it."""
    dims = len(pool_size)
    strides, begin, end, dilation = _per_dimension(dims, strides, padding, dilation)
    widths = [(0, 0), (0, 0), *zip(begin, end, strict=True)]
    x = np.pad(x.astype("float64"), widths, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(
        x,
        [d * (k - 1) + 1 for d, k in zip(dilation, pool_size, strict=True)],
        axis=range(2, dims + 2),
    )
    every = (slice(None), slice(None), *(slice(None, None, s) for s in strides))
    inside = tuple(slice(None, None, d) for d in dilation)
    return reduce(windows[(*every, *inside)], tuple(range(-dims, 0)))
