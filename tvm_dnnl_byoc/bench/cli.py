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

from . import backends, environment
from .process import WorkerError, WorkerProcess
from .progress import Progress
from .report import print_report
from .results import BenchmarkResult
from .runner import Runner
from .settings import DEFAULT_BATCH_SIZES, MODES, Settings

_EPILOG = """\
modes:
  latency     one instance on all cores, batch 1
  throughput  one instance on all cores, batch 32
  realtime    one instance per core (or per --threads cores), each bound to its own, batch 1

Each backend runs in its own process. All are built first; then they take turns, round by round,
so that drift of the machine hits all alike. The exit code is 1 if a backend failed, 2 for a wrong
option.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    settings = _settings(parser, arguments)
    found = environment.describe(Path(sys.argv[0]).resolve().parent)
    found["command"] = shlex.join([Path(sys.argv[0]).name, *(argv or sys.argv[1:])])
    with Progress(Console(stderr=True)) as progress:
        progress.expect(1)
        progress.step("looking up the models")
        try:
            _check_models(parser, settings.models)
        except WorkerError as error:
            print(f"{parser.prog}: error: {_model_zoo_failure(error)}", file=sys.stderr)
            return 1
        models = Runner(settings, progress).run()

    for model in models:
        for entry in model.backends:
            found |= entry.versions
    result = BenchmarkResult(settings, found, models)
    print_report(result)
    if arguments.json:
        result.write_json(arguments.json)
    return int(result.failed)


class OneLineParser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str):
        """Say what is wrong in one line, without the usage text."""
        self.exit(2, f"{self.prog}: error: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        description="Compare GluonCV networks in TVM with oneDNN, in TVM alone and in MXNet.",
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
        default="resnet50_v1b",
        metavar="NAME,…",
        help="names of gluoncv.model_zoo (default: %(default)s)",
    )
    parser.add_argument(
        "--backends",
        default=",".join(backends.BACKENDS),
        metavar="NAME,…",
        help="dnnl: TVM with oneDNN; tvm: TVM untuned; mxnet: MXNet's oneDNN subgraph backend "
        "(default: %(default)s)",
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
        help="images per inference (default: 1; 32 in mode throughput)",
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
        "--sum-of-primitives",
        action=argparse.BooleanOptionalAction,
        help="compare dnnl with the sum of oneDNN's own primitive times (default: in mode latency)",
    )
    parser.add_argument(
        "--json", type=output_file, metavar="FILE", help="store all samples and the environment"
    )
    return parser


def _settings(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> Settings:
    mode = arguments.mode
    if mode not in MODES:
        parser.error(f"--mode: expected one of {', '.join(MODES)}, got {mode!r}")
    names = _names(parser, "--backends", arguments.backends)
    for name in names:
        if name not in backends.BACKENDS:
            known = ", ".join(backends.BACKENDS)
            parser.error(f"--backends: expected one of {known}, got {name!r}")

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
    traced = arguments.sum_of_primitives
    return Settings(
        mode=mode,
        models=_names(parser, "--models", arguments.models),
        backends=names,
        threads=threads,
        batch_size=arguments.batch_size or DEFAULT_BATCH_SIZES[mode],
        instances=instances,
        cores=cores,
        warmup=arguments.warmup,
        runs=arguments.runs,
        rounds=min(arguments.rounds, arguments.runs),
        seed=arguments.seed,
        sum_of_primitives=mode == "latency" if traced is None else traced,
    )


def _names(parser: argparse.ArgumentParser, option: str, text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        parser.error(f"{option}: expected names separated by commas, got {text!r}")
    return names


def _check_models(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        WorkerProcess(Path(directory) / "models.log", {}) as worker,
    ):
        known = worker.call("models")["models"]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=5, cutoff=0.5) or ["resnet50_v1b"]
            parser.error(
                f"--models: expected one of gluoncv.model_zoo's {len(known)} names, such as "
                f"{', '.join(near)}, got {name!r}"
            )


def _model_zoo_failure(error: WorkerError) -> str:
    return f"the models come from GluonCV and MXNet (Python 3.11 or older): {error}"


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
