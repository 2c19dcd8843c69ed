"""Builds, runs and compares Relay modules, with and without partitioning."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import tvm
from comparison import TOLERANCE, assert_close, fused, random  # noqa: F401
from tvm import relay
from tvm.contrib import graph_executor

import tvm_dnnl_byoc
from tvm_dnnl_byoc import explain, partition_for_dnnl, profile
from tvm_dnnl_byoc.relay.dynamic import computation_of


def var(name, *shape, dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def const(*shape, seed=0, low=-1.0, high=1.0):
    return relay.const(random(*shape, seed=seed, low=low, high=high))


def shape_of(expr):
    """Return the shape of an expression."""
    return tuple(int(d) for d in relay.transform.InferTypeLocal(expr).shape)


def type_of(expr):
    """Return the shape and the dtype of an expression, None if it is no tensor."""
    type_ = relay.transform.InferTypeLocal(expr)
    if not isinstance(type_, relay.TensorType):
        return None
    return tuple(int(d) for d in type_.shape), type_.dtype


def is_leaf(expr):
    """Whether nothing is computed for an expression."""
    return isinstance(expr, relay.Var | relay.Constant)


def any_size():
    """Return a size that only a run knows."""
    return relay.Any()


def fingerprint(mod):
    """Return what is the same for equal modules."""
    return tvm.ir.structural_hash(mod, map_free_vars=True)


def module(*outputs):
    """Return a module of one function, which gives the outputs, as a tuple if there are more."""
    body = outputs[0] if len(outputs) == 1 else relay.Tuple(outputs)
    return tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))


def inputs_for(mod, seed=100):
    """Return random data for every parameter of main."""
    data = {}
    for i, param in enumerate(mod["main"].params):
        shape = tuple(int(d) for d in param.type_annotation.shape)
        dtype = param.type_annotation.dtype
        array = random(*shape, seed=seed + i)
        data[param.name_hint] = array if dtype == "float32" else (array * 9).astype(dtype)
    return data


def conv2d(data, weights, **attrs):
    """Relay's conv2d, with the attributes that TVM 0.19 needs at opt_level 3."""
    if isinstance(weights, relay.Constant):
        weights_shape = weights.data.shape
    else:
        weights_shape = [int(d) for d in weights.type_annotation.shape]
    channels = attrs.pop("channels", weights_shape[0])
    kernel = tuple(int(d) for d in weights_shape[2:])
    return relay.nn.conv2d(data, weights, channels=channels, kernel_size=kernel, **attrs)


def in_tvm(x):
    """Return x in reverse order along its last axis: stays in TVM, and adds no rounding."""
    return relay.reverse(x, -1)


def build(mod, params=None, target="llvm", opt_level=3):
    with tvm.transform.PassContext(opt_level=opt_level):
        return relay.build(mod, target, params=params)


def build_plainly(mod, params=None):
    """Build without any optimisation: the plainest TVM, which builds more, and sooner."""
    return build(mod, params, target="llvm -opt-level=0", opt_level=0)


def run(lib, inputs):
    """Run a built or loaded library on a fresh executor; return all outputs as NumPy arrays."""
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    executor.set_input(**{name: tvm.nd.array(value) for name, value in inputs.items()})
    executor.run()
    return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]


def from_onnx(model, inputs):
    """Convert a model of ONNX for inputs of these shapes; return module, weights, inputs by name.

    It raises if a size of an output depends on data.
    """
    shapes = {name: array.shape for name, array in inputs.items()}
    dtypes = {name: str(array.dtype) for name, array in inputs.items()}
    mod, params = relay.frontend.from_onnx(model, shapes, dtypes, freeze_params=True)
    mod = relay.transform.InferType()(mod)
    results = mod["main"].ret_type
    for result in results.fields if isinstance(results, tvm.ir.TupleType) else [results]:
        [int(d) for d in result.shape]
    return mod, params, inputs


