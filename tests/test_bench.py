import dataclasses
import importlib.util
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from rich.console import Console

from tvm_dnnl_byoc.bench import cli, conversion, memory, models, plot
from tvm_dnnl_byoc.bench.backends import BuildOptions, autoscheduler
from tvm_dnnl_byoc.bench.busy import BusyProcesses
from tvm_dnnl_byoc.bench.process import WorkerError, WorkerProcess
from tvm_dnnl_byoc.bench.progress import Progress
from tvm_dnnl_byoc.bench.report import print_report
from tvm_dnnl_byoc.bench.results import (
    BackendResult,
    BenchmarkResult,
    Deployment,
    ModelResult,
    StepResult,
)
from tvm_dnnl_byoc.bench.runner import Runner
from tvm_dnnl_byoc.bench.settings import Settings, ours_beside
from tvm_dnnl_byoc.bench.stats import Percentiles, Spread, images_per_second, ratio_over_rounds
from tvm_dnnl_byoc.bench.steps import StepSum, sum_of_steps
from tvm_dnnl_byoc.bench.worker import one_line, relative_error
from tvm_dnnl_byoc.bench.zoos import ZOOS

OPTIONS = dataclasses.asdict(BuildOptions(threads=1))
SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "bench_gluoncv.py"
TRANSFORMERS_SCRIPT = SCRIPT.with_name("bench_transformers.py")

needs_mxnet = pytest.mark.skipif(
    importlib.util.find_spec("mxnet") is None, reason="mxnet is not installed (Python > 3.11)"
)

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None,
    reason="PyTorch and transformers are not installed (and cannot be beside gluoncv)",
)

needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None,
    reason="matplotlib is not installed (Python > 3.11)",
)


def test_percentiles_are_milliseconds():
    seconds = np.random.default_rng(0).permutation(np.arange(101)) / 1000
    found = Percentiles.of(seconds)
    assert (found.p50, found.p90, found.p99) == pytest.approx((50, 90, 99))


def test_ratio_cancels_the_drift_between_rounds():
    ours, theirs = [1.0, 2.0, 30.0], [3.0, 4.0, 5.0]
    drift = (1.0, 7.0, 0.2)
    ratio = ratio_over_rounds(
        [[value * factor for value in theirs] for factor in drift],
        [[value * factor for value in ours] for factor in drift],
    )
    assert dataclasses.astuple(ratio) == pytest.approx((2, 2, 2))
    assert ratio_over_rounds([[2], [9], [4]], [[1], [3], [1]]) == Spread(3, 2, 4)


def test_throughput_of_one_instance():
    assert images_per_second([[0.1, 0.3]], batch_size=32) == pytest.approx(64 / 0.4)


def test_throughput_counts_only_while_all_instances_run():
    # The first one stops after 1 s; by then the second has done 1 and a quarter inferences.
    assert images_per_second([[0.5, 0.5], [0.8, 0.8, 0.1]], 1) == pytest.approx(3.25)


def test_relative_error_refers_to_the_scale_of_the_reference():
    reference = np.array([[1.0, -8.0, 3.0]], np.float32)
    assert relative_error(reference + np.float32([[0, 0, 2]]), reference) == pytest.approx(0.25)
    with pytest.raises(ValueError, match=r"expected shape \(1, 3\), got \(3,\)"):
        relative_error(reference[0], reference)


def step(kind, impl, ms):
    return {"kind": kind, "impl": impl, "layouts": {}, "bytes": 64, "post_ops": "", "ms": ms}


PROFILE = {
    "first": {
        "steps": [
            step("reorder", "jit:uni", 0.25),
            step("winograd_src", "winograd", 0.5),
            step("matmul", "brg:avx512_core", 4.0),
            step("winograd_dst", "winograd", 1.0),
        ],
        "chunks": 1,
        "threads": 2,
        "ms": 100.0,
    },
    # Of the three chunks, one of the threads computes two.
    "second": {
        "steps": [step("matmul", "brg:avx512_core", 1.0)],
        "chunks": 3,
        "threads": 2,
        "ms": 100.0,
    },
}


