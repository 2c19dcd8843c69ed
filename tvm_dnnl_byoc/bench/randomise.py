"""Random parameters that suit a Gluon network of any kind and hide no wrong folding."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import mxnet as mx


def randomise(
    network: mx.gluon.HybridBlock, images: mx.nd.NDArray, rng: np.random.Generator
) -> None:
    """Give biases and batch normalisations random, asymmetric values that suit the network.

    A freshly initialised batch normalisation is close to the identity and would hide a wrong
    folding. The running statistics are measured on `images`, layer after layer, and perturbed, so
    that the activations of 152 layers stay in range.

    Parameters
    ----------
    network : mx.gluon.HybridBlock
        Initialised, and with all shapes known; not hybridised.
    images : mx.nd.NDArray
        Input of the network, float32, batch first.
    rng : np.random.Generator
        Source of the values.
    """
    from mxnet.gluon import SymbolBlock
    from mxnet.gluon.nn import BatchNorm

    blocks = []
    network.apply(blocks.append)
    norms = [block for block in blocks if isinstance(block, BatchNorm)]
    for key, parameter in network.collect_params().items():
        if key.endswith("bias"):
            _assign(parameter, rng.normal(0.05, 0.1, parameter.shape))
    for norm in norms:
        _randomise_affine(norm.gamma, norm.beta, rng)

    # Hooks run before the block itself, so the layers behind it see its final statistics.
    def calibrate(norm, inputs):
        _calibrate(norm.running_mean, norm.running_var, inputs[0], rng)

    def calibrate_symbol(block, inputs):
        _calibrate_symbol_block(block, inputs, rng)

    hooks = [norm.register_forward_pre_hook(calibrate) for norm in norms]
    for block in blocks:
        if isinstance(block, SymbolBlock):
            hooks.append(block.register_forward_pre_hook(calibrate_symbol))
    outputs = network(images)
    for output in flatten(outputs):
        output.wait_to_read()
    for hook in hooks:
        hook.detach()


def flatten(value) -> list:
    """Return the leaves of nested lists and tuples, such as a network's outputs."""
    if not isinstance(value, (list, tuple)):
        return [value]
    return [leaf for field in value for leaf in flatten(field)]


def _assign(parameter, values: np.ndarray) -> None:
    import mxnet as mx

    parameter.set_data(mx.nd.array(values))


def _randomise_affine(gamma, beta, rng: np.random.Generator) -> None:
    _assign(gamma, rng.uniform(0.4, 1.0, gamma.shape))
    _assign(beta, rng.normal(0.1, 0.2, beta.shape))


def _calibrate(running_mean, running_var, features, rng: np.random.Generator) -> None:
    mean = features.mean(axis=1, exclude=True).asnumpy()
    square = (features**2).mean(axis=1, exclude=True).asnumpy()
    # A channel constant over the images would be amplified by 1/sqrt(epsilon).
    variance = np.maximum(square - mean**2, 1e-2 * square.mean() + 1e-6)
    shift = np.sqrt(variance) * rng.normal(0.05, 0.2, mean.shape)
    _assign(running_mean, mean + shift)
    _assign(running_var, variance * rng.uniform(0.7, 1.4, mean.shape))


def _calibrate_symbol_block(block, inputs, rng: np.random.Generator) -> None:
    """Do for the batch normalisations inside a symbol what hooks do for those that are blocks.

    SSD's backbones are such symbols. Each is evaluated up to one batch normalisation after the
    other, since each depends on the statistics of those before it.
    """
    import mxnet as mx

    parameters = block.collect_params()
    symbol = mx.sym.Group(flatten(block.forward(mx.sym.Variable("data"))))
    operators = {node["name"]: node["op"] for node in json.loads(symbol.tojson())["nodes"]}
    for node in symbol.get_internals():
        if operators.get(node.name) != "BatchNorm":
            continue
        features, *names = node.get_children()
        gamma, beta, mean, variance = (parameters[name.name] for name in names)
        _randomise_affine(gamma, beta, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the type of `data`
            until_here = mx.gluon.SymbolBlock(features, [mx.sym.Variable("data")], parameters)
        _calibrate(mean, variance, until_here(*inputs), rng)
