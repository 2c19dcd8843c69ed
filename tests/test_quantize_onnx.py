"""Quantized modules of Relay's as files for other runtimes."""

import numpy as np
import pytest
from helpers import build, const, module, random, run, var
from quantized_network import DATA, network, outputs
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl, quantize


def test_onnx():
    """ONNX Runtime's answers from the file are as near to f32 as ours, and nearer to ours."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="its wheels end with Python 3.11 here")
    recipe = quantize.calibrate(network(), {}, DATA, observer="minmax")
    converted = quantize.convert(network(), {}, recipe)
    model = quantize.to_onnx(converted)
    assert [value.name for value in model.graph.input] == ["x"]
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    _, ours = outputs(converted)
    for inputs, our in zip(DATA, ours, strict=True):
        (theirs,) = session.run(None, inputs)
        assert np.abs(theirs - our).max() < 0.02 * np.abs(our).max()
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("Conv") == 7
    assert kinds.count("Gemm") == 1
    assert all(len(n.input) == 3 for n in model.graph.node if n.op_type == "Conv")  # with a bias


def test_onnx_of_dense_of_rank_3():
    """Which canonical form makes of one between reshapes."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="its wheels end with Python 3.11 here")
    y = relay.nn.dense(relay.reshape(var("x", 2, 5, 24), [10, 24]), const(7, 24))
    mod = module(relay.nn.relu(relay.add(relay.reshape(y, [2, 5, 7]), const(7))))
    data = [{"x": random(2, 5, 24, seed=seed)} for seed in range(3)]
    converted = quantize.convert(mod, {}, quantize.calibrate(mod, {}, data, observer="minmax"))
    model = quantize.to_onnx(converted)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for inputs in data:
        (theirs,) = session.run(None, inputs)
        (our,) = run(build(partition_for_dnnl(converted)), inputs)
        assert np.abs(theirs - our).max() < 0.02 * np.abs(our).max()
    assert "MatMul" in [node.op_type for node in model.graph.node]


def test_onnx_of_what_it_does_not_know():
    mod = relay.transform.InferType()(module(relay.reverse(var("x", 2, 3), -1)))
    with pytest.raises(ValueError, match=r"to_onnx: expected one of add, .*, got reverse"):
        quantize.to_onnx(mod)