def test_sum_of_steps_covers_all_regions_and_kernels():
    assert sum_of_steps(PROFILE, runs=7) == StepSum(
        milliseconds=7.75,
        runs=7,
        kinds={
            "reorder": {"count": 1, "milliseconds": 0.25},
            "winograd_src": {"count": 1, "milliseconds": 0.5},
            "matmul": {"count": 2, "milliseconds": 6.0},
            "winograd_dst": {"count": 1, "milliseconds": 1.0},
        },
        implementations={"jit:uni": 1, "winograd": 2, "brg:avx512_core": 2},
    )


@pytest.mark.parametrize(
    ("precision", "names"),
    [
        ("f32", ("dnnl", "mxnet", "openvino")),
        ("bf16", ("dnnl-bf16", "openvino-bf16")),
        (
            "f32,int8",
            ("dnnl", "mxnet", "openvino", "dnnl-int8", "mxnet-int8", "openvino-int8"),
        ),
    ],
)
def test_precisions_that_backends_have(precision, names):
    parser = cli._parser(ZOOS["gluoncv"])
    arguments = parser.parse_args(["--precision", precision, "--backends", "dnnl,mxnet,openvino"])
    assert cli._backends(parser, arguments, "gluoncv") == names


def test_each_precision_is_compared_with_its_own():
    pairs = {"tvm-autoscheduler": "dnnl", "dnnl": "dnnl", "openvino-int8": "dnnl-int8"}
    assert {name: ours_beside(name) for name in pairs} == pairs


@pytest.mark.parametrize("regions", [{}, {"first": PROFILE["first"] | {"steps": []}}])
def test_sum_of_steps_needs_steps(regions):
    with pytest.raises(ValueError, match=f"expected steps, got none in {len(regions)} regions"):
        sum_of_steps(regions, runs=1)


SETTINGS = Settings(
    mode="realtime",
    models=("resnet18_v1",),
    backends=("dnnl", "tvm", "mxnet"),
    threads=2,
    batch_size=1,
    batch_may_shrink=False,
    instances=3,
    cores=(1, 2, 3, 5, 8, 9),
    warmup=1,
    runs=10,
    rounds=3,
    seed=0,
    sum_of_steps=False,
)


def test_cores_of_instances_do_not_overlap():
    settings = SETTINGS
    assert [settings.cores_of(instance) for instance in range(3)] == [(1, 2), (3, 5), (8, 9)]
    assert settings.runs_per_round == 4
    assert dataclasses.replace(settings, mode="latency").cores_of(0) is None


def measured(**milliseconds):
    # Of two rounds with one inference each; the second one takes 1.5 times as long.
    settings = dataclasses.replace(
        SETTINGS, mode="latency", backends=tuple(milliseconds), instances=1, rounds=2, runs=2
    )
    entries = [
        BackendResult(
            name,
            build_seconds=1.0,
            max_error=1e-6,
            rounds=[[[value / 1e3]], [[value / 1e3 * 1.5]]],
            foreign_load=[0.0, 0.0],
            deployment=Deployment(None, 0.25, 0.5, peak_mib=123.4, resident_mib=100.0),
        )
        for name, value in milliseconds.items()
    ]
    found = {"date": "2026-11-28", "cpu": "a processor", "cores": "6 usable", "tvm": "0.19.0"}
    return BenchmarkResult(settings, found, [ModelResult("resnet18_v1", 1, backends=entries)])


def printed(result):
    console = Console(file=io.StringIO(), width=200)
    print_report(result, console)
    return console.file.getvalue()


def test_table_shows_peaks_load_times_and_busy_processes():
    result = measured(dnnl=2.0, mxnet=4.0)
    text = printed(result)
    assert re.search(r"dnnl .* 123 .* 0\.75 ", text)
    assert re.search(r"mxnet .* 2\.00 \(2\.00–2\.00\)", text)
    assert "busy" not in text
    result.settings = dataclasses.replace(result.settings, busy=1)
    assert "beside 1 busy process\n" in re.sub(" +\n", "\n", printed(result))


def test_report_compares_with_the_sum_of_steps():
    result = measured(dnnl=15.5)  # the second round takes 1.5 times as long
    slow = {
        name: region | {"steps": [each | {"ms": 2 * each["ms"]} for each in region["steps"]]}
        for name, region in PROFILE.items()
    }
    rounds = [sum_of_steps(profile, runs=7) for profile in (PROFILE, slow)]
    result.models[0].steps = StepResult(rounds=rounds)
    assert (
        "resnet18_v1: dnnl p50 / sum of the times of its steps = 1.75 (1.50–2.00); the sum is "
        "11.62 ms (1 reorder 0.38, 1 winograd_src 0.75, 2 matmul 9.00, 1 winograd_dst 1.50)"
    ) in " ".join(printed(result).split())
    result.models[0].steps = StepResult(error="no answer within 9 s")
    assert "resnet18_v1, sum of steps: no answer within 9 s" in printed(result)


