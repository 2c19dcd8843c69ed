"""GluonCV's networks, with MXNet's answers."""

from __future__ import annotations

import dataclasses
import json
import warnings

from .. import native
from ..bench.models import INPUT_NAME, PreparedModel, prepare, to_relay
from ..bench.randomise import flatten
from .case import Case, NotInstalledError
from .catalogue import Entry

# They select boxes by the order of scores, so that one rounding may change which they select.
_SELECTIONS = {"_contrib_box_nms", "topk", "_contrib_Proposal", "_contrib_MultiBoxDetection"}
_CALIBRATION_IMAGES = 4


def load(entry: Entry) -> Case:
    """Prepare a network, convert it, and run it with MXNet.

    Raises
    ------
    NotInstalledError
        If MXNet or GluonCV is not installed, or TVM has no Relay, which alone reads them.
    """
    if native.front() != "relay":
        raise NotInstalledError("TVM 0.19 is not installed, whose Relay reads GluonCV's networks")
    try:
        import gluoncv  # noqa: F401
        import mxnet  # noqa: F401
    except ImportError as error:
        raise NotInstalledError(
            f"{error.name} is not installed (the extra [bench]; Python 3.10 or 3.11)"
        ) from None
    small = len(entry.shape) == 4 and entry.shape[-1] < 300
    prepared = prepare(
        entry.name, entry.shape, calibration_batch=_CALIBRATION_IMAGES if small else 1
    )
    prepared, heads = _with_heads(prepared)
    module, params = to_relay(prepared)
    return Case(
        module=module,
        params=params,
        inputs={INPUT_NAME: prepared.data},
        references=prepared.references,
        framework="MXNet",
        heads=heads,
    )


def _with_heads(prepared: PreparedModel) -> tuple[PreparedModel, int]:
    """Make what the first selections of a detector read outputs, too; return their number."""
    import mxnet as mx

    operators = {n["name"]: n["op"] for n in json.loads(prepared.symbol.tojson())["nodes"]}
    after_selection: set[str] = set()
    heads: dict[str, mx.sym.Symbol] = {}
    for node in prepared.symbol.get_internals():
        children = node.get_children()
        children = [] if children is None else list(children)
        if any(child.name in after_selection for child in children):
            after_selection.add(node.name)
        elif operators.get(node.name) in _SELECTIONS:
            after_selection.add(node.name)
            heads |= {child.name: child for child in children}
    if not heads:
        return prepared, 0
    symbol = mx.sym.Group([*prepared.symbol, *heads.values()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the type of `data`
        network = mx.gluon.SymbolBlock(symbol, [mx.sym.Variable(INPUT_NAME)])
    parameters = network.collect_params()
    for key, value in (prepared.arg_params | prepared.aux_params).items():
        parameters[key].shape = value.shape
        parameters[key].initialize(ctx=mx.cpu())
        parameters[key].set_data(value)
    outputs = flatten(network(mx.nd.array(prepared.data)))
    references = [output.asnumpy() for output in outputs]
    return dataclasses.replace(prepared, symbol=symbol, references=references), len(heads)
