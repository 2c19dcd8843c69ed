"""Real GluonCV networks: how they partition, and MXNet's answer as the reference."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("mxnet", reason="MXNet 1.9.1 needs Python 3.10 or 3.11")

import tvm
from tvm import relay
from tvm.contrib import graph_executor

from tvm_dnnl_byoc import partition_for_dnnl, profile
from tvm_dnnl_byoc.bench.models import prepare_gluoncv, to_relay
from tvm_dnnl_byoc.models import catalogue
from tvm_dnnl_byoc.models.check import check, operators_outside

RESNETS = [f"resnet{depth}_{v}" for depth in (18, 34, 50, 101, 152) for v in ("v1", "v1b", "v2")]
VGGS = [f"vgg{depth}{bn}" for depth in (11, 13, 16, 19) for bn in ("", "_bn")]
MODELS = [*RESNETS, *VGGS, "inceptionv3"]
# Every kind of block once; the others differ in depth. All of them: pytest --all-models
QUICK = ["resnet18_v1", "resnet50_v1b", "resnet50_v2", "vgg11_bn", "vgg16", "inceptionv3"]

INSIDE = {
    "nn.conv2d", "nn.dense", "nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d",
    "nn.batch_norm", "nn.relu", "add", "concatenate",
}  # fmt: skip


# One of each other family, some with smaller images or shorter videos than they were made for.
QUICK_ZOO = {
    "mobilenet1.0": (1, 3, 224, 224),
    "mobilenetv2_1.0": (1, 3, 96, 64),
    "mobilenetv3_small": (1, 3, 96, 64),
    "densenet121": (1, 3, 224, 224),
    "squeezenet1.1": (1, 3, 224, 224),
    "se_resnext50_32x4d": (1, 3, 96, 64),
    "yolo3_mobilenet1.0_voc": (1, 3, 128, 96),
    "fcn_resnet50_ade": (1, 3, 64, 64),
    "i3d_inceptionv1_kinetics400": (1, 3, 16, 64, 64),
    "ppocr_v2_direction": (1, 3, 48, 192),
    "torch_cnn": (1, 3, 45, 61),
    "torch_mlp": (7, 96),
}
FEW_REGIONS = {
    "mobilenet1.0", "mobilenetv2_1.0", "mobilenetv3_large", "mobilenetv3_small", "densenet121",
    "se_resnext50_32x4d", "squeezenet1.0", "squeezenet1.1", "i3d_resnet50_v1_kinetics400",
    "i3d_inceptionv1_kinetics400",
}  # fmt: skip
PARTITION_SECONDS = {"densenet121": 20, "nasnet_4_1056": 20}


def pytest_generate_tests(metafunc):
    everything = metafunc.config.getoption("--all-models")
    if "model" in metafunc.fixturenames:
        metafunc.parametrize("model", MODELS if everything else QUICK)
    if "entry" in metafunc.fixturenames:
        entries = [
            entry if everything else dataclasses.replace(entry, shape=QUICK_ZOO[entry.name])
            for entry in catalogue.ENTRIES
            if entry.name not in MODELS and (everything or entry.name in QUICK_ZOO)
        ]
        metafunc.parametrize("entry", entries, ids=lambda entry: entry.name)


def test_zoo(entry):
    found = check(entry)
    if found.status == "skipped":
        # PyTorch only: it cannot be beside GluonCV, and what ONNX needs is in the extra [test].
        pytest.skip(found.remarks[0])
    assert found.status == "ok", found.remarks
    if entry.name in FEW_REGIONS:
        assert found.regions <= 3
        assert found.share >= 0.99
    assert found.partition_seconds <= PARTITION_SECONDS.get(entry.name, np.inf)


def test_model_runs_in_few_regions_and_agrees_with_mxnet(model):
    prepared = prepare_gluoncv(model)
    mod, params = to_relay(prepared)
    partitioned = partition_for_dnnl(mod, params)
    assert not INSIDE & set(operators_outside(partitioned))

    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(partitioned, "llvm")
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    executor.set_input("data", prepared.data)
    executor.run()
    result = executor.get_output(0).numpy()
    scale = np.abs(prepared.reference).max()
    assert np.abs(result - prepared.reference).max() <= 1e-4 * scale

    plans = profile(lib)
    assert 1 <= len(plans) <= 2
    steps = [step for plan in plans.values() for step in plan["steps"]]
    assert not [step for step in steps if step["impl"].startswith("ref")]
    if model.startswith("resnet"):
        check_resnet(model, mod, steps)


def check_resnet(model, mod, steps):
    """Residual additions and relus are post-ops, and no layout changes between convolutions."""
    kinds = Counter(step["kind"] for step in steps)
    assert not {"eltwise", "binary"} & set(kinds)
    sums = [step for step in steps if "sum" in step["post_ops"]]
    additions = Counter()
    relay.analysis.post_order_visit(
        mod["main"],
        lambda e: additions.update(
            [e.op.name] if isinstance(e, relay.Call) and e.op.name == "add" else []
        ),
    )
    assert len(sums) == additions["add"] > 0
    if not model.endswith("v2"):  # where batch_norm comes between them
        assert all(step["post_ops"] == "sum+eltwise_relu" for step in sums)
    order = [step["kind"] for step in steps]
    first, last = order.index("convolution"), len(order) - order[::-1].index("convolution")
    assert "reorder" not in order[first:last]
