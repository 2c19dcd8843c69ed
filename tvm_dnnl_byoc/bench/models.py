"""GluonCV networks with parameters that put every folding and fusion to the test."""

from __future__ import annotations

import json
import logging
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import mxnet as mx
    import tvm

INPUT_NAME = "data"

_LARGE_INPUTS = ("inception", "xception")
_CALIBRATION_BATCH = 4


class UnknownModelError(ValueError):
    """A name that the GluonCV model zoo does not have."""


@dataclass(frozen=True)
class PreparedModel:
    """A network, its parameters, one input and MXNet's answer to it.

    Attributes
    ----------
    name : str
        The GluonCV name.
    symbol : mx.sym.Symbol
        The graph; its only free input is called ``data``.
    arg_params, aux_params : dict of str to mx.nd.NDArray
        Weights, and the running statistics of the batch normalisations.
    data : np.ndarray
        Input, float32, (N, 3, H, W).
    reference : np.ndarray
        MXNet's float32 output for ``data``.
    """

    name: str
    symbol: mx.sym.Symbol
    arg_params: dict[str, mx.nd.NDArray]
    aux_params: dict[str, mx.nd.NDArray]
    data: np.ndarray
    reference: np.ndarray


def model_names() -> list[str]:
    """All names that GluonCV's model zoo knows, sorted."""
    return sorted(_gluoncv_zoo().get_model_list())


def input_size(name: str) -> int:
    """Height and width, in pixels, of the images that the network was designed for."""
    return 299 if name.startswith(_LARGE_INPUTS) else 224


def prepare_gluoncv(name: str, batch_size: int = 1, seed: int = 0) -> PreparedModel:
    """Instantiate a GluonCV classification network with reproducible random parameters.

    No pretrained weights are fetched. A freshly initialised batch normalisation is close to the
    identity and would hide a wrong folding, so all its four parameters are randomised, in a way
    that keeps the activations of 152 layers in range: the statistics are measured on random images,
    layer after layer, and perturbed.

    Parameters
    ----------
    name : str
        A name of ``gluoncv.model_zoo``, such as ``"resnet50_v1b"``.
    batch_size : int
        Number of images in the input.
    seed : int
        Seed of parameters and input.

    Raises
    ------
    UnknownModelError
        If the model zoo has no such network.
    ValueError
        If the network has several outputs, or its output is not finite or does not vary.
    """
    import mxnet as mx

    rng = np.random.default_rng(seed)
    mx.random.seed(seed)
    network = _instantiate(name)
    # He's variance keeps the scale of activations through ReLU networks without normalisation.
    network.initialize(mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2))

    size = input_size(name)
    data = rng.standard_normal((batch_size, 3, size, size), dtype=np.float32)
    calibration = rng.standard_normal((_CALIBRATION_BATCH, 3, size, size), dtype=np.float32)
    network(mx.nd.array(calibration[:1]))  # GluonCV defers most shapes to a first forward pass
    _randomise(network, mx.nd.array(calibration), rng)

    output = network(mx.nd.array(data))
    if not isinstance(output, mx.nd.NDArray):
        raise ValueError(f"{name}: expected a network with one output, got {len(output)}")
    reference = output.asnumpy()
    if not np.isfinite(reference).all() or reference.std() < 1e-3:
        raise ValueError(
            f"{name}: expected finite output that varies, got values from {reference.min():g} "
            f"to {reference.max():g}"
        )

    symbol = network(mx.sym.Variable(INPUT_NAME))
    values = {key: parameter.data() for key, parameter in network.collect_params().items()}
    return PreparedModel(
        name=name,
        symbol=symbol,
        arg_params={key: values[key] for key in symbol.list_arguments() if key != INPUT_NAME},
        aux_params={key: values[key] for key in symbol.list_auxiliary_states()},
        data=data,
        reference=reference,
    )


def to_relay(prepared: PreparedModel) -> tuple[tvm.IRModule, dict[str, tvm.nd.NDArray]]:
    """Convert with TVM's MXNet frontend; returns the module and its parameters."""
    from tvm import relay

    return relay.frontend.from_mxnet(
        prepared.symbol,
        shape={INPUT_NAME: prepared.data.shape},
        dtype="float32",
        arg_params=prepared.arg_params,
        aux_params=prepared.aux_params,
    )


