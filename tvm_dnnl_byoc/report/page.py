"""A report as one HTML page that needs nothing else."""

from html import escape

from .drawing import TVM, colour_of, draw
from .model import Report
from .table import gflop, how, summary, why

_STYLE = """
body { font: 15px/1.45 sans-serif; margin: 2em auto; padding: 0 1em; max-width: 80em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 }
th, td { border-bottom: 1px solid #ccc; padding: .25em .8em; text-align: left; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums }
tr.stays td { background: #fff3d6 }
.graph { overflow: auto; max-height: 90vh; border: 1px solid #ccc; padding: .5em }
.key { display: inline-block; width: 1em; height: 1em; border: 1px solid #555; margin-right: .4em;
  vertical-align: -.15em }
"""


def render(report: Report) -> str:
    """Return the page: the summary, the operators, the regions, and the graph coloured by region.

    Raises
    ------
    ImportError
        If the extra ``[report]`` is not installed.
    """
    operators = [
        _row(
            [kind.name, kind.count, kind.offloaded, how(kind), why(kind)],
            "" if kind.offloaded == kind.count else "stays",
        )
        for kind in report.operators
    ]
    regions = [
        _row(
            [
                _Key(colour_of(region.symbol, report), region.symbol),
                region.operators,
                region.primitives,
                region.inputs,
                region.outputs,
                _Number(gflop(region.multiply_adds)),
            ]
        )
        for region in report.regions
    ]
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"/><title>What runs in oneDNN</title><style>{_STYLE}</style></head>
<body>
<h1>What runs in oneDNN</h1>
<p>{escape(summary(report))}.</p>
<h2>Operators</h2>
{_table(["operator", "calls", "in oneDNN", "how", "in TVM, and why"], operators)}
<h2>Regions</h2>
{_table(["function", "operators", "primitives", "inputs", "outputs", "GFLOP"], regions)}
<h2>Graph</h2>
<p>A box is a primitive with what is fused into it, or an operator that TVM runs
({_Key(TVM, "grey")}). Point at one for its shape, and why it stays.</p>
<div class="graph">{draw(report)}</div>
<script>
const graph = document.querySelector(".graph"), first = graph.querySelector("rect");
if (first) graph.scrollLeft = first.getBBox().x - graph.querySelector("svg").viewBox.baseVal.x
  - (graph.clientWidth - first.getBBox().width) / 2;
</script>
</body>
</html>
"""


class _Number(str):
    """A number that is formatted already."""


class _Key:
    """A text with a patch of a colour."""

    def __init__(self, colour: str, text: str):
        self.colour, self.text = colour, text

    def __str__(self) -> str:
        return f'<span class="key" style="background:{self.colour}"></span>{escape(self.text)}'


def _table(headings: list[str], rows: list[str]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "\n".join(rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _row(cells: list, style: str = "") -> str:
    def cell(value) -> str:
        if isinstance(value, _Key):
            return f"<td>{value}</td>"
        if isinstance(value, int | _Number):
            return f'<td class="number">{value}</td>'
        return f"<td>{escape(value).replace(chr(10), '<br/>')}</td>"

    return f'<tr class="{style}">{"".join(map(cell, cells))}</tr>'
