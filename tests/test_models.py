"""Real GluonCV networks: how they partition, and MXNet's answer as the reference."""

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("mxnet", reason="MXNet 1.9.1 needs Python 3.10 or 3.11")

import tvm
from tvm import relay
from tvm.contrib import graph_executor

from tvm_dnnl_byoc import partition_for_dnnl, profile
from tvm_dnnl_byoc.bench.models import prepare_gluoncv, to_relay

RESNETS = [f"resnet{depth}_{v}" for depth in (18, 34, 50, 101, 152) for v in ("v1", "v1b", "v2")]
VGGS = [f"vgg{depth}{bn}" for depth in (11, 13, 16, 19) for bn in ("", "_bn")]
MODELS = [*RESNETS, *VGGS, "inceptionv3"]
# Every kind of block once; the others differ in depth. All of them: pytest --all-models
QUICK = ["resnet18_v1", "resnet50_v1b", "resnet50_v2", "vgg11_bn", "vgg16", "inceptionv3"]

INSIDE = {
    "nn.conv2d", "nn.dense", "nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d",
    "nn.batch_norm", "nn.relu", "add", "concatenate",
}  # fmt: skip


def pytest_generate_tests(metafunc):
    if "model" in metafunc.fixturenames:
        everything = metafunc.config.getoption("--all-models")
        metafunc.parametrize("model", MODELS if everything else QUICK)


def calls_outside(mod):
    """Return the names of the operators that were left to TVM."""
    names = Counter()

    def visit(expr):
        if isinstance(expr, relay.Call) and isinstance(expr.op, tvm.ir.Op):
            names[expr.op.name] += 1

    relay.analysis.post_order_visit(mod["main"], visit)
    return names


def test_model_runs_in_few_regions_and_agrees_with_mxnet(model):
    prepared = prepare_gluoncv(model)
    mod, params = to_relay(prepared)
    partitioned = partition_for_dnnl(mod, params)
    assert not INSIDE & set(calls_outside(partitioned))

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
