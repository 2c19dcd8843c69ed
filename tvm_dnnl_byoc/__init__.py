"""oneDNN speed for TVM on x86 CPUs, beside the TVM that is installed.

>>> mod = partition_for_dnnl(mod, params)
>>> lib = relay.build(mod, target, params=params)

Importing the package loads the native libraries and registers them with TVM; a library that was
exported from a partitioned module needs that before it is loaded.
"""

from . import native

native.load_relay()

from .profile import build_info, profile  # noqa: E402 (TVM is checked before it is imported)
from .relay import partition_for_dnnl  # noqa: E402
from .report import explain  # noqa: E402

__version__ = "0.1.0"
__all__ = ["build_info", "explain", "partition_for_dnnl", "profile"]
