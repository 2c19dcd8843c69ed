"""Kernels that run where there is no AMX, on a processor that has it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from processor import AMX

FILES = ["pointwise", "pointwise_of_floats", "winograd_of_numbers", "random_numbers"]


@pytest.mark.skipif(not AMX, reason="the tests of these kernels run as they are")
@pytest.mark.parametrize("name", FILES)
def test_kernels(name):
    file = Path(__file__).with_name(f"test_engine_{name}.py")
    # What is faster there says nothing of a processor without AMX.
    options = ["-q", "-p", "no:cacheprovider", "-k", "not by_measurement"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, file],
        env=os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout
    assert "skipped" not in run.stdout
