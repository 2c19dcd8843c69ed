"""The graph of a report as SVG: layers from top to bottom, a colour for each region."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from .model import Node, Report
from .requirements import load

_HEIGHT, _MARGIN, _CHARACTER = 26, 14, 7.0  # pixels; the width of a character at 12 px
_MAX_CHARACTERS = 34
# Fills that dark text is read on, told apart by more than their hue; grey is TVM's.
PALETTE = ("#9ecae9", "#ffbf79", "#88d27a", "#f2a2a9", "#d6a5c9", "#83bcb6", "#f2cf5b", "#d8b5a5")
TVM = "#d9d9d9"


def colour_of(symbol: str | None, report: Report) -> str:
    """Return the fill of a region's nodes; grey for what TVM runs."""
    symbols = [region.symbol for region in report.regions]
    return TVM if symbol is None else PALETTE[symbols.index(symbol) % len(PALETTE)]


def draw(report: Report) -> str:
    """Return the graph as an SVG element.

    Raises
    ------
    ImportError
        If the extra ``[report]`` is not installed.
    """
    boxes, curves = _layout(report.nodes)
    if not boxes:
        return ""
    left = min(x - w / 2 for x, _, w in boxes)
    right = max(x + w / 2 for x, _, w in boxes)
    bottom = max(y for _, y, _ in boxes)
    width, height = right - left + 2 * _MARGIN, bottom + _HEIGHT + 2 * _MARGIN

    def lines() -> Iterator[str]:
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left - _MARGIN:.0f} '
            f'{-_HEIGHT / 2 - _MARGIN:.0f} {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" font-family="sans-serif" font-size="12">'
        )
        for points in curves:
            yield f'<path d="{_path(points)}" fill="none" stroke="#888"/>'
        for node, (x, y, w) in zip(report.nodes, boxes, strict=True):
            yield (
                f'<g><title>{escape(_title(node))}</title><rect x="{x - w / 2:.1f}" '
                f'y="{y - _HEIGHT / 2:.1f}" width="{w:.1f}" height="{_HEIGHT}" rx="5" '
                f'fill={quoteattr(colour_of(node.region, report))} stroke="#555"/>'
                f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">'
                f"{escape(_label(node))}</text></g>"
            )
        yield "</svg>"

    return "\n".join(lines())


def _label(node: Node) -> str:
    text = " + ".join(name.removeprefix("nn.") for name in node.operators)
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"


def _title(node: Node) -> str:
    where = f"oneDNN: {node.region}" if node.region else f"TVM: {node.reason}"
    return f"{' + '.join(node.operators)}\n{node.shape}\n{where}"


Point = tuple[float, float]


class _Route:
    """Receives the points of an edge from the layout."""

    points: Sequence[Point] = ()

    def setpath(self, points: Sequence[Point]) -> None:
        self.points = points


def _layout(nodes: list[Node]) -> tuple[list[tuple[float, float, float]], list[list[Point]]]:
    """Return (x, y, width) of each node, x and y of its centre, and the points of each edge."""
    graphs, layouts = load("grandalf.graphs"), load("grandalf.layouts")
    vertices = [graphs.Vertex(number) for number in range(len(nodes))]
    for vertex, node in zip(vertices, nodes, strict=True):
        vertex.view = layouts.VertexViewer(len(_label(node)) * _CHARACTER + 16, _HEIGHT)
    pairs = dict.fromkeys((i, j) for j, node in enumerate(nodes) for i in node.inputs)
    edges = [graphs.Edge(vertices[i], vertices[j]) for i, j in pairs]
    for edge in edges:
        edge.view = _Route()

    boxes: dict[int, tuple[float, float, float]] = {}
    routes = []
    offset = 0.0  # the components are side by side
    for component in graphs.Graph(vertices, edges).C:
        sugiyama = layouts.SugiyamaLayout(component)
        sugiyama.xspace, sugiyama.yspace = 24, 24
        sugiyama.init_all()
        sugiyama.draw(4)
        views = {v.data: v.view for v in component.sV}
        left = min(view.xy[0] - view.w / 2 for view in views.values())
        top = min(view.xy[1] for view in views.values())

        def moved(x: float, y: float, dx=offset - left, dy=-top) -> Point:
            return x + dx, y + dy

        for number, view in views.items():
            boxes[number] = (*moved(*view.xy), view.w)
        routes += [[moved(*point) for point in edge.view.points] for edge in component.sE]
        offset += max(view.xy[0] + view.w / 2 for view in views.values()) - left + 40
    return [boxes[number] for number in range(len(nodes))], routes


def _path(points: list[Point]) -> str:
    """Return a smooth curve from the lower rim of a node through the points to the next one."""
    (x0, y0), *between, (x1, y1) = points
    points = [(x0, y0 + _HEIGHT / 2), *between, (x1, y1 - _HEIGHT / 2)]
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (ax, ay), (bx, by) in pairwise(points):
        middle = (ay + by) / 2
        path += f"C{ax:.0f} {middle:.0f} {bx:.0f} {middle:.0f} {bx:.0f} {by:.0f}"
    return path
