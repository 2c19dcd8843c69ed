"""The libraries that reports are printed and drawn with."""

import importlib
from types import ModuleType


def load(name: str) -> ModuleType:
    """Import a library of the extra ``[report]``.

    Raises
    ------
    ImportError
        If it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"a report needs {name.partition('.')[0]}, which is not installed: "
            "pip install 'tvm_dnnl_byoc[report]'"
        ) from error
