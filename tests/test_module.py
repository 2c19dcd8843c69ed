"""The runtime module: saved and loaded, called wrongly, called from many threads, at the exit."""

import json
import os
import re
import threading

import numpy as np
import psutil
import pytest
import tvm
from engine_graph import one_thread
from helpers import (
    build,
    const,
    conv2d,
    in_tvm,
    inputs_for,
    module,
    random,
    run,
    run_python,
    run_vm,
    steps_of,
    var,
)
from tvm import relay
from tvm.contrib import graph_executor

from tvm_dnnl_byoc import build_info, partition_for_dnnl, profile
from tvm_dnnl_byoc.profile import regions


def small_model():
    """Two regions with a TVM operator in between; constants in both."""
    y = relay.nn.relu(
        relay.nn.bias_add(conv2d(var("x", 2, 3, 11, 9), const(10, 3, 3, 3)), const(10))
    )
    y = in_tvm(relay.nn.max_pool2d(y, (2, 2), (2, 2)))
    y = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(conv2d(y, const(17, 10, 3, 2, seed=2))))
    return module(relay.nn.softmax(relay.add(relay.nn.dense(y, const(5, 17)), const(5))))


@pytest.fixture(scope="module")
def lib():
    return build(partition_for_dnnl(small_model()))


@pytest.fixture(scope="module")
def exported(lib, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "model.so"
    lib.export_library(str(path))
    return path


INPUTS = inputs_for(small_model())

LOAD_AND_RUN = """
import sys
import numpy as np
import tvm, tvm_dnnl_byoc
from tvm.contrib import graph_executor
lib = tvm.runtime.load_module(sys.argv[1])
executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
executor.set_input("x", np.load(sys.argv[2]))
executor.run()
np.save(sys.argv[3], executor.get_output(0).numpy())
"""


# --- save and load --------------------------------------------------------------------------------


def test_exported_library_without_the_compiler(lib, exported, tmp_path):
    """In a process that has TVM's runtime only."""
    np.save(tmp_path / "x.npy", INPUTS["x"])
    code = (
        "import os; os.environ['TVM_USE_RUNTIME_LIB'] = '1'\n"
        + LOAD_AND_RUN
        + (
            "assert 'tvm.relay' not in sys.modules\n"
            "assert not hasattr(tvm_dnnl_byoc, 'partition_for_dnnl')\n"
            "assert tvm_dnnl_byoc.profile(lib)\n"
        )
    )
    process = run_python(code, exported, tmp_path / "x.npy", tmp_path / "y.npy")
    assert process.returncode == 0, process.stderr
    (expected,) = run(lib, INPUTS)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)


RUNTIME = """
import os, sys
os.environ['TVM_USE_RUNTIME_LIB'] = '1'
import {}
status = open('/proc/self/status').read()
print(next(line.split()[1] for line in status.splitlines() if line.startswith('VmHWM')))
index = ctypes.c_uint()
assert tvm._ffi.base._LIB.TVMObjectTypeKey2Index(b'no.Type', ctypes.byref(index)) != 0
assert tvm.nd.array(numpy.arange(3)).numpy()[2] == 2
"""


def test_runtime_alone_without_backtraces():
    """TVM's runtime throws at each type that it does not have, and reads all symbols for it."""
    kib = []
    for order in ("numpy, ctypes, tvm_dnnl_byoc, tvm", "numpy, ctypes, tvm, tvm_dnnl_byoc"):
        process = run_python(RUNTIME.format(order))
        assert process.returncode == 0, process.stderr
        kib.append(int(process.stdout.split()[-1]))
    assert kib[0] < kib[1] - 15 * 1024


