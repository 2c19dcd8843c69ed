"""Quantized modules of Relay's as files for other runtimes."""

import numpy as np
import pytest
from helpers import build, const, conv2d, module, random, run, var
from quantized_network import DATA, network, outputs
from tvm import relay

from tvm_dnnl_byoc import partition_for_dnnl, quantize


def by_onnxruntime(model, data):
    """Return a model's only output for each input."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="its wheels end with Python 3.11 here")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return [session.run(None, inputs)[0] for inputs in data]


def test_onnx():
    """ONNX Runtime's answers from the file are as near to f32 as ours, and nearer to ours."""
    recipe = quantize.calibrate(network(), {}, DATA, observer="minmax")
    converted = quantize.convert(network(), {}, recipe)
    model = quantize.to_onnx(converted)
    assert [value.name for value in model.graph.input] == ["x"]
    _, ours = outputs(converted)
    for theirs, our in zip(by_onnxruntime(model, DATA), ours, strict=True):
        assert np.abs(theirs - our).max() < 0.02 * np.abs(our).max()
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("Conv") == 7
    assert kinds.count("Gemm") == 1
    assert all(len(n.input) == 3 for n in model.graph.node if n.op_type == "Conv")  # with a bias


def test_onnx_of_dense_of_rank_3():
    """Which canonical form makes of one between reshapes."""
    y = relay.nn.dense(relay.reshape(var("x", 2, 5, 24), [10, 24]), const(7, 24))
    mod = module(relay.nn.relu(relay.add(relay.reshape(y, [2, 5, 7]), const(7))))
    data = [{"x": random(2, 5, 24, seed=seed)} for seed in range(3)]
    converted = quantize.convert(mod, {}, quantize.calibrate(mod, {}, data, observer="minmax"))
    model = quantize.to_onnx(converted)
    for inputs, theirs in zip(data, by_onnxruntime(model, data), strict=True):
        (our,) = run(build(partition_for_dnnl(converted)), inputs)
        assert np.abs(theirs - our).max() < 0.02 * np.abs(our).max()
    assert "MatMul" in [node.op_type for node in model.graph.node]


def test_onnx_of_what_it_does_not_know():
    mod = relay.transform.InferType()(module(relay.reverse(var("x", 2, 3), -1)))
    with pytest.raises(ValueError, match=r"to_onnx: expected one of add, .*, got reverse"):
        quantize.to_onnx(mod)


C = 6
IMAGES = [{"x": random(2, 5, 8, C, seed=seed, low=-50, high=50)} for seed in range(3)]


def image():
    return var("x", 2, 5, 8, C)


def weights_but_for_a_channel(factor):
    weights = random(C, 5, 3, 3)
    weights[2] *= factor
    return relay.const(weights)


def positive(*shape):
    return const(*shape, low=0.5, high=1)


def multiplied():
    """Two outputs for each channel: the weights are spread over two axes, the scales over one."""
    return relay.nn.conv2d(image(), const(5, 2, 3, 3), channels=10, kernel_size=(3, 3), groups=5)


def multiplied_then_added():
    return relay.nn.bias_add(multiplied(), const(10, low=-50, high=50))


def along_the_width():
    return conv2d(image(), const(C, 5, 3, 3), padding=(1, 1)) + const(1, 1, C, low=-99, high=99)


def biased(factor):
    """Return a layer with a bias, of which one channel's weights are as small as that."""
    y = conv2d(image(), weights_but_for_a_channel(factor), padding=(1, 1))
    return y + const(C, 1, 1, seed=1, low=0.5, high=0.9)


def dilated(pool):
    return conv2d(pool(image(), (2, 3), dilation=(3, 2), padding=(1, 2)), const(4, 5, 1, 1))


