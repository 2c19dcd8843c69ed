"""A conversion that failed, remembered beside the files of those that did not.

It concerns only the backends that need it, so they report it, each in its own worker.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def attempt(directory: Path, conversion: str) -> Iterator[None]:
    """Write down why the conversion in the block failed, if it does."""
    try:
        yield
    except Exception as error:  # any kind: it is other people's code
        logging.exception("%s failed", conversion)
        _note(directory, conversion).write_text(f"{conversion}: {type(error).__name__}: {error}")


def check(directory: Path, conversion: str) -> None:
    """Raise RuntimeError with the reason if that conversion failed."""
    note = _note(directory, conversion)
    if note.exists():
        raise RuntimeError(note.read_text())


def _note(directory: Path, conversion: str) -> Path:
    return directory / f"{conversion.replace(' ', '-')}.error"
