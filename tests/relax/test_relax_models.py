"""Whole networks of torch: how many regions, and that the numbers are torch's."""

import numpy as np
import pytest
from relax_helpers import assert_close, build, check, inputs_for, ops_left, random, run, steps

from tvm_dnnl_byoc import explain, partition_for_dnnl, profile

torch = pytest.importorskip("torch", reason="torch is not installed")
from tvm import relax  # noqa: E402
from tvm.relax.frontend.torch import from_exported_program, from_fx  # noqa: E402

from tvm_dnnl_byoc.models import catalogue  # noqa: E402
from tvm_dnnl_byoc.models.check import check as check_model  # noqa: E402
from tvm_dnnl_byoc.models.torch_networks import (  # noqa: E402
    Bert,
    mobilenet,
    randomised,
    resnet50,
)


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
    mod = exported(model, x)
    partitioned, executable = compare(model, mod, x)
    assert len(profile(executable)) == 1
    assert ops_left(partitioned) == ["call_dps_packed"]
    ran = steps(executable)
    assert sum(step.startswith("convolution") for step in ran) == 53
    assert ran.count("convolution:sum+eltwise_relu") == 16
    assert not any("batch_normalization" in step for step in ran)
    report = explain(mod)
    (region,) = report.regions
    assert report.share == 1
    assert region.operators == sum(kind.count for kind in report.operators)


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
    """This importer of TVM's leaves batch norms in training; a pass of TVM's does not."""
    torch.manual_seed(0)
    model = randomised(
        torch.nn.Sequential(
            *(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Hardswish()),
            *(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 5)),
        )
    )
    x = torch.randn(1, 3, 20, 16)
    mod = from_fx(torch.fx.symbolic_trace(model), [((1, 3, 20, 16), "float32")])
    assert "nn.batch_norm" in ops_left(partition_for_dnnl(mod)), "it says that it is in training"
    mod = relax.transform.DecomposeOpsForInference()(mod)
    _, executable = compare(model, mod, x)
    assert steps(executable) == ["convolution:eltwise_hardswish", "pooling", "inner_product"]


def onnx_network(batch):
    """Return a model of ONNX with a convolution, a product, and a GELU, as a Relax module."""
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
        *(nodes, "graph", [tensor("x", 1, (batch, 3, 9, 14))], [tensor("y", 1, (batch, 8, 9, 5))]),
        [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    opset = [onnx.helper.make_opsetid("", 20)]
    return from_onnx(onnx.helper.make_model(graph, opset_imports=opset))


def test_onnx():
    mod = onnx_network(2)
    assert check(mod) == ["convolution:eltwise_relu", "inner_product:eltwise_gelu_erf"]


def test_onnx_with_a_dynamic_axis():
    mod = onnx_network("batch")
    partitioned = partition_for_dnnl(mod)
    assert ops_left(partitioned) == ["call_dps_packed"]
    executable, plain = build(partitioned), build(mod)
    for batch in (8, 8, 1, 8):
        inputs = inputs_for(mod, batch=batch)
        assert_close(run(executable, inputs), run(plain, inputs))
    (plan,) = profile(executable).values()
    assert (plan["plans"], plan["compiled"]) == (2, 2)


def bert(attention):
    """Return a BERT of two layers."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(0)
    config = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 256}
    sizes = {"num_hidden_layers": 2, "vocab_size": 100}
    return Bert(attn_implementation=attention, **sizes, **config).eval()


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_bert(attention):
    model = bert(attention)
    ids = torch.randint(0, 100, (1, 24))
    mod = exported(model, ids)
    partitioned, executable = compare(model, mod, ids)
    assert len(profile(executable)) == 1
    assert ops_left(partitioned) == ["astype", "call_dps_packed"], "the indices"
    ran = steps(executable)
    assert ran.count("gather") == 1, "positions and types are constants"
    assert ran.count("inner_product:eltwise_gelu_erf") == 2
    assert sum(step.startswith("softmax") for step in ran) == 2
    assert sum(step.startswith("layer_normalization") for step in ran) == 5
    report = explain(mod)
    assert report.share == 1
    assert len(report.regions) == len(profile(executable))


class Hidden(torch.nn.Module):
    """A model of Hugging Face's, to its last hidden states."""

    def __init__(self, model):
        super().__init__()
        self.model = model.eval()

    def forward(self, x):
        return self.model(x, return_dict=False)[0]


def gpt2(transformers):
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100}
    tokens = {"bos_token_id": 0, "eos_token_id": 1}
    config = transformers.GPT2Config(
        use_cache=False, attn_implementation="eager", **sizes, **tokens
    )
    return transformers.GPT2Model(config)


def llama(transformers):
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 100}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return transformers.LlamaModel(transformers.LlamaConfig(use_cache=False, **sizes, **heads))


