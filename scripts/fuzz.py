#!/usr/bin/env python3
"""Compares random graphs, partitioned, with plain TVM; prints the smallest that fails.

python scripts/fuzz.py --examples 5000 --seed 1 --workers 2
"""

import argparse
import importlib
import math
import multiprocessing
import os
import re
import sys
import time
from collections import Counter
from pathlib import Path

os.environ["TOPHUB_LOCATION"] = "NONE"
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TVM_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import hypothesis
from hypothesis import strategies as st

_BATCH = 50  # examples of one Hypothesis run; a failure ends its run
_SHRINK_SECONDS = 60


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--examples", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--max-operators", type=int, default=8)
    parser.add_argument("--max-failures", type=int, default=10, help="stop after that many")
    parser.add_argument(
        "--tune",
        action="store_true",
        help="build with layouts, chunks and Winograd's algorithm chosen by measurement",
    )
    parser.add_argument(
        "--choices",
        action="store_true",
        help="compare all ways in which the engine may run a region instead, without TVM",
    )
    args = parser.parse_args()

    os.environ["DNNL_BYOC_TUNE"] = "all" if args.tune else "0"  # inherited by all workers
    context = multiprocessing.get_context("spawn")
    tasks, results = context.Queue(), context.Queue()
    sizes = [min(_BATCH, args.examples - i) for i in range(0, args.examples, _BATCH)]
    for number, size in enumerate(sizes):
        tasks.put((args.seed * 1_000_000 + number, size))
    workers = [
        context.Process(target=_work, args=(tasks, results, args.max_operators, args.choices))
        for _ in range(args.workers)
    ]
    for worker in workers:
        worker.start()
    failures, counts, operators, start = {}, {}, {}, time.time()
    for done in range(1, len(sizes) + 1):
        seed, failure, batch_counts, batch_operators = results.get()
        for total, part in ((counts, batch_counts), (operators, batch_operators)):
            for key, value in part.items():
                total[key] = total.get(key, 0) + value
        if failure:
            text, message = failure
            failures.setdefault(re.sub(r"\d+", "#", message.strip().splitlines()[-1]), []).append(
                text
            )
            print(f"\n=== FAILURE, seed {seed}\n{text}\n{message}\n", flush=True)
        print(
            f"[{time.time() - start:6.0f} s] batch {done}/{len(sizes)}, {counts}, "
            f"{sum(map(len, failures.values()))} failures",
            flush=True,
        )
        if sum(map(len, failures.values())) >= args.max_failures:
            break
    for worker in workers:
        worker.terminate()
    print("offloaded:", dict(sorted(operators.items(), key=lambda item: -item[1])))
    sys.exit(bool(failures))


def _work(tasks, results, max_operators, choices):
    from isolation import Isolated, die_with_parent

    die_with_parent()
    check = importlib.import_module("choices" if choices else "differential")
    with Isolated(check.judge) as isolated:
        while True:
            results.put(_run_batch(check, isolated, *tasks.get(), max_operators))


def _run_batch(check, isolated, seed, size, max_operators):
    """Return seed, failure as (program, message) or None, and what was counted."""
    from differential import DYNAMIC
    from graph_strategies import programs

    # Of the same graph for plain TVM the first is the quickest to build.
    modes = [0] * 6 + [3, DYNAMIC]
    counts, operators, failed, deadline = Counter(), Counter(), {}, math.inf

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=size,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=hypothesis.Verbosity.quiet,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(programs(max_operators), st.sampled_from(modes))
    def compare(program, opt_level):
        nonlocal deadline
        key = program, opt_level
        # Once time is up every other program passes, which ends the search for a smaller one.
        if key not in failed and time.monotonic() < deadline:
            try:
                names = isolated(program.source, opt_level)
            except AssertionError as error:
                failed[key] = error
                deadline = min(deadline, time.monotonic() + _SHRINK_SECONDS)
            else:
                counts["graphs"] += 1
                counts["offloaded" if names else "nothing offloaded"] += 1
                counts["not for TVM"] += names is None
                operators.update(names or ())
        if key in failed:
            raise failed[key]

    try:
        compare()
    except AssertionError:
        smallest = min(failed, key=lambda key: (len(key[0].lines), len(key[0].source)))
        return seed, (check.reproducer(*smallest), str(failed[smallest])), counts, operators
    return seed, None, counts, operators


if __name__ == "__main__":
    main()
