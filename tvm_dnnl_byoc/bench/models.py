"""GluonCV networks with parameters that put every folding and fusion to the test."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from . import conversion, onnx_export
from .randomise import flatten, randomise

if TYPE_CHECKING:
    import mxnet as mx
    import tvm

INPUT_NAME = "data"
INPUTS = "inputs.npz"
MXNET_FILES = ("mxnet-symbol.json", "mxnet-0000.params")

QUANTIZED_ONNX = "quantized.onnx"
_QUANTIZATION = "quantization"
TO_RELAY = "conversion to Relay"

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
        Input, float32, (N, 3, H, W), or (N, 3, T, H, W) for videos.
    references : list of np.ndarray
        MXNet's answers to ``data``, one for each output of ``symbol``.
    """

    name: str
    symbol: mx.sym.Symbol
    arg_params: dict[str, mx.nd.NDArray]
    aux_params: dict[str, mx.nd.NDArray]
    data: np.ndarray
    references: list[np.ndarray]

    @property
    def reference(self) -> np.ndarray:
        """MXNet's answer, of a network with one output."""
        (reference,) = self.references
        return reference


def model_names() -> list[str]:
    """All names that GluonCV's model zoo knows, sorted."""
    return sorted(_gluoncv_zoo().get_model_list())


def input_size(name: str) -> int:
    """Height and width, in pixels, of the images that the network was designed for."""
    return 299 if name.startswith(_LARGE_INPUTS) else 224


