"""Brings a dataflow block into the form that partitioning looks for."""

from types import SimpleNamespace

import numpy as np

from ..ir import (
    Call,
    Expr,
    Op,
    TupleGetItem,
    add,
    array_of,
    constant,
    op_name,
    refusal,
    same_type,
    shape_of,
    static_shape,
    with_inputs,
)
from ..ir.relax_expr import Size, TensorType
from ..passes.affine import CONVOLUTIONS, Affine
from ..passes.dataflow import post_order
from ..passes.folding import Folder
from ..passes.layer_norm import absorb, as_layer_norm
from ..passes.normalization import as_one_instance
from ..passes.padding import WINDOWS, fold_padding
from .fold_constants import fold_constant
from .softmax import unguarded_softmax

_DENSE = SimpleNamespace(out_dtype="")


def canonicalize(body: Expr) -> tuple[Expr, set]:
    """Simplify the body of a block.

    - Constant expressions are evaluated.
    - A matrix product with a matrix as weights is a dense layer, also between reshapes of its rows.
    - A softmax that is guarded against rows of -inf only is not where there can be none.
    - Padding goes into the convolution or pooling that follows.
    - Group normalisation, and instance normalisation of a batch, are that of one instance; layer
      normalisation in any spelling is that.
    - What scales or shifts each channel of a convolution's or dense layer's result by constants
      (add, multiply, batch_norm) goes into its weights and one add; what scales the channels of
      its data goes into its weights.

    Returns
    -------
    tuple of Expr and set of relax.Var or None
        The new body; and the variables of expressions in it that have other values than before,
        such as a convolution into which a scale was folded, or none.
    """
    canonicalizer = _Canonicalizer(body)
    new = canonicalizer.run()
    return new, {e.var for e in post_order(new) if e not in canonicalizer.exact}


class _Canonicalizer(Folder):
    def __init__(self, body: Expr):
        super().__init__(body)
        self.exact: set[Expr] = set()  # what has the value of its variable

    def rule(self, new: Expr, old: Expr) -> Expr:
        result = super().rule(new, old)
        if result not in self.exact and result is not old:  # made for it just now
            result.var = old.var
        self.exact.add(result)
        return result

    def simplify(self, new: Expr, old: Expr) -> Expr:
        if isinstance(new, TupleGetItem):
            if op_name(new.tuple_value) == "nn.batch_norm" and self.uses[new.tuple_value] == 1:
                return self.fold_affine(new, old) or new
            return new
        name = op_name(new)
        folded = fold_constant(new)
        if folded is not None:
            return folded
        if name == "matmul":
            new = _as_dense(new)
            name = op_name(new)
        if name in ("divide", "multiply"):
            norm = as_layer_norm(old, self.now.__getitem__)
            if norm is not None:
                return norm
        if name in ("add", "multiply"):
            norm = absorb(new, old)
            if norm is not None:
                return norm
        rules = (
            _without_zeros,
            _of_one_instance,
            _padded_itself,
            self.layer_of_rows,
            self.products_of_batches,
            self.scaled_before_views,
            unguarded_softmax,
        )
        for rule in rules:
            restated = rule(new)
            if restated is not None:
                return restated
        folded = self.fold_affine(new, old)
        if folded is not None:
            return folded
        if name in (*CONVOLUTIONS, "nn.dense"):
            return self.fold_data_scale(new, old)
        return new

    def fold_into_root(self, affine: Affine) -> Expr | None:
        """Fold only what oneDNN then runs: what stays in TVM keeps its bindings."""
        folded = super().fold_into_root(affine)
        return folded if folded is not None and _is_accepted(folded) else None

    def layer_of_rows(self, reshape: Expr) -> Expr | None:
        """Return a layer of rows between reshapes, as torch writes it, as one of all dimensions.

        ::

            (…, K)          (…, K)
            reshape            |
            (M, K)             |
            dense       →    dense
            add(bias)       add(bias)
            reshape            |
            (…, N)          (…, N)
        """
        if op_name(reshape) != "reshape":
            return None
        layer, bias = reshape.args[0], None
        if op_name(layer) == "add" and self.uses[layer] == 1:
            arrays = [array_of(arg) for arg in layer.args]
            which = 1 if arrays[1] is not None else 0
            bias, layer = layer.args[which], layer.args[1 - which]
            if arrays[which] is None or arrays[which].ndim > 1:
                return None
        if op_name(layer) != "nn.dense" or self.uses[layer] != 1:
            return None
        rows, weights = layer.args
        shape = _shape(reshape)
        if op_name(rows) != "reshape" or shape is None:
            return None
        data = rows.args[0]
        if _shape(data) is None or _shape(data)[:-1] != shape[:-1]:
            return None
        if _shape(data)[-1] != _shape(rows)[-1] or shape[-1] != _shape(layer)[-1]:
            return None
        result = Call(layer.op, [data, weights], layer.attrs, reshape.checked_type)
        if not _is_accepted(result):
            return None
        if bias is None:
            return result
        self.uses[result] = 1
        return add(result, bias)

    def products_of_batches(self, reshape: Expr) -> Expr | None:
        """Return a product of rank 3 between reshapes as one of all batch dimensions.

        ::

            (B, H, M, K)  (B, H, K, N)
              reshape       reshape            (B, H, M, K)  (B, H, K, N)
            (B·H, M, K)   (B·H, K, N)     →             matmul
                     matmul
                     reshape
        """
        if op_name(reshape) != "reshape":
            return None
        product, shape = reshape.args[0], _shape(reshape)
        if op_name(product) != "matmul" or self.uses[product] != 1 or shape is None:
            return None
        if any(op_name(operand) != "reshape" for operand in product.args):
            return None
        left, right = (operand.args[0] for operand in product.args)
        rows, columns = _shape(left), _shape(right)
        if rows is None or columns is None or len(rows) < 3 or len(rows) != len(columns):
            return None
        if (
            rows[:-2] != columns[:-2]
            or (*rows[:-1], columns[-1]) != shape
            or rows[-1] != columns[-2]
        ):
            return None
        if rows[-2:] != _shape(product.args[0])[-2:]:
            return None
        return Call(product.op, [left, right], product.attrs, reshape.checked_type)

    def scaled_before_views(self, multiply: Expr) -> Expr | None:
        """Return a number times a transposed or reshaped layer's result as one with other weights.

        Attention scales queries and keys after it has divided them among its heads.
        """
        if op_name(multiply) != "multiply":
            return None
        arrays = [array_of(arg) for arg in multiply.args]
        which = 1 if arrays[1] is not None else 0
        root, views = multiply.args[1 - which], []
        if arrays[which] is None or arrays[which].size != 1:
            return None
        while op_name(root) in ("reshape", "transpose") and self.uses[root] == 1:
            views.append(root)
            root = root.args[0]
        shape = shape_of(root)
        if not views or shape is None or _shape(multiply) != _shape(views[0]):
            return None
        scale = arrays[which].astype(np.float64).reshape(())
        result = self.fold_into_root(Affine(root, scale, np.float64(0), shape))
        if result is None:
            return None
        self.uses[result] = 1
        for view in reversed(views):
            result = with_inputs(view, [result])
            self.uses[result] = 1
        del self.uses[result]  # counted by the rule
        return result