def vit(transformers):
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 96}
    heads = {"num_attention_heads": 4}
    return transformers.ViTModel(
        transformers.ViTConfig(image_size=32, patch_size=8, **sizes, **heads)
    )


def swin(transformers):
    sizes = {"embed_dim": 24, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
    return transformers.SwinModel(transformers.SwinConfig(image_size=64, patch_size=4, **sizes))


# By name: how many heavy steps, and the operators that stay besides those of integers.
TRANSFORMERS = {
    "gpt2": (gpt2, 2 * (4 + 2), set()),
    "llama": (llama, 2 * (7 + 2), {"multiply", "concat", "sin", "cos"}),
    "vit": (vit, 1 + 2 * (6 + 2), set()),
    "swin": (swin, 1 + 4 * (6 + 2) + 1, set()),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_other_transformers(name):
    """Masks of positions are constants; TVM alone compiles neither GPT-2 nor Llama."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    make, heavy, left = TRANSFORMERS[name]
    torch.manual_seed(0)
    model = Hidden(make(transformers))
    images = {"vit": (2, 3, 32, 32), "swin": (2, 3, 64, 64)}
    x = torch.randn(*images[name]) if name in images else torch.randint(0, 100, (2, 24))
    partitioned, executable = compare(model, exported(model, x), x)
    assert len(profile(executable)) == 1
    of_integers = {"reshape", "astype", "arange", "add", "expand_dims"}
    assert set(ops_left(partitioned)) - of_integers == {"call_dps_packed", *left}
    kinds = [step.split(":")[0] for step in steps(executable)]
    assert sum(kind in ("convolution", "inner_product", "matmul") for kind in kinds) == heavy


def check_torch(model, example, dynamic_shapes, inputs):
    """Export with symbolic sizes, compare with torch; return the module, the executable."""
    with torch.no_grad():
        program = torch.export.export(model, (example,), dynamic_shapes=(dynamic_shapes,))
    partitioned = partition_for_dnnl(from_exported_program(program, keep_params_as_input=False))
    executable = build(partitioned)
    for x in inputs:
        with torch.no_grad():
            expected = model(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        assert_close(run(executable, [x.numpy()]), [e.numpy() for e in expected])
    return partitioned, executable


@pytest.mark.parametrize("name", ["mobilenet", "resnet50", "mlp"])
def test_a_dynamic_batch(name):
    torch.manual_seed(0)
    layers = (torch.nn.Linear(40, 24), torch.nn.GELU(), torch.nn.Linear(24, 5))
    networks = {
        "mobilenet": (mobilenet, (3, 64, 40)),
        "resnet50": (resnet50, (3, 64, 40)),
        "mlp": (lambda: torch.nn.Sequential(*layers).eval(), (40,)),
    }
    make, shape = networks[name]
    model = make()
    inputs = [torch.randn(batch, *shape) for batch in (8, 8, 1, 8)]
    partitioned, executable = check_torch(
        model, inputs[0], {0: torch.export.Dim("batch", max=64)}, inputs
    )
    assert ops_left(partitioned) == ["call_dps_packed"]
    (plan,) = profile(executable).values()
    assert (plan["plans"], plan["compiled"]) == (2, 2)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_bert_of_any_length(attention):
    """Plain TVM cannot compile it: it has no code for a sum of an unknown shape."""
    model = bert(attention)
    batch, length = torch.export.Dim("batch", max=16), torch.export.Dim("length", max=128)
    inputs = [torch.randint(0, 100, size) for size in ((2, 24), (1, 5), (3, 128), (2, 24))]
    partitioned, executable = check_torch(model, inputs[0], {0: batch, 1: length}, inputs)
    left = set(ops_left(partitioned))
    assert not {"matmul", "nn.softmax", "nn.layer_norm", "nn.gelu", "tanh", "take", "where"} & left
    (plan,) = profile(executable).values()
    assert (plan["plans"], plan["compiled"]) == (3, 3)


@pytest.mark.parametrize(
    "entry",
    [
        catalogue.Entry("torch_cnn", "torch", (1, 3, 45, 61), "torch"),
        catalogue.find("torch_mlp"),
        catalogue.Entry("torch_mobilenet", "torch", (1, 3, 32, 32), "torch"),
    ],
    ids=lambda entry: entry.name,
)
def test_the_check_of_models(entry):
    found = check_model(entry)
    assert found.status == "ok", found.remarks
    assert (found.regions, found.share, found.left) == (1, 1.0, {})
    assert found.max_error < 1e-5


def test_the_check_of_models_that_only_relay_reads():
    found = check_model(catalogue.find("resnet18_v1"))
    assert found.status == "skipped"
    assert "TVM 0.19 is not installed" in found.remarks[0]
