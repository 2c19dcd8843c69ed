import functools
import importlib.util
import os

os.environ["TOPHUB_LOCATION"] = "NONE"  # else TVM tries a download at every build
# Read when OpenMP is loaded. Threads that spin, its default, slow the tests beside other processes.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Else MXNet halves it in its process, where results may then have other bits than in a fresh one.
os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
# What is measured differs from run to run; tests of what oneDNN runs must not. Those of the
# measurement itself ask the engine for it.
os.environ["DNNL_BYOC_TUNE"] = "0"

import pytest

# One environment has one TVM: 0.19 runs all but relax/, apache-tvm what is in relax/ and both/.
HAS_RELAY = importlib.util.find_spec("tvm.relay") is not None
collect_ignore_glob = ["relax/*"] if HAS_RELAY else ["test_*.py"]


@pytest.fixture(scope="session", autouse=HAS_RELAY)
def _cached_libinfo():
    """TVM evaluates it anew for every shape that it lowers: a fifth of the time of small builds."""
    from tvm.relay.backend import te_compiler

    original = te_compiler.libinfo
    te_compiler.libinfo = functools.cache(original)
    yield
    te_compiler.libinfo = original


def pytest_addoption(parser):
    parser.addoption("--all-models", action="store_true", help="run test_models.py on all models")
    parser.addoption(
        "--all-onnx-nodes",
        action="store_true",
        help="run test_onnx_conformance.py on all node tests of the onnx package",
    )
