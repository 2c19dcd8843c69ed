"""Quantized networks of torch's, and of any batch."""

import numpy as np
import pytest
from front import steps_of
from processor import HAS_BF16, WHOLE
from relax_helpers import build, const, inputs_for, module, ops_left, random, run, symbol
from tvm import relax
from tvm.relax import op
from tvm.script import ir as I
from tvm.script import relax as R

from tvm_dnnl_byoc import explain, partition_for_dnnl, profile, quantize


def decibels(exact, got):
    """Return the ratio of the power of the exact values to that of their error."""
    exact = exact.astype("float64")
    return 10 * np.log10(np.square(exact).mean() / np.square(exact - got).mean())


def converted(mod, data, *kept, observer="minmax"):
    recipe = quantize.calibrate(mod, None, data, observer=observer)
    return quantize.convert(mod, None, recipe.keep(*kept))


def network(x):
    """A residual block, a max pooling, a padding of its own, a linear layer as torch writes it."""
    variance = const(16, low=0.5, high=1.5)
    y = op.nn.conv2d(op.nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1)), const(16, 3, 3, 3, low=-0.4, high=0.3))
    statistics = (const(16, low=0.5), const(16, seed=1), const(16, seed=2), variance)
    y = op.nn.relu(op.nn.batch_norm(y, *statistics, axis=1, training=False)[0])
    z = op.nn.conv2d(y, const(16, 16, 3, 3, seed=4, low=-0.2, high=0.15), padding=1)
    y = op.nn.max_pool2d(op.nn.relu(op.add(z, y)), 2, 2)
    weights = op.permute_dims(const(10, 16, seed=5))
    return op.add(op.matmul(op.mean(y, [2, 3]), weights), const(10))


def test_a_batch_of_any_size():
    """The scales hold for every batch: images together give what each gives alone."""
    n = symbol("n")
    mod = module(network, (n, 3, 16, 16))
    data = [random(2, 3, 16, 16, seed=seed) for seed in range(4)]
    quantized = converted(mod, data)
    partitioned = partition_for_dnnl(quantized)
    assert ops_left(partitioned) == ["call_dps_packed"]
    executable, exact = build(partitioned), build(partition_for_dnnl(mod))
    images = random(8, 3, 16, 16, seed=9)
    (together,) = run(executable, [images])
    for i in range(8):
        (alone,) = run(executable, [images[i : i + 1]])
        np.testing.assert_allclose(alone[0], together[i], rtol=0, atol=1e-5)
    run(executable, [images])
    (plan,) = profile(executable).values()
    assert (plan["plans"], plan["compiled"]) == (2, 2)
    (expected,) = run(exact, [images])
    assert decibels(expected, together) > 30
    if WHOLE:
        assert whole(executable) == ["s8"] * 3


def test_static_and_dynamic_are_the_same():
    """A recipe knows of no sizes: that of one form is the other's."""
    static, dynamic = (module(network, (size, 3, 16, 16)) for size in (2, symbol("n")))
    data = [random(2, 3, 16, 16, seed=seed) for seed in range(3)]
    recipe = quantize.calibrate(static, None, data, observer="mse")
    assert list(recipe.layers) == ["conv2d_0", "conv2d_1", "dense_0"]
    results = [
        run(build(partition_for_dnnl(quantize.convert(mod, None, recipe))), data[:1])[0]
        for mod in (static, dynamic)
    ]
    np.testing.assert_allclose(*results, rtol=0, atol=1e-5)


def whole(executable):
    """Return the dtypes of the weights of all convolutions and products."""
    layers = ("convolution", "inner_product", "matmul")
    return [s["dtypes"]["weights"] for s in steps_of(executable) if s["kind"] in layers]


