"""A report as tables in a terminal."""

from .model import OperatorKind, Report
from .requirements import load

_PLAIN_WIDTH = 130  # where the output is not a terminal, which would tell its own


def print_report(report: Report) -> None:
    """Print the operators, the regions and the share of the work, to stdout."""
    table = load("rich.table").Table
    console = load("rich.console").Console(highlight=False)
    escape = load("rich.markup").escape
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH

    operators = table(title="Operators", title_justify="left")
    operators.add_column("operator", no_wrap=True)
    operators.add_column("calls", justify="right")
    operators.add_column("in oneDNN", justify="right")
    operators.add_column("how", ratio=2)
    operators.add_column("in TVM, and why", ratio=3)
    for kind in report.operators:
        operators.add_row(
            kind.name,
            str(kind.count),
            str(kind.offloaded),
            escape(how(kind)),
            escape(why(kind)),
            style="" if kind.offloaded == kind.count else "yellow",
        )
    console.print(operators)

    regions = table(title="Regions", title_justify="left")
    regions.add_column("function", no_wrap=True)
    for heading in ("operators", "primitives", "inputs", "outputs", "GFLOP"):
        regions.add_column(heading, justify="right")
    for region in report.regions:
        regions.add_row(
            region.symbol,
            str(region.operators),
            str(region.primitives),
            str(region.inputs),
            str(region.outputs),
            gflop(region.multiply_adds),
        )
    console.print(regions)
    console.print(summary(report))


def how(kind: OperatorKind) -> str:
    """Say how the offloaded calls of an operator run: alone, or fused into what.

    A line follows for each reason why some that run alone are not fused into what is before them.
    """
    parts = [f"{n} fused into {into}" for into, n in kind.fused.items()]
    if kind.alone:
        parts.insert(0, f"{kind.alone} alone")
    notes = [f"{n} not fused: {reason}" for reason, n in kind.unfused.items()]
    return "\n".join([", ".join(parts), *notes])


def why(kind: OperatorKind) -> str:
    """Say why calls of an operator stayed in TVM, one line for each reason."""
    return "\n".join(f"{n}: {reason}" for reason, n in kind.stayed.items())


def gflop(multiply_adds: int | None) -> str:
    """Return multiply-adds as billions of floating-point operations, two each."""
    return "?" if multiply_adds is None else f"{2 * multiply_adds / 1e9:.3g}"


def summary(report: Report) -> str:
    """Say in one line how much was offloaded."""
    calls = sum(kind.count for kind in report.operators)
    offloaded = sum(kind.offloaded for kind in report.operators)
    regions = len(report.regions)
    text = f"{offloaded} of {calls} operators in {regions} region{'' if regions == 1 else 's'}"
    if report.share is None:
        return text
    return f"{text}, {report.share:.1%} of {gflop(report.multiply_adds)} GFLOP"
