"""A model in TVM's form, together with the right answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import tvm


class NotInstalledError(RuntimeError):
    """A model cannot be checked since a package that it needs is not installed."""


@dataclass(frozen=True)
class Case:
    """What `check` needs to know of a model.

    Attributes
    ----------
    module : tvm.IRModule
        The graph.
    params : dict of str to a tensor of TVM's
        The weights, unless they are in the graph.
    inputs : dict of str to np.ndarray
        One input.
    references : list of np.ndarray
        The answers of the framework that the model comes from, one for each output.
    framework : str
        That framework's name.
    heads : int
        How many outputs, the last ones, are what a detector computes before it selects boxes; the
        other outputs depend on the order of nearly equal scores. 0: all outputs are comparable.
    """

    module: tvm.IRModule
    params: dict[str, Any]
    inputs: dict[str, np.ndarray]
    references: list[np.ndarray]
    framework: str
    heads: int = 0

    @property
    def comparable(self) -> range:
        """The outputs that must agree to within rounding."""
        count = len(self.references)
        return range(count - self.heads, count) if self.heads else range(count)
