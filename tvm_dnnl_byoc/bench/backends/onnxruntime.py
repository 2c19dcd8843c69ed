"""ONNX Runtime on its own CPU kernels, with all graph optimisations."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from .. import models, onnx_export
from .network import BuildOptions, Network, joined, link


def build(directory: Path, options: BuildOptions, precision: str = "f32") -> Network:
    """Create a session from the ONNX file; a deployment does the same."""
    import onnxruntime as ort

    find = models.find_quantized if precision == "int8" else onnx_export.find
    model = find(directory)
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    settings.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    begin = time.perf_counter()
    session = ort.InferenceSession(str(model), settings, providers=["CPUExecutionProvider"])
    build_seconds = time.perf_counter() - begin

    bindings, outputs = zip(
        *(_bind(session, call) for call in models.load_inputs(directory)), strict=True
    )

    def run() -> None:
        for binding in bindings:
            session.run_with_iobinding(binding)

    return Network(
        run=run,
        output=lambda: joined([output.numpy() for output in outputs]),
        build_seconds=build_seconds,
        versions={"onnxruntime": ort.__version__},
        export=lambda folder: link(directory, folder, [model.name]),
    )


def _bind(session, call: dict[str, np.ndarray]):
    """Bind both ends to memory of ONNX Runtime's, so that a run copies and allocates nothing."""
    import onnxruntime as ort

    binding = session.io_binding()
    (result,) = session.get_outputs()
    for name, array in call.items():
        data = ort.OrtValue.ortvalue_from_shape_and_type(array.shape, array.dtype)
        data.update_inplace(array)
        binding.bind_ortvalue_input(name, data)
    # A size with a name is the input's along the same axis.
    shape = [
        size if isinstance(size, int) else array.shape[axis]
        for axis, size in enumerate(result.shape)
    ]
    output = ort.OrtValue.ortvalue_from_shape_and_type(shape, np.float32)
    binding.bind_ortvalue_output(result.name, output)
    return binding, output
