"""The front for TVM 0.19: Relay modules."""

from .partition import partition_for_dnnl

__all__ = ["partition_for_dnnl"]
