"""The frameworks under test, each at its best documented settings and the same thread count."""

from __future__ import annotations

from functools import partial

from ..settings import in_precision
from . import autoscheduler, dnnl, mxnet, onnxruntime, openvino, torch, tvm
from .dnnl import import_package
from .network import Backend, BuildOptions, Network
from .tvm import host_target

__all__ = ["BACKENDS", "BuildOptions", "Network", "environment", "host_target", "import_package"]

_CNN = ("gluoncv",)

BACKENDS: dict[str, Backend] = {
    "dnnl": Backend(dnnl.build, dnnl.load),
    "dnnl-bf16": Backend(partial(dnnl.build, precision="bf16"), dnnl.load),
    "dnnl-int8": Backend(partial(dnnl.build, precision="int8"), dnnl.load, zoos=_CNN),
    "tvm": Backend(tvm.build, tvm.load),
    "tvm-autoscheduler": Backend(autoscheduler.build, tvm.load, tuned=True, zoos=_CNN),
    "mxnet": Backend(mxnet.build, mxnet.build, zoos=_CNN),  # it deploys what it builds from
    "mxnet-int8": Backend(mxnet.build_int8, mxnet.load_int8, zoos=_CNN),
    "onnxruntime": Backend(onnxruntime.build, onnxruntime.build),
    "onnxruntime-int8": Backend(*(partial(onnxruntime.build, precision="int8"),) * 2, zoos=_CNN),
    "openvino": Backend(openvino.build, openvino.load),
    "openvino-bf16": Backend(
        partial(openvino.build, precision="bf16"), partial(openvino.load, precision="bf16")
    ),
    "openvino-int8": Backend(
        partial(openvino.build, precision="int8"),
        partial(openvino.load, precision="int8"),
        zoos=_CNN,
    ),
    **{
        in_precision(name, precision): Backend(build, build, zoos=("transformers",))
        for precision in ("f32", "bf16")
        for name, build in (
            ("torch", partial(torch.build, precision=precision)),
            ("torch-inductor", partial(torch.build, precision=precision, compiled=True)),
        )
    },
}


def environment(threads: int, pinned: bool) -> dict[str, str]:
    """Environment variables for a worker of any backend.

    Parameters
    ----------
    threads : int
        Number of threads of OpenMP and of TVM's pool.
    pinned : bool
        Whether the worker is bound to cores of its own.
    """
    settings = {
        "OMP_NUM_THREADS": str(threads),
        "TVM_NUM_THREADS": str(threads),
        "TOPHUB_LOCATION": "NONE",  # no download of tuning records
    }
    if pinned:
        # TVM's pool would bind its workers to the machine's first cores, whatever ours are.
        settings["TVM_BIND_THREADS"] = "0"
    return settings
