"""What the rest of the package needs of the front for the TVM that is installed."""

from . import native

if native.front() == "relay":
    from .relay.flops import calls_inside
    from .relay.partition import partition
else:
    from .relax.partition import partition
    from .relax.read import calls_inside

__all__ = ["calls_inside", "partition"]
