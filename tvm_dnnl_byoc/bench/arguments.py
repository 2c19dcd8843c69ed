"""What the command lines have in common: errors in one line, and the types of options."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


class OneLineParser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str):
        """Say what is wrong in one line, without the usage text."""
        self.exit(2, f"{self.prog}: error: {message}\n")


def positive(text: str) -> int:
    """Read a positive integer: the type of an option."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer, got {text!r}")
    return value


def output_file(text: str) -> Path:
    """Read the name of a file that can be written: the type of an option."""
    # Asked for now, not after minutes of measuring.
    path = Path(text)
    if path.is_dir() or not os.access(path.resolve().parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"expected a file in a writable directory, got {text!r}")
    return path


def output_folder(text: str) -> Path:
    """Read the name of a directory that files can be written to: the type of an option."""
    path = Path(text)
    if not path.is_dir() or not os.access(path, os.W_OK):
        raise argparse.ArgumentTypeError(f"expected a writable directory, got {text!r}")
    return path