def save(prepared: PreparedModel, directory: Path) -> None:
    """Write the network for MXNet, for TVM, and the arrays, so that workers need only their own.

    TVM's files come from a conversion here: a worker of TVM then never loads MXNet, which brings
    another oneDNN and another set of threads. If the conversion fails, its reason is saved.
    """
    import mxnet as mx

    mx.model.save_checkpoint(
        str(directory / "mxnet"), 0, prepared.symbol, prepared.arg_params, prepared.aux_params
    )
    np.save(directory / "data.npy", prepared.data)
    np.save(directory / "reference.npy", prepared.reference)
    try:
        import tvm

        module, params = to_relay(prepared)
        (directory / "relay.json").write_text(tvm.ir.save_json(module))
        (directory / "relay.params").write_bytes(tvm.runtime.save_param_dict(params))
    except Exception as error:  # any failure of the frontend concerns TVM's backends only
        logging.exception("conversion to Relay failed")
        reason = f"conversion to Relay: {type(error).__name__}: {error}"
        (directory / "relay.error").write_text(json.dumps(reason))


def load_relay(directory: Path) -> tuple[tvm.IRModule, dict[str, tvm.nd.NDArray]]:
    """Read what `save` wrote for TVM."""
    import tvm

    failure = directory / "relay.error"
    if failure.exists():
        raise RuntimeError(json.loads(failure.read_text()))
    module = tvm.ir.load_json((directory / "relay.json").read_text())
    params = tvm.runtime.load_param_dict((directory / "relay.params").read_bytes())
    return module, params


def load_mxnet(directory: Path) -> mx.gluon.SymbolBlock:
    """Read what `save` wrote for MXNet."""
    import mxnet as mx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the type of `data`, known only at the first call
        return mx.gluon.SymbolBlock.imports(
            str(directory / "mxnet-symbol.json"), [INPUT_NAME], str(directory / "mxnet-0000.params")
        )


def _gluoncv_zoo():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from gluoncv import model_zoo
    return model_zoo


def _instantiate(name: str) -> mx.gluon.HybridBlock:
    zoo = _gluoncv_zoo()
    if name not in zoo.get_model_list():
        raise UnknownModelError(f"model: expected a name of gluoncv.model_zoo, got {name!r}")
    try:
        return zoo.get_model(name, pretrained=False, pretrained_base=False)
    except TypeError:  # most classifiers have no base network
        return zoo.get_model(name, pretrained=False)


def _randomise(
    network: mx.gluon.HybridBlock, images: mx.nd.NDArray, rng: np.random.Generator
) -> None:
    """Give biases and batch normalisations random, asymmetric values that suit the network."""
    import mxnet as mx
    from mxnet.gluon.nn import BatchNorm

    def assign(parameter, values):
        parameter.set_data(mx.nd.array(values))

    def calibrate(norm, inputs):
        # Runs before the block itself, so the layers behind it see its final statistics.
        (features,) = inputs
        mean = features.mean(axis=1, exclude=True).asnumpy()
        square = (features**2).mean(axis=1, exclude=True).asnumpy()
        # A channel constant over the images would be amplified by 1/sqrt(epsilon).
        variance = np.maximum(square - mean**2, 1e-2 * square.mean() + 1e-6)
        shift = np.sqrt(variance) * rng.normal(0.05, 0.2, mean.shape)
        assign(norm.running_mean, mean + shift)
        assign(norm.running_var, variance * rng.uniform(0.7, 1.4, mean.shape))

    norms: list[BatchNorm] = []
    network.apply(lambda block: norms.append(block) if isinstance(block, BatchNorm) else None)
    for key, parameter in network.collect_params().items():
        if key.endswith("bias"):
            assign(parameter, rng.normal(0.05, 0.1, parameter.shape))
    for norm in norms:
        assign(norm.gamma, rng.uniform(0.4, 1.0, norm.gamma.shape))
        assign(norm.beta, rng.normal(0.1, 0.2, norm.beta.shape))

    hooks = [norm.register_forward_pre_hook(calibrate) for norm in norms]
    network(images).wait_to_read()
    for hook in hooks:
        hook.detach()