def test_table_says_that_the_batch_did_not_fit():
    result = measured(dnnl=2.0)
    result.settings = dataclasses.replace(result.settings, batch_size=32)
    result.models[0].batch_size = 8
    assert "resnet18_v1: batch 8, for 32 did not fit into memory" in printed(result)


def test_failed_deployment_fails_the_run_but_not_the_timing():
    result = measured(dnnl=2.0)
    assert not result.failed
    result.models[0].backends[0].deployment = Deployment(error="no compiler")
    assert result.failed
    assert "resnet18_v1, dnnl, deployed: no compiler" in printed(result)
    assert result.models[0].find("dnnl")


def test_stored_result_reads_back(tmp_path):
    result = measured(dnnl=2.0, mxnet=4.0)
    sums = sum_of_steps(PROFILE, runs=7)
    result.models[0].steps = StepResult(rounds=[sums, sums])
    result.write_json(tmp_path / "result.json")
    assert BenchmarkResult.read_json(tmp_path / "result.json") == result


@pytest.mark.parametrize(("text", "got"), [('{"schema_version": 1}', "1"), ("[]", "None")])
def test_stored_result_of_another_schema_is_refused(tmp_path, text, got):
    file = tmp_path / "result.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=f"expected schema_version 4, got {got}"):
        BenchmarkResult.read_json(file)


@needs_matplotlib
def test_figure_is_in_per_cent_of_mxnet(tmp_path):
    figure = plot.figure_of(measured(dnnl=2.0, tvm=8.0, mxnet=4.0))
    (axes,) = figure.axes
    heights = [bars[0].get_height() for bars in axes.containers if hasattr(bars, "patches")]
    assert heights == pytest.approx([200, 50, 100])
    assert axes.get_ylim()[0] == 0
    texts = [text.get_text() for text in figure.texts]
    assert "a processor" in texts[0]
    assert "2026-11-28" in texts[0]
    assert "tvm 0.19.0" in texts[0]


@needs_matplotlib
def test_figure_needs_a_result_of_mxnet(tmp_path):
    result = measured(dnnl=2.0, mxnet=4.0)
    result.models[0].backends[1].error = "failed"
    with pytest.raises(ValueError, match="expected a model with a result of mxnet, got none"):
        plot.draw(result, tmp_path)


@needs_matplotlib
def test_stored_result_is_printed_and_drawn_without_measuring(tmp_path):
    store = tmp_path / "result.json"
    measured(dnnl=2.0, mxnet=4.0).write_json(store)
    finished = run_script("--from-json", str(store), "--plot", str(tmp_path))
    assert finished.returncode == 0, finished.stderr
    assert "resnet18_v1" in finished.stdout
    assert finished.stderr == ""
    assert (tmp_path / "latency.png").read_bytes().startswith(b"\x89PNG")


def test_busy_processes_take_processor_time_and_end():
    others = set(psutil.Process().children())  # of tests before
    with BusyProcesses(1) as busy:
        deadline = time.monotonic() + 60
        while busy.cpu_seconds() < 0.2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert busy.cpu_seconds() >= 0.2
        (process,) = set(psutil.Process().children()) - others
    assert not process.is_running()


def test_busy_process_ends_with_its_parent():
    code = (
        "from tvm_dnnl_byoc.bench.busy import BusyProcesses; import os\n"
        "BusyProcesses(1).__enter__(); os._exit(0)"
    )
    # The busy process inherits the pipe, which is closed, before the time is over, when it ends.
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, timeout=120)


def test_memory_of_this_process_counts_what_it_holds():
    before = memory.resident_mib()
    held = np.ones(2**23)  # 64 MiB
    grown = memory.resident_mib() - before
    assert 60 < grown < 100
    assert memory.peak_mib() >= before + grown
    del held


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("worker ended (killed by SIGKILL)", True),
        ("MXNetError: Failed to allocate CPU Memory", True),
        ("RuntimeError: std::bad_alloc", True),
        ("worker ended (killed by SIGSEGV)", False),
    ],
)
def test_lack_of_memory_is_recognised(message, expected):
    assert WorkerError(message).out_of_memory is expected


