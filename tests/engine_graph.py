"""The engine from Python: its C ABI by ctypes, a builder of its graphs, and a NumPy reference.

Nothing here imports TVM or the package: the loader module is executed from its file. The graph
format is documented in ``src/engine/graph.h``, the functions in ``src/engine/engine.h``.
"""

import contextlib
import copy
import ctypes
import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np

PACKAGE = Path(importlib.util.find_spec("tvm_dnnl_byoc").origin).parent


def load_module(path):
    """Execute one file of the package as a module of its own, without the package."""
    spec = importlib.util.spec_from_file_location(f"_{path.stem}_alone", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def run_python(code, *args, **env):
    """Run code in a fresh process that can import what is in this directory."""
    path = os.pathsep.join([str(Path(__file__).parent), str(PACKAGE.parent)])
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        env={**os.environ, "PYTHONPATH": path, **env},
        capture_output=True,
        text=True,
        timeout=300,
    )


def with_avx2(file, what):
    """Run the tests of a file with ``what`` in their names again, with oneDNN limited to AVX2."""
    which = f"({what}) and not avx2"  # not the test that asks for them
    code = f"import pytest; raise SystemExit(pytest.main(['-q', {file!r}, '-k', {which!r}]))"
    process = run_python(code, ONEDNN_MAX_CPU_ISA="AVX2")
    assert process.returncode == 0, process.stdout + process.stderr
    assert " passed" in process.stdout


# The C ABI ---------------------------------------------------------------------------------------


class DLTensor(ctypes.Structure):
    """DLPack's tensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


CPU = 1  # kDLCPU
CODES = {"i": 0, "u": 1, "f": 2, "V": 4}  # kDLInt, kDLUInt, kDLFloat, kDLBfloat


def int64s(values):
    """Return a C array; never an empty one, so that it has an address."""
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def dltensor(array, **fields):
    """Return a DLTensor that shares an array's memory; ``fields`` replace what is derived."""
    tensor = DLTensor(
        data=array.ctypes.data,
        device_type=CPU,
        ndim=array.ndim,
        code=CODES.get(array.dtype.kind, 6),
        bits=array.itemsize * 8,
        lanes=1,
        shape=int64s(array.shape),
    )
    if not array.flags.c_contiguous:
        tensor.strides = int64s([stride // array.itemsize for stride in array.strides])
    for name, value in fields.items():
        setattr(tensor, name, value)
    tensor.keep = array  # the memory is the array's
    return tensor


class EngineError(Exception):
    """A call that did not come to ``dnnl_byoc_success``."""


class InvalidArgument(EngineError):
    """Status 1: the caller's fault."""


class Unsupported(EngineError):
    """Status 2: not (well) implemented by oneDNN."""


class RuntimeFailure(EngineError):
    """Status 3: anything else."""


ERRORS = {1: InvalidArgument, 2: Unsupported, 3: RuntimeFailure}


STORE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(DLTensor))


@functools.cache
def library():
    """Load the engine and declare its functions."""
    lib = load_module(PACKAGE / "native.py").load_engine()
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    tensors = ctypes.POINTER(ctypes.POINTER(DLTensor))
    signatures = {
        "create": [ctypes.c_char_p, ctypes.POINTER(pointer)],
        "set_constants": [pointer, tensors, size],
        "run": [pointer, tensors, size, tensors, size],
        "infer_shapes": [pointer, tensors, size, tensors, size],
        "arity": [pointer, ctypes.POINTER(size), ctypes.POINTER(size)],
        "supports": [ctypes.c_char_p],
        "pack": [
            *(ctypes.c_char_p, tensors, size, ctypes.c_int),
            *(ctypes.POINTER(ctypes.c_char_p), STORE, pointer),
        ],
        "profile": [pointer, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)],
    }
    for name, argtypes in signatures.items():
        function = getattr(lib, f"dnnl_byoc_{name}")
        function.argtypes, function.restype = argtypes, ctypes.c_int
    lib.dnnl_byoc_destroy.argtypes, lib.dnnl_byoc_destroy.restype = [pointer], None
    for name in ("last_error", "build_info"):
        getattr(lib, f"dnnl_byoc_{name}").restype = ctypes.c_char_p
    return lib


