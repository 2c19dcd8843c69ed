"""Progress on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as RichProgress


class Progress:
    """Shows the step under way; a context manager.

    Parameters
    ----------
    console : Console, optional
        Where to show it; stderr by default.

    Attributes
    ----------
    begun : int
        Steps so far.
    """

    def __init__(self, console: Console | None = None):
        self._console = console or Console(stderr=True)
        self._begin = time.monotonic()
        self._expected = 0
        self.begun = 0
        self._bar = RichProgress(
            SpinnerColumn(),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=self._console,
            # Redrawing takes processor time from what is being measured.
            refresh_per_second=1,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=None)

    def expect(self, steps: int) -> None:
        """Announce how many more calls of `step` will follow."""
        self._expected += steps
        self._bar.update(self._task, total=self._expected)

    def step(self, text: str) -> None:
        """Say what begins now."""
        self._bar.update(self._task, completed=self.begun, description=text, refresh=True)
        self.begun += 1
        if not self._console.is_terminal:
            elapsed = time.monotonic() - self._begin
            line = f"[{elapsed:6.1f} s, {self.begun}/{self._expected}] {text}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *exception) -> None:
        self._bar.stop()
