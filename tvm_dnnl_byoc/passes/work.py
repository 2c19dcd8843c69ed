"""Multiply-adds of the compute-heavy operators."""

from collections.abc import Callable
from math import prod

from ..ir import Call, Expr, op_name, sizes_of


def multiply_adds(call: Call) -> int:
    """Return the multiply-adds of one type-inferred call; 0 if it is none of those counted.

    Counted are convolutions, also transposed ones, and matrix products.

    Raises
    ------
    ValueError
        If a counted operator has a dynamic shape.
    """
    rule = _RULES.get(op_name(call) or "")
    return rule(call) if rule else 0


def _shape(call: Call, expr: Expr) -> tuple[int, ...]:
    sizes = sizes_of(expr)
    if sizes is None or None in sizes:
        got = "an unknown rank" if sizes is None else ", ".join(str(size or "?") for size in sizes)
        raise ValueError(f"{op_name(call)}: expected a static shape, got ({got})")
    return sizes


def _convolution(call: Call) -> int:
    weights = _shape(call, call.args[1])  # O * I/groups * kernel, in any plain or blocked layout
    letters = [letter for letter in call.attrs.kernel_layout if letter.isalpha()]
    sizes = zip(letters, weights, strict=True)  # a block's letter is small
    outputs = prod(size for letter, size in sizes if letter.upper() == "O")
    return prod(_shape(call, call)) // outputs * prod(weights)


def _transposed_convolution(call: Call) -> int:
    _, *rest = _shape(call, call.args[1])  # I, O/groups, kernel: whatever the layout says
    return prod(_shape(call, call.args[0])) * prod(rest)


def _product(call: Call) -> int:
    transposed = getattr(call.attrs, "transpose_a", False)
    reduction = _shape(call, call.args[0])[-2 if transposed else -1]
    return prod(_shape(call, call)) * reduction


_RULES: dict[str, Callable[[Call], int]] = {
    **{f"nn.conv{rank}d": _convolution for rank in (1, 2, 3)},
    **{f"nn.conv{rank}d_transpose": _transposed_convolution for rank in (1, 2, 3)},
    "nn.contrib_conv2d_NCHWc": _convolution,
    "nn.contrib_depthwise_conv2d_NCHWc": _convolution,
    **dict.fromkeys(("matmul", "nn.batch_matmul", "nn.dense", "nn.matmul"), _product),
}
