"""Calls a function in another process, which may crash."""

import functools
import importlib.util
import multiprocessing
import os
import tempfile
import threading
from pathlib import Path

_TIMEOUT = 300  # seconds for one call


class Crashed(AssertionError):
    """The process died or hung."""


def die_with_parent():
    """End this process, whatever it does, when the one that started it is gone."""

    def watch():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Isolated:
    """Calls ``function`` in a process of its own, in a new one after a crash.

    The function must be importable, and its arguments and result must survive pickling. What it
    raises is raised here. Use it as a context manager, which ends the process.
    """

    def __init__(self, function):
        self._function = function
        self._process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop()

    def __call__(self, *args):
        if self._process is None:
            self._start()
        self._pipe.send(args)
        if not self._pipe.poll(_TIMEOUT):
            self._stop()
            raise Crashed(f"no answer within {_TIMEOUT} s")
        try:
            result, error = self._pipe.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            self._process = None
            log = Path(self._log.name).read_text(errors="replace")[-2000:]
            raise Crashed(f"the process died with exit code {code}:\n{log}") from None
        if error:
            raise error
        return result

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self._log = tempfile.NamedTemporaryFile(suffix=".log")  # noqa: SIM115
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(self._function, theirs, self._log.name), daemon=True
        )
        self._process.start()
        theirs.close()

    def _stop(self):
        if self._process:
            self._process.kill()
            self._process.join()
            self._process = None


def _serve(function, pipe, log):
    die_with_parent()
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    if importlib.util.find_spec("tvm.relay"):
        from tvm.relay.backend import te_compiler

        # TVM evaluates it anew for every shape that it lowers.
        te_compiler.libinfo = functools.cache(te_compiler.libinfo)
    while True:
        try:
            args = pipe.recv()
        except EOFError:
            return
        try:
            answer = function(*args), None
        except Exception as error:
            answer = None, AssertionError(str(error))
        pipe.send(answer)
