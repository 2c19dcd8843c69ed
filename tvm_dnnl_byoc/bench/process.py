"""A worker process, seen from the process that conducts it."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

REPLY_TIMEOUT_SECONDS = 3600.0

# The kernel kills without a word; the others are NumPy, C++, oneDNN, and MXNet or ONNX Runtime.
_OUT_OF_MEMORY = re.compile(
    "SIGKILL|MemoryError|bad[_ ]alloc|out of memory|failed to allocate", re.IGNORECASE
)

_PACKAGE = Path(__file__).resolve().parents[1] / "__init__.py"

# Importing this package loads our native libraries, and with them oneDNN and OpenMP. The peers must
# be measured without them, so a worker starts with the package in place but not executed; the
# backend dnnl makes up for it.
_START = """\
import sys
from importlib import import_module, util
spec = util.spec_from_file_location("tvm_dnnl_byoc", sys.argv[1])
sys.modules[spec.name] = util.module_from_spec(spec)
import_module(sys.argv[2]).main()
"""


class WorkerError(RuntimeError):
    """A worker failed at a command, crashed or did not answer."""

    @property
    def out_of_memory(self) -> bool:
        """Whether the reason reads like a lack of memory."""
        return bool(_OUT_OF_MEMORY.search(str(self)))


class WorkerProcess:
    """A fresh process that runs `worker.main`, or that of another module.

    Parameters
    ----------
    log : Path
        File that receives everything that the worker and its libraries print.
    environment : dict of str to str
        Variables set on top of this process's own.
    cores : sequence of int, optional
        Cores that the worker is bound to, from its first instruction.
    module : str
        The module whose ``main`` serves the requests.
    """

    def __init__(
        self,
        log: Path,
        environment: dict[str, str],
        cores: Sequence[int] | None = None,
        module: str = "tvm_dnnl_byoc.bench.worker",
    ):
        self.log = log
        usable = os.sched_getaffinity(0)
        # A child inherits the affinity of the thread that starts it.
        os.sched_setaffinity(0, cores or usable)
        try:
            with log.open("wb") as log_file:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _START, str(_PACKAGE), module],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log_file,
                    text=True,
                    env=os.environ | environment,
                )
        finally:
            os.sched_setaffinity(0, usable)
        with suppress(OSError):  # where memory runs out, this one is to go, not who conducts it
            Path(f"/proc/{self.pid}/oom_score_adj").write_text("900")

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def send(self, command: str, **arguments) -> None:
        """Send a request; `receive` collects the reply."""
        with suppress(BrokenPipeError):  # receive() finds the cause
            self._process.stdin.write(json.dumps({"command": command} | arguments) + "\n")
            self._process.stdin.flush()

    def receive(self, timeout: float = REPLY_TIMEOUT_SECONDS) -> dict:
        """Wait for the reply to the request sent last.

        Raises
        ------
        WorkerError
            With the reason in one line.
        """
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            self.close()
            raise WorkerError(f"no answer within {timeout:.0f} s")
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise WorkerError(self._cause_of_death())
        reply = json.loads(line)
        if "error" in reply:
            raise WorkerError(reply["error"])
        return reply

    def call(self, command: str, timeout: float = REPLY_TIMEOUT_SECONDS, **arguments) -> dict:
        """Send a request and wait for its reply, at most `timeout` seconds."""
        self.send(command, **arguments)
        return self.receive(timeout)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        with suppress(BrokenPipeError):  # closing sends what the dead worker did not read
            self._process.stdin.close()
        self._process.stdout.close()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def _cause_of_death(self) -> str:
        code = self._process.wait()
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return f"worker ended ({how}){': ' + lines[-1].strip() if lines else ''}"
