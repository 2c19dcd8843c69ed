"""Whole networks of torch: how many regions, and that the numbers are torch's."""

import numpy as np
import pytest
from relax_helpers import build, check, ops_left, random, run, steps

from tvm_dnnl_byoc import partition_for_dnnl, profile

torch = pytest.importorskip("torch", reason="torch is not installed")
from tvm.relax.frontend.torch import from_exported_program, from_fx  # noqa: E402

from tvm_dnnl_byoc.models.torch_networks import Bert, mobilenet, resnet50  # noqa: E402


def exported(model, x):
    with torch.no_grad():
        program = torch.export.export(model, (x,))
    return from_exported_program(program, keep_params_as_input=False)


def compare(model, mod, x, tolerance=1e-5):
    """Return the partitioned module and its executable; its outputs must be torch's."""
    partitioned = partition_for_dnnl(mod)
    executable = build(partitioned)
    with torch.no_grad():
        expected = model(x)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for actual, e in zip(run(executable, [x.numpy()]), expected, strict=True):
        e = e.numpy()
        np.testing.assert_allclose(actual, e, rtol=0, atol=tolerance * np.abs(e).max())
    return partitioned, executable


def test_resnet50():
    torch.manual_seed(0)
    model, x = resnet50(), torch.randn(1, 3, 64, 64)
    partitioned, executable = compare(model, exported(model, x), x)
    assert len(profile(executable)) == 1
    assert ops_left(partitioned) == ["call_dps_packed"]
    ran = steps(executable)
    assert sum(step.startswith("convolution") for step in ran) == 53
    assert ran.count("convolution:sum+eltwise_relu") == 16
    assert not any("batch_normalization" in step for step in ran)


def test_mobilenet():
    torch.manual_seed(0)
    model, x = mobilenet(), torch.randn(2, 3, 40, 32)
    partitioned, executable = compare(model, exported(model, x), x)
    assert len(profile(executable)) == 1
    assert ops_left(partitioned) == ["call_dps_packed"]
    ran = steps(executable)
    assert sum("eltwise_hardswish" in step for step in ran) == 7
    assert "convolution:eltwise_hardsigmoid" in ran


def test_torch_fx():
    torch.manual_seed(0)
    # Without a batch norm, which this importer of TVM's leaves in training.
    model = torch.nn.Sequential(
        *(torch.nn.Conv2d(3, 8, 3), torch.nn.Hardswish()),
        *(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 5)),
    )
    x = torch.randn(1, 3, 20, 16)
    mod = from_fx(torch.fx.symbolic_trace(model), [((1, 3, 20, 16), "float32")])
    _, executable = compare(model, mod, x)
    assert steps(executable) == ["convolution:eltwise_hardswish", "pooling", "inner_product"]


def test_onnx():
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    from tvm.relax.frontend.onnx import from_onnx

    node = onnx.helper.make_node
    arrays = {"w": random(8, 3, 3, 3), "b": random(8), "m": random(14, 5), "n": random(5)}
    nodes = [
        node("Conv", ["x", "w", "b"], ["conv"], pads=[1, 1, 1, 1]),
        node("LeakyRelu", ["conv"], ["leaky"], alpha=0.1),
        node("MatMul", ["leaky", "m"], ["product"]),
        node("Add", ["product", "n"], ["sum"]),
        node("Gelu", ["sum"], ["y"]),
    ]
    tensor = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        *(nodes, "graph", [tensor("x", 1, (2, 3, 9, 14))], [tensor("y", 1, (2, 8, 9, 5))]),
        [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    opset = [onnx.helper.make_opsetid("", 20)]
    mod = from_onnx(onnx.helper.make_model(graph, opset_imports=opset))
    assert check(mod) == ["convolution:eltwise_relu", "inner_product:eltwise_gelu_erf"]


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_bert(attention):
    pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(0)
    config = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 256}
    model = Bert(
        num_hidden_layers=2, vocab_size=100, attn_implementation=attention, **config
    ).eval()
    ids = torch.randint(0, 100, (1, 24))
    partitioned, executable = compare(model, exported(model, ids), ids)
    assert len(profile(executable)) <= 3
    assert not {"matmul", "nn.softmax", "nn.layer_norm", "nn.gelu"} & set(ops_left(partitioned))
    ran = steps(executable)
    assert ran.count("inner_product:eltwise_gelu_erf") == 2
    assert sum(step.startswith("softmax") for step in ran) == 2
    assert sum(step.startswith("layer_normalization") for step in ran) == 5
