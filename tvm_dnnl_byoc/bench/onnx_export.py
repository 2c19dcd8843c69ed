"""A prepared network as an ONNX file, for the peers that read ONNX."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from . import conversion

if TYPE_CHECKING:
    import onnx

    from .models import PreparedModel

_FILE = "model.onnx"
_CONVERSION = "export to ONNX"
_OPSET = 13  # the latest that MXNet's converters know


def save(prepared: PreparedModel, directory: Path) -> None:
    """Write the network; if that fails, write the reason for `find`."""
    with attempt(directory) as file:
        file.write_bytes(to_onnx(prepared).SerializeToString())


@contextmanager
def attempt(directory: Path) -> Iterator[Path]:
    """Give the block the file that it is to write; if that fails, write the reason for `find`."""
    with conversion.attempt(directory, _CONVERSION):
        yield directory / _FILE


def find(directory: Path) -> Path:
    """Return the file that was written for it.

    Raises
    ------
    RuntimeError
        If that failed, with its reason.
    """
    conversion.check(directory, _CONVERSION)
    return directory / _FILE


def to_onnx(prepared: PreparedModel) -> onnx.ModelProto:
    """Convert with MXNet's exporter."""
    from onnx import TensorProto, helper

    graph = _exporter()().create_onnx_graph_proto(
        prepared.symbol,
        prepared.arg_params | prepared.aux_params,
        [prepared.data.shape],
        [TensorProto.FLOAT],
        opset_version=_OPSET,
        dynamic=False,
    )
    # An initialiser that is an input as well may be overridden, so nothing is folded into it.
    weights = {initializer.name for initializer in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    del graph.input[:]
    graph.input.extend(inputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])


@functools.cache
def _exporter() -> type:
    """MXNet's exporter, with weights stored as bytes.

    Its own way, a Python float each, takes VGG11 minutes and 9 GB.
    """
    from mxnet.onnx.mx2onnx._export_onnx import MXNetGraph
    from onnx import TensorProto, helper, numpy_helper

    @MXNetGraph.register("null", opset_version=_OPSET)
    def convert_variable(node, is_input, **context):
        name = node["name"]
        if is_input:
            shape = context["in_shape"]
        else:
            value = context["weights"][name]
            shape = value.shape
            context["initializer"].append(numpy_helper.from_array(value, name))
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)], ("float32",)

    return MXNetGraph
