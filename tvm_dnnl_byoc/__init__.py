"""oneDNN speed for TVM on x86 CPUs, beside the TVM that is installed.

>>> mod = partition_for_dnnl(mod, params)
>>> lib = relay.build(mod, target, params=params)

With apache-tvm, ``mod`` is a Relax module, and ``tvm.compile`` builds it.

Importing the package loads the native libraries and registers them with TVM; a library that was
exported from a partitioned module needs that before it is loaded. Where TVM is imported without its
compiler (``TVM_USE_RUNTIME_LIB=1``), there are ``build_info`` and ``profile`` only.
"""

from . import native

native.load_adapter()

from .profile import build_info, profile  # noqa: E402 (TVM is checked before it is imported)

__version__ = "0.1.0"
__all__ = ["build_info", "profile"]

if native.front() == "relax" or not native.is_runtime_only():
    from . import quantize
    from .front import partition_for_dnnl
    from .report import explain

    __all__ += ["explain", "partition_for_dnnl", "quantize"]
