"""Compares the partitioned build of a graph with plain TVM, as closely as rounding allows."""

import os
import traceback

import numpy as np
import tvm
from graph_strategies import NAMES
from helpers import build, inputs_for, module, offloaded, run

from tvm_dnnl_byoc import partition_for_dnnl

# Relative to the scale of an output. What a program makes of rounding in its inputs comes on top.
_TOLERANCE = 1e-5
# Schedules for any processor build in half the time of those for x86, but some are wrong: that of
# grouped conv1d ignores the groups. So what fails with them is judged anew.
_TARGETS = ("llvm -keys=generic -opt-level=0", "llvm -opt-level=0")
_PERTURBATION = 1e-6
_LARGEST = 1e30
_TIMEOUT = 300  # seconds for one program

_REPRODUCER = """\
# In tests/: DNNL_BYOC_TUNE={tune} PYTHONPATH=.. python this_file.py
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
    tune = os.environ.get("DNNL_BYOC_TUNE", "all")
    return _REPRODUCER.format(source=program.source, opt_level=opt_level, tune=tune)


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
    if not opt_level:
        try:
            return _check(mod, inputs, _TARGETS[0], 0)
        except Exception:
            pass
    try:
        return _check(mod, inputs, _TARGETS[1], opt_level)
    except Untestable:
        return None


class Untestable(Exception):
    """Plain TVM does not build the graph, or not twice the same."""


def _check(mod, inputs, target, opt_level):
    def evaluate(built, opt_level):
        return run(
            build(built, target="llvm" if opt_level else target, opt_level=opt_level), inputs
        )

    try:
        plain = build(mod, target=target, opt_level=0)
        expected = run(plain, inputs)
        if opt_level:
            optimised = evaluate(mod, opt_level)
    except Exception as error:
        raise Untestable from error
    if any(np.abs(e[np.isfinite(e)]).max(initial=0) > _LARGEST for e in expected):
        raise Untestable("a sum overflows in one order, and not in another")
    change = np.random.default_rng(0)
    perturbed = [run(plain, perturb(inputs, change)) for _ in range(2)]
    if opt_level:
        perturbed.append(optimised)

    before = tvm.ir.structural_hash(mod)
    try:
        partitioned = partition_for_dnnl(mod, keep_light_regions=True)
        if tvm.ir.structural_equal(mod, partitioned):
            return []
        actual = evaluate(partitioned, opt_level)
    except Exception:
        raise Mismatch(traceback.format_exc(limit=-3)) from None
    if tvm.ir.structural_hash(mod) != before:
        raise Mismatch("the caller's module was changed")
    try:
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            compare(i, a, e, [p[i] for p in perturbed])
    except AssertionError as error:
        raise Mismatch(f"{error}\n\n{partitioned}") from None
    return offloaded(partitioned)[0]


def perturb(inputs, rng):
    return {
        name: (a * (1 + _PERTURBATION * rng.uniform(-1, 1, a.shape))).astype(a.dtype)
        if a.dtype.kind == "f"
        else a
        for name, a in inputs.items()
    }


def compare(i, actual, expected, perturbed):
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


def judge(source, opt_level):
    """Check the graph that a program's source makes; see ``check``. To be called isolated."""
    scope = dict(NAMES)
    exec(source, scope)
    return check(scope["outputs"], opt_level)
