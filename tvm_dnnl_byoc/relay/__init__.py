"""The front for TVM 0.19: Relay modules."""

from . import codegen  # noqa: F401 (registers it)
from .partition import partition_for_dnnl

__all__ = ["partition_for_dnnl"]