# Of each, how its bias comes: in int32, in float32, or not as an input of the layer.
EXPORTED = {
    "a bias": (lambda: biased(1), "int32"),
    "a bias of weights far smaller": (lambda: biased(1e-12), "float32"),
    "a bias of weights just large enough": (lambda: biased(4e-7), "int32"),
    "a bias of no weights": (lambda: biased(0), "float32"),
    "what is added along the width": (along_the_width, None),
    "a dilated maximum": (lambda: dilated(relay.nn.max_pool2d), None),
    "two outputs of each channel": (multiplied, None),
    "two outputs of each channel with a bias": (multiplied_then_added, "int32"),
}


def bias_dtype(model):
    """Return the dtype of the numbers of the one convolution's bias, None if it has none."""
    (layer,) = [node for node in model.graph.node if node.op_type == "Conv"]
    if len(layer.input) < 3:
        return None
    written_by = {name: node for node in model.graph.node for name in node.output}
    bias = layer.input[2]
    numbers = written_by[bias].input[0] if bias in written_by else bias
    (tensor,) = [tensor for tensor in model.graph.initializer if tensor.name == numbers]
    return {1: "float32", 6: "int32"}[tensor.data_type]


@pytest.mark.parametrize(("make", "dtype"), EXPORTED.values(), ids=EXPORTED)
def test_onnx_has_our_answers(make, dtype):
    """In each channel: what is lost in one of small numbers is not to be hidden by the others."""
    mod = relay.transform.InferType()(module(make()))
    recipe = quantize.calibrate(mod, {}, IMAGES, "minmax", bias_correction=False)
    converted = quantize.convert(mod, {}, recipe)
    model = quantize.to_onnx(converted)
    assert bias_dtype(model) == dtype
    ours = np.array([run(build(partition_for_dnnl(converted)), inputs)[0] for inputs in IMAGES])
    theirs = np.array(by_onnxruntime(model, IMAGES))
    assert theirs.shape == ours.shape
    difference, largest = (np.abs(a).max((0, 1, 3, 4)) for a in (theirs - ours, ours))
    assert (difference <= 0.01 * largest).all()


def normalised(axis, **attrs):
    y = relay.nn.relu(conv2d(image(), const(8, 5, 1, 1)))
    size = (2, 8, 8, C)[axis]
    return relay.nn.batch_norm(y, *(positive(size) for _ in range(4)), axis=axis, **attrs)[0]


def inputs_first():
    return relay.nn.conv2d(
        image(), const(3, 3, 5, C), channels=C, kernel_size=(3, 3), kernel_layout="HWIO"
    )


REFUSED = {
    "an average with gaps": (
        lambda: dilated(relay.nn.avg_pool2d),
        r"nn\.avg_pool2d: expected no dilation, got \[3, 2\]",
    ),
    "a normalisation along the width": (
        lambda: normalised(3),
        r"nn\.batch_norm: expected axis 1, got 3",
    ),
    "weights with the inputs first": (
        inputs_first,
        r"nn\.conv2d: expected weights in OIHW, got HWIO",
    ),
}


@pytest.mark.parametrize(("make", "reason"), REFUSED.values(), ids=REFUSED)
def test_onnx_refuses_what_it_would_write_wrongly(make, reason):
    mod = relay.transform.InferType()(module(make()))
    with pytest.raises(ValueError, match=f"to_onnx: {reason}"):
        quantize.to_onnx(mod)


def normalised_columns():
    y = relay.nn.dense(relay.nn.batch_flatten(image()), const(8, 5 * 8 * C))
    return relay.nn.batch_norm(y, *(positive(8) for _ in range(4)), axis=-1)[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: normalised(1),
        normalised_columns,
        lambda: normalised(1, scale=False),
        lambda: normalised(1, center=False),
    ],
)
def test_onnx_of_a_normalisation_of_channels(make):
    """The near miss, however the axis is counted."""
    mod = relay.transform.InferType()(module(make()))
    (expected,) = run(build(mod), IMAGES[0])
    np.testing.assert_allclose(
        by_onnxruntime(quantize.to_onnx(mod), IMAGES)[0], expected, 1e-4, 1e-3
    )