def prepare_gluoncv(name: str, batch_size: int = 1, seed: int = 0) -> PreparedModel:
    """Instantiate a GluonCV classification network with reproducible random parameters.

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
    size = input_size(name)
    prepared = prepare(name, (batch_size, 3, size, size), seed, _CALIBRATION_BATCH)
    if len(prepared.references) != 1:
        count = len(prepared.references)
        raise ValueError(f"{name}: expected a network with one output, got {count}")
    reference = prepared.reference
    if not np.isfinite(reference).all() or reference.std() < 1e-3:
        raise ValueError(
            f"{name}: expected finite output that varies, got values from {reference.min():g} "
            f"to {reference.max():g}"
        )
    return prepared


def prepare(
    name: str, shape: tuple[int, ...], seed: int = 0, calibration_batch: int = 1
) -> PreparedModel:
    """Instantiate any GluonCV network with reproducible random parameters, and run it.

    No pretrained weights are fetched; `randomise` says what the parameters are.

    Parameters
    ----------
    name : str
        A name of ``gluoncv.model_zoo``.
    shape : tuple of int
        Of the input, batch first.
    seed : int
        Seed of parameters and input.
    calibration_batch : int
        Number of inputs that the running statistics are measured on.

    Raises
    ------
    UnknownModelError
        If the model zoo has no such network.
    """
    import mxnet as mx

    rng = np.random.default_rng(seed)
    mx.random.seed(seed)
    network = _instantiate(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # I3D's parameters have initialised themselves
        network.initialize(_initializer())

    data = rng.standard_normal(shape, dtype=np.float32)
    calibration = rng.standard_normal((calibration_batch, *shape[1:]), dtype=np.float32)
    network(mx.nd.array(calibration[:1]))  # GluonCV defers most shapes to a first forward pass
    randomise(network, mx.nd.array(calibration), rng)

    outputs = flatten(network(mx.nd.array(data)))
    symbol = mx.sym.Group(flatten(network(mx.sym.Variable(INPUT_NAME))))
    values = {key: parameter.data() for key, parameter in network.collect_params().items()}
    return PreparedModel(
        name=name,
        symbol=symbol,
        arg_params={key: values[key] for key in symbol.list_arguments() if key != INPUT_NAME},
        aux_params={key: values[key] for key in symbol.list_auxiliary_states()},
        data=data,
        references=[output.asnumpy() for output in outputs],
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
    """Write the network for MXNet, TVM and ONNX, and the arrays, so that workers need only theirs.

    The conversions are done here: a worker of a peer then never loads MXNet, which brings another
    oneDNN and another set of threads. If a conversion fails, its reason is saved.
    """
    import mxnet as mx

    mx.model.save_checkpoint(
        str(directory / "mxnet"), 0, prepared.symbol, prepared.arg_params, prepared.aux_params
    )
    save_inputs([{INPUT_NAME: prepared.data}], directory)
    np.save(directory / "reference.npy", prepared.reference)
    with conversion.attempt(directory, TO_RELAY):
        save_relay(*to_relay(prepared), directory)
    onnx_export.save(prepared, directory)


def prepare_and_save(name: str, batch_size: int, seed: int, directory: Path) -> list[int]:
    """Prepare a classification network, and write it; returns the shape of its input."""
    prepared = prepare_gluoncv(name, batch_size, seed)
    save(prepared, directory)
    return list(prepared.data.shape)


def save_quantized(directory: Path, seed: int) -> None:
    """Quantize what `save` wrote for TVM, and write the result for TVM and, in QDQ form, as ONNX.

    The scales come from a few random inputs beside the one that is measured.
    """
    import tvm

    from ..quantize import calibrate, convert, to_onnx

    with conversion.attempt(directory, _QUANTIZATION):
        module, params = load_relay(directory)
        data = load_inputs(directory)[0][INPUT_NAME]
        rng = np.random.default_rng(seed)
        inputs = [data, *(rng.standard_normal(data.shape, np.float32) for _ in range(3))]
        quantized = convert(module, params, calibrate(module, params, inputs, "minmax"))
        (directory / "quantized.json").write_text(tvm.ir.save_json(quantized))
        (directory / QUANTIZED_ONNX).write_bytes(to_onnx(quantized).SerializeToString())


def load_quantized(directory: Path) -> tvm.IRModule:
    """Read what `save_quantized` wrote for TVM."""
    import tvm

    conversion.check(directory, _QUANTIZATION)
    return tvm.ir.load_json((directory / "quantized.json").read_text())


def find_quantized(directory: Path) -> Path:
    """Return the ONNX file that `save_quantized` wrote."""
    conversion.check(directory, _QUANTIZATION)
    return directory / QUANTIZED_ONNX


def save_inputs(calls: Sequence[dict[str, np.ndarray]], directory: Path) -> None:
    """Write the inputs, by name, of each call of the network that one inference is."""
    arrays = {f"{i} {name}": array for i, call in enumerate(calls) for name, array in call.items()}
    np.savez(directory / INPUTS, **arrays)


def load_inputs(directory: Path) -> list[dict[str, np.ndarray]]:
    """Read what `save_inputs` wrote, in the same order."""
    calls: list[dict[str, np.ndarray]] = []
    with np.load(directory / INPUTS) as arrays:
        for key, array in arrays.items():
            number, name = key.split(" ", 1)
            if int(number) == len(calls):
                calls.append({})
            calls[-1][name] = array
    return calls


def save_relay(module: tvm.IRModule, params: dict[str, tvm.nd.NDArray], directory: Path) -> None:
    """Write a network for TVM."""
    import tvm

    (directory / "relay.json").write_text(tvm.ir.save_json(module))
    (directory / "relay.params").write_bytes(tvm.runtime.save_param_dict(params))


def load_relay(directory: Path) -> tuple[tvm.IRModule, dict[str, tvm.nd.NDArray]]:
    """Read what `save_relay` wrote, or raise why it could not."""
    import tvm

    conversion.check(directory, TO_RELAY)
    module = tvm.ir.load_json((directory / "relay.json").read_text())
    params = tvm.runtime.load_param_dict((directory / "relay.params").read_bytes())
    return module, params


def load_mxnet(directory: Path, files: Sequence[str] = MXNET_FILES) -> mx.gluon.SymbolBlock:
    """Read what `save` wrote for MXNet, or the symbol and the parameters in other files."""
    import mxnet as mx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the type of `data`, known only at the first call
        symbol, params = (str(directory / name) for name in files)
        return mx.gluon.SymbolBlock.imports(symbol, [INPUT_NAME], params)


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
    except (TypeError, Warning):  # most classifiers have no base network; DarkNet raises a Warning
        return zoo.get_model(name, pretrained=False)


def _initializer() -> mx.init.Initializer:
    """He's variance keeps the scale of activations through ReLU networks without normalisation."""
    import mxnet as mx

    class He(mx.init.Xavier):
        def _init_weight(self, name, arr):
            # SSD's symbols hand it vectors as well, such as gamma.
            if arr.ndim < 2:
                arr[:] = float(str(name).endswith(("gamma", "var")))
            else:
                super()._init_weight(name, arr)

    return He(rnd_type="gaussian", factor_type="in", magnitude=2)
