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
from ..passes.pooling import averaged_first
from ..passes.resize import as_products, linear_rule
from .fold_constants import fold_constant
from .ranges import Ranges
from .softmax import softmax_without_nan, unguarded_softmax
from .words import are_made_indices

_DENSE = SimpleNamespace(out_dtype="")


def canonicalize(body: Expr) -> tuple[Expr, set]:
    """Simplify the body of a block.

    - Constant expressions are evaluated.
    - What is added and is zero, whatever sizes and data are, goes; so does a ``where`` of which the
      condition is the same everywhere.
    - A matrix product with a matrix as weights is a dense layer, also between reshapes of its rows,
      or with the matrix repeated for each batch; a gather is one between reshapes, too.
    - A softmax that is guarded against rows of -inf only is not where there can be none, and has a
      ReLU elsewhere.
    - Padding goes into the convolution or pooling that follows.
    - A 1 × 1 convolution of which averages are taken is one of the averages, if these are fewer.
    - Linear resizing that oneDNN has no rule for is two matrix products.
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
        self.ranges = Ranges()

    def rule(self, new: Expr, old: Expr) -> Expr:
        result = super().rule(new, old)
        if result not in self.exact and result is not old:  # made for it just now
            result.var = old.var
        self.exact.add(result)
        self.ranges.learn(result)
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
            new = _as_dense(self.with_a_matrix(new, old))
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
            self.without_zeros,
            self.decided,
            _of_one_instance,
            _padded_itself,
            _resized_by_products,
            self.layer_of_rows,
            self.gather_of_rows,
            self.products_of_batches,
            self.scaled_before_views,
            lambda where: unguarded_softmax(where, self.ranges),
            lambda where: softmax_without_nan(where, self.ranges),
        )
        for rule in rules:
            restated = rule(new)
            if restated is not None:
                return restated
        averaged = averaged_first(new, old, self.uses)
        if averaged is not None:
            return self.read_once(averaged)
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

    def without_zeros(self, add: Expr) -> Expr | None:
        """Return what zeros are added to, such as the mask of a model that masks nothing."""
        if op_name(add) != "add":
            return None
        for data, other in (add.args, add.args[::-1]):
            if self.ranges.value(other) == 0 and same_type(data, add):
                return data
        return None

    def decided(self, where: Expr) -> Expr | None:
        """Return what a ``where`` gives whose condition is the same everywhere."""
        condition = self.ranges.value(where.args[0]) if op_name(where) == "where" else None
        if condition is None:
            return None
        chosen = where.args[1 if condition else 2]
        return chosen if same_type(chosen, where) else None

    def with_a_matrix(self, new: Call, old: Call) -> Call:
        """Return a product with a matrix that is repeated for each batch as one with the matrix."""
        matrix = old.args[1]
        if op_name(matrix) != "broadcast_to":
            return new
        matrix = matrix.args[0]
        shape, batches = _shape(matrix), _shape(new.args[0])
        if shape is None or batches is None or len(shape) != 2 or _shape(old) is None:
            return new
        if shape != _shape(old.args[1])[-2:] or batches[:-2] != _shape(old)[:-2]:
            return new
        return with_inputs(new, [new.args[0], self.now[matrix]])

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

    def gather_of_rows(self, reshape: Expr) -> Expr | None:
        """Return rows that are gathered by a vector, between reshapes, by what is made a vector.

        ::

            ids (…)                ids (…)
            reshape                   |
            take(table)     →    take(table)
            reshape                   |
            (…, K)                 (…, K)
        """
        if op_name(reshape) != "reshape" or op_name(reshape.args[0]) != "take":
            return None
        take = reshape.args[0]
        table, vector = take.args
        indices = None if take.attrs.axis else _before_reshape(vector)
        if indices is None or _shape(table) is None or not indices.checked_type.shape:
            return None
        if (*indices.checked_type.shape, *_shape(table)[1:]) != _shape(reshape):
            return None
        return Call(take.op, [table, indices], take.attrs, reshape.checked_type)

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


def _before_reshape(indices: Expr) -> Expr | None:
    """Return indices, perhaps clipped and narrowed, in the shape before a reshape of them."""
    if op_name(indices) == "reshape":
        return indices.args[0]
    if not are_made_indices(indices):
        return None
    inner = _before_reshape(indices.args[0])
    if inner is None:
        return None
    type_ = TensorType(inner.checked_type.shape, indices.checked_type.dtype)
    return Call(indices.op, [inner], indices.attrs, type_)


def _is_accepted(layer: Expr) -> bool:
    """Whether oneDNN runs a layer, to which something may be added."""
    return not refusal([layer.args[0] if op_name(layer) == "add" else layer])


def _of_one_instance(norm: Expr) -> Expr | None:
    shape = static_shape(norm)
    return None if shape is None or not isinstance(norm, Call) else as_one_instance(norm, shape)


def _padded_itself(window: Expr) -> Expr | None:
    shape = _shape(window) if op_name(window) in WINDOWS else None
    return shape and fold_padding(window, shape)


def _resized_by_products(resize: Expr) -> Expr | None:
    shape = static_shape(resize)
    if op_name(resize) != "image.resize2d" or shape is None:
        return None
    images, attrs = resize.args[0], resize.attrs
    before = static_shape(images)
    rule = linear_rule(attrs.method, attrs.coordinate_transformation_mode, attrs.layout)
    return None if rule is None or before is None else as_products(images, before, shape[2:], rule)


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
