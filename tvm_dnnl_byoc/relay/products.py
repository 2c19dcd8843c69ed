r"""Matrix products: layers in the guise of batches, and batches of two dimensions.

What a frontend writes for ``a @ b`` of rank 4 is one call again, so that oneDNN gets the operands
as they lie, and what is added to the result, of its shape::

    a (B, H, M, K)      b (B, H, K, N)
          |                   |
    reshape (B·H, M, K)  reshape (B·H, K, N)
           \                 /                (p0, p1) ↦ …
            nn.batch_matmul             →     op "nn.batch_matmul", of rank 4
                   |
         reshape (B, H, M, N)
"""

from collections.abc import Callable

from tvm import relay
from tvm.relay.expr import Call, Expr

from ..ir import array_of, constant, op_name, static_shape
from ..passes.dataflow import count_uses, inputs_of, post_order, with_body, with_inputs
from .symbolic import VIEWS, sizes_of


def combine_products(function: relay.Function) -> relay.Function:
    """Replace each such product of a type-inferred function by a call of a function.

    The new functions have the attribute "op", and those of ``nn.batch_matmul``; their body is what
    they stand for.
    """
    uses = count_uses(function.body)
    new: dict[Expr, Expr] = {}
    for expr in post_order(function.body):
        operands = _operands(expr)
        if operands and uses[expr.args[0]] == 1:
            new[expr] = Call(_function(expr, operands), [new[operand] for operand in operands])
        else:
            new[expr] = with_inputs(expr, [new[e] for e in inputs_of(expr)])
    return with_body(function, new[function.body])


def _operands(result: Expr) -> list[Expr] | None:
    """Return the operands of rank 4 of a product that is written with reshapes; or None."""
    product = result.args[0] if op_name(result) in VIEWS else None
    if op_name(product) != "nn.batch_matmul":
        return None
    if any(op_name(arg) != "reshape" for arg in product.args):
        return None
    shape = sizes_of(result)
    merged = [sizes_of(arg) for arg in product.args]
    operands = [arg.args[0] for arg in product.args]
    shapes = [sizes_of(operand) for operand in operands]
    if None in (shape, *merged, *shapes) or any(len(s) != 4 for s in (shape, *shapes)):
        return None
    batch = shape[:2]
    fits = shape[2:] == sizes_of(product)[1:] and all(
        s == (*batch, *m[1:]) for s, m in zip(shapes, merged, strict=True)
    )
    return operands if fits else None


def _function(result: Call, operands: list[Expr]) -> relay.Function:
    product = result.args[0]
    params = [relay.var(f"p{i}", type_annotation=e.checked_type) for i, e in enumerate(operands)]
    merged = [with_inputs(arg, [param]) for param, arg in zip(params, product.args, strict=True)]
    body = relay.reshape_like(with_inputs(product, merged), params[0], 0, 1, 0, 2)
    transposed = {key: int(product.attrs[key]) for key in ("transpose_a", "transpose_b")}
    return relay.Function(params, body).with_attr({"op": "nn.batch_matmul", **transposed})


def as_dense(new: Call, old: Call, now: Callable[[Expr], Expr]) -> Call | None:
    """Return an ``nn.batch_matmul`` in which all batches have the same weights as an ``nn.dense``.

    That is how TVM's PyTorch frontend writes a linear layer of data of rank 3 or more.

    Parameters
    ----------
    new, old : Call
        The call with rewritten inputs, and as it was, with its type.
    now : callable
        Gives what stands for an expression of the old function.
    """
    matrix = _shared_matrix(old.args[1])
    data, result = static_shape(old.args[0]), static_shape(old)
    if None in (matrix, data, result) or old.attrs.transpose_a or data[0] != result[0]:
        return None
    weights = now(matrix)
    if not old.attrs.transpose_b:
        weights = _transposed(weights)
    return relay.nn.dense(new.args[0], weights, units=result[-1])


def _shared_matrix(expr: Expr) -> Expr | None:
    """Return the matrix that a tensor of rank 3 repeats for each batch; None if there is none."""
    shape = static_shape(expr)
    # By a reshape or broadcast_to that leaves the last two dimensions alone, so are the matrices.
    while op_name(expr) in ("broadcast_to", "reshape") and shape and len(shape) > 2:
        source = static_shape(expr.args[0])
        if source is None or source[-2:] != shape[-2:]:
            return None
        expr, shape = expr.args[0], source
    return expr if shape and len(shape) == 2 else None


def _transposed(matrix: Expr) -> Expr:
    array = array_of(matrix)
    if array is not None:
        return constant(array.T)
    if op_name(matrix) == "transpose":  # of a matrix, there is one way only
        return matrix.args[0]
    return relay.transpose(matrix, (1, 0))


def untranspose(call: Call) -> Call | None:
    """Return an ``nn.batch_matmul`` that reads transposed matrices itself; None if it does."""
    args, attrs = list(call.args), call.attrs
    own = [bool(attrs.transpose_a), bool(attrs.transpose_b)]
    flags = list(own)
    for i, arg in enumerate(args):
        axes = arg.attrs.axes if op_name(arg) == "transpose" else None
        if axes is not None and [int(axis) % 3 for axis in axes] == [0, 2, 1]:
            args[i], flags[i] = arg.args[0], not flags[i]
    if flags == own:
        return None
    return relay.nn.batch_matmul(
        *args, out_dtype=attrs.out_dtype, transpose_a=flags[0], transpose_b=flags[1]
    )


def as_matrices(dense: Call, inputs: list[Expr]) -> Expr:
    """Return an ``nn.dense``, on other inputs, in the form that TVM compiles: of a matrix."""
    shape = static_shape(dense.args[0])
    if shape is None or len(shape) == 2:
        return with_inputs(dense, inputs)
    rows = relay.reshape(inputs[0], (-1, shape[-1]))
    return relay.reshape(with_inputs(dense, [rows, inputs[1]]), static_shape(dense))
