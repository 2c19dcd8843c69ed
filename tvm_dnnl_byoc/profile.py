"""What oneDNN runs for a built module, and how long each step takes."""

import json
from collections.abc import Iterator

import tvm


def profile(lib, runs: int = 0) -> dict[str, dict]:
    """Describe the compiled plan of every region in a built or loaded module.

    Parameters
    ----------
    lib : tvm.runtime.Module or a factory module
        What ``relay.build``, ``tvm.compile`` or ``tvm.runtime.load_module`` returned.
    runs : int
        How often to run each region, on made-up inputs, to time it. 0: no timing.

    Returns
    -------
    dict
        By region name: ``steps``, a list of ``{kind, impl, layouts, dtypes, bytes, post_ops}``
        in the order of execution (``impl`` is oneDNN's name of the implementation, or ``winograd``,
        ``layouts`` and ``dtypes`` its format tags and data types, ``bytes`` the size of all tensors
        that the step reads and writes), the number of ``reorders`` among them, and the memory that
        the region takes: ``arena_bytes`` and ``scratchpad_bytes`` for each concurrent run,
        ``constant_bytes``, of which ``repacked_bytes`` are copies of the module's own constants.
        With ``runs``, each step and the whole have ``ms``, the median time. If the batch is
        computed in ``chunks``, not 1, all this is of one chunk, which one thread runs alone.
        ``threads`` is how many the last run could use; if the region ``adapts``, that may be one
        less on a crowded machine.
    """
    root = lib.get_lib() if hasattr(lib, "get_lib") else getattr(lib, "mod", lib)
    return {
        region["get_symbol"](): json.loads(region["get_profile"](runs)) for region in regions(root)
    }


def regions(lib: tvm.runtime.Module) -> Iterator[tvm.runtime.Module]:
    """Yield the runtime module of each region among a module's imports."""
    # The names of TVM 0.19, and of apache-tvm.
    kind = lib.type_key if hasattr(lib, "type_key") else lib.kind
    if kind == "dnnl_byoc":
        yield lib
    for module in lib.imported_modules if hasattr(lib, "imported_modules") else lib.imports:
        yield from regions(module)


def build_info() -> dict[str, str]:
    """Return the version of oneDNN, the instruction set that it uses, and its threading."""
    return json.loads(tvm.get_global_func("tvm_dnnl_byoc.build_info")())
