"""The node tests that ship inside the onnx package, on plain TVM and partitioned."""

from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import tvm
from helpers import assert_close, build_plainly, offloaded, run
from onnx import numpy_helper
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl

_NODES = Path(onnx.backend.test.__file__).parent / "data" / "node"


def node_tests():
    """Return the names of all node tests that come with data."""
    return sorted(path.parent.name for path in _NODES.glob("*/model.onnx"))


def check_node_test(name):
    """Run a node test on plain TVM, and if it passes there, partitioned.

    Returns
    -------
    str
        "not convertible", "fails on TVM" or "passes".
    list of str
        The operators that were offloaded, light regions kept.

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
    if not tvm.ir.structural_equal(partitioned, mod):
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
    model = onnx.load(_NODES / name / "model.onnx")
    inputs = dict(zip((i.name for i in model.graph.input), _tensors(name, "input"), strict=True))
    expected = _tensors(name, "output")
    try:
        mod, params = _from_onnx(model, inputs)
    except Exception:
        for input_name in [n for n, a in inputs.items() if a.dtype.kind == "i" and a.ndim < 2]:
            model.graph.initializer.append(
                numpy_helper.from_array(inputs.pop(input_name), input_name)
            )
        mod, params = _from_onnx(model, inputs)
    return mod, params, inputs, expected


def _from_onnx(model, inputs):
    shapes = {name: array.shape for name, array in inputs.items()}
    dtypes = {name: str(array.dtype) for name, array in inputs.items()}
    mod, params = relay.frontend.from_onnx(model, shapes, dtypes, freeze_params=True)
    mod = relay.transform.InferType()(mod)
    results = mod["main"].ret_type
    for result in results.fields if isinstance(results, tvm.ir.TupleType) else [results]:
        [int(d) for d in result.shape]  # raises if a size depends on data
    return mod, params


def _tensors(name, kind):
    files = sorted(
        (_NODES / name / "test_data_set_0").glob(f"{kind}_*.pb"),
        key=lambda path: int(path.stem.split("_")[1]),
    )
    return [numpy_helper.to_array(onnx.load_tensor(path)) for path in files]


def _assert_passes(actual, expected):
    """Compare as onnx's own runner does."""
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape
        assert a.dtype == e.dtype
        np.testing.assert_allclose(a, e, rtol=1e-3, atol=1e-7)
