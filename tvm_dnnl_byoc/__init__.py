"""oneDNN speed for TVM on x86 CPUs, beside the TVM that is installed.

>>> mod = partition_for_dnnl(mod, params)
>>> lib = relay.build(mod, target, params=params)

Importing the package loads the native libraries and registers them with TVM; a library that was
exported from a partitioned module needs that before it is loaded. Where TVM is imported without its
compiler (``TVM_USE_RUNTIME_LIB=1``), there are ``build_info`` and ``profile`` only.
"""

from . import native

native.load_relay()

from tvm._ffi.base import _RUNTIME_ONLY  # noqa: E402 (TVM is checked before it is imported)

from .profile import build_info, profile  # noqa: E402

__version__ = "0.1.0"
__all__ = ["build_info", "profile"]

if not _RUNTIME_ONLY:
    from . import quantize
    from .relay import partition_for_dnnl
    from .report import explain

    __all__ += ["explain", "partition_for_dnnl", "quantize"]
