"""Finds the chains: an operator with the post-ops that oneDNN runs along with it."""

import logging

import tvm
from tvm.relay.expr import Expr, TupleGetItem

from .dataflow import count_uses, inputs_of, post_order
from .operators import operator_of

_log = logging.getLogger(__name__)


def find_chains(body: Expr) -> list[list[Expr]]:
    """Cover the offloadable part of a type-inferred body with chains.

    A chain is grown from each operator as far as oneDNN follows: over expressions that are read
    only by the next one, each accepted by ``src/relay`` and by oneDNN on this machine.

    Returns
    -------
    list of list of Expr
        Disjoint chains, in the order of the body; of each only the last result is used outside.
    """
    order = post_order(body)
    uses = count_uses(body)
    readers: dict[Expr, Expr] = {e: reader for reader in order for e in inputs_of(reader)}
    refusal = tvm.get_global_func("tvm_dnnl_byoc.refusal")
    taken: set[Expr] = set()
    chains = []

    def only_reader(expr: Expr) -> Expr | None:
        return readers.get(expr) if uses[expr] == 1 else None

    def accepted(chain: list[Expr], otherwise: str) -> bool:
        reason = refusal(chain)
        if reason:
            _log.debug("%s: %s", otherwise, reason)
        return not reason

    def is_light(expr: Expr) -> bool:
        operator = operator_of(expr)
        return operator is None or not operator.heavy

    # An addition of a convolution and a pooling belongs to the convolution, whatever their order.
    for expr in sorted(order, key=is_light):
        operator = operator_of(expr)
        if operator is None or expr in taken:
            continue
        chain = [expr]
        if operator.name == "nn.batch_norm":
            # The normalised data is the first field of its result.
            first = only_reader(expr)
            if isinstance(first, TupleGetItem):
                chain.append(first)
        if not accepted(chain, "stays in TVM"):
            continue
        while operator.fuses:
            following = only_reader(chain[-1])
            candidate = operator_of(following) if following else None
            if candidate is None or not candidate.post_op or following in taken:
                break
            if not accepted([*chain, following], f"not fused into {operator.name}"):
                break
            chain.append(following)
        taken.update(chain)
        chains.append(chain)
    return chains
