"""What TVM calls to compile a region."""

import sys

import tvm
from tvm.relay.build_module import BuildModule


# A TVM that was built with its own integration has it registered: ours replaces it.
@tvm.register_func("relay.ext.dnnl", override=True)
def compile_region(function: tvm.relay.Function) -> tvm.runtime.Module:
    """Return the runtime module of a region.

    Raises
    ------
    ValueError
        If it is for the ahead-of-time executor. That calls a region as a C symbol, which is not
        there, and the process would crash when the library is loaded.
    """
    if _executor_name() == "aot":
        raise ValueError(
            "partition_for_dnnl: expected the graph executor (relay.build's default) or the VM, "
            "got the ahead-of-time executor, which TVM 0.19 links with regions in C only"
        )
    return tvm.get_global_func("tvm_dnnl_byoc.compile")(function)


def _executor_name() -> str | None:
    """Return the executor of the relay.build that is under way.

    TVM hands it to no one: it is an argument of one of the functions that led here.
    """
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code is BuildModule.build.__code__:
            executor = frame.f_locals.get("executor")
            return getattr(executor, "name", None)
        frame = frame.f_back
    return None
