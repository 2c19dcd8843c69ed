"""What the rest of the package needs of the front for the TVM that is installed."""

from . import native

if native.front() == "relay":
    from .relay.flops import calls_inside
    from .relay.main import Main
    from .relay.partition import partition, partition_for_dnnl
    from .relay.run import Run, build, operators_outside
else:
    from .relax.main import Main
    from .relax.partition import partition, partition_for_dnnl
    from .relax.read import calls_inside
    from .relax.run import Run, build, operators_outside

__all__ = [
    "Main",
    "Run",
    "build",
    "calls_inside",
    "operators_outside",
    "partition",
    "partition_for_dnnl",
]
