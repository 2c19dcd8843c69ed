"""ONNX Runtime on its own CPU kernels, with all graph optimisations."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from .. import models, onnx_export
from .network import BuildOptions, Network, link


def build(directory: Path, options: BuildOptions) -> Network:
    """Create a session from the ONNX file; a deployment does the same."""
    import onnxruntime as ort

    model = onnx_export.find(directory)
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    settings.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    begin = time.perf_counter()
    session = ort.InferenceSession(str(model), settings, providers=["CPUExecutionProvider"])
    build_seconds = time.perf_counter() - begin

    # Both ends are bound to memory of ONNX Runtime's, so that a run copies and allocates nothing.
    binding = session.io_binding()
    (result,) = session.get_outputs()
    for name, array in models.load_inputs(directory).items():
        data = ort.OrtValue.ortvalue_from_shape_and_type(array.shape, array.dtype)
        data.update_inplace(array)
        binding.bind_ortvalue_input(name, data)
    output = ort.OrtValue.ortvalue_from_shape_and_type(result.shape, np.float32)
    binding.bind_ortvalue_output(result.name, output)
    return Network(
        run=lambda: session.run_with_iobinding(binding),
        output=output.numpy,
        build_seconds=build_seconds,
        versions={"onnxruntime": ort.__version__},
        export=lambda folder: link(directory, folder, [model.name]),
    )
