"""Runs a module as it is while a model is being quantized."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import TypeVar

import tvm

from .. import front

T = TypeVar("T")


def runner(mod: tvm.IRModule, target: str) -> front.Run:
    """Return what runs ``main``, by oneDNN as far as may be, and gives all of its outputs."""
    with _nothing_measured():
        return front.build(front.partition_for_dnnl(mod), target=target)


def with_progress(items: Iterable[T], what: str) -> Iterable[T]:
    """Return the same items, with a bar if rich is there, which comes with [report]."""
    try:
        from rich.progress import track
    except ImportError:
        return items
    return track(items, what, transient=True)


@contextlib.contextmanager
def _nothing_measured() -> Iterator[None]:
    """Have builds choose no layouts: the module runs a few times only."""
    before = os.environ.get("DNNL_BYOC_TUNE")
    os.environ["DNNL_BYOC_TUNE"] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ["DNNL_BYOC_TUNE"]
        else:
            os.environ["DNNL_BYOC_TUNE"] = before
