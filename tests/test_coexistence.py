"""Beside MXNet and PyTorch, which bring oneDNNs of their own into the process."""

import importlib.util

import pytest
from helpers import run_python

OURS = """
import tvm, tvm_dnnl_byoc
from tvm import relay

def ours(x, w):
    from tvm.contrib import graph_executor
    y = relay.nn.conv2d(
        relay.var("x", shape=x.shape), relay.const(w), channels=w.shape[0], kernel_size=w.shape[2:]
    )
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(y), y))
    mod = tvm_dnnl_byoc.partition_for_dnnl(mod)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm")
    (region,) = tvm_dnnl_byoc.profile(lib).values()
    assert "convolution" in [step["kind"] for step in region["steps"]]
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    executor.set_input("x", x)
    executor.run()
    return executor.get_output(0).numpy()
"""

MXNET = """
import mxnet

def theirs(x, w):
    data, weights = mxnet.nd.array(x), mxnet.nd.array(w)
    y = mxnet.nd.Convolution(data, weights, kernel=w.shape[2:], num_filter=w.shape[0], no_bias=True)
    return y.asnumpy()
"""

TORCH = """
import torch

def theirs(x, w):
    return torch.nn.functional.conv2d(torch.from_numpy(x), torch.from_numpy(w)).numpy()
"""

CHECK = """
import numpy as np

rng = np.random.default_rng(0)
x = rng.standard_normal((2, 33, 17, 14)).astype("float32")
w = rng.standard_normal((48, 33, 3, 3)).astype("float32")
windows = np.lib.stride_tricks.sliding_window_view(x.astype("float64"), (3, 3), axis=(2, 3))
expected = np.einsum("nihwkl,oikl->nohw", windows, w)
for _ in range(3):
    for convolve in ORDER:
        error = np.abs(convolve(x, w) - expected).max() / np.abs(expected).max()
        assert error < 1e-5, (convolve.__name__, error)
"""

LIBRARIES = {"mxnet": MXNET, "torch": TORCH}


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("runs_first", ["ours", "theirs"])
def test_convolutions_in_one_process(name, first, runs_first):
    """In both orders of importing, and in both orders of first running."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} not installed")
    theirs = LIBRARIES[name]
    imports = OURS + theirs if first == "ours" else theirs + OURS
    order = "(ours, theirs)" if runs_first == "ours" else "(theirs, ours)"
    process = run_python(imports + CHECK.replace("ORDER", order), TOPHUB_LOCATION="NONE")
    assert process.returncode == 0, process.stderr
