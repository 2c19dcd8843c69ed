"""What a report holds; its JSON is these classes, field by field."""

import json
from dataclasses import asdict, dataclass, field

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class OperatorKind:
    """All calls of one operator.

    Attributes
    ----------
    name : str
        Relay's, also of Relax's operators that do the same, such as ``transpose``; Relax's own of
        others; of a composed activation, oneDNN's.
    count, offloaded : int
        How many calls there are, and how many of them run in oneDNN.
    alone : int
        Of those offloaded, how many run as a primitive that begins with them.
    fused : dict of str to int
        Of those offloaded, how many are fused into which operator.
    stayed : dict of str to int
        Of those that TVM runs, how many for which reason.
    unfused : dict of str to int
        Of those offloaded alone, how many could not be fused into what gives their input, and why.
    """

    name: str
    count: int = 0
    offloaded: int = 0
    alone: int = 0
    fused: dict[str, int] = field(default_factory=dict)
    stayed: dict[str, int] = field(default_factory=dict)
    unfused: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Region:
    """A function that oneDNN runs.

    Attributes
    ----------
    symbol : str
    operators, primitives : int
        Operators of the model, and the chains that they form.
    inputs, outputs : int
        Tensors that cross its border; constants do not count.
    multiply_adds : int or None
        None if a shape is not static.
    """

    symbol: str
    operators: int
    primitives: int
    inputs: int
    outputs: int
    multiply_adds: int | None


@dataclass(frozen=True)
class Node:
    """A chain, or an operator that TVM runs, as it is drawn.

    Attributes
    ----------
    operators : list of str
    shape : str
        Of the result.
    inputs : list of int
        Numbers of the nodes that it reads.
    region : str or None
        The symbol of its region; None if TVM runs it.
    reason : str
        Why TVM runs it; "" if it does not.
    """

    operators: list[str]
    shape: str
    inputs: list[int]
    region: str | None
    reason: str = ""


@dataclass(frozen=True)
class Report:
    """What was offloaded, what was not, and why.

    Attributes
    ----------
    operators : list of OperatorKind
        The most frequent first. Each call of the canonical module is counted once.
    regions : list of Region
    nodes : list of Node
        The graph, each node after those that it reads.
    multiply_adds, offloaded_multiply_adds : int or None
        Of one inference; None if a shape is not static.
    """

    operators: list[OperatorKind]
    regions: list[Region]
    nodes: list[Node]
    multiply_adds: int | None
    offloaded_multiply_adds: int | None

    @property
    def share(self) -> float | None:
        """Offloaded part of the multiply-adds, 0 to 1; None if there are none, or not known."""
        if not self.multiply_adds:
            return None
        return self.offloaded_multiply_adds / self.multiply_adds

    def to_json(self) -> str:
        """Return the report as a JSON object, with its ``schema_version``."""
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(self)}, indent=1)

    def to_html(self) -> str:
        """Return the report as one page that needs nothing else, with the graph drawn.

        Raises
        ------
        ImportError
            If the extra ``[report]`` is not installed.
        """
        from .page import render

        return render(self)

    def print(self) -> None:
        """Print the report's tables to stdout.

        Raises
        ------
        ImportError
            If the extra ``[report]`` is not installed.
        """
        from .table import print_report

        print_report(self)
