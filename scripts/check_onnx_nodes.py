#!/usr/bin/env python3
"""Runs the node tests of the onnx package on plain TVM and partitioned, and counts."""

import os
import sys
from collections import Counter
from pathlib import Path

os.environ["TOPHUB_LOCATION"] = "NONE"
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from isolation import Crashed, Isolated
from onnx_nodes import check_node_test, node_tests
from rich.progress import track


def main():
    counts, operators, failures = Counter(), Counter(), []
    names = [name for name in node_tests() if all(word in name for word in sys.argv[1:])]
    with Isolated(check_node_test) as isolated:
        for name in track(names, "node tests"):
            try:
                verdict, offloaded = isolated(name)
            except AssertionError as error:
                verdict, offloaded = "fails partitioned", []
                if isinstance(error, Crashed):
                    verdict = "crashes"
                failures.append(name)
                print(f"{name}: {error}", flush=True)
            counts[verdict] += 1
            counts["offloads"] += bool(offloaded)
            operators.update(offloaded)
    print(f"{len(names)} tests: {dict(counts)}")
    print(f"offloaded: {dict(operators.most_common())}")
    if failures:
        sys.exit(f"{len(failures)} failed: {' '.join(failures)}")


if __name__ == "__main__":
    main()
