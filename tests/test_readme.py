"""The README's examples run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def test_examples_run(tmp_path):
    # That of Relax needs another TVM: tests/relax.
    text = re.sub(r"^## Relax\n.*?(?=^## )", "", README.read_text(), flags=re.DOTALL | re.MULTILINE)
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 4
    script = tmp_path / "readme.py"
    script.write_text("\n".join(examples))  # each goes on from the one before
    result = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=600, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "(1, 1000)" in result.stdout
    assert "(4, 8, 1, 1)" in result.stdout
    assert "2 plans, 2 compiled" in result.stdout
    assert re.search(r"^convolution \S+avx|^convolution ", result.stdout, re.MULTILINE)
