"""What a benchmark run is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

MODES = ("latency", "throughput", "realtime")
PRECISIONS = ("f32", "bf16", "int8")
DEFAULT_BATCH_SIZES = {"latency": 1, "throughput": 32, "realtime": 1}


def in_precision(backend: str, precision: str) -> str:
    """Name of a backend in one of `PRECISIONS`."""
    return backend if precision == "f32" else f"{backend}-{precision}"


def ours_beside(backend: str) -> str:
    """Name of the backend dnnl in the precision of another one."""
    found = next((p for p in PRECISIONS[1:] if backend.endswith(f"-{p}")), "f32")
    return in_precision("dnnl", found)


@dataclass(frozen=True)
class Settings:
    """Options of one benchmark run.

    Attributes
    ----------
    mode : str
        One of `MODES`.
    zoo : str
        One of `zoos.ZOOS`, which `models` are from.
    models, backends : tuple of str
        In the order of the report.
    threads : int
        Threads per instance.
    batch_size : int
        Images, or what else the zoo's networks read, per inference.
    batch_may_shrink : bool
        Whether to halve it, for all backends of a model, until memory suffices.
    instances : int
        Processes of the same backend that run at the same time.
    cores : tuple of int
        The usable cores.
    warmup, runs : int
        Untimed inferences before the timed ones of each round; timed inferences, over all rounds.
    rounds : int
        Number of times that the backends take turns.
    seed : int
        Seed of parameters and inputs.
    sum_of_steps : bool
        Whether to compare dnnl with the sum of its step times.
    busy : int
        Processes that compute while the backends are measured.
    tuning_records : str or None
        File with records of TVM's auto-scheduler, read and extended.
    tuning_trials : int or None
        Records that each model is to have there.
    """

    mode: str
    models: tuple[str, ...]
    backends: tuple[str, ...]
    threads: int
    batch_size: int
    batch_may_shrink: bool
    instances: int
    cores: tuple[int, ...]
    warmup: int
    runs: int
    rounds: int
    seed: int
    sum_of_steps: bool
    busy: int = 0
    tuning_records: str | None = None
    tuning_trials: int | None = None
    zoo: str = "gluoncv"

    @property
    def runs_per_round(self) -> int:
        """Timed inferences of one round, rounded up."""
        return -(-self.runs // self.rounds)

    def cores_of(self, instance: int) -> tuple[int, ...] | None:
        """Cores that an instance is bound to; None if it is not bound."""
        if self.mode != "realtime":
            return None
        first = instance * self.threads
        return self.cores[first : first + self.threads]
