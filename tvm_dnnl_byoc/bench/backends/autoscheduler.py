"""TVM with schedules that its auto-scheduler (Ansor) has found on this machine.

Records of many networks and processors may share a file, for each names its workload and target.
"""

from __future__ import annotations

import time
from pathlib import Path

from .. import models
from . import tvm as untuned
from .network import BuildOptions, Network

# As in TVM's tutorial on tuning networks for x86.
_REPEATS = 10
_BUILD_CONFIG = {"relay.backend.use_auto_scheduler": True}


def tune(directory: Path, options: BuildOptions) -> None:
    """Add to the records until the network in `directory` has its trials there.

    Raises
    ------
    ValueError
        If there is less than one trial for each of the network's kernels.
    """
    from tvm import auto_scheduler

    file = Path(options.tuning_records)
    tasks, weights = _extract_tasks(directory)
    if options.tuning_trials < len(tasks):
        raise ValueError(
            f"tuning trials: expected at least {len(tasks)}, one per kernel of the network, "
            f"got {options.tuning_trials}"
        )
    found = len(_find_records(file, tasks))
    missing = options.tuning_trials - found
    if missing < len(tasks):  # the least that the scheduler accepts
        return
    scheduler = auto_scheduler.TaskScheduler(
        tasks, weights, load_log_file=str(file) if found else None, callbacks=[]
    )
    scheduler.tune(
        auto_scheduler.TuningOptions(
            num_measure_trials=missing,
            runner=auto_scheduler.LocalRunner(repeat=_REPEATS, enable_cpu_cache_flush=True),
            measure_callbacks=[auto_scheduler.RecordToFile(str(file))],
        )
    )


def build(directory: Path, options: BuildOptions) -> Network:
    """Build the network with the best schedules on record.

    Raises
    ------
    ValueError
        If there is none for this network and processor.
    """
    from tvm import auto_scheduler

    tasks, _ = _extract_tasks(directory)
    records = _find_records(Path(options.tuning_records), tasks)
    if not records:
        raise ValueError(
            f"{options.tuning_records}: expected records of this network and processor, got none"
        )
    module, params = _load_nhwc(directory)
    begin = time.perf_counter()
    with auto_scheduler.ApplyHistoryBest(records):
        network = untuned.build_graph_executor(module, params, directory, begin, _BUILD_CONFIG)
    network.facts["tuning_records"] = len(records)
    return network


def _load_nhwc(directory: Path):
    """The network in the layout that the auto-scheduler's documentation recommends."""
    import tvm
    from tvm import relay

    module, params = models.load_relay(directory)
    convert = relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})
    with tvm.transform.PassContext(opt_level=3):
        # A sequence infers the types that the pass needs, which the pass by itself does not.
        return tvm.transform.Sequential([convert])(module), params


def _extract_tasks(directory: Path):
    import tvm
    from tvm import auto_scheduler

    module, params = _load_nhwc(directory)
    target = tvm.target.Target(untuned.host_target())
    return auto_scheduler.extract_tasks(module["main"], params, target)


def _find_records(file: Path, tasks) -> list:
    """The pairs of input and result in `file` that belong to these tasks and to their target."""
    from tvm import auto_scheduler

    if not file.exists():
        return []
    wanted = {(task.workload_key, str(task.target)) for task in tasks}
    return [
        (measured, result)
        for measured, result in auto_scheduler.load_records(str(file))
        if (measured.task.workload_key, str(measured.task.target)) in wanted
    ]
