"""One backend in a process of its own: JSON requests on stdin, one JSON reply each on stdout.

Started by `process`. A request is an object with a ``command`` and its arguments; a reply has
``error`` (one line) if the command failed.
"""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import time
import traceback
from pathlib import Path

import numpy as np

from . import backends, memory, models
from .backends import BuildOptions, autoscheduler
from .backends.network import link
from .zoos import ZOOS


def claim_stdout():
    """Return a stream to the original stdout, and send file descriptor 1 where stderr goes.

    Libraries print to stdout from C as well, which would corrupt the replies.
    """
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return replies


class Worker:
    """The commands; each method takes a request's arguments and returns the reply."""

    def __init__(self):
        self._network: backends.Network | None = None

    def models(self, zoo: str) -> dict:
        """Names of all models."""
        return {"models": ZOOS[zoo].names()}

    def prepare(
        self, zoo: str, model: str, batch_size: int, seed: int, directory: str, quantize: bool
    ) -> dict:
        """Prepare a model and write it to `directory`; in int8 as well if that is wanted."""
        shape = ZOOS[zoo].save(model, batch_size, seed, Path(directory))
        if quantize:
            backends.import_package()
            models.save_quantized(Path(directory), seed + 1)
        return {"shape": shape}

    def tune(self, directory: str, options: dict) -> dict:
        """Have TVM's auto-scheduler measure what the records lack."""
        autoscheduler.tune(Path(directory), BuildOptions(**options))
        return {}

    def build(self, backend: str, directory: str, options: dict) -> dict:
        """Build for `backend`, run once, and compare with the reference."""
        build = backends.BACKENDS[backend].build
        self._network = build(Path(directory), BuildOptions(**options))
        self._network.run()
        return {
            "build_seconds": self._network.build_seconds,
            "max_error": self._compare(directory),
            "versions": self._network.versions | {"numpy": np.__version__},
            "facts": self._network.facts,
        }

    def export(self, directory: str, folder: str) -> dict:
        """Put what a deployment needs into `folder`, and the input."""
        self._network.export(Path(folder))
        link(Path(directory), Path(folder), [models.INPUTS])
        return {}

    def deploy(self, backend: str, directory: str, folder: str, options: dict, runs: int) -> dict:
        """Load what `export` wrote, run it, and compare with the reference."""
        begin = time.perf_counter()
        self._network = backends.BACKENDS[backend].load(Path(folder), BuildOptions(**options))
        loaded = time.perf_counter()
        self._network.run()
        answered = time.perf_counter()
        self.warm_up(runs - 1)
        reply = {
            "load_seconds": loaded - begin,
            "first_inference_seconds": answered - loaded,
            "peak_mib": memory.peak_mib(),
            "resident_mib": memory.resident_mib(),
        }
        return reply | {"max_error": self._compare(directory)}

    def warm_up(self, runs: int) -> dict:
        """Untimed inferences, and before them all that would leave others' data in the caches."""
        gc.collect()
        for _ in range(runs):
            self._network.run()
        return {}

    def measure(self, runs: int, start_at: float) -> dict:
        """Time each of `runs` inferences, from `start_at` on the system's monotonic clock (s)."""
        run, clock = self._network.run, time.perf_counter
        seconds = []
        gc.disable()
        time.sleep(max(0.0, start_at - time.monotonic()))
        cpu_begin = time.process_time()
        for _ in range(runs):
            begin = clock()
            run()
            seconds.append(clock() - begin)
        cpu_seconds = time.process_time() - cpu_begin
        gc.enable()
        return {
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "peak_mib": memory.peak_mib(),
            "resident_mib": memory.resident_mib(),
        }

    def profile(self, runs: int) -> dict:
        """The steps of each region of backend dnnl, timed over `runs` runs."""
        package = backends.import_package()
        if self._network.library is None:
            raise ValueError("expected one plan of the network, got one for each length")
        return {"regions": package.profile(self._network.library, runs)}

    def _compare(self, directory: str) -> float:
        reference = np.load(Path(directory) / "reference.npy")
        return relative_error(self._network.output(), reference)


def relative_error(output: np.ndarray, reference: np.ndarray) -> float:
    """Largest absolute difference, divided by the largest finite absolute value of `reference`.

    Where both have the same infinity, or none a number, they agree; where only one has, the error
    is infinite.
    """
    if output.shape != reference.shape:
        raise ValueError(f"output: expected shape {reference.shape}, got {output.shape}")
    finite = np.isfinite(reference)
    if not np.array_equal(output[~finite], reference[~finite], equal_nan=True):
        return np.inf
    output, reference = output[finite].astype(np.float64), reference[finite]
    if not np.isfinite(output).all():
        return np.inf
    scale = np.abs(reference).max(initial=0) or 1.0
    return float(np.abs(output - reference).max(initial=0) / scale)


def one_line(error: Exception) -> str:
    """Type and message of an error."""
    name = type(error).__name__
    # TVM's messages are a C++ traceback, then the type and the message proper.
    message = re.split(rf"^{name}: ", str(error), flags=re.MULTILINE)[-1]
    return f"{name}: {' '.join(message.split()) or 'no message'}"


def serve(worker) -> None:
    """Answer requests with `worker`'s methods until stdin ends; then end the process."""
    replies = claim_stdout()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = getattr(worker, request.pop("command"))(**request)
        except Exception as error:
            traceback.print_exc()
            reply = {"error": one_line(error)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
    # The frameworks' own teardown may crash, and nothing is left to save.
    os._exit(0)


def main() -> None:
    """Serve the benchmark."""
    serve(Worker())