def test_built_with_measurement(monkeypatch):
    """Whatever is measured each time, a region's code and its constants fit together."""
    y = var("x", 1, 16, 20, 19)
    for seed in range(3):
        y = conv2d(y, const(16, 16, 3, 3, seed=seed), padding=(1, 1))
    mod = module(y)
    expected = run(build(mod), inputs_for(mod))
    monkeypatch.setenv("DNNL_BYOC_TUNE", "layouts")
    for _ in range(5):
        lib = build(partition_for_dnnl(mod))
        np.testing.assert_allclose(run(lib, inputs_for(mod)), expected, rtol=1e-4, atol=1e-4)
        (region,) = regions(lib.get_lib())
        assert "tuned" in json.loads(region["get_graph"]())
        assert profile(lib)[region["get_symbol"]()]["repacked_bytes"] == 0


@pytest.mark.skipif(build_info()["isa"] in ("SSE41", "AVX"), reason="the kernels need AVX2")
def test_winograd_in_an_exported_library(monkeypatch, tmp_path):
    """64 channels of 56 x 56 are where the algorithm wins most: 2 to 4 times."""
    y = conv2d(var("x", 1, 16, 56, 56), const(64, 16, 1, 1))
    for seed in (1, 2):
        y = relay.nn.relu(conv2d(y, const(64, 64, 3, 3, seed=seed), padding=(1, 1)))
    mod = module(y)
    inputs = inputs_for(mod)
    (expected,) = run(build(partition_for_dnnl(mod)), inputs)
    monkeypatch.delenv("DNNL_BYOC_TUNE")
    with one_thread():
        lib = build(partition_for_dnnl(mod))
    lib.export_library(str(tmp_path / "model.so"))
    loaded = tvm.runtime.load_module(str(tmp_path / "model.so"))
    (got,) = run(loaded, inputs)
    np.testing.assert_array_equal(got, run(lib, inputs)[0])
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    ((_, plan),) = profile(loaded).items()
    kinds = [step["kind"] for step in plan["steps"]]
    assert kinds.count("winograd_src") >= 2
    assert kinds.count("winograd_dst") == kinds.count("winograd_src")


def test_exported_library_in_a_fresh_process(lib, exported, tmp_path):
    np.save(tmp_path / "x.npy", INPUTS["x"])
    process = run_python(LOAD_AND_RUN, exported, tmp_path / "x.npy", tmp_path / "y.npy")
    assert process.returncode == 0, process.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), run(lib, INPUTS)[0])


def test_loaded_library_is_described_like_the_built_one(lib, exported):
    loaded = tvm.runtime.load_module(str(exported))
    assert len(list(regions(loaded))) == 2
    assert steps_of(loaded) == steps_of(lib)


def test_without_the_package_loading_says_what_is_missing(exported, tmp_path):
    code = LOAD_AND_RUN.replace(", tvm_dnnl_byoc", "")
    process = run_python(code, exported, "x", "y")
    assert process.returncode == 1
    assert "dnnl_byoc" in process.stderr


def test_exported_vm_executable(tmp_path):
    partitioned = partition_for_dnnl(small_model())
    with tvm.transform.PassContext(opt_level=3):
        executable = relay.vm.compile(partitioned, "llvm")
    executable.mod.export_library(str(tmp_path / "vm.so"))
    np.save(tmp_path / "x.npy", INPUTS["x"])
    code = """
import sys
import numpy as np
import tvm, tvm_dnnl_byoc
lib = tvm.runtime.load_module(sys.argv[1])
machine = tvm.runtime.vm.VirtualMachine(lib, tvm.cpu())
np.save(sys.argv[3], machine.run(np.load(sys.argv[2])).numpy())
"""
    arguments = [tmp_path / "vm.so", tmp_path / "x.npy", tmp_path / "y.npy"]
    process = run_python(code, *arguments)
    assert process.returncode == 0, process.stderr
    np.testing.assert_array_equal(np.load(arguments[2]), run_vm(partitioned, INPUTS)[0])


def damage(exported, tmp_path, pattern, replacement):
    """Return a copy of the library with one place of its JSON graphs replaced, of equal length."""
    data = exported.read_bytes()
    found = re.search(pattern, data)
    assert found, pattern
    assert len(replacement) == len(found.group(0))
    path = tmp_path / "damaged.so"
    path.write_bytes(data[: found.start()] + replacement + data[found.end() :])
    return path


