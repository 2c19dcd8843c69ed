"""The machine and the software that a result was measured with."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path

import psutil

_CPUINFO = Path("/proc/cpuinfo")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")

# Those that oneDNN and LLVM choose their kernels by.
_ISA_FLAGS = (
    *("sse4_1", "avx", "avx2", "fma", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni"),
    *("avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16"),
)

# Variables that change how fast the backends run.
_VARIABLES = ("OMP_", "GOMP_", "KMP_", "ONEDNN_", "DNNL_", "TVM_", "MXNET_")


def describe(repository: Path) -> dict[str, str]:
    """Describe the environment, taken before anything is measured.

    Parameters
    ----------
    repository : Path
        A directory in the git repository whose commit is reported, if it is one.
    """
    usable = len(os.sched_getaffinity(0))
    memory = psutil.virtual_memory()
    found = {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu_name(),
        "cores": f"{psutil.cpu_count(logical=False) or '?'} physical, "
        f"{os.cpu_count()} logical, {usable} usable",
        "isa": " ".join(isa_flags()) or "unknown",
        "governor": _GOVERNOR.read_text().strip() if _GOVERNOR.exists() else "not exposed",
        "memory": f"{memory.total / 2**30:.1f} GiB, {memory.available / 2**30:.1f} GiB available",
        "load at start": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "variables": _variables(),
        "commit": git_commit(repository),
    }
    return {key: value for key, value in found.items() if value}


def cpu_name() -> str:
    """Vendor's name of the processor, with family, model and stepping, as names can be vague."""
    fields = _first_cpu()
    name = fields.get("model name", platform.processor() or "unknown")
    numbers = [fields.get(key) for key in ("cpu family", "model", "stepping")]
    return f"{name} ({'/'.join(numbers)})" if all(numbers) else name


def isa_flags() -> list[str]:
    """Instruction-set extensions that matter here."""
    flags = set(_first_cpu().get("flags", "").split())
    return [flag for flag in _ISA_FLAGS if flag in flags]


def git_commit(directory: Path) -> str | None:
    """Abbreviated commit, ``-dirty`` if the tree differs; None outside a repository."""
    command = ["git", "-C", str(directory), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _first_cpu() -> dict[str, str]:
    if not _CPUINFO.exists():
        return {}
    block = _CPUINFO.read_text().split("\n\n")[0]
    pairs = (line.split(":", 1) for line in block.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _variables() -> str:
    chosen = sorted(name for name in os.environ if name.startswith(_VARIABLES))
    return " ".join(f"{name}={os.environ[name]}" for name in chosen)
