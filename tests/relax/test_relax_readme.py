"""The README's example of Relax runs as it stands."""

import re
from pathlib import Path

import pytest
from relax_helpers import run_python

README = Path(__file__).resolve().parents[2] / "README.md"


def test_example_runs():
    pytest.importorskip("torch", reason="torch is not installed")
    section = re.search(r"^## Relax\n.*?(?=^## )", README.read_text(), re.DOTALL | re.MULTILINE)
    (example,) = re.findall(r"```python\n(.*?)```", section.group(), re.DOTALL)
    process = run_python(example)
    assert process.returncode == 0, process.stderr
    shape, region = process.stdout.splitlines()[:2]
    assert shape == "(1, 16, 62, 62)"
    assert region.startswith("dnnl_main_0 [")
    assert "('convolution', 'eltwise_hardswish')" in region
