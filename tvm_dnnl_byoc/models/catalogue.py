"""The models that are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Entry:
    """A model of the catalogue.

    Attributes
    ----------
    name : str
        GluonCV's name, or ours.
    family : str
        What it belongs to, in one word.
    shape : tuple of int
        Of the input, batch first; float32.
    source : str
        Where it comes from: ``mxnet`` (GluonCV), ``onnx`` (PP-OCRv4) or ``torch``.
    """

    name: str
    family: str
    shape: tuple[int, ...]
    source: str = "mxnet"


_IMAGE = (1, 3, 224, 224)
_LARGE_IMAGE = (1, 3, 299, 299)


def _classifiers() -> dict[str, tuple[str, ...]]:
    depths = (18, 34, 50, 101, 152)
    return {
        "resnet": tuple(f"resnet{d}_{v}" for d in depths for v in ("v1", "v1b", "v2")),
        "vgg": tuple(f"vgg{d}{bn}" for d in (11, 13, 16, 19) for bn in ("", "_bn")),
        "inception": ("googlenet",),
        "mobilenet": ("mobilenet1.0", "mobilenetv2_1.0", "mobilenetv3_large", "mobilenetv3_small"),
        "densenet": ("densenet121",),
        "squeezenet": ("squeezenet1.0", "squeezenet1.1"),
        "alexnet": ("alexnet",),
        "resnext": ("resnext50_32x4d", "se_resnext50_32x4d"),
        "senet": ("se_resnet50_v1", "senet_154"),
        "resnest": ("resnest50",),
        "darknet": ("darknet53",),
        "nasnet": ("nasnet_4_1056",),
        "hrnet": ("hrnet_w18_small_v1_c",),
    }


ENTRIES: tuple[Entry, ...] = (
    *(Entry(name, family, _IMAGE) for family, names in _classifiers().items() for name in names),
    Entry("inceptionv3", "inception", _LARGE_IMAGE),
    Entry("xception", "inception", _LARGE_IMAGE),
    Entry("ssd_512_resnet50_v1_voc", "detection", (1, 3, 512, 512)),
    Entry("ssd_512_mobilenet1.0_voc", "detection", (1, 3, 512, 512)),
    Entry("yolo3_darknet53_voc", "detection", (1, 3, 320, 320)),
    Entry("yolo3_mobilenet1.0_voc", "detection", (1, 3, 320, 320)),
    Entry("faster_rcnn_resnet50_v1b_voc", "detection", (1, 3, 512, 512)),
    Entry("center_net_resnet18_v1b_voc", "detection", (1, 3, 512, 512)),
    Entry("fcn_resnet50_ade", "segmentation", (1, 3, 480, 480)),
    Entry("deeplab_resnet50_ade", "segmentation", (1, 3, 480, 480)),
    Entry("psp_resnet50_ade", "segmentation", (1, 3, 480, 480)),
    Entry("simple_pose_resnet18_v1b", "pose", (1, 3, 256, 192)),
    Entry("i3d_resnet50_v1_kinetics400", "action", (1, 3, 32, 224, 224)),
    Entry("i3d_inceptionv1_kinetics400", "action", (1, 3, 32, 224, 224)),
    Entry("slowfast_4x16_resnet50_kinetics400", "action", (1, 3, 36, 224, 224)),
    Entry("r2plus1d_resnet18_kinetics400", "action", (1, 3, 16, 112, 112)),
    Entry("c3d_kinetics400", "action", (1, 3, 16, 112, 112)),
    Entry("p3d_resnet50_kinetics400", "action", (1, 3, 16, 224, 224)),
    Entry("ppocr_v4_detector", "ocr", (1, 3, 320, 640), "onnx"),
    Entry("ppocr_v4_recognizer", "ocr", (1, 3, 48, 320), "onnx"),
    Entry("ppocr_v2_direction", "ocr", (1, 3, 48, 192), "onnx"),
    Entry("torch_cnn", "torch", (1, 3, 45, 61), "torch"),
    Entry("torch_mlp", "torch", (7, 96), "torch"),
    Entry("torch_mobilenet", "torch", (1, 3, 224, 224), "torch"),
    Entry("torch_resnet50", "torch", (1, 3, 224, 224), "torch"),
)

FAMILIES = tuple(dict.fromkeys(entry.family for entry in ENTRIES))


def find(name: str) -> Entry:
    """Return the entry called `name`.

    Raises
    ------
    KeyError
        If there is none.
    """
    for entry in ENTRIES:
        if entry.name == name:
            return entry
    raise KeyError(name)


def select(patterns: Sequence[str], families: Sequence[str] = ()) -> list[Entry]:
    """Return the entries that fit one of the names or globs, and one of the families.

    No pattern, or no family, stands for all of them.

    Raises
    ------
    ValueError
        If a pattern fits no model, or a family does not exist.
    """
    for family in families:
        if family not in FAMILIES:
            raise ValueError(f"family: expected one of {', '.join(FAMILIES)}, got {family!r}")
    for pattern in patterns:
        if not any(fnmatchcase(entry.name, pattern) for entry in ENTRIES):
            raise ValueError(
                f"model: expected a name or a glob that fits one, got {pattern!r}; "
                "--list shows the names"
            )
    return [
        entry
        for entry in ENTRIES
        if (not patterns or any(fnmatchcase(entry.name, pattern) for pattern in patterns))
        and (not families or entry.family in families)
    ]
