#!/usr/bin/env python3
"""Benchmark transformers: TVM with oneDNN against TVM alone and its peers (see --help)."""

import sys
from pathlib import Path

# Run from a checkout as well as against an installed package.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from tvm_dnnl_byoc.bench.cli import main

if __name__ == "__main__":
    try:
        sys.exit(main(zoo="transformers"))
    except KeyboardInterrupt:
        sys.exit(130)
