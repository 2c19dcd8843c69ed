"""What a module is run on."""

from collections.abc import Mapping, Sequence

import numpy as np

Inputs = Mapping[str, np.ndarray] | np.ndarray


def by_name(inputs: Inputs, names: Sequence[str]) -> Mapping[str, np.ndarray]:
    """Return the inputs by name; an array alone is the only one.

    Parameters
    ----------
    inputs : mapping from str to numpy.ndarray, or numpy.ndarray
    names : sequence of str
        Those that there have to be.

    Raises
    ------
    ValueError
        If there are others: left out, one would be what it was in the run before.
    """
    values = inputs if isinstance(inputs, Mapping) else dict(zip(names, [inputs], strict=False))
    if set(values) != set(names):
        raise ValueError(f"expected inputs {', '.join(names)}, got {', '.join(values)}")
    return values
