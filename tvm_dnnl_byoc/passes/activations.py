"""The activations that oneDNN knows, recognised by what they compute.

A frontend may spell GELU or hard-swish in a dozen ways, with constants of a few digits. So a
formula is not matched but evaluated, in float64, at points that tell all of these functions apart.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy import exp, log1p, tanh

Function = Callable[[np.ndarray], np.ndarray]

erf: Function = np.vectorize(math.erf, otypes=[np.float64])

# Where the parameters of the algorithms are read off.
_STEP = 2.0**-10
_FIT = np.array([0.0, _STEP, 2 * _STEP, 1.0, -1.0, -60.0, -80.0, 1e7, -1e7])
# In this range every formula has to be finite: float32's exp is.
_NEAR = np.concatenate([np.linspace(-80, 80, 641), *(s * np.logspace(-6, 1, 29) for s in (-1, 1))])
_FAR = np.concatenate([s * np.logspace(2, 7, 21) for s in (-1, 1)])
# What float32's rounding in a formula of a dozen operators makes of a result, relative to it or
# to 1: 1.4142 for √2 is within, 1.414 is not.
_TOLERANCE = 3e-6


@dataclass(frozen=True)
class Activation:
    """An eltwise algorithm of oneDNN with its parameters.

    Attributes
    ----------
    alg : str
        oneDNN's name, without ``eltwise_``.
    alpha, beta : float
    """

    alg: str
    alpha: float = 0.0
    beta: float = 0.0


def recognise(function: Function, constants: list[float]) -> Activation | None:
    """Return the activation that a function computes, None if it is none of them.

    Parameters
    ----------
    function : callable
        Maps a float64 array, elementwise, to one of the same shape.
    constants : list of float
        The numbers in its formula: a function may bend near them.
    """
    numbers = np.array([c for c in constants if np.isfinite(c)])
    bends = np.outer([-2, -1, -0.5, 0.5, 1, 2], numbers).ravel()
    points = np.concatenate([_FIT, _NEAR, _FAR, bends])
    with np.errstate(all="ignore"):
        values = function(points)
        at = dict(zip(_FIT, values, strict=False))
        if not np.isfinite(values[len(_FIT) : len(_FIT) + len(_NEAR)]).all():
            return None
        # Further out a formula may overflow where the algorithm does not: log(1 + exp(x)).
        points, values = points[np.isfinite(values)], values[np.isfinite(values)]
        for alg, (formula, fit) in _ALGORITHMS.items():
            alpha, beta = fit(at)
            if not (np.isfinite(alpha) and np.isfinite(beta)):
                continue
            if all(
                _agree(formula(points[some], alpha, beta), values[some])
                for some in (slice(len(_FIT)), slice(None))  # few points refute most
            ):
                return Activation(alg, float(alpha), float(beta))
    return None


def _agree(a: np.ndarray, b: np.ndarray) -> bool:
    return bool((np.abs(a - b) <= _TOLERANCE * np.maximum(1, np.abs(b))).all())


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + exp(-x))


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + log1p(exp(-np.abs(x)))


def _no_parameters(at: dict[float, float]) -> tuple[float, float]:
    return 0.0, 0.0


def _clip_parameters(at: dict[float, float]) -> tuple[float, float]:
    # What follows x to the last point has no bound, not one there.
    bounded = at[-1e7] > -1e7 and at[1e7] < 1e7
    return (at[-1e7], at[1e7]) if bounded else (np.nan, np.nan)


def _hardsigmoid_parameters(at: dict[float, float]) -> tuple[float, float]:
    return (at[_STEP] - at[0.0]) / _STEP, at[0.0]


def _hardswish_parameters(at: dict[float, float]) -> tuple[float, float]:
    first, second = at[_STEP] / _STEP, at[2 * _STEP] / (2 * _STEP)
    return (second - first) / _STEP, 2 * first - second


# By oneDNN's name: the formula of its documentation, and how alpha and beta follow from values.
# The first one that fits is taken.
_ALGORITHMS = {
    "relu": (lambda x, a, b: np.where(x > 0, x, a * x), lambda at: (-at[-1.0], 0.0)),
    "linear": (lambda x, a, b: a * x + b, lambda at: (at[1.0] - at[0.0], at[0.0])),
    "clip": (lambda x, a, b: np.clip(x, a, b), _clip_parameters),
    "square": (lambda x, a, b: x * x, _no_parameters),
    "logistic": (lambda x, a, b: _sigmoid(x), _no_parameters),
    "tanh": (lambda x, a, b: tanh(x), _no_parameters),
    "elu": (lambda x, a, b: np.where(x > 0, x, a * (exp(x) - 1)), lambda at: (-at[-60.0], 0.0)),
    "soft_relu": (lambda x, a, b: _softplus(a * x) / a, lambda at: (np.log(2) / at[0.0], 0.0)),
    "swish": (lambda x, a, b: x * _sigmoid(a * x), lambda at: (-np.log(1 / at[1.0] - 1), 0.0)),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), _hardsigmoid_parameters),
    "hardswish": (lambda x, a, b: x * np.clip(a * x + b, 0, 1), _hardswish_parameters),
    "mish": (lambda x, a, b: x * tanh(_softplus(x)), _no_parameters),
    "gelu_erf": (lambda x, a, b: x / 2 * (1 + erf(x / np.sqrt(2))), _no_parameters),
    "gelu_tanh": (
        lambda x, a, b: x / 2 * (1 + tanh(np.sqrt(2 / np.pi) * x * (1 + 0.044715 * x * x))),
        _no_parameters,
    ),
}
