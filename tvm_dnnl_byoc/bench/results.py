"""What a benchmark run found; stored as JSON as it stands."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from .onednn_verbose import PrimitiveSum
from .settings import Settings
from .stats import Percentiles, Spread, images_per_second, ratio_over_rounds

SCHEMA_VERSION = 1


@dataclass
class BackendResult:
    """One backend on one model.

    Attributes
    ----------
    backend : str
        Its name.
    error : str or None
        Why there are no, or not all, results.
    build_seconds, max_error : float or None
        Time to build; largest difference from MXNet's output, relative to the output's scale.
    versions, facts : dict
        What the worker knows about its libraries and the compiled network.
    rounds : list of list of list of float
        Seconds of each inference, by round and instance.
    foreign_load : list of float
        By round: share of the machine's processor time that other processes took, 0 to 1.
    """

    backend: str
    error: str | None = None
    build_seconds: float | None = None
    max_error: float | None = None
    versions: dict[str, str] = field(default_factory=dict)
    facts: dict = field(default_factory=dict)
    rounds: list[list[list[float]]] = field(default_factory=list)
    foreign_load: list[float] = field(default_factory=list)

    @property
    def pooled_rounds(self) -> list[list[float]]:
        """Seconds of each inference by round, the instances together."""
        return [[value for instance in row for value in instance] for row in self.rounds]

    def percentiles(self, instance: int | None = None) -> Percentiles:
        """Percentiles over all rounds, of one instance or of all."""
        chosen = slice(None) if instance is None else slice(instance, instance + 1)
        return Percentiles.of(
            [value for row in self.rounds for seconds in row[chosen] for value in seconds]
        )

    def throughputs(self, batch_size: int, instance: int | None = None) -> list[float]:
        """Images/s by round, of one instance or of all together."""
        chosen = slice(None) if instance is None else slice(instance, instance + 1)
        return [images_per_second(row[chosen], batch_size) for row in self.rounds]


@dataclass
class PrimitiveResult:
    """Comparison of dnnl with its primitives, measured side by side in every round."""

    error: str | None = None
    rounds: list[PrimitiveSum] = field(default_factory=list)

    @property
    def milliseconds(self) -> Spread:
        """Sum of the primitive times of one inference, over the rounds."""
        return Spread.of([entry.milliseconds for entry in self.rounds])

    def overhead(self, dnnl: BackendResult) -> Spread:
        """Median time of dnnl divided by the sum of its primitive times, over the rounds."""
        sums = [[entry.milliseconds / 1e3] for entry in self.rounds]
        return ratio_over_rounds(dnnl.pooled_rounds, sums)


@dataclass
class ModelResult:
    """All backends on one model."""

    model: str
    error: str | None = None
    backends: list[BackendResult] = field(default_factory=list)
    primitives: PrimitiveResult | None = None

    def find(self, backend: str) -> BackendResult | None:
        """The complete result of a backend; None if it failed or was not asked for."""
        for result in self.backends:
            if result.backend == backend and result.error is None:
                return result
        return None

    def speedup(self, backend: BackendResult, settings: Settings) -> Spread | None:
        """How many times quicker dnnl is than `backend`; None without dnnl's result.

        Compares median times for latency, images/s otherwise.
        """
        dnnl = self.find("dnnl")
        if dnnl is None or backend is dnnl or backend.error is not None:
            return None
        if settings.mode == "latency":
            return ratio_over_rounds(backend.pooled_rounds, dnnl.pooled_rounds)
        ours = dnnl.throughputs(settings.batch_size)
        theirs = backend.throughputs(settings.batch_size)
        return Spread.of([a / b for a, b in zip(ours, theirs, strict=True)])


@dataclass
class BenchmarkResult:
    """A whole run."""

    settings: Settings
    environment: dict[str, str]
    models: list[ModelResult]

    @property
    def failed(self) -> bool:
        """Whether any model or backend has no result."""
        return any(
            model.error or any(result.error for result in model.backends) for model in self.models
        )

    def write_json(self, path: Path) -> None:
        """Store everything, with the summaries that the table shows."""
        document = {"schema_version": SCHEMA_VERSION, **asdict(self)}
        for model, entry in zip(self.models, document["models"], strict=True):
            for result, stored in zip(model.backends, entry["backends"], strict=True):
                if result.error is None:
                    stored["summary"] = self._summary(model, result)
        path.write_text(json.dumps(document, indent=1) + "\n")

    def _summary(self, model: ModelResult, result: BackendResult) -> dict:
        speedup = model.speedup(result, self.settings)
        return {
            "milliseconds": asdict(result.percentiles()),
            "images_per_second": float(np.median(result.throughputs(self.settings.batch_size))),
            "dnnl_speedup": asdict(speedup) if speedup else None,
        }
