#!/usr/bin/env python3
"""Check whole models against the frameworks that they come from (see --help)."""

import sys
from pathlib import Path

# Run from a checkout as well as against an installed package.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from tvm_dnnl_byoc.models.cli import main

if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
