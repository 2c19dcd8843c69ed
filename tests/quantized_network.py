"""A network to be quantized, and inputs for it; for the tests of both TVMs."""

import numpy as np
from front import build, const, conv2d, module, random, relay, run, var

from tvm_dnnl_byoc import partition_for_dnnl

DATA = [{"x": random(1, 3, 24, 24, seed=seed)} for seed in range(8)]


def network(seed=0):
    """Two residual blocks, one with a convolution beside it, a max pooling and a dense layer."""

    def conv(x, channels, inputs, kernel, number, **attrs):
        size = 1 / np.sqrt(inputs * kernel * kernel)
        shape = (channels, inputs, kernel, kernel)
        w = const(*shape, seed=seed + number, low=-1.25 * size, high=0.75 * size)
        y = conv2d(x, w, padding=(kernel // 2,) * 4, **attrs)
        return relay.add(y, const(channels, 1, 1, seed=seed + number, low=-0.1, high=0.1))

    x = relay.nn.relu(conv(var("x", 1, 3, 24, 24), 16, 3, 3, 1))
    x = relay.nn.max_pool2d(x, (2, 2), (2, 2))
    y = relay.nn.relu(conv(x, 16, 16, 3, 2))
    x = relay.nn.relu(conv(y, 16, 16, 3, 3) + x)
    y = relay.nn.relu(conv(x, 32, 16, 3, 4))
    x = relay.nn.relu(conv(y, 32, 32, 3, 5) + conv(x, 32, 16, 1, 6))
    x = relay.nn.relu(conv(x, 32, 32, 1, 8))
    x = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x))
    return module(relay.nn.dense(x, const(10, 32, seed=seed + 7)))


def outputs(mod, data=DATA):
    lib = build(partition_for_dnnl(mod))
    return lib, [run(lib, inputs)[0] for inputs in data]
