"""The table that a benchmark run prints."""

from __future__ import annotations

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from .results import BackendResult, BenchmarkResult, ModelResult
from .settings import Settings
from .stats import Percentiles, Spread

_PLAIN_WIDTH = 140  # where the output is not a terminal, which would tell its own
_QUIET_LOAD = 0.05


def print_report(result: BenchmarkResult, console: Console | None = None) -> None:
    """Print results, remarks and the environment to stdout, or to `console`."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _PLAIN_WIDTH)
    console.print(_render(result))


def _render(result: BenchmarkResult) -> RenderableType:
    settings = result.settings
    table = Table(title=_title(settings), title_justify="left")
    table.add_column("model", no_wrap=True)
    table.add_column("backend", no_wrap=True)
    for heading in ("p50 ms", "p90 ms", "p99 ms", "images/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("speedup of dnnl", justify="right", no_wrap=True)
    for heading in ("max error", "regions", "FLOPs offloaded", "build s"):
        table.add_column(heading, justify="right")
    for model in result.models:
        for row in _rows(model, settings):
            table.add_row(*row)
        table.add_section()
    return Group(table, *(Text(line) for line in _remarks(result)), _environment(result))


def _title(settings: Settings) -> str:
    instances = f"{settings.instances} instance{'s' if settings.instances > 1 else ''}"
    threads = f"{settings.threads} thread{'s' if settings.threads > 1 else ''}"
    return (
        f"{settings.mode}: {instances} × {threads}, batch {settings.batch_size}, "
        f"{settings.rounds} rounds × {settings.runs_per_round} runs"
    )


def _rows(model: ModelResult, settings: Settings):
    if model.error is not None:
        yield [model.model, "", "failed"]
    for result in model.backends:
        if result.error is not None:
            yield [model.model, result.backend, "failed"]
            continue
        yield [
            model.model,
            result.backend,
            *_percentiles(result.percentiles()),
            _images(result, settings),
            _ratio(model.speedup(result, settings)),
            *_facts(result),
        ]
        if settings.instances > 1:
            for instance in range(settings.instances):
                cores = ",".join(map(str, settings.cores_of(instance) or ()))
                yield [
                    "",
                    f"  core {cores}",
                    *_percentiles(result.percentiles(instance)),
                    _images(result, settings, instance),
                ]


def _percentiles(values: Percentiles) -> list[str]:
    return [f"{value:.2f}" for value in (values.p50, values.p90, values.p99)]


def _images(result: BackendResult, settings: Settings, instance: int | None = None) -> str:
    return f"{np.median(result.throughputs(settings.batch_size, instance)):.1f}"


def _ratio(spread: Spread | None) -> str:
    return f"{spread.median:.2f} ({spread.low:.2f}–{spread.high:.2f})" if spread else ""


def _facts(result: BackendResult) -> list[str]:
    facts = result.facts
    return [
        f"{result.max_error:.1e}",
        str(facts["regions"]) if "regions" in facts else "",
        f"{facts['offloaded_share']:.1%}" if "offloaded_share" in facts else "",
        f"{result.build_seconds:.1f}",
    ]


def _remarks(result: BenchmarkResult):
    for model in result.models:
        if model.error is not None:
            yield f"{model.model}: {model.error}"
        for entry in model.backends:
            if entry.error is not None:
                yield f"{model.model}, {entry.backend}: {entry.error}"
        yield from _primitives(model)
    loads = [
        load for model in result.models for entry in model.backends for load in entry.foreign_load
    ]
    if loads and max(loads) > _QUIET_LOAD:
        yield (
            f"The machine was not quiet: other processes took {np.median(loads):.0%} of its "
            f"processor time (median of the rounds), at most {max(loads):.0%}."
        )


def _primitives(model: ModelResult):
    primitives, dnnl = model.primitives, model.find("dnnl")
    if primitives is None or dnnl is None:
        return
    if primitives.error is not None:
        yield f"{model.model}, sum of primitives: {primitives.error}"
        return
    kinds = ", ".join(
        f"{entry['count']:.0f} {kind} {entry['milliseconds']:.2f}"
        for kind, entry in primitives.rounds[-1].kinds.items()
    )
    yield (
        f"{model.model}: dnnl p50 / sum of oneDNN's primitive times = "
        f"{_ratio(primitives.overhead(dnnl))}; the sum is "
        f"{primitives.milliseconds.median:.2f} ms ({kinds})"
    )


def _environment(result: BenchmarkResult) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False, title="environment")
    table.title_justify = "left"
    for key, value in result.environment.items():
        table.add_row(key, value)
    return table