def _shape(expr: Expr) -> tuple[Size, ...] | None:
    """Return the shape of a float32 tensor; None if it has another type, or no known rank."""
    type_ = expr.checked_type
    return type_.shape if isinstance(type_, TensorType) and type_.dtype == "float32" else None


def _is_accepted(layer: Expr) -> bool:
    """Whether oneDNN runs a layer, to which something may be added."""
    return not refusal([layer.args[0] if op_name(layer) == "add" else layer])


def _of_one_instance(norm: Expr) -> Expr | None:
    shape = static_shape(norm)
    return None if shape is None or not isinstance(norm, Call) else as_one_instance(norm, shape)


def _padded_itself(window: Expr) -> Expr | None:
    shape = _shape(window) if op_name(window) in WINDOWS else None
    return shape and fold_padding(window, shape)


def _without_zeros(add: Expr) -> Expr | None:
    """Return what zeros are added to, such as the mask of a model that masks nothing."""
    if op_name(add) != "add":
        return None
    arrays = [array_of(arg) for arg in add.args]
    which = 1 if arrays[1] is not None else 0
    data = add.args[1 - which]
    if arrays[which] is None or np.any(arrays[which]) or not same_type(data, add):
        return None
    return data


def _as_dense(product: Call) -> Call:
    """Return a product with a matrix as one with the matrix's rows as weights, as layers have it.

    The data may have any rank from 2; its leading dimensions are rows.
    """
    data, weights = product.args
    if len(_shape(weights) or ()) != 2:
        return product
    array = array_of(weights)
    if array is not None:
        rows = constant(array.T)
    elif op_name(weights) == "transpose" and _swaps(weights.attrs.axes):
        rows = weights.args[0]
    else:
        return product
    if _shape(product) is None or 0 in _shape(data):
        return product
    return Call(Op("nn.dense"), [data, rows], _DENSE, product.checked_type, product.var)


def _swaps(axes: list[int] | None) -> bool:
    return axes is None or [axis % 2 for axis in axes] == [1, 0]
