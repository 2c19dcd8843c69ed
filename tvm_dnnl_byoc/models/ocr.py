"""PP-OCR's text detector, recogniser and direction classifier, with ONNX Runtime's answers.

The pretrained models are those inside the package ``rapidocr-onnxruntime``; the image is the
photographed page of text inside the package ``scikit-image``. Neither package is imported.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import native
from .case import Case, NotInstalledError
from .catalogue import Entry

if TYPE_CHECKING:
    import onnx
    from PIL import Image

_FILES = {
    "ppocr_v4_detector": "ch_PP-OCRv4_det_infer.onnx",
    "ppocr_v4_recognizer": "ch_PP-OCRv4_rec_infer.onnx",
    "ppocr_v2_direction": "ch_ppocr_mobile_v2.0_cls_infer.onnx",
}
# Parts of the page: left, top, right, bottom, in pixels. Of the second one the classifier is not
# quite sure, so that its answer depends on its arithmetic.
_CROPS = {"ppocr_v4_recognizer": (0, 6, 240, 40), "ppocr_v2_direction": (0, 45, 130, 70)}


def load(entry: Entry) -> Case:
    """Run a model on the page, or a line of it, with ONNX Runtime, and convert it.

    Raises
    ------
    NotInstalledError
        If a package is missing.
    """
    for package in ("onnx", "onnxruntime", "rapidocr_onnxruntime", "skimage", "PIL"):
        if find_spec(package) is None:
            raise NotInstalledError(f"{package} is not installed (the extra [models])")
    import onnx
    import onnxruntime

    path, data = path_of(entry.name), image_for(entry.name, entry.shape)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    references = session.run(None, {name: data})
    module, params = imported(onnx.load(str(path)), {name: entry.shape})
    return Case(
        module=module,
        params=params,
        inputs={name: data},
        references=references,
        framework="ONNX Runtime",
    )


def imported(model: onnx.ModelProto, shapes: dict[str, tuple[int, ...]]):
    """Return a model, for inputs of these shapes, as a module of the TVM there is, and params."""
    if native.front() == "relax":
        from tvm.relax.frontend.onnx import from_onnx

        return from_onnx(model, shapes), {}
    from tvm import relay

    module, params = relay.frontend.from_onnx(model, shapes)
    # Shapes are computed in the graph, from that of the input: they become constants.
    return relay.transform.DynamicToStatic()(module), params


def path_of(name: str) -> Path:
    """Return the file of a model of that name in the catalogue."""
    return _inside("rapidocr_onnxruntime") / "models" / _FILES[name]


def _inside(package: str) -> Path:
    (location,) = find_spec(package).submodule_search_locations
    return Path(location)


@cache
def characters() -> tuple[str, ...]:
    """Return what the recogniser's scores are of: no character, then those of its file."""
    import onnx

    model = onnx.load(path_of("ppocr_v4_recognizer"), load_external_data=False)
    (known,) = (entry.value for entry in model.metadata_props if entry.key == "character")
    return ("", *known.splitlines(), " ")


def page() -> Image.Image:
    """Return the photographed page, in colours."""
    from PIL import Image

    return Image.open(_inside("skimage") / "data" / "page.png").convert("RGB")


def image_for(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the page, or a line of it, as float32 (1, 3, H, W) from -1 to 1."""
    image = page()
    return scaled(image.crop(_CROPS[name]) if name in _CROPS else image, shape)


def scaled(image: Image.Image, shape: tuple[int, ...], resampling: str = "BILINEAR") -> np.ndarray:
    """Return an image of text in its proportions, the rest of the width empty; see `pixels`.

    ``resampling`` is the name of one of Pillow's.
    """
    from PIL import Image

    height, width = shape[2:]
    wanted = min(width, round(image.width * height / image.height))
    return pixels(image.resize((wanted, height), Image.Resampling[resampling]), shape)


def pixels(image: Image.Image, shape: tuple[int, ...]) -> np.ndarray:
    """Return an image as float32 of that shape, (1, 3, H, W), from -1 to 1."""
    values = np.zeros((*shape[2:], 3), np.float32)
    values[:, : image.width] = np.asarray(image, np.float32) / 127.5 - 1
    return np.ascontiguousarray(values.transpose(2, 0, 1)[None])
