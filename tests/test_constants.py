"""The weights of a module: in an exported library once, and used where it is mapped."""

import ctypes
import gc
import itertools
import mmap
import threading

import numpy as np
import pytest
import tvm
from helpers import (
    assert_close,
    build,
    build_plainly,
    const,
    conv2d,
    in_tvm,
    inputs_for,
    module,
    run,
    run_python,
    run_vm,
    var,
)
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl, profile
from tvm_dnnl_byoc.profile import regions
from tvm_dnnl_byoc.relay.codegen import compile_region


def one_region():
    y = relay.nn.relu(conv2d(var("x", 1, 16, 12, 9), const(32, 16, 3, 3)))
    return module(relay.nn.dense(relay.nn.batch_flatten(y), const(7, 2240, seed=1)))


@pytest.fixture(scope="module")
def lib():
    return build(partition_for_dnnl(one_region()))


@pytest.fixture(scope="module")
def exported(lib, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "model.so"
    lib.export_library(str(path))
    return path


INPUTS = inputs_for(one_region())


def test_only_the_module_has_them(lib):
    """Neither TVM's loader of constants nor the parameters."""
    assert lib.get_params() == {}
    assert len(lib.get_lib()["get_const_var_ndarray"]()) == 0


# --- in the mapped library ------------------------------------------------------------------------

PEAK = """
import sys
import numpy as np
import tvm, tvm_dnnl_byoc
from tvm.contrib import graph_executor
lib = tvm.runtime.load_module(sys.argv[1])
executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
for _ in range(3):
    executor.run(x=np.ones((1, 4096), "float32"))
(plan,) = tvm_dnnl_byoc.profile(lib).values()
assert plan["repacked_bytes"] == 0
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) / 2**10)
"""


def peak_mb(units, path, **options):
    """Return the peak of a process that runs a dense layer of 4096 inputs, without the compiler."""
    y = relay.nn.relu(relay.nn.dense(var("x", 1, 4096), const(units, 4096)))
    build(partition_for_dnnl(module(y))).export_library(str(path), **options)
    process = run_python(PEAK, path, TVM_USE_RUNTIME_LIB="1")
    assert process.returncode == 0, process.stderr
    return float(process.stdout)


@pytest.fixture(params=["aligned", "not aligned"])
def addons(request, tmp_path):
    """Nothing, or what comes before the weights in a library, as texts of TVM's operators may."""
    if request.param == "aligned":
        return []
    odd = tmp_path / "odd.cc"
    odd.write_text('extern "C" { extern const char odd[9]; const char odd[9] = "12345678"; }')
    return [str(odd)]


def test_they_are_in_memory_once(addons, tmp_path):
    """Where they have to be copied, what they are copied from goes."""
    small, large = (
        peak_mb(units, tmp_path / f"{units}.so", addons=list(addons)) for units in (16, 4096)
    )
    assert 60 < large - small < 90  # of 64 MB


KEEP = """
import gc, sys
import numpy as np
import tvm, tvm_dnnl_byoc

def is_mapped():
    gc.collect()
    return any(sys.argv[1] in line for line in open("/proc/self/maps"))

lib = tvm.runtime.load_module(sys.argv[1])
region = lib.get_function(sys.argv[4], query_imports=True)
del lib
assert is_mapped()
y = tvm.nd.empty((1, 7))
region(tvm.nd.array(np.load(sys.argv[2])), y)
np.save(sys.argv[3], y.numpy())
del region
assert not is_mapped()
"""


def test_they_stay_as_long_as_a_function(lib, exported, tmp_path):
    """Without its library, a region's function still has its weights; then both go."""
    np.save(tmp_path / "x.npy", INPUTS["x"])
    arguments = [exported, tmp_path / "x.npy", tmp_path / "y.npy"]
    process = run_python(KEEP, *arguments, symbol_of(lib))
    assert process.returncode == 0, process.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), run(lib, INPUTS)[0])


def test_executor_outlives_its_library(lib, exported):
    loaded = tvm.runtime.load_module(str(exported))
    executor = tvm.contrib.graph_executor.GraphModule(loaded["default"](tvm.cpu()))
    del loaded
    gc.collect()
    executor.run(**INPUTS)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), run(lib, INPUTS)[0])


# --- elsewhere ------------------------------------------------------------------------------------


def test_archive(lib, tmp_path):
    lib.export_library(str(tmp_path / "model.tar"))
    loaded = tvm.runtime.load_module(str(tmp_path / "model.tar"))
    np.testing.assert_array_equal(run(loaded, INPUTS)[0], run(lib, INPUTS)[0])


def test_where_they_are_not_aligned(tmp_path):
    """Other data comes before them in the library, as texts of TVM's operators may."""
    y = in_tvm(conv2d(var("x", 1, 3, 9, 8), const(32, 3, 3, 3)))
    mod = module(relay.nn.relu(conv2d(y, const(16, 32, 3, 3, seed=1))))
    built = build(partition_for_dnnl(mod))
    other = tmp_path / "other.cc"
    other.write_text('extern "C" { extern const char odd[9]; const char odd[9] = "12345678"; }')
    built.export_library(str(tmp_path / "model.so"), addons=[str(other)])
    loaded = tvm.runtime.load_module(str(tmp_path / "model.so"))
    blob = ctypes.c_char.in_dll(ctypes.CDLL(str(tmp_path / "model.so")), "__tvm_dev_mblob")
    assert ctypes.addressof(blob) % 64 != 0
    np.testing.assert_array_equal(run(loaded, inputs_for(mod))[0], run(built, inputs_for(mod))[0])
    plans = profile(loaded).values()
    assert [plan["repacked_bytes"] for plan in plans] == [0, 0]  # the module's copies are aligned


