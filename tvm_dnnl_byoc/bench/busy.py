"""Processes that keep the machine busy while others are measured."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil

# Ends with its parent, however that ends.
_SPIN = """\
import os, sys
parent = int(sys.argv[1])
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


class BusyProcesses:
    """Processes that do nothing but compute; a context manager.

    Parameters
    ----------
    count : int
        How many; one keeps one core busy.
    """

    def __init__(self, count: int):
        self._count = count
        self._processes: list[psutil.Popen] = []

    def cpu_seconds(self) -> float:
        """Processor time that they have taken so far."""
        times = [process.cpu_times() for process in self._processes]
        return sum(time.user + time.system for time in times)

    def __enter__(self) -> BusyProcesses:
        command = [sys.executable, "-S", "-c", _SPIN, str(os.getpid())]
        for _ in range(self._count):
            # Interrupted from the keyboard, they would show tracebacks.
            process = psutil.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self._processes.append(process)
        return self

    def __exit__(self, *exception) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
