"""Finds the chains: an operator with the post-ops that oneDNN runs along with it."""

import logging
from dataclasses import dataclass, field

from ..ir import Expr, TupleGetItem, refusal
from .dataflow import count_uses, inputs_of, is_constant, post_order
from .operators import operator_of

_log = logging.getLogger(__name__)


@dataclass
class Chains:
    """What was found in a function's body.

    Attributes
    ----------
    chains : list of list of Expr
        Disjoint chains, in the order of the body; of each only the last result is used outside.
    refusals : dict of Expr to str
        Why an operator cannot begin a chain.
    unfused : dict of Expr to str
        Why an operator is not fused into the chain that gives its input.
    """

    chains: list[list[Expr]] = field(default_factory=list)
    refusals: dict[Expr, str] = field(default_factory=dict)
    unfused: dict[Expr, str] = field(default_factory=dict)


def find_chains(body: Expr) -> Chains:
    """Cover the offloadable part of a type-inferred body with chains.

    A chain is grown from each operator as far as oneDNN follows: over expressions that are read
    only by the next one, each accepted by ``src/adapter`` and by oneDNN on this machine.
    """
    order = post_order(body)
    uses = count_uses(body)
    readers: dict[Expr, Expr] = {e: reader for reader in order for e in inputs_of(reader)}
    taken: set[Expr] = set()
    found = Chains()

    def only_reader(expr: Expr) -> Expr | None:
        return readers.get(expr) if uses[expr] == 1 else None

    def accepted(chain: list[Expr], reasons: dict[Expr, str], expr: Expr) -> bool:
        reason = refusal(chain)
        if reason:
            reasons[expr] = reason
            _log.debug("%s", reason)
        return not reason

    def is_light(expr: Expr) -> bool:
        operator = operator_of(expr)
        return operator is None or not operator.heavy

    # An addition of a convolution and a pooling belongs to the convolution, whatever their order.
    for expr in sorted(order, key=is_light):
        operator = operator_of(expr)
        if operator is None or expr in taken or is_constant(expr):
            continue
        chain = [expr]
        if operator.name == "nn.batch_norm":
            # The normalised data is the first field of its result.
            first = only_reader(expr)
            if isinstance(first, TupleGetItem):
                chain.append(first)
        if not accepted(chain, found.refusals, expr):
            continue
        while operator.fuses:
            following = only_reader(chain[-1])
            candidate = operator_of(following) if following else None
            if candidate is None or not candidate.post_op or following in taken:
                break
            if not accepted([*chain, following], found.unfused, following):
                break
            chain.append(following)
        taken.update(chain)
        found.chains.append(chain)
    return found
