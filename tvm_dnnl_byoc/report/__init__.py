"""What was offloaded, what was not, and why: as a table, JSON, and a page with the graph."""

from .explain import explain
from .model import Node, OperatorKind, Region, Report

__all__ = ["Node", "OperatorKind", "Region", "Report", "explain"]
