"""What oneDNN runs for a built module, and how long each step takes."""

import json
from collections.abc import Iterator

import tvm


def profile(lib, runs: int = 0) -> dict[str, dict]:
    """Describe the compiled plan of every region in a built or loaded module.

    Parameters
    ----------
    lib : tvm.runtime.Module, a factory module, or an executable of a VM
        What ``relay.build``, ``relay.vm.compile``, ``tvm.compile`` or ``tvm.runtime.load_module``
        returned.
    runs : int
        How often to run each region, on made-up inputs, to time it. 0: no timing.

    Returns
    -------
    dict
        By region name: ``steps``, a list of ``{kind, impl, layouts, dtypes, bytes, post_ops}``
        in the order of execution (``impl`` is oneDNN's name of the implementation, or that of a
        kernel of this package, such as ``winograd`` or ``pointwise``, ``layouts`` and ``dtypes``
        its format tags and data types, ``bytes`` the size of all tensors that the step reads and
        writes), the number of ``reorders`` among them, and the memory that the region takes:
        ``arena_bytes`` and ``scratchpad_bytes`` for each concurrent run, ``constant_bytes``, of
        which ``repacked_bytes`` are copies of the module's own constants.
        ``cascades`` lists those steps, as ``[first, end]``, that one thread does a few rows at a
        time. With ``runs``, each step and the whole have ``ms``, the median time. If the batch is
        computed in ``chunks``, not 1, all this is of one chunk, which one thread runs alone.
        ``threads`` is how many the last run could use; if the region ``adapts``, that may be one
        less on a crowded machine. A region with sizes that only a run knows is described as it was
        compiled for those that were used last, and has no ``steps`` before the first run;
        ``plans`` is for how many sets of sizes it is compiled now, ``compiled`` how often it was,
        and ``repacked_bytes`` is for all of them.
    """
    root = lib.get_lib() if hasattr(lib, "get_lib") else lib
    for holder in ("lib", "mod"):  # of Relay's VM, and of Relax's
        root = getattr(root, holder, root)
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
