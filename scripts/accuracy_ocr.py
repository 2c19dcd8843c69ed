#!/usr/bin/env python3
"""Reads a photographed page of text with PP-OCRv4 in each precision, and says how much is right.

python scripts/accuracy_ocr.py
"""

import argparse
import os
import sys
from difflib import SequenceMatcher
from pathlib import Path

os.environ["TOPHUB_LOCATION"] = "NONE"
os.environ.setdefault("DNNL_BYOC_TUNE", "0")  # which does not change what is computed
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import onnx
import tvm
from PIL import Image
from rich.console import Console
from rich.table import Table
from scipy import ndimage
from tvm import relay
from tvm.contrib import graph_executor

from tvm_dnnl_byoc import partition_for_dnnl, quantize
from tvm_dnnl_byoc.models import ocr

_DETECTOR, _RECOGNIZER = "ppocr_v4_detector", "ppocr_v4_recognizer"
_PAGE = (1, 3, 384, 768)  # twice the photograph
_LINE = (1, 3, 48, 960)
_TEXT = """\
Region-based segmentation
Let us first determine markers of the coins and the
background. These markers are pixels that we can label
unambiguously as either object or background. Here,
the markers are found at the two extreme parts of the
histogram of grey values:
markers = np.zeros_like(coins)"""
# As in PaddleOCR: what is text, and how much larger a line is than its detected core.
_THRESHOLD, _UNCLIP, _SMALLEST = 0.3, 1.6, 8


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--observer", default="mse", choices=quantize.OBSERVERS)
    args = parser.parse_args()

    page = ocr.page()
    models = {
        _DETECTOR: (ocr.imported(onnx.load(ocr.path_of(_DETECTOR)), {"x": _PAGE}), [whole(page)]),
    }
    exact = {_DETECTOR: build(partition_for_dnnl(*models[_DETECTOR][0]))}
    lines = [line(page, box) for box in boxes(exact[_DETECTOR](whole(page)))]
    models[_RECOGNIZER] = ocr.imported(onnx.load(ocr.path_of(_RECOGNIZER)), {"x": _LINE}), lines

    texts = {}
    for precision in ("f32", "bf16", "int8", "int8, the rest in bf16"):
        run = {
            name: build(in_precision(mod, params, data, precision, args.observer))
            for name, ((mod, params), data) in models.items()
        }
        found = boxes(run[_DETECTOR](whole(page)))
        texts[precision] = [text(run[_RECOGNIZER](line(page, box))) for box in found]

    table = Table(title=f"{len(_TEXT)} characters, int8 by {args.observer}")
    for column in ("computed in", "lines found", "lines right", "characters right, %"):
        table.add_column(column, justify="left" if column == "computed in" else "right")
    for precision, got in texts.items():
        right = sum(a == b for a, b in zip(got, _TEXT.split("\n"), strict=False))
        ratio = SequenceMatcher(None, _TEXT, "\n".join(got), autojunk=False).ratio()
        table.add_row(precision, str(len(got)), str(right), f"{100 * ratio:.1f}")
    console = Console()
    console.print("\n".join(texts["f32"]), highlight=False)
    console.print(table)


def in_precision(mod, params, data, precision, observer):
    """Partition a model; in int8, it is calibrated on what it is to read."""
    rest = "bf16" if precision.endswith("bf16") else None
    if not precision.startswith("int8"):
        return partition_for_dnnl(mod, params, precision=rest)
    inputs = [{"x": array} for array in data]
    recipe = quantize.calibrate(mod, params, inputs, observer)
    return partition_for_dnnl(quantize.convert(mod, params, recipe), precision=rest)


def build(mod):
    """Return a function of the one input."""
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm")
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))

    def run(data):
        executor.run(x=data)
        return executor.get_output(0).numpy()

    return run


def whole(page):
    """Return the page as the detector reads it."""
    height, width = _PAGE[2:]
    return ocr.pixels(page.resize((width, height), Image.Resampling.BILINEAR), _PAGE)


def boxes(probabilities):
    """Return (left, top, right, bottom) of lines in parts of the page, from top to bottom."""
    height, width = probabilities.shape[2:]
    found = []
    for rows, columns in ndimage.find_objects(ndimage.label(probabilities[0, 0] > _THRESHOLD)[0]):
        h, w = rows.stop - rows.start, columns.stop - columns.start
        if min(h, w) < _SMALLEST:
            continue
        more = _UNCLIP * h * w / (2 * (h + w))
        box = (columns.start - more, rows.start - more, columns.stop + more, rows.stop + more)
        found.append(tuple(np.clip(box, 0, [width, height] * 2) / ([width, height] * 2)))
    return sorted(found, key=lambda box: (box[1] + box[3], box[0]))


def line(page, box):
    """Return a line of the page as the recogniser reads it."""
    crop = page.crop(tuple(np.rint(box * np.array(page.size * 2)).astype(int)))
    return ocr.scaled(crop, _LINE, "LANCZOS")


def text(scores):
    """Return the characters of the highest scores, each once where it follows itself."""
    known, best = ocr.characters(), scores[0].argmax(1)
    new = np.diff(best, prepend=0) != 0
    return "".join(known[i] for i in best[new & (best > 0)])


if __name__ == "__main__":
    main()