def test_batch_is_halved_until_it_fits(monkeypatch):
    tried = []

    def fits(self, model, directory):
        tried.append(model.batch_size)
        raise WorkerError("MemoryError" if model.batch_size > 8 else "something else")

    monkeypatch.setattr(Runner, "_prepare", fits)
    settings = dataclasses.replace(SETTINGS, batch_size=32, batch_may_shrink=True)
    progress = Progress(Console(file=io.StringIO()))
    (model,) = Runner(settings, progress).run()
    assert tried == [32, 16, 8]
    assert (model.batch_size, model.error) == (8, "something else")
    tried.clear()
    settings = dataclasses.replace(settings, batch_may_shrink=False)
    (model,) = Runner(settings, progress).run()
    assert tried == [32]
    assert model.error == "MemoryError"


def test_errors_of_tvm_lose_their_traceback():
    class InternalError(Exception):
        pass

    error = InternalError(
        "Traceback (most recent call last):\n  1: void f()\nInternalError: Check\n failed"
    )
    assert one_line(error) == "InternalError: Check failed"
    assert one_line(ValueError("")) == "ValueError: no message"


def test_failed_conversion_concerns_only_who_needs_it(tmp_path):
    with conversion.attempt(tmp_path, "export to ONNX"):
        raise KeyError("no such operator")
    conversion.check(tmp_path, "conversion to Relay")
    with pytest.raises(RuntimeError, match="export to ONNX: KeyError: 'no such operator'"):
        conversion.check(tmp_path, "export to ONNX")


@needs_mxnet
def test_onnx_export_folds(tmp_path):
    from tvm_dnnl_byoc.bench.models import prepare_gluoncv
    from tvm_dnnl_byoc.bench.onnx_export import to_onnx

    exported = to_onnx(prepare_gluoncv("squeezenet1.1"))
    assert [value.name for value in exported.graph.input] == ["data"]
    assert len(exported.graph.initializer) == 52
    assert exported.graph.initializer[0].raw_data


def test_tuned_backend_takes_the_records_of_its_network(tmp_path):
    import tvm
    from tvm import auto_scheduler, relay

    rng = np.random.default_rng(0)
    data, kernel = (rng.random(shape, np.float32) for shape in ((1, 4, 7, 6), (5, 4, 3, 3)))
    convolution = relay.nn.conv2d(
        relay.var("data", shape=data.shape), relay.var("kernel", shape=kernel.shape)
    )
    module = relay.transform.InferType()(tvm.IRModule.from_expr(convolution))
    params = {"kernel": tvm.nd.array(kernel)}
    (tmp_path / "relay.json").write_text(tvm.ir.save_json(module))
    (tmp_path / "relay.params").write_bytes(tvm.runtime.save_param_dict(params))
    models.save_inputs([{models.INPUT_NAME: data}], tmp_path)

    records = tmp_path / "records.json"
    options = BuildOptions(threads=1, tuning_records=str(records), tuning_trials=1)
    with pytest.raises(ValueError, match="expected records of this network and processor"):
        autoscheduler.build(tmp_path, options)
    ((task,), _) = autoscheduler._extract_tasks(tmp_path)
    schedule = auto_scheduler.MeasureInput(task, task.compute_dag.get_init_state())
    result = auto_scheduler.MeasureResult([0.1], 0, "", 0.2, 1)
    auto_scheduler.save_records(str(records), [schedule], [result])

    autoscheduler.tune(tmp_path, options)  # has its one trial already
    assert len(records.read_text().splitlines()) == 1
    network = autoscheduler.build(tmp_path, options)
    assert network.facts["tuning_records"] == 1
    network.run()
    windows = np.lib.stride_tricks.sliding_window_view(data, (3, 3), axis=(2, 3))
    expected = np.einsum("nchwyx,ocyx->nohw", windows, kernel)
    assert relative_error(network.output(), expected) < 1e-6


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino", "mxnet"])
def test_missing_peer_is_one_line(tmp_path, backend):
    (tmp_path / f"{backend}.py").write_text(f"raise ModuleNotFoundError('No module {backend}')")
    with WorkerProcess(tmp_path / "log", {"PYTHONPATH": str(tmp_path)}) as worker:
        for _ in range(2):
            with pytest.raises(WorkerError, match=f"^ModuleNotFoundError: No module {backend}$"):
                worker.call("build", backend=backend, directory=str(tmp_path), options=OPTIONS)


