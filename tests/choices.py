"""Runs the regions of a graph in every way that a build may choose by measurement, and compares.

What is fastest for the small tensors of random graphs says nothing about the networks of users, so
here nothing is measured: all layouts are run, with and without Winograd's algorithm, at once and
image by image; and oneDNN's implementations, also those that it would not take.
"""

import itertools
import json

import numpy as np
import tvm
from differential import Mismatch, compare, perturb
from engine_graph import DTYPES, Engine, build_info, unwritten
from graph_strategies import evaluate
from helpers import module, op_names, random, region_functions
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl

_LAYOUTS = ("any", "channels_last", "blocked")
_TILES = (0, 2, 4)  # 0: without the algorithm
_CHUNKS = (0, 1)  # 0: all images at once
_IMPLEMENTATIONS = {
    "convolution": ("brgconv:avx512_core", "jit_1x1:avx512_core", "jit:avx512_core", "jit:avx2"),
    "inner_product": ("brgemm:avx2", "x64:gemm:jit"),
    "matmul": ("brg:avx512_core", "gemm:jit:f32"),
}
_RANGES = ((-1.0, 1.0), (0.25, 1.0))  # of data; the second where the first makes NaNs

_REPRODUCER = """\
# In tests/: PYTHONPATH=.. python this_file.py
from choices import check
from helpers import const, var
from tvm import relay

{source}
print(check(outputs))
"""


def reproducer(program, opt_level):
    """Return a Python program that a person can run in ``tests/``; see ``judge``."""
    return _REPRODUCER.format(source=program.source)


def judge(source, opt_level):
    """Check the graph that a program's source makes; see ``check``. To be called isolated.

    ``opt_level`` is there for ``differential.judge``'s sake: TVM builds nothing here.
    """
    return check(evaluate(source))


def check(outputs):
    """Compare a graph's regions, light ones kept, in all ways with the one that is not chosen.

    Returns
    -------
    list of str
        The operators in regions, and for each way what it really does: ``winograd``, ``chunks``.

    Raises
    ------
    Mismatch
        If the engine refuses one of the ways, or if a result differs.
    """
    partitioned = partition_for_dnnl(module(*outputs), keep_light_regions=True)
    found = []
    for function in region_functions(partitioned).values():
        found += op_names(function)
        region = tvm.get_global_func("tvm_dnnl_byoc.compile")(function)
        found += _check_region(json.loads(region["get_graph"]()), _results(function.ret_type))
    return found


def _results(result):
    """Return the shape and the data type of each result."""
    fields = result.fields if isinstance(result, relay.TupleType) else [result]
    return [(tuple(int(d) for d in field.shape), field.dtype) for field in fields]


def _check_region(document, results):
    for tensor in document["constants"]:  # the layout is for the way that is not chosen
        tensor.pop("packed", None)
    document.pop("tuned", None)
    for low, high in _RANGES:
        data = [
            _draw(tensor, seed, low, high)
            for seed, tensor in enumerate(document["inputs"] + document["constants"])
        ]
        expected, _ = _evaluate(document, data, results)
        if all(np.isfinite(array).all() for array in expected):
            break
    change = np.random.default_rng(0)
    perturbed = [
        _evaluate(document, list(perturb(dict(enumerate(data)), change).values()), results)[0]
        for _ in range(2)
    ]
    found = []
    for way in ways(document):
        try:
            actual, profile = _evaluate({**document, "tuned": way}, data, results)
            for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
                compare(i, a, e, [p[i] for p in perturbed])
        except Exception as error:
            raise Mismatch(f"{error}\n\n{way}\n{json.dumps(document)}") from None
        implementations = [step["impl"] for step in profile["steps"]]
        found += ["winograd"] * ("winograd" in implementations)
        found += ["chunks"] * (profile["chunks"] > 1)
    return found


def _draw(tensor, seed, low, high):
    array = random(*tensor["shape"], seed=seed, low=low, high=high)
    return array if tensor["dtype"] == "f32" else (array * 9).astype(DTYPES[tensor["dtype"]])


def ways(document):
    """Yield what a build may add to a region's graph as what it found fastest."""
    convolutions = [i for i, n in enumerate(document["nodes"]) if n["kind"] == "convolution"]
    isa = build_info()["isa"]
    for layout, tile, chunk in itertools.product(_LAYOUTS, _TILES, _CHUNKS):
        if convolutions or not tile:
            winograd = [[node, tile] for node in convolutions] if tile else []
            yield {"isa": isa, "layout": layout, "winograd": winograd, "chunk": chunk}
    kinds = {node["kind"] for node in document["nodes"]}
    for kind, names in _IMPLEMENTATIONS.items():
        for name in names if kind in kinds else ():
            chosen = [[i, name] for i, n in enumerate(document["nodes"]) if n["kind"] == kind]
            yield {"isa": isa, "layout": "channels_last", "implementations": chosen}


def _evaluate(document, data, results):
    """Return the outputs, and the profile."""
    engine = Engine(document)
    data = [np.asarray(array) for array in data]  # NumPy makes numbers of arrays without axes
    inputs = data[: len(document["inputs"])]
    if document["constants"]:
        engine.set_constants(data[len(inputs) :])
    outputs = [unwritten(*result) for result in results]
    engine.run_into(inputs, outputs)
    return outputs, engine.profile()
