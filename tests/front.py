"""What the cases for both TVMs are written with: Relay's words, and how to build, run and compare.

Where TVM has Relax, each word stands for what Relax has in its place; see ``relax_words``.
"""

from tvm_dnnl_byoc import native

if native.front() == "relay":
    from helpers import *  # noqa: F403
else:
    from relax_words import *  # noqa: F403

RELAY = native.front() == "relay"
