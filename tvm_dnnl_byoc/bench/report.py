"""The table that a benchmark run prints."""

from __future__ import annotations

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from .results import BackendResult, BenchmarkResult, ModelResult
from .settings import Settings, ours_beside
from .stats import Percentiles, Spread
from .zoos import ZOOS

_PLAIN_WIDTH = 160  # where the output is not a terminal, which would tell its own
_QUIET_LOAD = 0.05


def print_report(result: BenchmarkResult, console: Console | None = None) -> None:
    """Print results, remarks and the environment to stdout, or to `console`."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _PLAIN_WIDTH)
    console.print(_render(result))


def _render(result: BenchmarkResult) -> RenderableType:
    settings = result.settings
    table = Table(title=describe(settings), title_justify="left")
    table.add_column("model", no_wrap=True)
    table.add_column("backend", no_wrap=True)
    for heading in ("p50 ms", "p90 ms", "p99 ms", f"{ZOOS[settings.zoo].unit}/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("speedup of dnnl", justify="right", no_wrap=True)
    headings = ("peak MiB", "load s", "max error", "regions", "FLOPs offloaded", "build s")
    for heading in headings:
        table.add_column(heading, justify="right")
    for model in result.models:
        for row in _rows(model, settings):
            table.add_row(*row)
        table.add_section()
    return Group(table, *(Text(line) for line in _remarks(result)), _environment(result))


def describe(settings: Settings) -> str:
    """Mode, instances, threads, batch, rounds and busy processes of a run, in one line."""
    instances = f"{settings.instances} instance{'s' if settings.instances > 1 else ''}"
    threads = f"{settings.threads} thread{'s' if settings.threads > 1 else ''}"
    busy = f", beside {settings.busy} busy process{'es' if settings.busy > 1 else ''}"
    return (
        f"{settings.mode}: {instances} × {threads}, batch {settings.batch_size}, "
        f"{settings.rounds} rounds × {settings.runs_per_round} runs{busy if settings.busy else ''}"
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
            _images(result, model),
            _speedup(model, result, settings),
            *_facts(result),
        ]
        if settings.instances > 1:
            for instance in range(settings.instances):
                cores = ",".join(map(str, settings.cores_of(instance) or ()))
                yield [
                    "",
                    f"  core {cores}",
                    *_percentiles(result.percentiles(instance)),
                    _images(result, model, instance),
                ]


def _percentiles(values: Percentiles) -> list[str]:
    return [f"{value:.2f}" for value in (values.p50, values.p90, values.p99)]


def _images(result: BackendResult, model: ModelResult, instance: int | None = None) -> str:
    return f"{np.median(result.throughputs(model.batch_size, instance)):.1f}"


def _speedup(model: ModelResult, result: BackendResult, settings: Settings) -> str:
    ours = ours_beside(result.backend)
    if result.backend == ours:
        return ""
    return _ratio(model.relative_speed(ours, result.backend, settings.mode))


def _ratio(spread: Spread | None) -> str:
    return f"{spread.median:.2f} ({spread.low:.2f}–{spread.high:.2f})" if spread else ""


def _facts(result: BackendResult) -> list[str]:
    facts = result.facts
    return [
        *_deployment(result),
        f"{result.max_error:.1e}",
        str(facts["regions"]) if "regions" in facts else "",
        f"{facts['offloaded_share']:.1%}" if "offloaded_share" in facts else "",
        f"{result.build_seconds:.1f}",
    ]


def _deployment(result: BackendResult) -> list[str]:
    deployed = result.deployment
    if deployed is None or deployed.error is not None:
        return ["", ""]
    seconds = deployed.load_seconds + deployed.first_inference_seconds
    return [f"{deployed.peak_mib:.0f}", f"{seconds:.2f}"]


def _remarks(result: BenchmarkResult):
    for model in result.models:
        if model.error is not None:
            yield f"{model.model}: {model.error}"
        if model.batch_size != result.settings.batch_size:
            yield (
                f"{model.model}: batch {model.batch_size}, for {result.settings.batch_size} did "
                "not fit into memory"
            )
        for entry in model.backends:
            if entry.error is not None:
                yield f"{model.model}, {entry.backend}: {entry.error}"
            if entry.deployment and entry.deployment.error:
                yield f"{model.model}, {entry.backend}, deployed: {entry.deployment.error}"
        yield from _steps(model)
    loads = [
        load for model in result.models for entry in model.backends for load in entry.foreign_load
    ]
    if loads and max(loads) > _QUIET_LOAD:
        yield (
            f"The machine was not quiet: other processes took {np.median(loads):.0%} of its "
            f"processor time (median of the rounds), at most {max(loads):.0%}."
        )


def _steps(model: ModelResult):
    steps, dnnl = model.steps, model.find("dnnl")
    if steps is None or dnnl is None:
        return
    if steps.error is not None:
        yield f"{model.model}, sum of steps: {steps.error}"
        return
    kinds = ", ".join(
        f"{count} {kind} {milliseconds:.2f}" for kind, (count, milliseconds) in steps.kinds.items()
    )
    yield (
        f"{model.model}: dnnl p50 / sum of the times of its steps = "
        f"{_ratio(steps.overhead(dnnl))}; the sum is {steps.milliseconds.median:.2f} ms ({kinds})"
    )


def _environment(result: BenchmarkResult) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False, title="environment")
    table.title_justify = "left"
    for key, value in result.environment.items():
        table.add_row(key, value)
    return table
