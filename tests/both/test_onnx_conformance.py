"""What the node tests of the onnx package expect; scripts/check_onnx_nodes.py counts them all."""

import pytest
from isolation import Isolated

pytest.importorskip("onnx", reason="onnx is not installed")
from onnx_nodes import check_node_test, node_tests

# Beginnings of names. The rest takes minutes, and most of it is never offloaded.
_SELECTED = (
    *("test_averagepool", "test_basic_conv", "test_batchnorm", "test_conv_", "test_convtranspose"),
    *("test_gemm", "test_globalaverage", "test_globalmax", "test_hardsigmoid", "test_hardswish"),
    *("test_instancenorm", "test_lrn", "test_matmul_", "test_maxpool", "test_mish", "test_prelu"),
    "test_softmax_",
)


@pytest.fixture(scope="module")
def isolated():
    with Isolated(check_node_test) as function:
        yield function


def pytest_generate_tests(metafunc):
    if "node_test" in metafunc.fixturenames:
        everything = metafunc.config.getoption("--all-onnx-nodes")
        names = [n for n in node_tests() if everything or n.startswith(_SELECTED)]
        metafunc.parametrize("node_test", names)


def test_node(isolated, node_test):
    isolated(node_test)


@pytest.mark.parametrize("name", ["test_basic_conv_with_padding", "test_softmax_axis_1"])
def test_node_tests_reach_onednn(isolated, name):
    verdict, offloaded = isolated(name)
    assert verdict == "passes"
    assert offloaded
