"""One check in a process of its own, so that a crash costs one row of the table."""

from __future__ import annotations

from dataclasses import asdict

from ..bench import backends
from ..bench.worker import serve
from . import catalogue


class Worker:
    """The command; it takes a request's arguments and returns the reply."""

    def check(self, name: str) -> dict:
        """Check one model of the catalogue."""
        backends.import_package()
        from .check import check

        return asdict(check(catalogue.find(name)))


def main() -> None:
    """Serve the check of models."""
    serve(Worker())
