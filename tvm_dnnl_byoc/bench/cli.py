"""Command line of the benchmark."""

from __future__ import annotations

import argparse
import difflib
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from . import backends, environment, plot
from .arguments import OneLineParser, output_file, output_folder, positive
from .process import WorkerError, WorkerProcess
from .progress import Progress
from .report import print_report
from .results import BenchmarkResult
from .runner import Runner
from .settings import (
    DEFAULT_BATCH_SIZES,
    MODES,
    PRECISIONS,
    Settings,
    in_precision,
    ours_beside,
)
from .zoos import ZOOS, Zoo

_REFERENCE = "reference"

_EPILOG = """\
modes:
  latency     one instance on all cores, batch 1
  throughput  one instance on all cores, batch 32 or as many as fit into memory
  realtime    one instance per core (or per --threads cores), each bound to its own, batch 1

Each backend runs in its own process. All are built first; then they take turns, round by round,
so that drift of the machine hits all alike. The exit code is 1 if a backend failed, 2 for a wrong
option.
"""


def main(argv: Sequence[str] | None = None, zoo: str = "gluoncv") -> int:
    """Run the benchmark of a zoo's networks; returns the exit code."""
    parser = _parser(ZOOS[zoo])
    arguments = parser.parse_args(argv)
    if arguments.from_json:
        result = _read(parser, arguments.from_json)
    else:
        settings = _settings(parser, arguments, zoo)
        if arguments.plot and plot.BASELINE not in settings.backends:
            got = ", ".join(settings.backends)
            parser.error(f"--plot: expected backend {plot.BASELINE} to compare with, got {got}")
        try:
            result = _measure(parser, settings, shlex.join(argv or sys.argv[1:]))
        except WorkerError as error:
            print(f"{parser.prog}: error: {ZOOS[zoo].needs}: {error}", file=sys.stderr)
            return 1
    print_report(result)
    if arguments.json:
        result.write_json(arguments.json)
    if arguments.plot:
        try:
            print(f"plotted {plot.draw(result, arguments.plot)}")
        except ValueError as error:
            print(f"{parser.prog}: error: --plot: {error}", file=sys.stderr)
            return 1
    return int(result.failed)


def _measure(
    parser: argparse.ArgumentParser, settings: Settings, command_line: str
) -> BenchmarkResult:
    found = environment.describe(Path(sys.argv[0]).resolve().parent)
    found["command"] = f"{Path(sys.argv[0]).name} {command_line}"
    with Progress(Console(stderr=True)) as progress:
        progress.expect(1)
        progress.step("looking up the models")
        _check_models(parser, settings)
        models = Runner(settings, progress).run()
    for model in models:
        for entry in model.backends:
            found |= entry.versions
    return BenchmarkResult(settings, found, models)


def _read(parser: argparse.ArgumentParser, path: Path) -> BenchmarkResult:
    try:
        return BenchmarkResult.read_json(path)
    except (OSError, ValueError) as error:
        parser.error(f"--from-json: {error}")


def _parser(zoo: Zoo) -> argparse.ArgumentParser:
    parser = OneLineParser(
        description=f"Compare {zoo.what} in TVM with oneDNN, in TVM alone and in its peers.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--mode",
        default="latency",
        metavar="MODE",
        help=f"one of {', '.join(MODES)} (default: %(default)s)",
    )
    parser.add_argument(
        "--models",
        default=zoo.default,
        metavar="NAME,…",
        help=f"names of {zoo.source}; {_REFERENCE} stands for {', '.join(zoo.reference)} "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--backends",
        metavar="NAME,…",
        help="dnnl: TVM with oneDNN; tvm: TVM untuned; tvm-autoscheduler: TVM tuned; mxnet: "
        "MXNet's oneDNN subgraph backend; onnxruntime; openvino; torch, torch-inductor: PyTorch "
        "(default: all that run these networks, but tvm-autoscheduler only with --tuning-records "
        "or --tuning-trials)",
    )
    parser.add_argument(
        "--precision",
        default="f32",
        metavar="NAME,…",
        help=f"of {', '.join(PRECISIONS)}: the backends that have each, as BACKEND-PRECISION if it "
        "is not f32 (default: %(default)s)",
    )
    parser.add_argument(
        "--threads",
        type=positive,
        metavar="N",
        help="threads per instance (default: the usable cores; 1 in mode realtime)",
    )
    parser.add_argument(
        "--instances",
        type=positive,
        metavar="N",
        help="processes at the same time, mode realtime only (default: usable cores / threads)",
    )
    parser.add_argument(
        "--batch-size",
        type=positive,
        metavar="N",
        help=f"{zoo.unit} per inference (default: 1; in mode throughput 32, or as many as fit)",
    )
    parser.add_argument(
        "--warmup",
        type=positive,
        default=20,
        metavar="N",
        help="untimed inferences of a backend before the timed ones of each round "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--runs",
        type=positive,
        default=100,
        metavar="N",
        help="timed inferences of a backend, spread over the rounds (default: %(default)s)",
    )
    parser.add_argument(
        "--rounds",
        type=positive,
        default=5,
        metavar="R",
        help="how often the backends take turns (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of parameters and input (default: %(default)s)"
    )
    parser.add_argument(
        "--sum-of-steps",
        action=argparse.BooleanOptionalAction,
        help="compare dnnl with the sum of the times of its steps (default: in mode latency)",
    )
    parser.add_argument(
        "--busy",
        type=positive,
        default=0,
        metavar="N",
        help="processes that compute beside the backends while these are measured (default: none)",
    )
    parser.add_argument(
        "--tuning-records",
        type=output_file,
        metavar="FILE",
        help="records of TVM's auto-scheduler; --tuning-trials adds to them",
    )
    parser.add_argument(
        "--tuning-trials",
        type=positive,
        metavar="N",
        help="tune until there are N records of each model; hundreds to thousands are usual, and "
        "take hours",
    )
    parser.add_argument(
        "--json", type=output_file, metavar="FILE", help="store all samples and the environment"
    )
    parser.add_argument(
        "--plot",
        type=output_folder,
        nargs="?",
        const="assets",
        metavar="FOLDER",
        help="draw FOLDER/<mode>.png, in per cent of MXNet (default: %(const)s)",
    )
    parser.add_argument(
        "--from-json",
        type=Path,
        metavar="FILE",
        help="measure nothing; print, and plot, what --json has stored",
    )
    return parser


