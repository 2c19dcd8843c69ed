"""What a backend makes of a saved network, and what it is told for that."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class BuildOptions:
    """What a backend is told besides the network.

    Attributes
    ----------
    threads : int
        Threads to run on; also in the environment, for the frameworks that read it from there.
    bound : bool
        Whether the process is bound to cores of its own.
    tuning_records : str or None
        File of the auto-scheduler's measurements.
    tuning_trials : int or None
        How many of them a network gets.
    """

    threads: int
    bound: bool = False
    tuning_records: str | None = None
    tuning_trials: int | None = None


@dataclass
class Network:
    """A network ready to run.

    Attributes
    ----------
    run : callable
        One inference, complete when it returns; the input is already in place.
    output : callable
        The last inference's output.
    versions : dict
        Versions of the libraries at work.
    build_seconds : float
        Time from the framework's own representation to ``run``; 0 of a deployed network.
    facts : dict
        What is known about the compiled network, for the report.
    export : callable
        Puts the files that a deployment loads into the folder it is given.
    library : tvm.runtime.Module, a factory module, or None
        What TVM has compiled, if it is TVM.
    """

    run: Callable[[], None]
    output: Callable[[], np.ndarray]
    versions: dict[str, str]
    build_seconds: float = 0.0
    facts: dict = field(default_factory=dict)
    export: Callable[[Path], None] | None = None
    library: object | None = None


@dataclass(frozen=True)
class Backend:
    """A framework under test.

    Attributes
    ----------
    build : callable
        Builds the network saved in a directory.
    load : callable
        Loads what `Network.export` has put into a folder, as a deployment would.
    tuned : bool
        Whether it needs tuning records.
    zoos : tuple of str
        The zoos whose networks it runs.
    """

    build: Callable[[Path, BuildOptions], Network]
    load: Callable[[Path, BuildOptions], Network]
    tuned: bool = False
    zoos: tuple[str, ...] = ("gluoncv", "transformers")


def joined(outputs: Sequence[np.ndarray]) -> np.ndarray:
    """Return the outputs of an inference's calls as one: of one sequence each, along the length."""
    return np.concatenate(outputs, axis=1) if len(outputs) > 1 else outputs[0]


def link(directory: Path, folder: Path, names: Iterable[str]) -> None:
    """Give files of `directory` a second name in `folder`."""
    for name in names:
        os.link(directory / name, folder / name)
