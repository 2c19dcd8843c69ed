"""What a benchmark run found; stored as JSON as it stands."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import numpy as np

from .settings import Settings, ours_beside
from .stats import Percentiles, Spread, images_per_second, ratio_over_rounds
from .steps import StepSum

SCHEMA_VERSION = 4


@dataclass
class Deployment:
    """A process that only loads what was built, and runs it.

    Attributes
    ----------
    error : str or None
        Why there is nothing else.
    load_seconds, first_inference_seconds : float or None
        From an interpreter with nothing of the framework imported to a network ready to run; the
        inference after that.
    peak_mib, resident_mib : float or None
        Largest resident set of the process, and the one at the end, in MiB.
    """

    error: str | None = None
    load_seconds: float | None = None
    first_inference_seconds: float | None = None
    peak_mib: float | None = None
    resident_mib: float | None = None


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
        Time to build; largest difference from MXNet's output, of what was built and of what is
        deployed, relative to the output's scale.
    versions, facts : dict
        What the worker knows about its libraries and the compiled network.
    peak_mib, resident_mib : float or None
        Of the first instance: largest resident set, its build included, and the one after the last
        round, in MiB.
    deployment : Deployment or None
        What it takes to load and run what was built.
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
    peak_mib: float | None = None
    resident_mib: float | None = None
    deployment: Deployment | None = None
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
class StepResult:
    """Comparison of dnnl with its steps, measured side by side in every round."""

    error: str | None = None
    rounds: list[StepSum] = field(default_factory=list)

    @property
    def milliseconds(self) -> Spread:
        """Sum of the step times of one inference, over the rounds."""
        return Spread.of([entry.milliseconds for entry in self.rounds])

    @property
    def kinds(self) -> dict[str, tuple[int, float]]:
        """Number of steps of each kind, and their milliseconds, the median over the rounds."""
        return {
            kind: (
                int(entry["count"]),
                float(np.median([each.kinds[kind]["milliseconds"] for each in self.rounds])),
            )
            for kind, entry in self.rounds[0].kinds.items()
        }

    def overhead(self, dnnl: BackendResult) -> Spread:
        """Median time of dnnl divided by the sum of its step times, over the rounds."""
        sums = [[entry.milliseconds / 1e3] for entry in self.rounds]
        return ratio_over_rounds(dnnl.pooled_rounds, sums)


@dataclass
class ModelResult:
    """All backends on one model, each with the same batch size."""

    model: str
    batch_size: int
    error: str | None = None
    backends: list[BackendResult] = field(default_factory=list)
    steps: StepResult | None = None

    def find(self, backend: str) -> BackendResult | None:
        """The complete result of a backend; None if it failed or was not asked for."""
        for result in self.backends:
            if result.backend == backend and result.error is None:
                return result
        return None

    def relative_speed(self, backend: str, other: str, mode: str) -> Spread | None:
        """How many times quicker one backend is than another; None without results of both.

        Compares median times in mode latency, images/s otherwise, round by round.
        """
        one, two = self.find(backend), self.find(other)
        if one is None or two is None:
            return None
        if mode == "latency":
            return ratio_over_rounds(two.pooled_rounds, one.pooled_rounds)
        pairs = zip(one.throughputs(self.batch_size), two.throughputs(self.batch_size), strict=True)
        return Spread.of([ours / theirs for ours, theirs in pairs])


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
            model.error
            or any(
                result.error or (result.deployment and result.deployment.error)
                for result in model.backends
            )
            for model in self.models
        )

    def write_json(self, path: Path) -> None:
        """Store everything, with the summaries that the table shows."""
        document = {"schema_version": SCHEMA_VERSION, **asdict(self)}
        for model, entry in zip(self.models, document["models"], strict=True):
            for result, stored in zip(model.backends, entry["backends"], strict=True):
                if result.error is None:
                    stored["summary"] = self._summary(model, result)
        path.write_text(json.dumps(document, indent=1) + "\n")

    @classmethod
    def read_json(cls, path: Path) -> BenchmarkResult:
        """Read what `write_json` stored.

        Raises
        ------
        ValueError
            If the file has another schema.
        """
        document = json.loads(path.read_text())
        version = document.get("schema_version") if isinstance(document, dict) else None
        if version != SCHEMA_VERSION:
            raise ValueError(f"{path}: expected schema_version {SCHEMA_VERSION}, got {version}")
        return cls(
            settings=_restore(Settings, document["settings"]),
            environment=document["environment"],
            models=[_restore_model(model) for model in document["models"]],
        )

    def _summary(self, model: ModelResult, result: BackendResult) -> dict:
        speedup, ours = None, ours_beside(result.backend)
        if result.backend != ours:
            speedup = model.relative_speed(ours, result.backend, self.settings.mode)
        return {
            "milliseconds": asdict(result.percentiles()),
            "instance_milliseconds": [
                asdict(result.percentiles(instance)) for instance in range(self.settings.instances)
            ],
            "images_per_second": float(np.median(result.throughputs(model.batch_size))),
            "dnnl_speedup": asdict(speedup) if speedup else None,
        }


def _restore_model(stored: dict) -> ModelResult:
    model = _restore(ModelResult, stored)
    model.backends = [_restore(BackendResult, entry) for entry in model.backends]
    for result in model.backends:
        if result.deployment:
            result.deployment = _restore(Deployment, result.deployment)
    if model.steps:
        model.steps = _restore(StepResult, model.steps)
        model.steps.rounds = [_restore(StepSum, entry) for entry in model.steps.rounds]
    return model


def _restore(kind, stored: dict):
    # Without the summaries; and what are tuples in `Settings` are lists in JSON.
    values = {each.name: stored[each.name] for each in fields(kind)}
    if kind is Settings:
        values = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
    return kind(**values)