def _settings(parser: argparse.ArgumentParser, arguments: argparse.Namespace, zoo: str) -> Settings:
    mode = arguments.mode
    if mode not in MODES:
        parser.error(f"--mode: expected one of {', '.join(MODES)}, got {mode!r}")
    cores = tuple(sorted(os.sched_getaffinity(0)))
    realtime = mode == "realtime"
    threads = arguments.threads or (1 if realtime else len(cores))
    if arguments.instances and not realtime:
        parser.error(f"--instances: expected mode realtime, got {mode}")
    instances = arguments.instances or (max(1, len(cores) // threads) if realtime else 1)
    if threads * instances > len(cores):
        parser.error(
            f"--threads: expected at most {len(cores)} usable cores for all instances, "
            f"got {instances} × {threads}"
        )
    return Settings(
        mode=mode,
        zoo=zoo,
        models=_models(parser, arguments.models, ZOOS[zoo]),
        backends=_backends(parser, arguments, zoo),
        threads=threads,
        batch_size=arguments.batch_size or DEFAULT_BATCH_SIZES[mode],
        batch_may_shrink=arguments.batch_size is None,
        instances=instances,
        cores=cores,
        warmup=arguments.warmup,
        runs=arguments.runs,
        rounds=min(arguments.rounds, arguments.runs),
        seed=arguments.seed,
        sum_of_steps=(
            mode == "latency" if arguments.sum_of_steps is None else arguments.sum_of_steps
        ),
        busy=arguments.busy,
        tuning_records=str(arguments.tuning_records.resolve())
        if arguments.tuning_records
        else None,
        tuning_trials=arguments.tuning_trials,
    )


def _models(parser: argparse.ArgumentParser, text: str, zoo: Zoo) -> tuple[str, ...]:
    names = []
    for name in _names(parser, "--models", text):
        names += zoo.reference if name == _REFERENCE else [name]
    return tuple(dict.fromkeys(names))


def _backends(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, zoo: str
) -> tuple[str, ...]:
    precisions = _names(parser, "--precision", arguments.precision)
    for precision in precisions:
        if precision not in PRECISIONS:
            parser.error(f"--precision: expected one of {', '.join(PRECISIONS)}, got {precision!r}")
    tuning = arguments.tuning_records or arguments.tuning_trials
    ran = {name: each for name, each in backends.BACKENDS.items() if zoo in each.zoos}
    known = [name for name in ran if ours_beside(name) == "dnnl"]  # all in f32
    if arguments.backends is None:
        names = [name for name in known if tuning or not backends.BACKENDS[name].tuned]
    else:
        names = _names(parser, "--backends", arguments.backends)
    for name in names:
        if name not in known:
            parser.error(f"--backends: expected one of {', '.join(known)}, got {name!r}")
        if backends.BACKENDS[name].tuned and not tuning:
            parser.error(
                f"--backends: expected --tuning-records or --tuning-trials with {name}, got neither"
            )
    found = [in_precision(name, precision) for precision in precisions for name in names]
    found = [name for name in found if name in ran]
    if not found:
        parser.error(
            f"--precision: expected a backend that has {', '.join(precisions)}, "
            f"got {', '.join(names)}"
        )
    return tuple(found)


def _names(parser: argparse.ArgumentParser, option: str, text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        parser.error(f"{option}: expected names separated by commas, got {text!r}")
    return names


def _check_models(parser: argparse.ArgumentParser, settings: Settings) -> None:
    zoo = ZOOS[settings.zoo]
    with (
        tempfile.TemporaryDirectory() as directory,
        WorkerProcess(Path(directory) / "models.log", {}) as worker,
    ):
        known = worker.call("models", zoo=settings.zoo)["models"]
    for name in settings.models:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=5, cutoff=0.5) or [zoo.default]
            parser.error(
                f"--models: expected one of {zoo.source}'s {len(known)} names, such as "
                f"{', '.join(near)}, got {name!r}"
            )
