"""Times networks of torch's through apache-tvm with oneDNN, beside their peers.

Each backend runs in a process of its own; they take turns, in rounds. Prints a table, and stores
every single timing with --json. Needs, beside what the tests of Relax do, onnxscript to write the
network for ONNX Runtime and OpenVINO, and these two.
"""

import argparse
import json
import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tvm_dnnl_byoc.bench.process import WorkerError, WorkerProcess
from tvm_dnnl_byoc.bench.relax_worker import BACKENDS
from tvm_dnnl_byoc.bench.stats import Percentiles, ratio_over_rounds
from tvm_dnnl_byoc.bench.torch_models import MODELS

SETTLE_SECONDS = 0.5


def main():
    options = parse()
    table = []
    for model in options.models:
        table += bench(model, options)
    print("| model | backend | p50 ms | p90 ms | of dnnl's time | build s | max error | regions |")
    print("|---|---|---|---|---|---|---|---|")
    for row in table:
        print(line(row, table))
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each backend in a round")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


def bench(model, options):
    """Return what was measured of each backend."""
    environment = {"OMP_NUM_THREADS": str(options.threads), "TVM_NUM_THREADS": str(options.threads)}
    rows = []
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def start(name):
            log = directory / f"{name}.log"
            module = "tvm_dnnl_byoc.bench.relax_worker"
            return stack.enter_context(WorkerProcess(log, environment, module=module))

        what = {"model": model, "seed": options.seed, "directory": str(directory)}
        start("prepare").call("prepare", **what)
        for backend in options.backends:
            row = {"model": model, "backend": backend, "seconds": []}
            rows.append(row)
            row["worker"] = start(backend)
            try:
                reply = row["worker"].call(
                    "build", backend=backend, threads=options.threads, **what
                )
                row |= reply
            except WorkerError as error:
                row["error"] = str(error)
        running = [row for row in rows if "error" not in row]
        for turn in range(options.rounds):
            shift = turn % len(running)  # nobody is always the one after the same neighbour
            for row in running[shift:] + running[:shift]:
                row["seconds"].append(measure(row["worker"], options.seconds))
        for row in rows:
            del row["worker"]
    return rows


def measure(worker, seconds):
    """Return the times of the inferences of about so many seconds, at least two."""
    time.sleep(SETTLE_SECONDS)
    begin = time.monotonic()
    worker.call("warm_up", runs=1)
    runs = max(2, int(seconds / (time.monotonic() - begin)))
    return worker.call("measure", runs=runs, start_at=0.0)["seconds"]


def line(row, table):
    """Return a row of the table as Markdown."""
    if "error" in row:
        return f"| {row['model']} | {row['backend']} | {row['error'][:120]} |  |  |  |  |  |"
    times = Percentiles.of([t for seconds in row["seconds"] for t in seconds])
    ours = next(
        (r for r in table if r["model"] == row["model"] and r["backend"] == "dnnl"), {}
    ).get("seconds")
    ratio = f"{ratio_over_rounds(row['seconds'], ours).median:.3f}" if ours else ""
    return (
        f"| {row['model']} | {row['backend']} | {times.p50:.2f} | {times.p90:.2f} | {ratio} | "
        f"{row['build_seconds']:.1f} | {row['max_error']:.1e} | "
        f"{row['facts'].get('regions', '')} |"
    )


if __name__ == "__main__":
    main()
