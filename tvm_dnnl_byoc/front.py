"""What the rest of the package needs of the front for the TVM that is installed."""

from . import native

if native.front() == "relay":
    from .relay.flops import calls_inside
    from .relay.main import Main
    from .relay.partition import partition
    from .relay.run import runner
else:
    from .relax.main import Main
    from .relax.partition import partition
    from .relax.read import calls_inside
    from .relax.run import runner

__all__ = ["Main", "calls_inside", "partition", "runner"]
