"""Folds what is channelwise and affine into the layers around it."""

from abc import ABC, abstractmethod
from collections import Counter

from ..ir import Call, Expr, array_of, op_name
from .affine import Affine, apply_to_inputs, apply_to_outputs, channel_affine
from .dataflow import count_uses, rewrite


class Folder(ABC):
    """Rewrites a type-inferred body, and knows how often each new expression will be read.

    A front's own class gives the rules, in ``simplify``.
    """

    def __init__(self, body: Expr):
        self.body = body
        # By rewritten expression: how often the one that it stands for is read.
        self.uses: Counter[Expr] = Counter()
        # By expression of the body: what stands for it.
        self.now: dict[Expr, Expr] = {}
        self.old_uses = count_uses(body)

    def run(self) -> Expr:
        """Return the rewritten body."""
        return rewrite(self.body, self.rule)

    def rule(self, new: Expr, old: Expr) -> Expr:
        """Simplify, and keep count."""
        result = self.simplify(new, old)
        self.now[old] = result
        # Where an expression is dropped for one before it, it is no longer a reader of that one.
        self.uses[result] += self.old_uses[old] - (result in self.uses)
        return result

    @abstractmethod
    def simplify(self, new: Expr, old: Expr) -> Expr:
        """Return what to put in the place of an expression with rewritten inputs."""

    def fold_affine(self, new: Expr, old: Expr) -> Expr | None:
        """Fold an expression into a layer before it if it is an affine function of its result."""
        affine = channel_affine(new, old)
        return affine and (self.fold_into_root(affine) or new)

    def fold_into_root(self, affine: Affine) -> Expr | None:
        """Fold an affine function of a convolution's result, itself perhaps already shifted."""
        root, shift = affine.data, None
        if self.uses[root] != 1:
            return None
        if op_name(root) == "add" and array_of(root.args[1]) is not None:
            root, shift = root.args[0], array_of(root.args[1])
            if self.uses[root] != 1:
                return None
        folded = apply_to_outputs(root, shift, affine)
        return folded and self.read_once(folded)

    def read_once(self, made: Expr) -> Expr:
        """Count what was made for a new expression alone, so that what follows is folded, too."""
        inner = made.args[0]
        while isinstance(inner, Call) and inner not in self.uses:
            self.uses[inner] = 1
            inner = inner.args[0]
        return made

    def fold_data_scale(self, new: Call, old: Call) -> Call:
        """Fold what scales the channels of a layer's data into its weights."""
        if op_name(new.args[0]) != "multiply" or self.uses[new.args[0]] != 1:
            return new
        affine = channel_affine(new.args[0], old.args[0])
        if affine is None or (affine.scale.size == 1 and op_name(affine.data) == "multiply"):
            return new  # the 0.5 in x · (erf(x / √2) + 1) · 0.5 belongs to the activation
        return apply_to_inputs(new, affine) or new
