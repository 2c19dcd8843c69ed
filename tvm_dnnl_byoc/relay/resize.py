"""Resizing in ways that oneDNN does not have, see ``passes/resize.py``."""

from tvm.relay.expr import Call, Expr

from ..ir import op_name
from ..passes.resize import as_products, linear_rule


def resize_as_products(call: Call, shape: tuple[int, ...]) -> Expr | None:
    """Return an ``image.resize2d`` or ``nn.upsampling`` as matrix products.

    Parameters
    ----------
    call : Call
    shape : tuple of int
        The shape of its data, float32.

    Returns
    -------
    Expr or None
        None if it is not linear, in another layout than NCHW, or if oneDNN's own resampling has
        its rule.
    """
    attrs = call.attrs
    if op_name(call) == "image.resize2d":
        coordinates = attrs.coordinate_transformation_mode
    else:
        coordinates = "align_corners" if attrs.align_corners else "asymmetric"
    rule = linear_rule(attrs.method, coordinates, attrs.layout)
    return rule and as_products(call.args[0], shape, _new_size(call, shape), rule)


def _new_size(call: Call, shape: tuple[int, ...]) -> tuple[int, int]:
    if op_name(call) == "image.resize2d":
        height, width = call.attrs.size
        return int(height), int(width)
    scales = call.attrs.scale_h, call.attrs.scale_w
    height, width = (round(size * scale) for size, scale in zip(shape[2:], scales, strict=True))
    return height, width