def run_vm(mod, inputs, params=None, opt_level=3):
    """Run main with the VM; nested results are flattened."""
    with tvm.transform.PassContext(opt_level=opt_level):
        executable = relay.vm.compile(mod, "llvm", params=params)
    machine = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())
    return flatten(machine.run(**inputs) if inputs else machine.run())


def build_dynamic(mod):
    """Build a module with sizes that only a run knows; return a function of the inputs by name."""
    with tvm.transform.PassContext(opt_level=3):
        executable = relay.vm.compile(mod, "llvm")
    machine = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())
    return lambda inputs: flatten(machine.run(**inputs))


def flatten(value):
    if isinstance(value, tvm.nd.NDArray):
        return [value.numpy()]
    return [array for field in value for array in flatten(field)]


def check(mod, params=None, inputs=None, reference=None, tolerance=TOLERANCE, taken=None):
    """Partition, build and run a module; compare with plain TVM, or with what NumPy makes of it.

    Parameters
    ----------
    inputs : dict, optional
        By default random data for every parameter that is not in ``params``.
    reference : list of np.ndarray, optional
        The outputs, computed by NumPy in float64: then TVM is not asked.
    taken : iterable of str, optional
        The operators that must be in regions, each as often as it must be there.

    Returns
    -------
    list of dict
        The steps of the profile, of all regions; reorders left out.
    """
    if inputs is None:
        inputs = {k: v for k, v in inputs_for(mod).items() if k not in (params or {})}
    before = {name: value.copy() for name, value in inputs.items()}
    partitioned = partition_for_dnnl(mod, params)
    if taken is not None:
        assert sorted(offloaded(partitioned)[0]) == sorted(taken)
    lib = build(partitioned, params)
    actual = run(lib, inputs)
    if reference is None:
        reference = run(build_plainly(mod, params), inputs)
    else:
        reference = [np.asarray(r, "float32") for r in reference]
    assert_close(actual, reference, tolerance)
    for name, value in inputs.items():
        np.testing.assert_array_equal(value, before[name])
    return steps_of(lib)


def steps_of(lib):
    """Return the steps of all regions but reorders, which depend on the machine."""
    regions = profile(lib)
    return [
        step
        for name in sorted(regions)
        for step in regions[name]["steps"]
        if step["kind"] != "reorder"
    ]


def reasons_against_fusion(mod):
    """Return for each operator that is not fused into the one before it, why."""
    return [
        reason
        for operator in explain(mod).operators
        for reason, count in operator.unfused.items()
        for _ in range(count)
    ]


def region_functions(mod):
    """Return the functions of a partitioned module that are compiled by us, by name."""
    return {
        var.name_hint: f
        for var, f in sorted(mod.functions.items(), key=lambda item: item[0].name_hint)
        if f.attrs and f.attrs.get("Compiler") == "dnnl"
    }


def offloaded(mod):
    """Return the names of the operators inside regions, and of those outside."""
    regions = region_functions(mod)
    inside = [name for f in regions.values() for name in op_names(computation_of(f))]
    outside = [
        name
        for var, f in mod.functions.items()
        if var.name_hint not in regions and isinstance(f, relay.Function)
        for name in op_names(f)
    ]
    return inside, outside


def op_names(function):
    names = []

    def visit(expr):
        if isinstance(expr, relay.Call) and isinstance(expr.op, tvm.ir.Op):
            names.append(expr.op.name)

    relay.analysis.post_order_visit(function, visit)
    return names


def run_python(code, *args, **env):
    """Run code in a fresh process that finds the package; return the finished process.

    ``env`` is added to the environment; None removes a variable.
    """
    root = str(Path(tvm_dnnl_byoc.__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        env={k: v for k, v in {**os.environ, "PYTHONPATH": path, **env}.items() if v is not None},
        capture_output=True,
        text=True,
        timeout=300,
    )
