"""Commands: ``python -m tvm_dnnl_byoc explain model.onnx``."""

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tvm_dnnl_byoc", description=__doc__)
    commands = parser.add_subparsers(required=True)
    explain = commands.add_parser(
        "explain", help="say what of a model oneDNN runs, what TVM runs, and why"
    )
    explain.add_argument("model", type=Path, help="an ONNX file, or a module of TVM's as JSON")
    explain.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1,3,224,224",
        help="the shape of an input whose sizes the model leaves open; may be repeated",
    )
    explain.add_argument("--json", type=Path, metavar="FILE", help="store the report as JSON, too")
    explain.add_argument("--html", type=Path, metavar="FILE", help="draw the graph on a page, too")
    explain.set_defaults(run=_explain)
    options = parser.parse_args(arguments)
    return options.run(options)


def _explain(options: argparse.Namespace) -> int:
    from .report.explain import explain
    from .report.load import ModelError, load_model

    try:
        report = explain(*load_model(options.model, options.shape))
        report.print()
        if options.json:
            options.json.write_text(report.to_json() + "\n", encoding="utf-8")
        if options.html:
            options.html.write_text(report.to_html(), encoding="utf-8")
    except (ModelError, ImportError, OSError) as error:
        print(f"explain: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
