"""OpenVINO's CPU plugin, one request at a time."""

from __future__ import annotations

import time
from pathlib import Path

from .. import models, onnx_export
from .network import BuildOptions, Network, joined

_IR = "network.xml"  # the weights are in a .bin beside it


def build(directory: Path, options: BuildOptions, precision: str = "f32") -> Network:
    """Compile the ONNX file."""
    find = models.find_quantized if precision == "int8" else onnx_export.find
    model = find(directory)
    network = _compile(model, directory, options, precision)
    network.export = lambda folder: _save(model, folder / _IR)
    return network


def load(directory: Path, options: BuildOptions, precision: str = "f32") -> Network:
    """Compile OpenVINO's own format, which is what its users deploy."""
    return _compile(directory / _IR, directory, options, precision)


def _compile(model: Path, directory: Path, options: BuildOptions, precision: str) -> Network:
    import openvino as ov

    settings = {
        # One synchronous request has all cores, in mode throughput with the whole batch: the
        # others, too, get one call at a time. The hint for throughput is about several requests.
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
        "INFERENCE_NUM_THREADS": options.threads,
        # By default it is bf16, silently, where the processor has it.
        "INFERENCE_PRECISION_HINT": "f32" if precision == "int8" else precision,
        # Its default on Linux; but a bound process has its cores already.
        "ENABLE_CPU_PINNING": not options.bound,
    }
    begin = time.perf_counter()
    compiled = ov.Core().compile_model(str(model), "CPU", settings)
    calls = models.load_inputs(directory)
    requests = [compiled.create_infer_request() for _ in calls]
    build_seconds = time.perf_counter() - begin
    for request, call in zip(requests, calls, strict=True):
        for name, array in call.items():
            tensor = request.get_tensor(name)
            tensor.shape = array.shape
            tensor.data[:] = array

    def run() -> None:
        for request in requests:
            request.infer(share_outputs=True)

    return Network(
        run=run,
        output=lambda: joined([request.get_output_tensor().data for request in requests]),
        build_seconds=build_seconds,
        versions={"openvino": ov.__version__.partition("-")[0]},
    )


def _save(model: Path, target: Path) -> None:
    import openvino as ov

    # As float16, which is the default, the weights would not be the same.
    ov.save_model(ov.Core().read_model(model), target, compress_to_fp16=False)
