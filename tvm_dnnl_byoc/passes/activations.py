"""The activations that oneDNN knows, recognised by what they compute.

A frontend may spell GELU or hard-swish in a dozen ways, with constants of a few digits. So a
formula is not matched but evaluated, in float64, and has to have an algorithm's value everywhere,
to a part of that value: what follows may make much of 1e-6, as ``log(relu(x) + 1e-6)`` does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy import exp, expm1, log1p, tanh

from .formula import Formula, Function, trace

erf, _erfc = np.frompyfunc(math.erf, 1, 1), np.frompyfunc(math.erfc, 1, 1)

# Where the parameters of the algorithms are read off.
_STEP = 2.0**-10
_FIT = np.array([0.0, _STEP, 2 * _STEP, 1.0, -1.0, -60.0, -80.0, 1e7, -1e7])
# A few points refute most algorithms, even at a glance: relative to the value or to 1.
_GLANCE = np.concatenate([_FIT, [-30, -5, -3.5, -2, -0.3, 0.3, 2, 3.5, 5, 30]])
_AT_A_GLANCE = 1e-3
# In this range every formula has to be finite: float32's exp is.
_NEAR = 80
# What float32 makes of a constant such as 1/6 changes a value by up to 2^-24 of it. A bound that
# is meant to be less than 1, 1 - 1e-7, is almost twice that away.
_CONSTANT = 2.0**-24
_ROUNDING = 1.5 * _CONSTANT
# Smaller numbers than this one, float32's smallest normal, are all 0.
_NOTHING = 2.0**-126
# Frontends write a few digits of √2 and of √(2/π): 1.4142 is within, 1.414 is not.
_DIGITS = 1e-5
_OF_FEW_DIGITS = {"gelu_erf", "gelu_tanh"}


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


def recognise(function: Function, constants: Sequence[float]) -> Activation | None:
    """Return the activation that a function computes, None if it is none of them.

    Parameters
    ----------
    function : callable
        Maps a float64 array, elementwise, to one of the same shape; see ``trace``.
    constants : sequence of float
        The numbers in its formula: near them is where most near misses differ.
    """
    formula = trace(function)
    return _recognise(formula, tuple(constants)) if formula else None


@lru_cache(maxsize=1024)  # a network has the same few activations everywhere
def _recognise(formula: Formula, constants: tuple[float, ...]) -> Activation | None:
    bends = np.outer([-2, -1, -0.5, 0.5, 1, 2], [c for c in constants if np.isfinite(c)])
    points = np.concatenate([_GLANCE, bends.ravel()])
    with np.errstate(all="ignore"):
        values = formula(points)
        at = dict(zip(_FIT, values, strict=False))
        if len(set(at.values())) == 1:  # it is a number, or is one but for a narrow place
            return None
        samples = None
        for alg, (function, fit) in _ALGORITHMS.items():
            alpha, beta = fit(at)
            if not (np.isfinite(alpha) and np.isfinite(beta)):
                continue
            # Further out a formula may overflow where the algorithm does not: log(1 + exp(x)).
            off = np.abs(function(points, alpha, beta) - values)[np.isfinite(values)]
            scale = np.maximum(1, np.abs(values))[np.isfinite(values)]
            if (off > _AT_A_GLANCE * scale).any():
                continue
            samples = formula.samples() if samples is None else samples
            if samples is None:
                return None
            activation = Activation(alg, float(alpha), float(beta))
            if _agree(formula, activation, samples):
                return activation
    return None


def _agree(formula: Formula, activation: Activation, x: np.ndarray) -> bool:
    """Tell whether a formula is an activation, as far as float32 can tell."""
    values = formula(x)
    finite = np.isfinite(values)
    if not (finite | ((np.abs(x) > _NEAR) & formula.overflows(x))).all():
        return False
    x, values = x[finite], values[finite]
    function = _ALGORITHMS[activation.alg][0]
    alpha, beta = activation.alpha, activation.beta
    expected = function(x, alpha, beta)
    allowed = _NOTHING + _ROUNDING * np.abs(values)
    # The parameters are rounded, too, which moves a bend or a zero.
    for other in ((alpha * (1 + _CONSTANT), beta), (alpha, beta * (1 + _CONSTANT))):
        if other != (alpha, beta):
            allowed += np.abs(function(x, *other) - expected)
    if activation.alg in _OF_FEW_DIGITS:
        scale = 1 + _DIGITS  # of what is within
        allowed += np.abs(function(x * scale, alpha, beta) / scale - expected)
    doubtful = ~(np.abs(values - expected) <= allowed)
    # Some formulas cancel, 1 + erf(x): there float64 itself is not that exact.
    off = np.abs(values - expected)[doubtful] - allowed[doubtful]
    return bool((off <= formula.noise(x[doubtful])).all())


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + exp(-x))


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + log1p(exp(-np.abs(x)))


def _normal(x: np.ndarray) -> np.ndarray:
    """Return the cumulative distribution, without the cancellation of 1 + erf."""
    return _erfc(x / -np.sqrt(2)).astype(np.float64) / 2


def _no_parameters(at: dict[float, float]) -> tuple[float, float]:
    return 0.0, 0.0


def _linear_parameters(at: dict[float, float]) -> tuple[float, float]:
    return (at[1e7] - at[-1e7]) / 2e7, at[0.0]


def _clip_parameters(at: dict[float, float]) -> tuple[float, float]:
    # What follows x to the last point has no bound, not one there.
    bounded = at[-1e7] > -1e7 and at[1e7] < 1e7
    return (at[-1e7], at[1e7]) if bounded else (np.nan, np.nan)


def _hardsigmoid_parameters(at: dict[float, float]) -> tuple[float, float]:
    return (at[_STEP] - at[0.0]) / _STEP, at[0.0]


def _hardswish_parameters(at: dict[float, float]) -> tuple[float, float]:
    first, second = at[_STEP] / _STEP, at[2 * _STEP] / (2 * _STEP)
    return (second - first) / _STEP, 2 * first - second


# By oneDNN's name: the formula of its documentation, in a form that is exact to a part of the
# value, and how alpha and beta follow from values. The first one that fits is taken.
_ALGORITHMS = {
    "relu": (lambda x, a, b: np.where(x > 0, x, a * x), lambda at: (-at[-1.0], 0.0)),
    "linear": (lambda x, a, b: a * x + b, _linear_parameters),
    "clip": (lambda x, a, b: np.clip(x, a, b), _clip_parameters),
    "square": (lambda x, a, b: x * x, _no_parameters),
    "logistic": (lambda x, a, b: _sigmoid(x), _no_parameters),
    "tanh": (lambda x, a, b: tanh(x), _no_parameters),
    "elu": (lambda x, a, b: np.where(x > 0, x, a * expm1(x)), lambda at: (-at[-60.0], 0.0)),
    "soft_relu": (lambda x, a, b: _softplus(a * x) / a, lambda at: (np.log(2) / at[0.0], 0.0)),
    "swish": (lambda x, a, b: x * _sigmoid(a * x), lambda at: (-np.log(1 / at[1.0] - 1), 0.0)),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), _hardsigmoid_parameters),
    "hardswish": (lambda x, a, b: x * np.clip(a * x + b, 0, 1), _hardswish_parameters),
    "mish": (lambda x, a, b: x * tanh(_softplus(x)), _no_parameters),
    "gelu_erf": (lambda x, a, b: x * _normal(x), _no_parameters),
    "gelu_tanh": (
        # (1 + tanh(z)) / 2 is the sigmoid of 2z
        lambda x, a, b: x * _sigmoid(np.sqrt(8 / np.pi) * x * (1 + 0.044715 * x * x)),
        _no_parameters,
    ),
}
