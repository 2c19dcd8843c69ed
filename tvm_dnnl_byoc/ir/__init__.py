"""The expressions that ``passes`` work on: Relay's, or where TVM has Relax, ours of the same form.

Both modules here have the same names. The operators and their attributes are Relay's; an operator
that only Relax has is documented in ``src/adapter/anchors.cc``.
"""

from .. import native

if native.front() == "relay":
    from .relay import *  # noqa: F403
    from .relay import __all__ as _names
else:
    from .relax import *  # noqa: F403
    from .relax import __all__ as _names

__all__ = list(_names)
