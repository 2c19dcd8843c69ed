"""What the check of one model found."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Finding:
    """What came out for one model.

    Attributes
    ----------
    name, family : str
        Of the model.
    status : str
        ``ok``, ``failed`` or ``skipped``.
    remarks : list of str
        What a reader has to know: why it failed or was skipped, what was compared.
    operators : int
        Calls in the graph as converted.
    regions : int
        Functions handed to oneDNN.
    share : float
        Offloaded part of the multiply-adds, 0 to 1.
    max_error : float
        Largest difference from the reference, relative to the scale of the output.
    load_seconds, partition_seconds, build_seconds : float
        Time to prepare and convert; to partition; to build.
    left : dict of str to int
        The operators that stayed in TVM, with their numbers, the most frequent first.
    """

    name: str
    family: str
    status: str = "failed"
    remarks: list[str] = field(default_factory=list)
    operators: int | None = None
    regions: int | None = None
    share: float | None = None
    max_error: float | None = None
    load_seconds: float | None = None
    partition_seconds: float | None = None
    build_seconds: float | None = None
    left: dict[str, int] = field(default_factory=dict)