def call(name, *args):
    """Call a function of the ABI; raise its error."""
    status = getattr(library(), f"dnnl_byoc_{name}")(*args)
    if status:
        raise ERRORS[status](library().dnnl_byoc_last_error().decode(errors="backslashreplace"))


def build_info():
    return json.loads(library().dnnl_byoc_build_info())


def json_bytes(graph):
    """Return the zero-terminated text of a Graph, a parsed graph, or a text."""
    if isinstance(graph, Graph):
        graph = graph.document()
    if isinstance(graph, bytes):
        return graph
    return (graph if isinstance(graph, str) else json.dumps(graph)).encode()


def supports(graph):
    """Raise ``Unsupported`` with the reason unless oneDNN is fast for every node of a graph."""
    call("supports", json_bytes(graph))


TUNE = {"nothing": 0, "layouts": 1, "all": 2}


def pack(graph, constants, tune="nothing"):
    """Return the packed graph as JSON text, and its constants; tune is a key of TUNE."""
    packed = list(constants)

    def store(_, index, constant):
        tensor = constant.contents
        dtype = next(
            dtype
            for dtype in map(np.dtype, DTYPES.values())
            if (CODES[dtype.kind], 8 * dtype.itemsize) == (tensor.code, tensor.bits)
        )
        size = tensor.shape[0]
        values = np.frombuffer(ctypes.string_at(tensor.data, size * dtype.itemsize), dtype)
        packed[index] = aligned(values.shape, dtype)
        packed[index][:] = values

    text, tensors, count = ctypes.c_char_p(), tensor_array(constants), len(constants)
    call(
        *("pack", json_bytes(graph), tensors, count, TUNE[tune]),
        *(ctypes.byref(text), STORE(store), None),
    )
    return text.value.decode(), packed


@contextlib.contextmanager
def one_thread():
    """Have measurements on this thread use no other: waking one takes long in tests (conftest)."""
    openmp = ctypes.CDLL("libgomp.so.1")  # which the engine has loaded
    threads = openmp.omp_get_max_threads()
    openmp.omp_set_num_threads(1)
    try:
        yield
    finally:
        openmp.omp_set_num_threads(threads)


