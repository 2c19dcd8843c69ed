"""Expressions for Relax as the text that ``src/relax/reader.h`` documents."""

import json
import math
from collections.abc import Sequence

import numpy as np
import tvm_ffi

from .relax_expr import Call, Constant, Expr, Function, Symbol, TensorType, Tuple, TupleGetItem

_UNKNOWN = -1  # the engine's, for a size that only a run knows


class Refusal(Exception):
    """An expression that the text has no form for, such as one of unknown rank."""


class Encoder:
    """Encodes expressions, and gathers the data of the constants among them.

    Attributes
    ----------
    constants : list of tvm_ffi.Tensor
    """

    def __init__(self):
        self.constants: list[tvm_ffi.Tensor] = []
        self._values: dict[Expr, dict] = {}

    def value(self, expr: Expr) -> dict:
        """Encode what a call reads or gives."""
        if expr not in self._values:
            self._values[expr] = self._value(expr)
        return self._values[expr]

    def chain(self, chain: Sequence[Expr]) -> list[dict]:
        """Encode calls that are to run as one primitive.

        Raises
        ------
        Refusal
            If one is no call of an operator, or no tensor of known rank.
        """
        calls = []
        exprs = list(chain)
        while exprs:
            call = exprs.pop(0)
            if not isinstance(call, Call):
                raise Refusal(f"expected an operator call, got {type(call).__name__}")
            result = call
            if not isinstance(call.op, Function) and call.op.name == "nn.batch_norm":
                # Its result is a tuple, of which only the normalised data is to be had.
                result = exprs.pop(0) if exprs else None
                if not isinstance(result, TupleGetItem) or result.index != 0:
                    raise Refusal("nn.batch_norm: expected only its first output to be used")
            calls.append(self._call(call, result))
        return calls

    def _call(self, call: Call, result: Expr) -> dict:
        activation = isinstance(call.op, Function)
        name = "activation" if activation else call.op.name
        try:
            return {
                "op": name,
                "attrs": _plain(call.op.attrs if activation else vars(call.attrs)),
                "args": [self.value(arg) for arg in call.args],
                "result": self.value(result),
            }
        except Refusal as error:
            raise Refusal(f"{name}: {error}") from None

    def _value(self, expr: Expr) -> dict:
        if isinstance(expr, Tuple):
            return {"fields": [self.value(field) for field in expr.fields]}
        type_ = expr.checked_type
        if not isinstance(type_, TensorType):
            raise Refusal(f"expected a tensor, got {type(type_).__name__}")
        if type_.shape is None:
            raise Refusal(
                "expected a tensor of which the sizes' expressions are known, got another"
            )
        shape = [_UNKNOWN if isinstance(size, Symbol) else size for size in type_.shape]
        value = {"key": id(expr), "dtype": type_.dtype, "shape": shape}
        if isinstance(expr, Constant):
            value["constant"] = len(self.constants)
            self.constants.append(tvm_ffi.from_dlpack(np.ascontiguousarray(expr.array)))
        return value


def encode_chain(chain: Sequence[Expr]) -> tuple[str, list[tvm_ffi.Tensor]]:
    """Return the text of a chain, and the constants in it; raise ``Refusal``."""
    encoder = Encoder()
    return json.dumps(encoder.chain(chain)), encoder.constants


def encode_region(
    inputs: Sequence[Expr],
    chains: Sequence[Sequence[Expr]],
    outputs: Sequence[Expr],
    precision: str,
) -> tuple[str, list[tvm_ffi.Tensor]]:
    """Return the text of a region, and the constants in it."""
    encoder = Encoder()
    region = {
        "inputs": [encoder.value(expr) for expr in inputs],
        "chains": [encoder.chain(chain) for chain in chains],
        "outputs": [encoder.value(expr) for expr in outputs],
        "precision": precision,
    }
    return json.dumps(region), encoder.constants


def _plain(attrs: dict) -> dict:
    """Return attributes as JSON has them: no infinity, for which the largest number stands."""
    largest = float(np.finfo(np.float64).max)

    def plain(value):
        if isinstance(value, float):
            return None if math.isnan(value) else min(max(value, -largest), largest)
        return value

    return {name: plain(value) for name, value in attrs.items()}
