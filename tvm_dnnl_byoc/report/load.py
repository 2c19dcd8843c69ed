"""Reads a model file for a report."""

import json
from collections.abc import Sequence
from pathlib import Path

import tvm

from .. import native
from .requirements import load

_RELAX = native.front() == "relax"
_IR = "Relax" if _RELAX else "Relay"


class ModelError(ValueError):
    """A model that cannot be read as it was asked for."""


def load_model(path: Path, shapes: Sequence[str] = ()) -> tuple[tvm.IRModule, dict]:
    """Return an ONNX model, or a module that ``tvm.ir.save_json`` wrote, and its weights.

    A module is Relay's or Relax's, whichever TVM has.

    Parameters
    ----------
    path : Path
    shapes : sequence of str
        ``name=1,3,224,224`` for inputs whose sizes the ONNX model leaves open: for Relay all, for
        Relax those of which not even the rank is known.

    Raises
    ------
    ModelError
        If the file is no such model, or a size is not known.
    ImportError
        If onnx is needed and not installed.
    OSError
        If the file cannot be read.
    """
    content = path.read_bytes()
    sizes = dict(map(_parse_shape, shapes))
    if content[:1] != b"{":
        return _onnx_model(path, content, sizes)
    if sizes:
        raise ModelError(f"--shape: expected an ONNX model, got {path}, which has its shapes")
    return _stored_module(path, content), {}


def _stored_module(path: Path, content: bytes) -> tvm.IRModule:
    try:
        json.loads(content)
        module = tvm.ir.load_json(content.decode())
    except Exception as error:  # of many classes: it depends on the JSON, and on TVM
        raise ModelError(f"{path}: expected a {_IR} module as JSON, got other content") from error
    if not isinstance(module, tvm.IRModule):
        raise ModelError(f"{path}: expected a {_IR} module, got {type(module).__name__}")
    return module if _RELAX else tvm.relay.transform.InferType()(module)


def _onnx_model(path: Path, content: bytes, shapes: dict[str, list[int]]):
    onnx = load("onnx")
    try:
        model = onnx.load_model_from_string(content)
        if not model.graph.node:
            raise ValueError("no nodes")
    except Exception as error:  # protobuf's DecodeError, which is no ValueError
        raise ModelError(f"{path}: expected an ONNX model, got other content") from error
    try:
        load("onnx.external_data_helper").load_external_data_for_model(model, str(path.parent))
    except load("onnx.checker").ValidationError as error:  # of newer releases; else an OSError
        raise ModelError(f"{path}: expected its weights beside it: {error}") from error
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = {i.name: i for i in model.graph.input if i.name not in weights}
    unknown = sorted(shapes.keys() - inputs.keys())
    if unknown:
        raise ModelError(
            f"--shape: expected one of the inputs {', '.join(inputs)}, got {', '.join(unknown)}"
        )
    for name, value in inputs.items():
        tensor = value.type.tensor_type
        sizes = tensor.shape.dim
        if name not in shapes:
            if not tensor.HasField("shape"):
                raise ModelError(
                    f"input {name}: expected static sizes, got none: "
                    f"pass --shape {name}=1,3,224,224"
                )
            if _RELAX:
                continue
            if any(not size.HasField("dim_value") or size.dim_value < 1 for size in sizes):
                given = ",".join(str(size.dim_value or size.dim_param or "?") for size in sizes)
                raise ModelError(
                    f"input {name}: expected static sizes, got ({given}): "
                    f"pass --shape {name}=" + ",".join(str(s.dim_value or "N") for s in sizes)
                )
            shapes[name] = [size.dim_value for size in sizes]
    try:
        if _RELAX:
            from tvm.relax.frontend.onnx import from_onnx

            return from_onnx(model, shapes), {}
        return tvm.relay.frontend.from_onnx(model, shapes, freeze_params=True)
    except Exception as error:  # of many classes: TVM's own, AssertionError, KeyError, …
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1].strip()
        raise ModelError(f"{path}: TVM's ONNX frontend does not take it: {reason}") from error


def _parse_shape(text: str) -> tuple[str, list[int]]:
    name, _, sizes = text.rpartition("=")
    try:
        numbers = [int(size) for size in sizes.split(",")]
    except ValueError:
        numbers = []
    if not name or not numbers or min(numbers) < 1:
        raise ModelError(f"--shape: expected name=1,3,224,224, got {text}")
    return name, numbers
