"""One thread less on a machine that is crowded, and the same results."""

import os

import pytest
from engine_graph import PACKAGE, load_module, run_python

CORES = len(os.sched_getaffinity(0))

# A busy process beside as many threads as there are cores: one of them shares its core. Two threads
# on a single core do so without it.
THREADS = max(CORES, 2)
PREAMBLE = """
import os, subprocess, sys, time
import numpy as np
from engine_graph import Graph, run, start

THREADS = int(os.environ['OMP_NUM_THREADS'])

class Model:
    '''A graph of one input and one output, whose results have to be the same each time.'''

    def __init__(self, graph, shape):
        self.graph, self.shape, self.engine = graph, shape, start(graph)
        self.first = self.result()

    def result(self):
        return run(self.engine, self.graph.input_data, [self.shape])[0].tobytes()

    def share_of_fewer(self, seconds):
        '''Run for so long; return which share of the runs used one thread less.'''
        fewer, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.result() == self.first
            fewer.append(self.engine.profile()['threads'] < THREADS)
        return np.mean(fewer)

    def adapts(self):
        return self.engine.profile()['adapts']

def crowd(graph, *shape):
    '''Steps that keep all threads busy.'''
    x = graph.input(*shape)
    for _ in range(24):
        x = graph.eltwise(x, 'tanh')
    return x

def light():
    graph = Graph()
    return Model(graph.output(crowd(graph, 1, 64, 112, 112)), (1, 64, 112, 112))

def long_sums():
    # Which of the two is split among the threads depends on the processor. There are few results:
    # now and then they come to the same bits.
    graph, k = Graph(), 1 << 20
    x = crowd(graph, 1, k)
    y = graph.node('matmul', [x, graph.constant(k, 3)])
    x = graph.node('inner_product', [x, graph.constant(3, k)])
    return Model(graph.output(graph.add(x, y)), (1, 3))

def busy():
    code = 'import os\\nparent = os.getppid()\\nwhile os.getppid() == parent: sum(range(100000))'
    return subprocess.Popen([sys.executable, '-S', '-c', code])

def cores_of_others():
    '''Yield, each time it is asked, how many cores others have used since the last time.'''
    def seconds():
        fields = open('/proc/stat').readline().split()
        total = sum(int(fields[i]) for i in (1, 2, 3, 8))  # user, nice, system, steal
        own = time.process_time()
        return time.monotonic(), total / os.sysconf('SC_CLK_TCK') - own
    before = seconds()
    while True:
        now = seconds()
        yield (now[1] - before[1]) / max(now[0] - before[0], 1e-3)
        before = now

def within(seconds, condition):
    end = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < end:
        pass
    return holds
"""


def run_script(code, threads=THREADS, **env):
    spin = load_module(PACKAGE / "native.py").SPIN_COUNT  # as if nothing were set
    process = run_python(PREAMBLE + code, OMP_NUM_THREADS=str(threads), GOMP_SPINCOUNT=spin, **env)
    assert process.returncode == 0, process.stderr


def test_one_thread_less_while_it_is_crowded():
    """And all again afterwards; but two threads on a single core always crowd each other."""
    run_script("""
model, process, others = light(), busy(), cores_of_others()

def expect(what, holds, least):
    # Where yet others use the machine, nothing can be said.
    next(others)
    assert within(60, lambda: holds(model.share_of_fewer(4)) or next(others) > least + 0.1), what

expect('one thread less', lambda share: share > 0.6, least=1)
assert model.adapts()
process.kill()
process.wait()
if len(os.sched_getaffinity(0)) > 1:
    expect('all threads again', lambda share: share < 0.4, least=0)
""")


def test_results_that_would_change():
    run_script("""
model, process = long_sums(), busy()
assert model.adapts()
assert within(60, lambda: model.share_of_fewer(1) == 0 and not model.adapts()), 'never tried'
""")


def test_one_thread_is_the_least():
    run_script("assert not light().adapts()", threads=1)


def test_fixed():
    run_script("assert light().adapts()")
    run_script("assert not light().adapts()", DNNL_BYOC_THREADS="fixed")


@pytest.mark.parametrize(
    "setting", [{"OMP_DYNAMIC": "true"}, {"OMP_THREAD_LIMIT": "1"}], ids=["dynamic", "limit"]
)
def test_fewer_threads_than_there_could_be(setting):
    """OpenMP may give fewer than oneDNN asks for: no part of the results is left out."""
    code = """
from test_engine_random_numbers import test_random_graphs

for seed in range(40):
    test_random_graphs(seed)
"""
    process = run_python(code, OMP_NUM_THREADS=str(2 * CORES), **setting)
    assert process.returncode == 0, process.stderr