def test_worker_reports_an_error_and_serves_on(tmp_path):
    with WorkerProcess(tmp_path / "log", {}) as worker:
        for _ in range(2):
            with pytest.raises(WorkerError, match=r"FileNotFoundError: .*relay\.json"):
                worker.call("build", backend="tvm", directory=str(tmp_path), options=OPTIONS)


def test_worker_that_dies_is_an_error(tmp_path):
    with WorkerProcess(tmp_path / "log", {}) as worker:
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(WorkerError, match="killed by SIGKILL"):
            worker.call("models", zoo="gluoncv")


@needs_mxnet
def test_peers_run_without_our_libraries(tmp_path):
    with WorkerProcess(tmp_path / "log", {}) as worker:
        assert "resnet50_v1b" in worker.call("models", zoo="gluoncv")["models"]
        loaded = Path(f"/proc/{worker.pid}/maps").read_text()
    assert "libmxnet" in loaded
    assert "libdnnl" not in loaded
    assert "libtvm" not in loaded


def run_script(*arguments, script=SCRIPT):
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mode", "speed"], "--mode: expected one of latency, throughput, realtime, got 'speed'"),
        (["--backends", "tvm,abc"], "--backends: expected one of dnnl, tvm, "),
        (
            ["--backends", "tvm-autoscheduler"],
            "expected --tuning-records or --tuning-trials with tvm-autoscheduler, got neither",
        ),
        (["--busy", "-1"], "argument --busy: expected a positive integer, got '-1'"),
        (["--plot", "/dev/null"], "argument --plot: expected a writable directory, got"),
        (["--plot", "/", "--backends", "dnnl"], "--plot: expected backend mxnet to compare with"),
        (["--from-json", "/none"], "--from-json: [Errno 2] No such file or directory"),
        (["--backends", ","], "--backends: expected names separated by commas, got ','"),
        (["--backends", "dnnl-bf16"], "--backends: expected one of dnnl, tvm, "),
        (["--precision", "f33"], "--precision: expected one of f32, bf16, int8, got 'f33'"),
        (
            ["--precision", "bf16", "--backends", "mxnet"],
            "--precision: expected a backend that has bf16, got mxnet",
        ),
        (["--runs", "none"], "argument --runs: expected a positive integer, got 'none'"),
        (["--threads", "0"], "argument --threads: expected a positive integer, got '0'"),
        (["--threads", "99999"], "--threads: expected at most"),
        (["--instances", "2"], "--instances: expected mode realtime, got latency"),
        (["--json", "/"], "argument --json: expected a file in a writable directory, got '/'"),
        pytest.param(
            ["--models", "resnet5_v1b"],
            "such as resnet50_v1b",
            marks=needs_mxnet,
        ),
    ],
)
def test_wrong_option_is_one_line_and_exit_code_2(arguments, message):
    finished = run_script(*arguments)
    assert finished.returncode == 2
    assert message in finished.stderr
    assert "Traceback" not in finished.stderr
    assert finished.stdout == ""
    assert finished.stderr.splitlines()[-1].startswith("bench_gluoncv.py: error: ")


@needs_mxnet
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # MXNet's own
def test_prepared_model_is_reproducible_and_exercises_batch_norm():
    from tvm_dnnl_byoc.bench.models import prepare_gluoncv

    first, second = (prepare_gluoncv("resnet18_v1", batch_size=2, seed=3) for _ in range(2))
    assert np.array_equal(first.reference, second.reference)
    assert first.reference.shape == (2, 1000)
    assert 0.1 < first.reference.std() < 100
    # Another image, another answer: nothing saturates.
    assert np.abs(first.reference[0] - first.reference[1]).max() > 0.01
    values = first.arg_params | first.aux_params
    for suffix in ("gamma", "beta", "running_mean", "running_var"):
        named = [array.asnumpy() for key, array in values.items() if key.endswith(suffix)]
        assert all(array.std() > 0 for array in named)
        assert len(named) == 20


