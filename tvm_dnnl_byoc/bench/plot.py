"""The figure of a benchmark run: each backend's speed in per cent of MXNet's."""

from __future__ import annotations

import textwrap
from pathlib import Path

from .report import describe
from .results import BenchmarkResult

BASELINE = "mxnet"

# Okabe and Ito's colours, which all kinds of colour vision tell apart.
_STYLES = {
    "dnnl": ("this package (TVM + oneDNN)", "#D55E00"),
    "tvm": ("TVM, untuned", "#999999"),
    "tvm-autoscheduler": ("TVM, tuned", "#CC79A7"),
    "mxnet": ("MXNet, oneDNN subgraphs", "#56B4E9"),
    "onnxruntime": ("ONNX Runtime", "#009E73"),
    "openvino": ("OpenVINO", "#0072B2"),
}
_METRICS = {
    "latency": "Speed at batch 1 (p50)",
    "throughput": "Throughput, one instance",
    "realtime": "Throughput, bound instances at batch 1",
}
_GROUP_WIDTH = 0.84
_INCHES_PER_BAR = 0.3
_DPI = 150


def draw(result: BenchmarkResult, folder: Path) -> Path:
    """Draw ``<mode>.png`` in `folder`; returns its path.

    A bar is the median of the ratio over the rounds, its whisker the range.

    Raises
    ------
    ValueError
        If no model has a result of `BASELINE`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    mode = result.settings.mode
    names = [name for name in _STYLES if name in result.settings.backends]
    models = [model for model in result.models if model.find(BASELINE)]
    if not models:
        raise ValueError(f"expected a model with a result of {BASELINE}, got none")

    width = max(8.0, 1.5 + _INCHES_PER_BAR * len(models) * (len(names) + 1))
    figure = Figure(figsize=(width, 5.0), dpi=_DPI)
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    bar = _GROUP_WIDTH / len(names)
    for index, name in enumerate(names):
        label, color = _STYLES[name]
        speeds = [model.relative_speed(name, BASELINE, mode) for model in models]
        places = [
            place + (index - (len(names) - 1) / 2) * bar
            for place, speed in enumerate(speeds)
            if speed
        ]
        speeds = [speed for speed in speeds if speed]
        heights = [100 * speed.median for speed in speeds]
        whiskers = [
            [100 * (speed.median - speed.low) for speed in speeds],
            [100 * (speed.high - speed.median) for speed in speeds],
        ]
        axes.bar(places, heights, bar * 0.94, color=color, label=label)
        if name != BASELINE:
            axes.errorbar(
                places, heights, whiskers, fmt="none", ecolor="#333333", lw=0.8, capsize=2
            )
        for place, height, above in zip(places, heights, whiskers[1], strict=True):
            axes.annotate(
                f"{height:.0f}",
                (place, height + above),
                (0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
    _label(axes, [model.model for model in models], mode)
    figure.text(0.01, 0.01, _caption(result, int(width * 17)), fontsize=7, color="#555555")
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    path = folder / f"{mode}.png"
    figure.savefig(path)
    return path


def _label(axes, models: list[str], mode: str) -> None:
    axes.set_title(f"{_METRICS[mode]}, higher is better", loc="left", fontsize=12)
    axes.set_ylabel("% of MXNet with oneDNN")
    axes.set_xticks(range(len(models)), models, fontsize=9)
    axes.tick_params(axis="x", length=0)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.05)
    axes.axhline(100, color="#333333", lw=0.8, ls="--", zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.08),
        ncol=6,
        frameon=False,
        fontsize=8.5,
    )


def _caption(result: BenchmarkResult, width: int) -> str:
    found = result.environment
    versions = [f"{key} {found[key]}" for key in _VERSIONS if key in found]
    parts = [describe(result.settings), found["cpu"], found["date"], *versions]
    return textwrap.fill("; ".join(parts), width)


_VERSIONS = ("tvm", "onednn", "mxnet", "onnxruntime", "openvino", "commit")
