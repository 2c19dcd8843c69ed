"""Builds, runs and compares Relax modules, with and without partitioning."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import tvm
from comparison import TOLERANCE, assert_close, random
from tvm import relax, tirx

import tvm_dnnl_byoc
from tvm_dnnl_byoc import partition_for_dnnl, profile

TARGET = {"kind": "llvm"}


def const(*shape, seed=0, low=-1.0, high=1.0):
    return relax.const(random(*shape, seed=seed, low=low, high=high))


def tensor_type(shape, dtype="float32"):
    make = getattr(relax, "TensorStructInfo", None) or relax.TensorType
    return make(shape, dtype)


def var(name, shape, dtype="float32"):
    return relax.Var(name, tensor_type(shape, dtype))


def module(build, *shapes, dtype="float32", name="main"):
    """Return a module of one function of parameters x0, x1, …, whose result ``build`` gives.

    A list of results becomes a tuple. What ``build`` makes is emitted call by call.
    """
    builder = relax.BlockBuilder()
    add_function(builder, name, build, *shapes, dtype=dtype)
    return builder.get()


def add_function(builder, name, build, *shapes, dtype="float32"):
    params = [var(f"x{i}", shape, dtype) for i, shape in enumerate(shapes)]
    with builder.function(name, params):
        with builder.dataflow():
            result = build(*params)
            if isinstance(result, list):
                result = relax.Tuple([builder.emit(value) for value in result])
            output = builder.emit_output(result)
        builder.emit_func_output(output)


def parameter_names(mod, name="main"):
    params = mod[name].params
    return [param.name if hasattr(param, "name") else param.name_hint for param in params]


def symbol(name):
    """Return a size that only a run knows."""
    return tirx.Var(name, "int64")


def inputs_for(mod, name="main", seed=100, **sizes):
    """Return random data for every parameter of a function; of symbols, the sizes are given."""
    arrays = []
    for i, param in enumerate(mod[name].params):
        type_ = param.ty if hasattr(param, "ty") else param.struct_info
        array = random(*(size_of(size, sizes) for size in type_.shape.values), seed=seed + i)
        dtype = str(type_.dtype)
        arrays.append(array if dtype == "float32" else (array * 9).astype(dtype))
    return arrays


def size_of(size, sizes):
    return sizes[size.name] if isinstance(size, tirx.Var) else int(size)


def build(mod):
    return tvm.compile(mod, tvm.target.Target(TARGET))


def run(executable, inputs, name="main"):
    """Run a function of a built or loaded module; return all outputs as NumPy arrays."""
    machine = relax.VirtualMachine(executable, tvm.cpu())
    return flatten(machine[name](*map(tvm.runtime.tensor, inputs)))


def flatten(value):
    if hasattr(value, "numpy"):
        return [value.numpy()]
    return [array for field in value for array in flatten(field)]


def check(mod, inputs=None, reference=None, tolerance=TOLERANCE, **options):
    """Partition, build and run a module; compare with plain TVM, or with the reference's arrays.

    Returns
    -------
    list of str
        What oneDNN ran, such as ``convolution:eltwise_relu``; reorders left out.
    """
    inputs = inputs_for(mod) if inputs is None else inputs
    before = [array.copy() for array in inputs]
    executable = build(partition_for_dnnl(mod, **options))
    actual = run(executable, inputs)
    if reference is None:
        reference = run(build(mod), inputs)
    assert_close(actual, reference, tolerance)
    for array, unchanged in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(array, unchanged)
    return steps(executable)


def steps(executable):
    """Return the steps of all regions but reorders, which depend on the machine."""
    return [
        f"{step['kind']}:{step['post_ops']}" if step["post_ops"] else step["kind"]
        for _, plan in sorted(profile(executable).items())
        for step in plan["steps"]
        if step["kind"] != "reorder"
    ]


def ops_left(mod, name="main"):
    """Return the names of the operators that a function calls itself."""
    return [
        binding.value.op.name.removeprefix("relax.")
        for block in mod[name].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call) and isinstance(binding.value.op, tvm.ir.Op)
    ]


def run_python(code, *args, **env):
    """Run code in a fresh process that finds the package and the tests."""
    root = Path(tvm_dnnl_byoc.__file__).resolve().parent.parent
    tests = Path(__file__).parent
    path = os.pathsep.join(map(str, (root, tests, tests / "relax")))
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        env={**os.environ, "PYTHONPATH": path, **env},
        capture_output=True,
        text=True,
        timeout=300,
    )
