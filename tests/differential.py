"""Compares the partitioned build of a graph with plain TVM, as closely as rounding allows.

For the graphs of either TVM; ``opt_level`` is Relay's, there is none under Relax.
"""

import os
import traceback

import numpy as np
from front import (
    any_size,
    build,
    build_dynamic,
    build_plainly,
    fingerprint,
    inputs_for,
    module,
    offloaded,
    run,
)
from graph_strategies import evaluate

from tvm_dnnl_byoc import partition_for_dnnl

# Relative to the scale of an output. What a program makes of rounding in its inputs comes on top.
_TOLERANCE = 1e-5
# Schedules for any processor build in half the time of those for x86, but some are wrong: that of
# grouped conv1d ignores the groups. So what fails with them is judged anew.
_TARGETS = ("llvm -keys=generic -opt-level=0", "llvm -opt-level=0")
_PERTURBATION = 1e-6
_LARGEST = 1e30
_TIMEOUT = 300  # seconds for one program

DYNAMIC = "dynamic"
"""In the place of an ``opt_level``: the batch is a size that only a run knows."""
_BATCHES = (3, 1, 3)
# TVM 0.19's VM cannot be compiled with them then, without us either: the process dies.
_ENDS_THE_PROCESS = ("nn.group_norm",)

_REPRODUCER = """\
# In tests/: DNNL_BYOC_TUNE={tune} PYTHONPATH=.. python this_file.py
from differential import judge

source = '''\
{source}'''
print(judge(source, {opt_level!r}))
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
    def results(built, opt_level):
        return run(
            build(built, target="llvm" if opt_level else target, opt_level=opt_level), inputs
        )

    try:
        plain = build(mod, target=target, opt_level=0)
        expected = run(plain, inputs)
        if opt_level:
            optimised = results(mod, opt_level)
    except Exception as error:
        raise Untestable from error
    if any(np.abs(e[np.isfinite(e)]).max(initial=0) > _LARGEST for e in expected):
        raise Untestable("a sum overflows in one order, and not in another")
    change = np.random.default_rng(0)
    perturbed = [run(plain, perturb(inputs, change)) for _ in range(2)]
    if opt_level:
        perturbed.append(optimised)

    try:
        partitioned = _partitioned(mod)
        if fingerprint(mod) == fingerprint(partitioned):
            return []
        actual = results(partitioned, opt_level)
    except Exception:
        raise Mismatch(traceback.format_exc(limit=-3)) from None
    _compare_all(actual, expected, perturbed, partitioned)
    return offloaded(partitioned)[0]


def _partitioned(mod):
    before = fingerprint(mod)
    partitioned = partition_for_dnnl(mod, keep_light_regions=True)
    if fingerprint(mod) != before:
        raise Mismatch("the caller's module was changed")
    return partitioned


def _compare_all(actual, expected, perturbed, partitioned):
    try:
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            compare(i, a, e, [p[i] for p in perturbed])
    except AssertionError as error:
        raise Mismatch(f"{error}\n\n{partitioned}") from None


def check_dynamic(source):
    """Compare a partitioned graph of any batch with plain TVM's for each of some batches.

    Returns
    -------
    list of str or None
        As of `check`; None also if plain TVM does not build the graph for any batch either.

    Raises
    ------
    Mismatch
    """
    if any(name in source for name in _ENDS_THE_PROCESS):
        return None
    references = {}
    try:
        mod = module(*evaluate(source, any_size()))
        for batch in _BATCHES:
            plain = module(*evaluate(source, batch))
            inputs, built = inputs_for(plain), build_plainly(plain)
            expected = run(built, inputs)
            if not all((np.abs(e) <= _LARGEST).all() for e in expected):  # nor if it is NaN
                return None
            change = np.random.default_rng(0)
            perturbed = [run(built, perturb(inputs, change)) for _ in range(2)]
            references[batch] = inputs, expected, perturbed
    except Exception:
        return None
    partitioned = _partitioned(mod)
    if fingerprint(mod) == fingerprint(partitioned):
        return []
    try:
        function = build_dynamic(partitioned)
        results = [function(references[batch][0]) for batch in _BATCHES]
    except Exception:
        error = traceback.format_exc(limit=-3)
        if not _runs_plainly(mod, references):
            return None
        raise Mismatch(error) from None
    for batch, actual in zip(_BATCHES, results, strict=True):
        _compare_all(actual, *references[batch][1:], partitioned)
    return offloaded(partitioned)[0]


def _runs_plainly(mod, references):
    try:
        function = build_dynamic(mod)
        for inputs, *_ in references.values():
            function(inputs)
    except Exception:
        return False
    return True


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
    if opt_level == DYNAMIC:
        return check_dynamic(source)
    return check(evaluate(source), opt_level)
