"""Builds the native libraries with CMake; everything else is declared in pyproject.toml.

Options for CMake come through the environment variable CMAKE_ARGS, for example
``CMAKE_ARGS="-DDNNL_ROOT=/opt/onednn" pip install .``
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "build" / "cmake"  # kept, so that the next build compiles only what changed


def find_tool(name):
    """Return the tool that came with the Python environment, else the system's."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    return shutil.which(name, path=path) or sys.exit(f"{name} not found: pip install {name}")


def run(*command):
    """Run a step of the build; its messages go to pip's log."""
    if subprocess.run(command).returncode:
        sys.exit("The native libraries were not built; CMake's own message above says why.")


class CMakeBuild(build_ext):
    """Builds with CMake and installs to ``tvm_dnnl_byoc/lib``, in place for an editable install."""

    def run(self):
        cmake = find_tool("cmake")
        options = [f"-DPython_EXECUTABLE={sys.executable}"]
        options += shlex.split(os.environ.get("CMAKE_ARGS", ""))
        # Not among the options that are compared: in an isolated build its path is new every time.
        tools = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={find_tool('ninja')}"]
        record = BUILD / "options.txt"
        if record.exists() and record.read_text() != "\n".join(options):
            tools.append("--fresh")  # else CMake would remember options that are no longer given
        BUILD.mkdir(parents=True, exist_ok=True)
        record.write_text("\n".join(options))
        run(cmake, "-S", ROOT, "-B", BUILD, *tools, *options)
        run(cmake, "--build", BUILD, "--parallel")
        run(cmake, "--install", BUILD, "--prefix", self._package())

    def _package(self):
        return (ROOT if self.inplace else Path(self.build_lib)) / "tvm_dnnl_byoc"

    def get_outputs(self):
        return [str(path) for path in (self._package() / "lib").glob("*.so")]

    def get_output_mapping(self):
        return {}


class PlatformWheel(bdist_wheel):
    """One wheel for all Pythons: the libraries use no CPython ABI, only the platform's."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(
    # Names nothing that is built: it only tells setuptools that the wheel holds native code.
    ext_modules=[Extension("tvm_dnnl_byoc.lib", sources=[])],
    cmdclass={"build_ext": CMakeBuild, "bdist_wheel": PlatformWheel},
)