def test_module_as_text(lib):
    """TVM's nodes are saved through a stream that is neither a file's nor a library's."""
    (region,) = regions(lib.get_lib())
    loaded = tvm.ir.load_json(tvm.ir.save_json(region))
    assert call(loaded[symbol_of(lib)]) == run(lib, INPUTS)[0].tolist()


def test_saved_vm_executable(tmp_path):
    """Code and library in files of their own."""
    partitioned = partition_for_dnnl(one_region())
    with tvm.transform.PassContext(opt_level=3):
        code, library = relay.vm.compile(partitioned, "llvm").save()
    library.export_library(str(tmp_path / "vm.so"))
    loaded = tvm.runtime.load_module(str(tmp_path / "vm.so"))
    machine = tvm.runtime.vm.VirtualMachine(
        tvm.runtime.vm.Executable.load_exec(code, loaded), tvm.cpu()
    )
    np.testing.assert_array_equal(machine.run(**INPUTS).numpy(), run_vm(partitioned, INPUTS)[0])


def symbol_of(lib):
    (region,) = regions(lib.get_lib())
    return region["get_symbol"]()


def call(function):
    y = tvm.nd.empty((1, 7))
    function(tvm.nd.array(INPUTS["x"]), y)
    return y.numpy().tolist()


class Memory:
    """Memory outside of any library: bytes that end where the process must not read on."""

    def __init__(self, data):
        self.size = -(-len(data) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.map = mmap.mmap(-1, self.size + mmap.PAGESIZE)
        self.map[self.size - len(data) : self.size] = data
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.address = begin + self.size - len(data)
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(begin + self.size), mmap.PAGESIZE, 0) == 0

    def clear(self):
        self.map[: self.size] = bytes(self.size)


_prefixes = (f"memory_{i}_" for i in itertools.count())


def load_from(memory):
    """Load what TVM puts into a library as `__tvm_dev_mblob` from memory."""
    prefix = next(_prefixes)
    register = ctypes.CDLL(tvm._ffi.base._LIB._name).TVMBackendRegisterSystemLibSymbol
    register(f"{prefix}__tvm_dev_mblob".encode(), ctypes.c_void_p(memory.address))
    return tvm.runtime.system_lib(prefix)


def serialised(lib):
    pack = tvm.get_global_func("runtime.ModulePackImportsToNDArray")
    return pack(lib.module).numpy().tobytes()


def test_outside_of_a_library(lib):
    """They are copied, even where they are aligned: nothing keeps that memory as it is."""
    blob = serialised(lib)
    memory = Memory(blob + bytes(-len(blob) % 64))
    loaded = load_from(memory)
    memory.clear()
    function = loaded.get_function(symbol_of(lib), query_imports=True)
    assert call(function) == run(lib, INPUTS)[0].tolist()


def region_bounds(payload):
    begin = payload.index(b"dnnl_byoc") + len(b"dnnl_byoc")
    return begin, payload.index(b"_lib", begin) - 8  # the next module, with its type's length


def test_truncated_anywhere(lib):
    """A ValueError, and never a look behind the end."""
    payload = serialised(lib)[8:]
    begin, end = region_bounds(payload)
    ends = {*range(begin, begin + 300), *range(end - 300, end), *range(begin, end, 997)}
    for size in sorted(ends):
        memory = Memory(size.to_bytes(8, "little") + payload[:size])
        with pytest.raises(ValueError, match="the file is damaged"):
            load_from(memory)


def test_truncated_in_a_library(lib, exported, tmp_path):
    blob = serialised(lib)
    _, end = region_bounds(blob[8:])
    shorter = (end - 1).to_bytes(8, "little") + blob[8:]
    assert exported.read_bytes().count(blob) == 1
    path = tmp_path / "damaged.so"
    path.write_bytes(exported.read_bytes().replace(blob, shorter))
    with pytest.raises(ValueError, match="the file is damaged"):
        tvm.runtime.load_module(str(path))


# --- builds at the same time ----------------------------------------------------------------------


@pytest.fixture
def compiled_together():
    """Two builds in two threads: neither compiles its region before the other has come as far."""
    barrier = threading.Barrier(2, timeout=60)

    def compile_together(function):
        barrier.wait()
        return compile_region(function)

    tvm.register_func("relay.ext.dnnl", compile_together, override=True)
    yield
    tvm.register_func("relay.ext.dnnl", compile_region, override=True)


@pytest.mark.usefixtures("compiled_together")
def test_two_builds_at_once():
    """Of networks that differ in their weights only: each gets its own."""
    seeds = (1, 2)
    inputs = inputs_for(module(var("x", 1, 16, 14, 13)))
    built = {}

    def work(seed):
        y = conv2d(var("x", 1, 16, 14, 13), const(16, 16, 3, 3, seed=seed))
        built[seed] = build(partition_for_dnnl(module(y)))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in seeds:
        y = conv2d(var("x", 1, 16, 14, 13), const(16, 16, 3, 3, seed=seed))
        assert_close(run(built[seed], inputs), run(build_plainly(module(y)), inputs))