@needs_mxnet
def test_script_end_to_end(tmp_path):
    store = tmp_path / "result.json"
    finished = run_script(
        *("--models", "squeezenet1.1", "--backends", "dnnl,mxnet,onnxruntime,openvino"),
        *("--warmup", "1", "--runs", "2", "--rounds", "1", "--busy", "1", "--json", str(store)),
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "squeezenet1.1" in finished.stdout
    assert "beside 1 busy process" in finished.stdout
    assert "building backend dnnl" in finished.stderr
    document = json.loads(store.read_text())
    (model,) = document["models"]
    names = ["dnnl", "mxnet", "onnxruntime", "openvino"]
    assert [entry["backend"] for entry in model["backends"]] == names
    for entry in model["backends"]:
        assert entry["error"] is None
        assert entry["max_error"] < 1e-4
        assert len(entry["rounds"][0][0]) == 2
        assert entry["deployment"]["error"] is None
        # A deployment has built nothing.
        assert 10 < entry["deployment"]["peak_mib"] <= 1.1 * entry["peak_mib"]
        assert entry["versions"]
    dnnl = model["backends"][0]
    assert dnnl["facts"]["regions"] >= 1
    assert dnnl["facts"]["offloaded_share"] == 1
    assert model["steps"]["error"] is None
    (steps,) = model["steps"]["rounds"]
    assert steps["runs"] == 2
    assert steps["kinds"]["convolution"]["count"] == 26
    assert steps["milliseconds"] > 0
    assert document["environment"]["tvm"]


@needs_mxnet
def test_script_in_int8(tmp_path):
    """Each peer runs, deployed as well, and is about as far from single precision as ours."""
    store = tmp_path / "result.json"
    finished = run_script(
        *("--models", "squeezenet1.1", "--precision", "int8"),
        *("--backends", "dnnl,mxnet,onnxruntime,openvino"),
        *("--warmup", "1", "--runs", "1", "--rounds", "1", "--json", str(store)),
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    (result,) = BenchmarkResult.read_json(store).models
    names = ["dnnl-int8", "mxnet-int8", "onnxruntime-int8", "openvino-int8"]
    assert [entry.backend for entry in result.backends] == names
    for entry in result.backends:
        assert entry.error is None, entry.backend
        assert 1e-4 < entry.max_error < 0.2, entry.backend
        assert entry.deployment.error is None, entry.backend
        assert entry.deployment.peak_mib > 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backends", "mxnet"], "expected one of dnnl, tvm, onnxruntime, openvino, torch, "),
        (
            ["--precision", "int8"],
            "--precision: expected a backend that has int8, got dnnl, tvm, onnxruntime, ",
        ),
        pytest.param(
            ["--models", "bert_base_12"],
            "expected one of this benchmark's 6 names, such as bert_base_128, ",
            marks=needs_transformers,
        ),
    ],
)
def test_transformers_have_backends_and_names_of_their_own(arguments, message):
    finished = run_script(*arguments, script=TRANSFORMERS_SCRIPT)
    assert finished.returncode == 2
    assert message in finished.stderr


@needs_transformers
@pytest.mark.parametrize(("model", "batch"), [("bert_tiny_32", 2), ("bert_tiny_mixed", 1)])
def test_transformers_end_to_end(model, batch, tmp_path):
    store = tmp_path / "result.json"
    finished = run_script(
        *("--models", model, "--precision", "f32,bf16", "--batch-size", str(batch)),
        *("--backends", "dnnl,onnxruntime,openvino,torch"),
        *("--warmup", "1", "--runs", "2", "--rounds", "1", "--json", str(store)),
        script=TRANSFORMERS_SCRIPT,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "sequences/s" in finished.stdout
    (result,) = BenchmarkResult.read_json(store).models
    errors = {backend.backend: backend.max_error for backend in result.backends}
    assert set(errors) == {
        *("dnnl", "dnnl-bf16", "onnxruntime", "openvino", "openvino-bf16", "torch", "torch-bf16")
    }
    for name, error in errors.items():
        # PyTorch in bf16 also normalises in bf16.
        assert error < (1e-4 if not name.endswith("bf16") else 5e-2), name
    assert result.find("dnnl").facts["regions"] == 1
    assert result.find("dnnl").deployment.error is None
