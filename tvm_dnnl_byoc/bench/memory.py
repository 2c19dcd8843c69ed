"""Memory of a process, as Linux counts it."""

from __future__ import annotations

from pathlib import Path


def peak_mib() -> float:
    """Largest resident set that this process has had, in MiB."""
    return _status("VmHWM")


def resident_mib() -> float:
    """Resident set of this process, in MiB."""
    return _status("VmRSS")


def _status(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields[key].removesuffix("kB")) / 1024