def aligned(shape, dtype, offset=0):
    """Return an array whose data begins `offset` bytes after a multiple of 64."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    buffer = np.zeros(size + 128, np.uint8)
    start = -buffer.ctypes.data % 64 + offset
    return buffer[start : start + size].view(dtype).reshape(shape)


def tensor_array(tensors):
    """Return ``DLTensor**`` for arrays, DLTensors and Nones."""
    array = (ctypes.POINTER(DLTensor) * max(len(tensors), 1))()
    for i, tensor in enumerate(tensors):
        if isinstance(tensor, np.ndarray):
            tensor = dltensor(tensor)
        if tensor is not None:
            array[i] = ctypes.pointer(tensor)  # which keeps the tensor alive
    return array


class Engine:
    """One engine; ``graph`` is a Graph, a parsed graph, or JSON."""

    def __init__(self, graph):
        self.handle = ctypes.c_void_p()
        call("create", json_bytes(graph), ctypes.byref(self.handle))

    def set_constants(self, constants):
        self.constants = constants  # the engine may use them where they are
        call("set_constants", self.handle, tensor_array(constants), len(constants))

    def run_into(self, inputs, outputs):
        """Run on arrays or DLTensors."""
        call(
            "run",
            self.handle,
            tensor_array(inputs),
            len(inputs),
            tensor_array(outputs),
            len(outputs),
        )

    def infer_shapes(self, shapes, ranks):
        """Return the shapes of the outputs, which have these ranks, for inputs of given shapes."""
        inputs = [np.array(shape, np.int64) for shape in shapes]
        outputs = [np.full(rank, -7, np.int64) for rank in ranks]
        call(
            *("infer_shapes", self.handle, tensor_array(inputs), len(inputs)),
            *(tensor_array(outputs), len(outputs)),
        )
        return [tuple(map(int, shape)) for shape in outputs]

    def arity(self):
        counts = ctypes.c_size_t(), ctypes.c_size_t()
        call("arity", self.handle, *map(ctypes.byref, counts))
        return tuple(count.value for count in counts)

    def profile(self, runs=0):
        text = ctypes.c_char_p()
        call("profile", self.handle, runs, ctypes.byref(text))
        return json.loads(text.value)

    def destroy(self):
        if self.handle:
            library().dnnl_byoc_destroy(self.handle)
            self.handle = ctypes.c_void_p()

    __del__ = destroy


# The builder -------------------------------------------------------------------------------------

DTYPES = {
    "f32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "s32": np.int32,
    "s8": np.int8,
    "u8": np.uint8,
}


def relu(alpha=0.0):
    return {"kind": "eltwise", "alg": "relu", "alpha": alpha, "beta": 0.0}


def eltwise(alg, alpha=0.0, beta=0.0):
    return {"kind": "eltwise", "alg": alg, "alpha": alpha, "beta": beta}


def binary(alg, src1):
    return {"kind": "binary", "alg": alg, "src1": src1}


class Graph:
    """Builds a graph. Methods return tensor ids; ``shapes`` has the shape of each.

    Input and constant data are drawn here, from a generator of fixed seed, so that no two tensors
    are alike.
    """

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)
        self.inputs, self.constants, self.nodes, self.outputs = [], [], [], []
        self.input_data, self.constant_data = [], []
        self.count = 0
        self.tuned = None
        self.precision = None

    def _new_id(self):
        self.count += 1
        return self.count - 1

    def _draw(self, shape, dtype):
        if dtype in ("f32", "bf16"):
            return np.asarray(self.random.uniform(-1, 1, shape) + 0.125, DTYPES[dtype])
        limits = np.iinfo(DTYPES[dtype])
        low, high = max(limits.min, -1000), min(limits.max, 1000)
        return np.asarray(self.random.integers(low, high, shape, endpoint=True), DTYPES[dtype])

    def input(self, *shape, dtype="f32"):
        """An input; data is drawn for it if all of its sizes are known, none of them -1."""
        tensor = self._new_id()
        self.inputs.append({"id": tensor, "dtype": dtype, "shape": list(shape)})
        self.input_data.append(None if -1 in shape else self._draw(shape, dtype))
        return tensor

    def draw_inputs(self, *sizes):
        """Return data for the inputs of a dynamic graph; sizes are those that are -1, in order."""
        sizes = iter(sizes)
        return [
            self._draw([next(sizes) if d == -1 else d for d in t["shape"]], t["dtype"])
            for t in self.inputs
        ]

    def constant(self, *shape, data=None, dtype="f32"):
        tensor = self._new_id()
        data = self._draw(shape, dtype) if data is None else np.asarray(data, DTYPES[dtype])
        self.constants.append({"id": tensor, "dtype": dtype, "shape": list(data.shape)})
        self.constant_data.append(data)
        return tensor

    def node(self, kind, inputs, post_ops=(), **attrs):
        tensor = self._new_id()
        node = {"kind": kind, "inputs": list(inputs), "output": tensor, "attrs": attrs}
        if post_ops:
            node["post_ops"] = list(post_ops)
        self.nodes.append(node)
        return tensor

    def convolution(self, src, weights, bias=None, post_ops=(), groups=1, **window):
        """``weights`` is a tensor or the shape of a constant; ``bias`` a tensor or a number."""
        if not isinstance(weights, int):
            weights = self.constant(*weights)
        rank = len(self.shape_of_external(weights)) - 2
        attrs = {"strides": 1, "dilation": 1, "padding_l": 0, "padding_r": 0, **window}
        attrs = {k: [v] * rank if isinstance(v, int) else list(v) for k, v in attrs.items()}
        inputs = [src, weights] + ([] if bias is None else [bias])
        return self.node("convolution", inputs, post_ops, groups=groups, **attrs)

    def pooling(self, src, alg, kernel, post_ops=(), **window):
        attrs = {"strides": 1, "dilation": 1, "padding_l": 0, "padding_r": 0, **window}
        attrs = {k: [v] * len(kernel) if isinstance(v, int) else list(v) for k, v in attrs.items()}
        return self.node("pooling", [src], post_ops, alg=alg, kernel=list(kernel), **attrs)

    def eltwise(self, src, alg="relu", alpha=0.0, beta=0.0, post_ops=()):
        return self.node("eltwise", [src], post_ops, alg=alg, alpha=alpha, beta=beta)

    def add(self, src0, src1, post_ops=()):
        return self.node("binary", [src0, src1], post_ops, alg="add")

    def mul(self, src0, src1, post_ops=()):
        return self.node("binary", [src0, src1], post_ops, alg="mul")

    def quantize(self, src, scales, zero_points=0, dtype="u8", axis=0):
        """A quantize; one scale, or a list of them."""
        return self._convert("quantize", src, scales, zero_points, axis, dtype=dtype)

    def dequantize(self, src, scales, zero_points=0, axis=0):
        return self._convert("dequantize", src, scales, zero_points, axis)

    def _convert(self, kind, src, scales, zero_points, axis, **attrs):
        scales = [float(np.float32(scale)) for scale in np.atleast_1d(scales)]
        zero_points = np.broadcast_to(zero_points, len(scales)).tolist()
        return self.node(kind, [src], scales=scales, zero_points=zero_points, axis=axis, **attrs)

    def reshape(self, src, *shape):
        return self.node("reshape", [src], shape=list(shape))

    def output(self, *tensors):
        self.outputs += tensors
        return self

    def shape_of_external(self, tensor):
        """Return the shape of an input or a constant, dequantized or not."""
        for node in self.nodes:
            if node["kind"] == "dequantize" and node["output"] == tensor:
                tensor = node["inputs"][0]
        return next(t["shape"] for t in self.inputs + self.constants if t["id"] == tensor)

    def tune(self, layout="any", winograd=(), implementations=(), chunk=0, cascades=False):
        """Have it run in a layout, [node, tile] by Winograd's algorithm, and in chunks.

        ``implementations``: [node, oneDNN's name], where it is not to be oneDNN's first.
        ``cascades``: on one thread a few rows at a time.
        """
        self.tuned = {
            "isa": build_info()["isa"],
            "layout": layout,
            "winograd": list(winograd),
            "implementations": list(implementations),
            "chunk": chunk,
            "cascades": cascades,
        }
        return self

    def document(self):
        document = {
            "format": "dnnl_byoc",
            "version": 3,
            "inputs": self.inputs,
            "constants": self.constants,
            "outputs": self.outputs,
            "nodes": self.nodes,
        }
        chosen = {"tuned": self.tuned, "precision": self.precision}
        return {**document, **{key: value for key, value in chosen.items() if value}}


# The reference -----------------------------------------------------------------------------------


def _windows(x, kernel, attrs, fill):
    """Every window of the padded array: (N, C, output spatial…, kernel…)."""
    widths = [(0, 0), (0, 0), *zip(attrs["padding_l"], attrs["padding_r"], strict=True)]
    x = np.pad(x, widths, constant_values=fill)
    extent = [d * (k - 1) + 1 for d, k in zip(attrs["dilation"], kernel, strict=True)]
    axes = tuple(range(2, x.ndim))
    x = np.lib.stride_tricks.sliding_window_view(x, extent, axes)
    index = [slice(None)] * 2 + [slice(None, None, s) for s in attrs["strides"]]
    return x[tuple(index + [slice(None, None, d) for d in attrs["dilation"]])]


def _convolution(attrs, src, weights, bias=None):
    groups = attrs["groups"]
    windows = _windows(src, weights.shape[2:], attrs, 0.0)
    spatial = src.ndim - 2
    axes = [1, *range(2 + spatial, 2 + 2 * spatial)]  # the channels of the group, the kernel
    parts = [
        np.tensordot(data, kernel, (axes, list(range(1, 2 + spatial))))
        for data, kernel in zip(
            np.split(windows, groups, axis=1), np.split(weights, groups), strict=True
        )
    ]
    result = np.moveaxis(np.concatenate(parts, axis=-1), -1, 1)
    return result if bias is None else result + bias.reshape(-1, *[1] * spatial)


def _pooling(attrs, src):
    alg, kernel = attrs["alg"], attrs["kernel"]
    axes = tuple(range(-len(kernel), 0))
    if alg == "max":
        return _windows(src, kernel, attrs, -np.inf).max(axes)
    windows = _windows(src, kernel, attrs, 0.0)
    if alg == "avg_include_padding":
        return windows.mean(axes)
    return windows.sum(axes) / _windows(np.ones_like(src), kernel, attrs, 0.0).sum(axes)


def _eltwise(attrs, x):
    alpha, beta = np.float32(attrs["alpha"]), np.float32(attrs["beta"])
    return {
        "relu": lambda: np.where(x > 0, x, alpha * x),
        "clip": lambda: np.clip(x, alpha, beta),
        "logistic": lambda: 1 / (1 + np.exp(-x)),
        "tanh": lambda: np.tanh(x),
        "linear": lambda: alpha * x + beta,
    }[attrs["alg"]]()


def _binary(attrs, a, b):
    return {"add": np.add, "mul": np.multiply}[attrs["alg"]](a, b)


def _inner_product(attrs, src, weights, bias=0.0):
    return src @ weights.T + bias


def _batch_normalization(attrs, src, scale, shift, mean, variance):
    def along(v):
        return v.reshape(-1, *[1] * (src.ndim - 2))

    normal = (src - along(mean)) / np.sqrt(along(variance) + np.float32(attrs["epsilon"]))
    return normal * along(scale) + along(shift)


def _slice(attrs, x):
    sides = zip(attrs["begin"], attrs["size"], strict=True)
    return x[tuple(slice(begin, begin + size) for begin, size in sides)]


def _along_axis(attrs, x, values):
    values = np.asarray(attrs[values], np.float64)
    if values.size == 1:
        return values
    shape = [1] * x.ndim
    shape[attrs["axis"]] = -1
    return values.reshape(shape)


def _quantize(attrs, x):
    limits = np.iinfo(DTYPES[attrs["dtype"]])
    numbers = x / _along_axis(attrs, x, "scales") + _along_axis(attrs, x, "zero_points")
    return np.clip(np.rint(numbers), limits.min, limits.max)


def _dequantize(attrs, x):
    return _along_axis(attrs, x, "scales") * (x - _along_axis(attrs, x, "zero_points"))


def _softmax(attrs, x):
    x = x - x.max(attrs["axis"], keepdims=True)
    total = np.exp(x).sum(attrs["axis"], keepdims=True)
    return x - np.log(total) if attrs["log"] else np.exp(x) / total


OPERATIONS = {
    "convolution": _convolution,
    "inner_product": _inner_product,
    "pooling": _pooling,
    "eltwise": _eltwise,
    "binary": _binary,
    "batch_normalization": _batch_normalization,
    "softmax": _softmax,
    "quantize": _quantize,
    "dequantize": _dequantize,
    "concat": lambda attrs, *srcs: np.concatenate(srcs, attrs["axis"]),
    "matmul": lambda attrs, src, weights: src @ weights,
    "reshape": lambda attrs, x: x.reshape(attrs["shape"]),
    "transpose": lambda attrs, x: x.transpose(attrs["axes"]),
    "slice": _slice,
    "gather": lambda attrs, x, indices: np.take(x, indices.astype(int), attrs["axis"], mode="clip"),
}


def reference(graph, inputs=None):
    """Evaluate a Graph in float64; return its outputs."""
    values = {}
    for tensors, data in (
        (graph.inputs, graph.input_data if inputs is None else inputs),
        (graph.constants, graph.constant_data),
    ):
        for tensor, array in zip(tensors, data, strict=True):
            values[tensor["id"]] = array.astype(np.float64)

    def number(size):
        return values[size[0]].shape[size[1]] if isinstance(size, list) else size

    for node in graph.nodes:
        attrs = {
            name: list(map(number, value)) if isinstance(value, list) else value
            for name, value in node["attrs"].items()
        }
        value = OPERATIONS[node["kind"]](attrs, *(values[i] for i in node["inputs"]))
        for op in node.get("post_ops", ()):
            if op["kind"] == "eltwise":
                value = _eltwise(op, value)
            else:
                value = _binary(op, value, values[op["src1"]])
        values[node["output"]] = value
    return [values[tensor] for tensor in graph.outputs]


# Running and comparing ---------------------------------------------------------------------------


def start(graph):
    """Return a Graph's engine, its constants set."""
    engine = Engine(graph)
    if graph.constants:
        engine.set_constants(graph.constant_data)
    return engine


def run(engine, inputs, shapes, dtype=np.float32):
    """Run on arrays; return the outputs, which have the given shapes and data type."""
    outputs = [unwritten(shape, dtype) for shape in shapes]
    engine.run_into(inputs, outputs)
    return outputs


def unwritten(shape, dtype):
    """Return an array for an output, in which it is seen what the engine forgets to write."""
    return np.full(shape or (1,), np.nan if np.dtype(dtype).kind == "f" else 77, dtype)


def assert_close(got, expected, tolerance=1e-5):
    """Compare with a reference: the tolerance is relative to its greatest absolute value."""
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        b = b.reshape(a.shape)
        bound = tolerance * np.abs(b).max(initial=1e-3)
        wrong = np.argwhere(~(np.abs(a - b) <= bound))
        if len(wrong):
            where = tuple(wrong[0])
            raise AssertionError(
                f"output {i}: {len(wrong)} of {a.size} differ by more than {bound:.2g}; "
                f"first at {tuple(map(int, where))}: got {a[where]}, expected {b[where]}"
            )


def assert_numbers(got, expected, slack=1):
    """Compare whole numbers: `slack` apart at most, and few for ties and what f32 makes one."""
    for a, b in zip(got, expected, strict=True):
        difference = np.abs(a.astype(int) - b)
        assert difference.max() <= slack
        assert (difference > 0).mean() < 0.01


def addition_and_relu(graph, x, channels, addend, alpha):
    """Return the post-ops of a convolution of x: both, either, or none.

    What is added is of x, too; it "dies" or "lives" on. A slope of None is for no ReLU.
    """
    post_ops = []
    if addend:
        other = graph.convolution(x, (channels, channels, 1, 1))
        if addend == "lives":
            graph.output(other)
        post_ops.append(binary("add", other))
    if alpha is not None:
        post_ops.append(relu(alpha))
    return post_ops


def check(graph, tolerance=1e-5):
    """Run a Graph, compare with the reference, and return its engine and its profile.

    A batch is also run image by image, unless the graph is tuned. So is the graph with sizes that
    only the run knows, all of them.
    """
    engine = start(graph)
    compare(engine, graph, tolerance)
    if not graph.tuned and all(tensor["shape"] for tensor in graph.inputs):
        dynamic = copy.copy(graph)
        dynamic.inputs = [{**t, "shape": [-1] * len(t["shape"])} for t in graph.inputs]
        compare(start(dynamic), graph, tolerance)
    if not graph.tuned and any(tensor["shape"][:1] > [1] for tensor in graph.inputs):
        chunked = copy.copy(graph).tune(chunk=1)
        compare(start(chunked), chunked, tolerance)
    profile = engine.profile()
    steps = [step for step in profile["steps"] if step["kind"] != "reorder"]
    return SimpleNamespace(engine=engine, profile=profile, steps=steps)


def compare(engine, graph, tolerance):
    """Compare an engine's results with the reference.

    It runs twice, the second time on other inputs, so that nothing may stick to the first; the
    inputs must be the same bytes afterwards.
    """
    for scale in (1, -0.75):
        inputs = [
            np.asarray(data * scale if data.dtype.kind == "f" else data, data.dtype)
            for data in graph.input_data
        ]
        before = [data.tobytes() for data in inputs]
        expected = reference(graph, inputs)
        got = run(engine, inputs, [value.shape for value in expected])
        assert_close(got, expected, tolerance)
        assert [data.tobytes() for data in inputs] == before, "an input was written to"
