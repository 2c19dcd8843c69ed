"""The table of a check, and its JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .finding import Finding

SCHEMA_VERSION = 1
_PLAIN_WIDTH = 170  # where the output is not a terminal, which would tell its own
_STYLES = {"ok": "green", "failed": "bold red", "skipped": "yellow"}


def print_report(findings: Sequence[Finding], console: Console | None = None) -> None:
    """Print one row for each model, and below what has to be said about them, to stdout."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _PLAIN_WIDTH)
    console.print(_table(findings))
    for finding in findings:
        for remark in finding.remarks:
            console.print(Text(f"{finding.name}: {remark}"), soft_wrap=True)
    counts = Counter(finding.status for finding in findings)
    console.print(", ".join(f"{counts[status]} {status}" for status in _STYLES if counts[status]))


def write_json(findings: Sequence[Finding], path: Path) -> None:
    """Store everything that was found."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "models": [asdict(finding) for finding in findings],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def _table(findings: Sequence[Finding]) -> Table:
    table = Table()
    table.add_column("model", no_wrap=True)
    for heading in ("ops", "regions", "FLOPs offloaded", "max error", "partition s", "build s"):
        table.add_column(heading, justify="right")
    table.add_column("left to TVM", ratio=1)
    table.add_column("status", no_wrap=True)
    for finding in findings:
        table.add_row(
            finding.name,
            _text(finding.operators, "d"),
            _text(finding.regions, "d"),
            _text(finding.share, ".1%"),
            _text(finding.max_error, ".1e"),
            _text(finding.partition_seconds, ".1f"),
            _text(finding.build_seconds, ".1f"),
            ", ".join(f"{count} {name}" for name, count in finding.left.items()),
            Text(finding.status, style=_STYLES[finding.status]),
        )
    return table


def _text(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
