"""Judges random programs: the partitioned build against plain TVM, in a process of its own.

The process under test may crash; that is then a result like any other, and Hypothesis shrinks it
as it shrinks a wrong number.
"""

import functools
import multiprocessing
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
import tvm
from graph_strategies import NAMES
from helpers import build, build_plainly, inputs_for, module, offloaded, run
from tvm.relay.backend import te_compiler

from tvm_dnnl_byoc import partition_for_dnnl

# Relative to the scale of an output. What a program makes of rounding in its inputs comes on top.
_TOLERANCE = 1e-5
_PERTURBATION = 1e-6
_TIMEOUT = 300  # seconds for one program

_REPRODUCER = """\
# In tests/: PYTHONPATH=.. python this_file.py
from differential import check
from helpers import const, var
from tvm import relay

{source}
print(check(outputs, opt_level={opt_level}))
"""


class Mismatch(AssertionError):
    """The partitioned module does not do what plain TVM does."""


def reproducer(program, opt_level):
    """Return a Python program that a person can run in ``tests/``."""
    return _REPRODUCER.format(source=program.source, opt_level=opt_level)


def check(outputs, opt_level=0):
    """Compare a graph's partitioned build, light regions kept, with plain TVM.

    Returns
    -------
    list of str or None
        The operators that were offloaded; None if plain TVM does not build or run the graph, or
        if its results say nothing: they change beyond measure with the last bit of an input.

    Raises
    ------
    Mismatch
        If partitioning or the build raises, or if a result differs.
    """
    mod = module(*outputs)
    inputs = inputs_for(mod)
    try:
        plain = build_plainly(mod)
        expected = run(plain, inputs)
    except Exception:
        return None
    change = np.random.default_rng(0)
    perturbed = [run(plain, _perturb(inputs, change)) for _ in range(2)]

    before = tvm.ir.structural_hash(mod)
    try:
        partitioned = partition_for_dnnl(mod, keep_light_regions=True)
        lib = build(partitioned, opt_level=3) if opt_level else build_plainly(partitioned)
        actual = run(lib, inputs)
    except Exception:
        if opt_level and _fails(lambda: run(build(mod, opt_level=3), inputs)):
            return None  # TVM's own fault
        raise Mismatch(traceback.format_exc(limit=-3)) from None
    if tvm.ir.structural_hash(mod) != before:
        raise Mismatch("the caller's module was changed")
    again = run(lib, inputs)
    try:
        for i, (a, b, e) in enumerate(zip(actual, again, expected, strict=True)):
            _compare(i, a, e, [p[i] for p in perturbed])
            np.testing.assert_array_equal(a, b, f"output {i}: another result in the second run")
    except AssertionError as error:
        if opt_level and not np.allclose(run(build(mod, opt_level=3), inputs)[i], e, 1e-4, 1e-4):
            return None  # TVM's own fault
        raise Mismatch(f"{error}\n\n{partitioned}") from None
    return offloaded(partitioned)[0]


def _fails(action):
    try:
        action()
    except Exception:
        return True
    return False


def _perturb(inputs, rng):
    return {
        name: (a * (1 + _PERTURBATION * rng.uniform(-1, 1, a.shape))).astype(a.dtype)
        if a.dtype.kind == "f"
        else a
        for name, a in inputs.items()
    }


def _compare(i, actual, expected, perturbed):
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        raise Mismatch(
            f"output {i}: expected {expected.dtype} {expected.shape}, "
            f"got {actual.dtype} {actual.shape}"
        )
    if expected.dtype.kind != "f":
        if all(np.array_equal(expected, p) for p in perturbed):
            np.testing.assert_array_equal(actual, expected, f"output {i}")
        return
    for test in (np.isnan, np.isposinf, np.isneginf):
        if any((test(expected) != test(p)).any() for p in perturbed):
            return
        np.testing.assert_array_equal(test(actual), test(expected), f"output {i}: {test.__name__}")
    finite = np.isfinite(expected)
    if not finite.any():
        return
    scale = np.abs(expected[finite]).max() or 1.0
    change = max(np.abs(p[finite] - expected[finite]).max() for p in perturbed) / scale
    np.testing.assert_allclose(
        actual[finite] / scale,
        expected[finite] / scale,
        rtol=0,
        atol=_TOLERANCE + 10 * change,
        err_msg=f"output {i}, scale {scale}",
    )


class Judge:
    """Runs ``check`` in another process, and in a new one after a crash."""

    def __init__(self):
        self.counts = Counter()
        self.operators = Counter()
        self._process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self._process:
            self._process.kill()
            self._process.join()
            self._process = None

    def __call__(self, program, opt_level=0):
        """Raise Mismatch if the program fails, or if its process dies or hangs."""
        if self._process is None:
            self._start()
        self._pipe.send((program.source, opt_level))
        if not self._pipe.poll(_TIMEOUT):
            self.stop()
            raise Mismatch(f"no answer within {_TIMEOUT} s")
        try:
            kind, value = self._pipe.recv()
        except EOFError:
            self._process.join()
            code, log = self._process.exitcode, Path(self._log.name).read_text(errors="replace")
            self._process = None
            raise Mismatch(f"the process died with exit code {code}:\n{log[-2000:]}") from None
        if kind == "failed":
            raise Mismatch(value)
        self.counts["graphs"] += 1
        if value is None:
            self.counts["not for TVM"] += 1
            return
        self.counts["offloaded"] += bool(value)
        self.operators.update(value)

    def _start(self):
        self._log = tempfile.NamedTemporaryFile(suffix=".log")
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._log.name), daemon=True)
        self._process.start()
        theirs.close()


def _serve(pipe, log):
    import os

    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    # TVM evaluates it anew for every shape that it lowers.
    te_compiler.libinfo = functools.cache(te_compiler.libinfo)
    while True:
        try:
            source, opt_level = pipe.recv()
        except EOFError:
            return
        scope = dict(NAMES)
        exec(source, scope)
        try:
            pipe.send(("passed", check(scope["outputs"], opt_level)))
        except Mismatch as error:
            pipe.send(("failed", str(error)))
