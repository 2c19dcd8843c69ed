"""The figure of a benchmark run: each backend's speed in per cent of MXNet's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .report import describe
from .results import BenchmarkResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BASELINE = "mxnet"

# Okabe and Ito's colours, which all kinds of colour vision tell apart.
_STYLES = {
    "dnnl": ("this package (TVM + oneDNN)", "#D55E00"),
    "dnnl-bf16": ("this package, bf16", "#E69F00"),
    "dnnl-int8": ("this package, int8", "#A0522D"),
    "tvm": ("TVM, untuned", "#999999"),
    "tvm-autoscheduler": ("TVM, tuned", "#CC79A7"),
    "mxnet": ("MXNet, oneDNN subgraphs", "#56B4E9"),
    "onnxruntime": ("ONNX Runtime", "#009E73"),
    "openvino": ("OpenVINO", "#0072B2"),
    "openvino-bf16": ("OpenVINO, bf16", "#F0E442"),
    "openvino-int8": ("OpenVINO, int8", "#003F5C"),
}
_METRICS = {
    "latency": "Speed of one inference (p50)",
    "throughput": "Throughput, one instance",
    "realtime": "Throughput, bound instances together",
}
_INCHES = (11, 5)
_DPI = 150
_GROUP_WIDTH = 0.86
_LEAST_GROUPS = 3  # fewer leave room at the sides, or their bars would be walls
_VERSIONS = ("tvm", "onednn", "mxnet", "onnxruntime", "openvino", "commit")


def draw(result: BenchmarkResult, folder: Path) -> Path:
    """Draw ``<mode>.png`` in `folder`; returns its path. Raises as `figure_of` does."""
    path = folder / f"{result.settings.mode}.png"
    figure_of(result).savefig(path)
    return path


def figure_of(result: BenchmarkResult) -> Figure:
    """A group of bars for each model: median of the ratio over the rounds, whiskers for the range.

    Raises
    ------
    ValueError
        If no model has a result of `BASELINE`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patheffects import withStroke

    mode = result.settings.mode
    names = [name for name in _STYLES if name in result.settings.backends]
    models = [model for model in result.models if model.find(BASELINE)]
    if not models:
        raise ValueError(f"expected a model with a result of {BASELINE}, got none")

    figure = Figure(figsize=_INCHES, dpi=_DPI)
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
        if name == BASELINE:
            continue  # 100 by definition, and there is a line
        axes.errorbar(places, heights, whiskers, fmt="none", ecolor="#333333", lw=0.8, capsize=2)
        for place, height, above in zip(places, heights, whiskers[1], strict=True):
            axes.annotate(
                f"{height:.0f}",
                (place, height + above),
                (0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                path_effects=[withStroke(linewidth=2, foreground="white")],
            )
    _label(axes, [model.model for model in models], mode)
    figure.text(0.01, 0.015, _caption(result), fontsize=8, color="#555555")
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    return figure


def _label(axes, models: list[str], mode: str) -> None:
    axes.set_title(f"{_METRICS[mode]}, higher is better", loc="left", fontsize=12, pad=36)
    axes.set_ylabel("% of MXNet with oneDNN")
    axes.set_xticks(range(len(models)), models, fontsize=9.5)
    axes.tick_params(axis="x", length=0)
    middle, half = (len(models) - 1) / 2, max(len(models), _LEAST_GROUPS) / 2
    axes.set_xlim(middle - half, middle + half)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.03)
    axes.axhline(100, color="#333333", lw=0.8, ls="--", zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 1),
        ncol=len(_STYLES),
        columnspacing=1.4,
        handlelength=1,
        frameon=False,
        fontsize=9,
    )


def _caption(result: BenchmarkResult) -> str:
    found = result.environment
    machine = f"{found['cpu']}, {found['cores']}; {found['date']}"
    versions = ", ".join(f"{key} {found[key]}" for key in _VERSIONS if key in found)
    return f"{describe(result.settings)}; {machine}\n{versions}"
