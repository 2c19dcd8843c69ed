"""The node tests that ship inside the onnx package, on plain TVM and partitioned."""

import functools

import numpy as np
import onnx
from front import (
    assert_close,
    build_plainly,
    fingerprint,
    from_onnx,
    offloaded,
    run,
)
from onnx import numpy_helper

from tvm_dnnl_byoc import partition_for_dnnl


@functools.cache
def _cases():
    """Return all node tests by name: newer releases of onnx ship what makes them, not files."""
    from onnx.backend.test.case.node import collect_testcases

    np.random.seed(0)  # noqa: NPY002  of their data
    with np.errstate(all="ignore"):
        return {case.name: case for case in collect_testcases(None)}


def node_tests():
    """Return the names of all node tests."""
    return sorted(_cases())


def check_node_test(name):
    """Run a node test on plain TVM, and if it passes there, partitioned.

    Returns
    -------
    str
        "not convertible", "fails on TVM" or "passes".
    list of str
        The operators that were offloaded, light regions kept; of Relax one item for each region.

    Raises
    ------
    AssertionError
        If it passes on plain TVM, but partitioned does not build, or gives another answer.
    """
    try:
        mod, params, inputs, expected = _convert(name)
    except Exception:
        return "not convertible", []
    try:
        plain = run(build_plainly(mod, params), inputs)
        _assert_passes(plain, expected)
    except Exception:
        return "fails on TVM", []
    partitioned = partition_for_dnnl(mod, params, keep_light_regions=True)
    if fingerprint(partitioned) != fingerprint(mod):
        actual = run(build_plainly(partitioned, params), inputs)
        _assert_passes(actual, expected)
        numbers = [i for i, e in enumerate(plain) if not np.isnan(e).any()]
        assert_close([actual[i] for i in numbers], [plain[i] for i in numbers])
    return "passes", offloaded(partitioned)[0]


def _convert(name):
    """Return module, params, inputs and expected outputs.

    What a test gives as an input but TVM needs to know to infer shapes (axes, sizes) becomes a
    constant.
    """
    case = _cases()[name]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    arrays, expected = (list(map(np.asarray, given)) for given in case.data_sets[0])
    inputs = dict(zip((i.name for i in model.graph.input), arrays, strict=True))
    try:
        mod, params, inputs = from_onnx(model, inputs)
    except Exception:
        for input_name in [n for n, a in inputs.items() if a.dtype.kind == "i" and a.ndim < 2]:
            model.graph.initializer.append(
                numpy_helper.from_array(inputs.pop(input_name), input_name)
            )
        mod, params, inputs = from_onnx(model, inputs)
    return mod, params, inputs, expected


def _assert_passes(actual, expected):
    """Compare as onnx's own runner does."""
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape
        assert a.dtype == e.dtype
        np.testing.assert_allclose(a, e, rtol=1e-3, atol=1e-7)
