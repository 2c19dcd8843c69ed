"""One thread less on a machine that is crowded, and the same results."""

import os

import pytest
from engine_graph import PACKAGE, load_module, run_python

pytestmark = pytest.mark.skipif(
    os.cpu_count() < 2, reason="on one core there is no thread that could be left out"
)

# A busy process beside as many threads as there are cores: one of them shares its core.
PREAMBLE = """
import os, subprocess, sys, time
import numpy as np
from engine_graph import Graph, run, start

THREADS = len(os.sched_getaffinity(0))

def convolutions():
    graph = Graph()
    x = graph.input(1, 64, 56, 56)
    for _ in range(12):
        x = graph.convolution(x, (64, 64, 3, 3), padding_l=1, padding_r=1)
        x = graph.eltwise(x, "tanh")
    return graph.output(x)

def long_sums():
    graph = Graph()
    x = graph.node("matmul", [graph.input(16, 1 << 19), graph.constant(1 << 19, 8)])
    return graph.output(x)

def busy():
    code = "import os\\nparent = os.getppid()\\nwhile os.getppid() == parent: sum(range(100000))"
    return subprocess.Popen([sys.executable, "-S", "-c", code])

def run_until(engine, graph, threads, seconds):
    '''Run for so long, or until it uses so many threads; all results have to be the same.'''
    shapes = [(16, 8)] if len(graph.nodes) == 1 else [(1, 64, 56, 56)]
    first = run(engine, graph.input_data, shapes)[0].tobytes()
    end = time.monotonic() + seconds
    while time.monotonic() < end and engine.profile()["threads"] != threads:
        assert run(engine, graph.input_data, shapes)[0].tobytes() == first
    return engine.profile()["threads"]
"""


def run_script(code, **env):
    threads = str(len(os.sched_getaffinity(0)))
    spin = load_module(PACKAGE / "native.py").SPIN_COUNT  # as if nothing were set
    process = run_python(PREAMBLE + code, OMP_NUM_THREADS=threads, GOMP_SPINCOUNT=spin, **env)
    assert process.returncode == 0, process.stderr


def test_one_thread_less_while_it_is_crowded():
    run_script("""
graph = convolutions()
engine = start(graph)
process = busy()
assert run_until(engine, graph, THREADS - 1, 60) == THREADS - 1
process.kill()
process.wait()
assert run_until(engine, graph, THREADS, 60) == THREADS
""")


def test_results_that_would_change():
    run_script("""
graph, control = long_sums(), convolutions()
engine, control_engine = start(graph), start(control)
process = busy()
assert run_until(control_engine, control, THREADS - 1, 60) == THREADS - 1
assert run_until(engine, graph, THREADS - 1, 5) == THREADS
""")


def test_fixed():
    run_script(
        """
graph = convolutions()
process = busy()
assert run_until(start(graph), graph, THREADS - 1, 5) == THREADS
""",
        DNNL_BYOC_THREADS="fixed",
    )
