"""What scripts/accuracy_ocr.py makes of the networks' answers."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tvm_dnnl_byoc.models import ocr

SCRIPT = Path(__file__).parent.parent / "scripts" / "accuracy_ocr.py"


@pytest.fixture(scope="module")
def script():
    for package in ("onnx", "PIL", "rapidocr_onnxruntime", "scipy", "skimage"):
        pytest.importorskip(package, reason="the extra [models], whose wheels end with Python 3.11")
    spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lines_from_top_to_bottom_a_bit_larger_than_detected(script):
    probabilities = np.zeros((1, 1, 100, 200))
    probabilities[0, 0, 60:70, 40:140] = 0.9
    probabilities[0, 0, 20:30, 50:60] = 0.4
    probabilities[0, 0, 90, 10:100] = 0.9  # too thin
    probabilities[0, 0, 40:50, 10:100] = 0.2  # too faint
    upper, lower = script.boxes(probabilities)
    more = 1.6 * 10 * 10 / 40
    np.testing.assert_allclose(
        upper, [(50 - more) / 200, (20 - more) / 100, (60 + more) / 200, (30 + more) / 100]
    )
    assert lower[1] < 0.6 < 0.7 < lower[3]


def test_characters_that_follow_each_other(script):
    """One for each run of the same, unless nothing is between; a space is one of them."""
    known = ocr.characters()
    wanted = ["", "a", "a", "", "a", "b", " ", " ", ""]
    scores = np.zeros((1, len(wanted), len(known)))
    for place, character in enumerate(wanted):
        scores[0, place, known.index(character)] = 1
    assert script.text(scores) == "aab "


def test_a_line_keeps_its_proportions(script):
    page = ocr.page()
    data = script.line(page, np.array([0, 0, 0.5, 0.1]))
    height, width = data.shape[2:]
    used = round(page.width / 2 * height / round(page.height * 0.1))
    assert (data[..., used:] == 0).all()
    assert data[..., : used - 1].any((0, 1, 2)).all()
    assert width > used
