"""The front for apache-tvm: Relax modules."""

from .partition import partition_for_dnnl

__all__ = ["partition_for_dnnl"]
