"""Command line of the check."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ..bench import backends
from ..bench.arguments import OneLineParser, output_file, positive
from ..bench.process import WorkerError, WorkerProcess
from ..bench.progress import Progress
from . import catalogue
from .catalogue import Entry
from .finding import Finding
from .report import print_report, write_json

_DESCRIPTION = """\
Convert, partition, build and run whole models, and compare with the framework that they come from.
Each runs in a process of its own, one after the other. The exit code is 1 if one failed, 2 for a
wrong option; a model of which the framework is not installed is skipped.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Check the models; returns the exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        entries = catalogue.select(arguments.models, arguments.family)
    except ValueError as error:
        parser.error(str(error))
    if not entries:
        parser.error("expected models that are in one of the families, got none")
    if arguments.list:
        _print_list(entries)
        return 0
    findings = []
    with Progress(Console(stderr=True)) as progress, tempfile.TemporaryDirectory() as directory:
        progress.expect(len(entries))
        for entry in entries:
            progress.step(entry.name)
            findings.append(_check(entry, Path(directory) / "worker.log", arguments.timeout))
            if arguments.json:  # after each, so that a long run can be looked at, and into
                write_json(findings, arguments.json)
    print_report(findings)
    return int(any(finding.status == "failed" for finding in findings))


def _check(entry: Entry, log: Path, timeout: float) -> Finding:
    environment = {"TOPHUB_LOCATION": backends.environment(1, pinned=False)["TOPHUB_LOCATION"]}
    with WorkerProcess(log, environment, module="tvm_dnnl_byoc.models.worker") as worker:
        try:
            return Finding(**worker.call("check", timeout=timeout, name=entry.name))
        except WorkerError as error:
            return Finding(entry.name, entry.family, remarks=[str(error)])


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(description=_DESCRIPTION)
    parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help="names or globs, such as 'resnet*' (default: all)",
    )
    parser.add_argument(
        "--family",
        action="append",
        default=[],
        metavar="NAME",
        help=f"only this family; can be repeated ({', '.join(catalogue.FAMILIES)})",
    )
    parser.add_argument("--list", action="store_true", help="show the models and end")
    parser.add_argument(
        "--timeout",
        type=positive,
        default=1800,
        metavar="S",
        help="seconds that one model may take (default: %(default)s)",
    )
    parser.add_argument(
        "--json", type=output_file, metavar="FILE", help="store what was found, after each model"
    )
    return parser


def _print_list(entries: Sequence[Entry]) -> None:
    table = Table("model", "family", "input", "from")
    for entry in entries:
        table.add_row(entry.name, entry.family, "×".join(map(str, entry.shape)), entry.source)
    Console().print(table)