DAMAGED = {
    "another version": (rb'"version":3', b'"version":7', "expected version 3, got 7"),
    "another format": (rb'"format":"dnnl_byoc"', b'"format":"dnnl_bxxx"', "expected format"),
    "no JSON": (rb'"version":3', b'"version"{3', "not a well-formed"),
    "no nodes": (rb'"nodes":\[{"attrs"', b'"modes":[{"attrs"', "not a well-formed"),
    "unknown kind": (rb'"kind":"convolution"', b'"kind":"convolutioo"', "unknown kind of node"),
    "unknown alg": (rb'"alg":"max"', b'"alg":"may"', "alg max"),
    "unknown dtype": (rb'"dtype":"f32"', b'"dtype":"f33"', "expected a oneDNN dtype"),
    "another stride": (rb'"strides":\[1,1\]', b'"strides":[0,1]', "strides"),
    "negative groups": (rb'"groups":1', b'"groups":9', "convolution: expected weights"),
    "another tag": (rb'"tag":"[A-Za-z]', b'"tag":"?', "a format tag for the shape"),
    "strings for numbers": (rb'"groups":1', b'"groups":{', "not a well-formed"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_library(exported, tmp_path, name):
    """Never a crash: a ValueError that says what is wrong, at loading or at the first use."""
    pattern, replacement, message = DAMAGED[name]
    path = damage(exported, tmp_path, pattern, replacement)
    np.save(tmp_path / "x.npy", INPUTS["x"])
    process = run_python(LOAD_AND_RUN, path, tmp_path / "x.npy", tmp_path / "y.npy")
    assert process.returncode == 1, process.stderr
    assert "ValueError: " in process.stderr
    assert message in process.stderr


def numbers(data):
    """Return the offsets of the numbers in a region's binary form, to its first constant's."""
    graph = data.index(b'{"constants"')
    symbol = data.rindex(b"tvmgen_default_dnnl", 0, graph)
    constants = graph + int.from_bytes(data[graph - 8 : graph], "little")
    rank = constants + 8 + 4  # after the dtype
    shape = rank + 8
    return {
        "format": symbol - 16,
        "symbol": symbol - 8,
        "graph": graph - 8,
        "constants": constants,
        "rank": rank,
        "shape": shape,
        "padding": shape + 8 * int.from_bytes(data[rank : rank + 8], "little"),
    }


def with_changed_number(exported, tmp_path, field, change):
    data = bytearray(exported.read_bytes())
    offset = numbers(data)[field]
    number = int.from_bytes(data[offset : offset + 8], "little") + change
    data[offset : offset + 8] = number.to_bytes(8, "little")
    path = tmp_path / "damaged.so"
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize("field", ["symbol", "graph", "constants", "rank", "shape", "padding"])
@pytest.mark.parametrize("change", [100_000, 1 << 40, 1 << 62, (1 << 63) - 9])
def test_payload_that_ends_too_early(exported, tmp_path, field, change):
    path = with_changed_number(exported, tmp_path, field, change)
    with pytest.raises(ValueError, match="the file is damaged"):
        tvm.runtime.load_module(path)


def test_payload_in_another_format(exported, tmp_path):
    """The first releases wrote none: there, the symbol's length takes its place."""
    path = with_changed_number(exported, tmp_path, "format", len("tvmgen_default_dnnl_main_0") - 2)
    with pytest.raises(ValueError, match="region in format 2, got another: export the library"):
        tvm.runtime.load_module(path)


# --- calls ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def region():
    """One region's function: two inputs of shape (2, 3, 7, 5) and (10, 1, 1); one output."""
    y = relay.multiply(conv2d(var("x", 2, 3, 7, 5), const(10, 3, 3, 3)), var("v", 10, 1, 1))
    lib = build(partition_for_dnnl(module(y))).get_lib()
    (symbol,) = (r["get_symbol"]() for r in regions(lib))
    return lib.get_function(symbol, query_imports=True)


def arguments(**changed):
    made = {
        "x": random(2, 3, 7, 5),
        "v": random(10, 1, 1),
        "out": np.empty((2, 10, 5, 3), "float32"),
    }
    return [tvm.nd.array(array) for array in (made | changed).values()]


def test_direct_call(region):
    x, v, out = arguments()
    region(x, v, out)
    again = arguments()[2]
    region(x, v, again)
    np.testing.assert_array_equal(out.numpy(), again.numpy())
    assert np.abs(out.numpy()).max() > 0.1


WRONG = {
    "batch": ({"x": random(1, 3, 7, 5)}, r"0: expected shape \(2, 3, 7, 5\), got \(1, 3, 7, 5\)"),
    "rank": ({"x": random(6, 7, 5)}, r"input 0: expected shape \(2, 3, 7, 5\), got \(6, 7, 5\)"),
    "second": ({"v": random(10)}, r"input 1: expected shape \(10, 1, 1\), got \(10,\)"),
    "output": (
        {"out": np.empty((2, 10, 5, 4), "float32")},
        r"output 0: expected shape \(2, 10, 5, 3\), got \(2, 10, 5, 4\)",
    ),
    "empty": ({"x": random(0, 3, 7, 5)}, r"expected shape \(2, 3, 7, 5\), got \(0, 3, 7, 5\)"),
    "float64": (
        {"x": random(2, 3, 7, 5).astype("float64")},
        r"input 0: expected dtype f32, got .* 64 bits",
    ),
    "int32": (
        {"v": random(10, 1, 1).astype("int32")},
        r"input 1: expected dtype f32, got .* 32 bits",
    ),
    "output dtype": (
        {"out": np.empty((2, 10, 5, 3), "float16")},
        r"output 0: expected dtype f32, got .* 16 bits",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_tensors(region, name):
    changed, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        region(*arguments(**changed))
    region(*arguments())  # it still works


@pytest.mark.parametrize("count", [0, 1, 2, 4, 7])
def test_wrong_number_of_tensors(region, count):
    args = (arguments() * 3)[:count]
    with pytest.raises(ValueError, match=f"expected 2 inputs and 1 outputs, got {count} tensors"):
        region(*args)


@pytest.mark.parametrize("value", [3, 2.5, "text"])
def test_argument_that_is_no_tensor(region, value):
    _, v, out = arguments()
    with pytest.raises((TypeError, ValueError, tvm.TVMError)):
        region(value, v, out)


def test_strided_input(region):
    """A transposed view, as other libraries hand over by DLPack: refused, never misread."""
    torch = pytest.importorskip("torch")
    x, v, out = arguments()
    view = tvm.nd.from_dlpack(
        torch.from_numpy(x.numpy().transpose(3, 2, 1, 0).copy()).permute(3, 2, 1, 0)
    )
    with pytest.raises(ValueError, match="strides"):
        region(view, v, out)


def test_profile_needs_no_run(lib):
    described = profile(lib, runs=2)
    assert len(described) == 2
    for region in described.values():
        assert region["ms"] > 0
        assert all(step["ms"] >= 0 for step in region["steps"])
        assert region["reorders"] == len([s for s in region["steps"] if s["kind"] == "reorder"])
        assert region["constant_bytes"] > 0


def test_profile_needs_no_executor(lib):
    fresh = build(partition_for_dnnl(small_model()))
    assert profile(fresh) == profile(lib)


def test_profile_of_a_module_without_regions():
    assert profile(build(module(relay.nn.relu(var("x", 3))))) == {}


def test_graph_is_json(lib):
    for region in regions(lib.get_lib()):
        graph = json.loads(region["get_graph"]())
        assert graph["format"] == "dnnl_byoc"
        assert graph["version"] == 3
        assert graph["constants"]


def test_build_info():
    assert set(build_info()) == {"onednn", "isa", "runtime"}
    assert build_info()["onednn"].startswith("3.")


# --- threads --------------------------------------------------------------------------------------


def run_in_threads(count, body):
    """Run body(i) in as many threads at once; the first exception is raised here."""
    barrier = threading.Barrier(count)
    errors = []

    def thread(i):
        try:
            barrier.wait()
            body(i)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=thread, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


def test_eight_threads_on_one_module():
    """Bit-identical to serial; the first call, which sets the constants, is simultaneous."""
    partitioned = partition_for_dnnl(small_model())
    inputs = [{"x": random(2, 3, 11, 9, seed=i)} for i in range(8)]
    expected = [run(build(partitioned), data) for data in inputs]
    for _ in range(3):
        fresh = build(partitioned)
        results = [[] for _ in inputs]

        def body(i, fresh=fresh, results=results):
            executor = graph_executor.GraphModule(fresh["default"](tvm.cpu()))
            for _ in range(20):
                executor.set_input(**inputs[i])
                executor.run()
                results[i].append(executor.get_output(0).numpy())

        run_in_threads(8, body)
        for i, outputs in enumerate(results):
            assert len(outputs) == 20
            for output in outputs:
                np.testing.assert_array_equal(output, expected[i][0])


def test_eight_threads_on_one_region(region):
    """Without a graph executor between."""
    x, v, out = arguments()
    region(x, v, out)
    results = [arguments()[2] for _ in range(8)]

    def body(i):
        for _ in range(50):
            region(x, v, results[i])

    run_in_threads(8, body)
    for result in results:
        np.testing.assert_array_equal(result.numpy(), out.numpy())


def test_built_in_one_thread_and_run_in_another():
    partitioned = partition_for_dnnl(small_model())
    expected = run(build(partitioned), INPUTS)
    made, results = [], []
    run_in_threads(1, lambda i: made.append(build(partition_for_dnnl(small_model()))))
    run_in_threads(1, lambda i: results.append(run(made[0], INPUTS)))
    results.append(run(made[0], INPUTS))
    for result in results:
        np.testing.assert_array_equal(result[0], expected[0])


# --- process --------------------------------------------------------------------------------------

EXIT = """
import sys
import numpy as np
import tvm, tvm_dnnl_byoc
from tvm.contrib import graph_executor
lib = tvm.runtime.load_module(sys.argv[1])
executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
executor.set_input("x", np.ones((2, 3, 11, 9), "float32"))
executor.run()
if sys.argv[2] == "delete":
    del executor, lib
elif sys.argv[2] == "thread":
    import threading
    t = threading.Thread(target=executor.run)
    t.start()
    t.join()
"""


@pytest.mark.parametrize("policy", ["active", "passive", None])
@pytest.mark.parametrize("how", ["delete", "keep", "thread"])
def test_exit_code(exported, how, policy):
    process = run_python(EXIT, exported, how, OMP_WAIT_POLICY=policy)
    assert process.returncode == 0, process.stderr


def test_import_and_exit():
    process = run_python("import tvm_dnnl_byoc")
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""


def resident_mb():
    return psutil.Process(os.getpid()).memory_info().rss / 2**20


def test_memory_does_not_grow(lib, exported):
    """300 executors, and 100 loaded modules, each run once."""
    loads = ((300, lambda: lib), (100, lambda: tvm.runtime.load_module(str(exported))))
    for count, load in loads:
        for _ in range(count // 6):
            run(load(), INPUTS)
        before = resident_mb()
        for _ in range(count):
            run(load(), INPUTS)
        assert resident_mb() - before < 5


def test_modules_are_released():
    """A region with 8 MB of weights, built and dropped again and again."""
    y = relay.nn.relu(relay.nn.dense(var("x", 1, 2048), const(1024, 2048)))
    partitioned = partition_for_dnnl(module(y))
    inputs = {"x": random(1, 2048)}
    for _ in range(3):
        run(build(partitioned), inputs)
    before = resident_mb()
    for _ in range(10):
        run(build(partitioned), inputs)
    assert resident_mb() - before < 40