def test_numbers():
    """A layer with a scale for each unit, as NumPy computes it in whole numbers."""
    w, b = random(5, 7, seed=1), random(5, seed=2)

    def build_layer(x):
        y = op.matmul(op.nn.relu(x), op.permute_dims(relax.const(w)))
        return op.nn.relu(op.add(y, relax.const(b)))

    mod = module(build_layer, (9, 7))
    (x,) = inputs_for(mod)
    recipe = quantize.calibrate(mod, None, [x], observer="minmax", bias_correction=False)
    (tensor,) = recipe.tensors.values()
    assert (tensor.dtype, tensor.scale) == ("u8", np.float32(x.max() / 255))
    scales = np.abs(w).max(1) / 127
    numbers = np.rint(np.maximum(x, 0) / np.float32(tensor.scale)).astype(int)
    sums = numbers @ np.rint(w / scales[:, None]).astype(int).T
    expected = np.maximum(sums * tensor.scale * scales.astype("float64") + b, 0)
    mod = quantize.convert(mod, None, recipe)
    for built in (build(partition_for_dnnl(mod)), build(mod)):
        (got,) = run(built, [x])
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_what_a_layer_reads_is_read_by_others_too():
    """By a kernel of TVM's, as a result, in a branch: all see the numbers that were rounded."""

    @I.ir_module
    class Module:
        @R.function
        def main(p: R.Tensor((), "bool"), x: R.Tensor((4, 7), "float32")) -> R.Tuple(
            R.Tensor((4, 5), "float32"), R.Tensor((4, 7), "float32")
        ):
            w = R.const(np.ones((7, 5), "float32"))
            y = R.exp(x)
            if p:  # noqa: SIM108 (a branch of Relax's)
                z = R.sin(y)
            else:
                z = R.cos(y)
            return (R.matmul(y, w), z)

    x = random(4, 7)
    data = [{"p": np.array(flag), "x": x} for flag in (True, False)]
    recipe = quantize.calibrate(Module, None, data, observer="minmax")
    scale = recipe.tensors["dense_0.data"].scale
    rounded = np.rint(np.exp(x) / np.float32(scale)) * scale
    executable = build(partition_for_dnnl(quantize.convert(Module, None, recipe)))
    for flag, function in ((True, np.sin), (False, np.cos)):
        product, other = run(executable, [np.array(flag), x])
        np.testing.assert_allclose(product, rounded @ np.ones((7, 5)), rtol=1e-5)
        np.testing.assert_allclose(other, function(rounded), rtol=0, atol=1e-5)


@pytest.mark.skipif(not HAS_BF16, reason="the processor has no instructions for bf16")
def test_the_rest_in_bf16():
    mod = module(network, (2, 3, 16, 16))
    data = [random(2, 3, 16, 16, seed=seed) for seed in range(4)]
    partitioned = partition_for_dnnl(converted(mod, data, "first", "last"), precision="bf16")
    executable = build(partitioned)
    assert whole(executable) == ["bf16", "s8", "bf16"]
    (got,), (expected,) = (run(e, data[:1]) for e in (executable, build(partition_for_dnnl(mod))))
    assert decibels(expected, got) > 30


def test_onnx_is_for_relay():
    with pytest.raises(NotImplementedError, match=r"expected a Relay module \(TVM 0.19\)"):
        quantize.to_onnx(module(network, (2, 3, 16, 16)))


def test_networks_of_torch():
    """ResNet50 and a MobileNet: one region, all layers in int8, residual sums in them."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from tvm.relax.frontend.torch import from_exported_program

    from tvm_dnnl_byoc.models.torch_networks import mobilenet, resnet50

    torch.manual_seed(0)
    # The last sum of either is in f32, for the averages.
    for make, layers, sums in ((resnet50, 54, 15), (mobilenet, 17, 2)):
        model = make()
        images = [torch.randn(1, 3, 64, 64) for _ in range(3)]
        with torch.no_grad():
            program = torch.export.export(model, (images[0],))
            expected = model(images[-1]).numpy()
        mod = from_exported_program(program, keep_params_as_input=False)
        quantized = converted(mod, [x.numpy() for x in images])
        executable = build(partition_for_dnnl(quantized))
        (got,) = run(executable, [images[-1].numpy()])
        assert decibels(expected, got) > 35
        assert len(profile(executable)) == 1
        assert explain(quantized).share == 1
        if WHOLE:
            assert whole(executable) == ["s8"] * layers
            assert sum("sum" in step["post_ops"] for step in steps_of(executable)) == sums
