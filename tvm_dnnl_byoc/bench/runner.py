"""Conduct the workers: build them all, then let the backends take turns."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from . import backends
from .backends import BuildOptions
from .busy import BusyProcesses
from .process import REPLY_TIMEOUT_SECONDS, WorkerError, WorkerProcess
from .progress import Progress
from .results import BackendResult, Deployment, ModelResult, StepResult
from .settings import Settings
from .steps import sum_of_steps

# Thread pools spin for a while after their last kernel: TVM's yields 300,000 times, OpenMP's a
# comparable time. The next worker starts when the machine is quiet again.
_SETTLE_SECONDS = 0.5
_START_DELAY_SECONDS = 0.1
_PROFILED_RUNS_PER_ROUND = 10
_DEPLOYED_RUNS = 3
_TRIAL_TIMEOUT_SECONDS = 60.0


class _OutOfMemoryError(Exception):
    """The batch does not fit, and may be smaller."""


@dataclass
class _Team:
    """The instances of one backend, and what they found so far."""

    result: BackendResult
    workers: list[WorkerProcess]


class Runner:
    """Runs the benchmark that `settings` describe.

    Parameters
    ----------
    settings : Settings
        What to measure.
    progress : Progress
        Told about each step.
    """

    def __init__(self, settings: Settings, progress: Progress):
        self._settings = settings
        self._progress = progress
        turns = len(settings.backends) * (1 + settings.rounds)
        progress.expect(len(settings.models) * (1 + turns))

    def run(self) -> list[ModelResult]:
        """Measure every model; a failure is recorded and ends only what depends on it."""
        return [self._run_model(model) for model in self._settings.models]

    def _run_model(self, model: str) -> ModelResult:
        batch_size = self._settings.batch_size
        while True:
            begun = self._progress.begun
            try:
                return self._try_model(model, batch_size)
            except _OutOfMemoryError:
                batch_size //= 2
                self._progress.expect(self._progress.begun - begun)

    def _try_model(self, model: str, batch_size: int) -> ModelResult:
        settings, result = self._settings, ModelResult(model, batch_size)
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self._progress.step(f"{model}: preparing the network and the reference output")
            try:
                self._prepare(result, directory)
            except WorkerError as error:
                self._check_memory(error, batch_size)
                result.error = str(error)
                return result

            teams = [self._build(result, name, directory, stack) for name in settings.backends]
            result.backends = [team.result for team in teams]
            if settings.sum_of_steps and result.find("dnnl"):
                result.steps = StepResult()
            busy = stack.enter_context(BusyProcesses(settings.busy))

            for turn in range(settings.rounds):
                # Nobody should always be the one who runs after the same neighbour.
                shift = turn % len(teams)
                for team in teams[shift:] + teams[:shift]:
                    name = team.result.backend
                    if team.result.error is not None:
                        self._progress.expect(-1)
                        continue
                    self._progress.step(f"{model}: round {turn + 1} of {settings.rounds}, {name}")
                    self._measure(team, busy)
                    if result.steps and name == "dnnl":
                        self._profile(team, result.steps)
        return result

    def _check_memory(self, error: WorkerError, batch_size: int) -> None:
        if error.out_of_memory and self._settings.batch_may_shrink and batch_size > 1:
            raise _OutOfMemoryError from error

    def _prepare(self, model: ModelResult, directory: Path) -> None:
        settings = self._settings
        environment = backends.environment(len(settings.cores), pinned=False)
        with WorkerProcess(directory / "prepare.log", environment) as worker:
            worker.call(
                "prepare",
                zoo=settings.zoo,
                model=model.model,
                batch_size=model.batch_size,
                seed=settings.seed,
                directory=str(directory),
                quantize=any(name.endswith("-int8") for name in settings.backends),
            )

    def _build(self, model: ModelResult, name: str, directory: Path, stack: ExitStack) -> _Team:
        settings, result = self._settings, BackendResult(name)
        options = self._build_options(directory)
        workers = []
        try:
            if backends.BACKENDS[name].tuned and settings.tuning_trials:
                self._tune(model.model, directory, options)
            self._progress.step(f"{model.model}: building backend {name}")
            for instance in range(settings.instances):
                worker = self._start(directory / f"{name}-{instance}.log", instance)
                workers.append(stack.enter_context(worker))
                reply = worker.call(
                    "build", backend=name, directory=str(directory), options=options
                )
                # The first instance's build time, for the later ones find warm file caches.
                result.build_seconds = result.build_seconds or reply["build_seconds"]
                result.max_error = max(result.max_error or 0.0, reply["max_error"])
                result.versions, result.facts = reply["versions"], reply["facts"]
            result.deployment = self._deploy(workers[0], result, directory, options)
        except WorkerError as error:
            self._check_memory(error, model.batch_size)
            _fail(result, workers, error)
        return _Team(result, workers)

    def _build_options(self, directory: Path) -> dict:
        settings = self._settings
        return asdict(
            BuildOptions(
                threads=settings.threads,
                bound=settings.cores_of(0) is not None,
                tuning_records=settings.tuning_records or str(directory / "tuning.json"),
                tuning_trials=settings.tuning_trials,
            )
        )

    def _start(self, log: Path, instance: int) -> WorkerProcess:
        cores = self._settings.cores_of(instance)
        environment = backends.environment(self._settings.threads, pinned=cores is not None)
        return WorkerProcess(log, environment, cores)

    def _tune(self, model: str, directory: Path, options: dict) -> None:
        self._progress.expect(1)
        self._progress.step(f"{model}: tuning, {self._settings.tuning_trials} trials")
        timeout = REPLY_TIMEOUT_SECONDS + _TRIAL_TIMEOUT_SECONDS * self._settings.tuning_trials
        with self._start(directory / "tune.log", 0) as worker:
            worker.call("tune", timeout, directory=str(directory), options=options)

    def _deploy(
        self, builder: WorkerProcess, result: BackendResult, directory: Path, options: dict
    ) -> Deployment:
        name = result.backend
        folder = directory / name
        folder.mkdir()
        places = {"directory": str(directory), "folder": str(folder)}
        try:
            builder.call("export", **places)
            with self._start(directory / f"{name}-deployed.log", 0) as worker:
                runs = _DEPLOYED_RUNS
                reply = worker.call("deploy", backend=name, options=options, runs=runs, **places)
        except WorkerError as error:
            return Deployment(error=str(error))
        result.max_error = max(result.max_error, reply.pop("max_error"))
        return Deployment(**reply)

    def _measure(self, team: _Team, busy: BusyProcesses) -> None:
        settings, result = self._settings, team.result
        time.sleep(_SETTLE_SECONDS)
        try:
            for worker in team.workers:
                worker.send("warm_up", runs=settings.warmup)
            for worker in team.workers:
                worker.receive()
            load = _ForeignLoad(busy)
            start_at = time.monotonic() + _START_DELAY_SECONDS
            for worker in team.workers:
                worker.send("measure", runs=settings.runs_per_round, start_at=start_at)
            replies = [worker.receive() for worker in team.workers]
        except WorkerError as error:
            _fail(result, team.workers, error)
            return
        result.peak_mib, result.resident_mib = replies[0]["peak_mib"], replies[0]["resident_mib"]
        result.rounds.append([reply["seconds"] for reply in replies])
        result.foreign_load.append(load.since(sum(reply["cpu_seconds"] for reply in replies)))

    def _profile(self, team: _Team, result: StepResult) -> None:
        """Time the steps in the process that was just timed, for no other has its memory."""
        if team.result.error is not None or result.error is not None:
            return
        runs = min(_PROFILED_RUNS_PER_ROUND, self._settings.runs_per_round)
        try:
            regions = team.workers[0].call("profile", runs=runs)["regions"]
            result.rounds.append(sum_of_steps(regions, runs))
        except (WorkerError, ValueError) as error:
            result.error = str(error)


class _ForeignLoad:
    """Processor time that processes other than the measured and busy ones take, from now on."""

    def __init__(self, busy: BusyProcesses):
        self._busy, self._busy_begin = busy, busy.cpu_seconds()
        self._begin = psutil.cpu_times()

    def since(self, own_seconds: float) -> float:
        """Share of the machine's processor time, 0 to 1, `own_seconds` not counted."""
        before, after = self._begin, psutil.cpu_times()
        own_seconds += self._busy.cpu_seconds() - self._busy_begin
        total = sum(after) - sum(before)
        idle = (after.idle + after.iowait) - (before.idle + before.iowait)
        return min(1.0, max(0.0, (total - idle - own_seconds) / total)) if total else 0.0


def _fail(result: BackendResult, workers: list[WorkerProcess], error: WorkerError) -> None:
    result.error = str(error)
    for worker in workers:
        worker.close()
