"""A transformer's encoder layer in Relay, spelled as each frontend spells it."""

from dataclasses import dataclass

import numpy as np
from helpers import const, var
from tvm import relay

B, S, H, D = 2, 7, 4, 16  # batch, sequence, heads, their size
C, INNER = H * D, 80
EPSILON = 1e-5


@dataclass(frozen=True)
class Spelling:
    """How a frontend writes each part; all take and give tensors (B, S, …)."""

    linear: object
    layer_norm: object
    gelu: object
    attention: object  # of query, key and value, (B, S, C)


def encoder(spelling, batch=B, layers=1):
    """Return a normalisation and layers of x (batch, S, C) with a mask (batch, 1, 1, S)."""
    x, mask = spelling.layer_norm(var("x", batch, S, C), 1), var("mask", batch, 1, 1, S)
    for _ in range(layers):
        x = layer(spelling, x, mask)
    return x


def layer(spelling, x, mask):
    query, key, value = (spelling.linear(x, C, C, seed) for seed in (2, 3, 4))
    context = spelling.attention(query, key, value, mask)
    y = spelling.layer_norm(relay.add(spelling.linear(context, C, C, 5), x), 6)
    inner = spelling.gelu(spelling.linear(y, C, INNER, 7))
    return spelling.layer_norm(relay.add(spelling.linear(inner, INNER, C, 8), y), 9)


def batch_of(x):
    return int(relay.transform.InferTypeLocal(x).shape[0])


# --- linear layers --------------------------------------------------------------------------------


def linear_torch(x, inputs, outputs, seed):
    """Weights that are repeated for each of the batch, and views that do nothing."""
    batch = batch_of(x)
    weights = relay.transpose(const(outputs, inputs, seed=seed, low=-0.3, high=0.2), [1, 0])
    weights = relay.broadcast_to(weights, [batch, inputs, outputs])
    x = relay.reshape(relay.broadcast_to(x, [batch, S, inputs]), [-1, S, inputs])
    y = relay.nn.batch_matmul(x, relay.reshape(weights, [-1, inputs, outputs]), transpose_b=False)
    y = relay.squeeze(relay.reshape(y, [batch, S, outputs]), axis=[])
    return relay.nn.bias_add(y, const(outputs, seed=seed), axis=-1)


def linear_onnx(x, inputs, outputs, seed):
    y = relay.nn.dense(
        relay.reshape(x, [-1, inputs]),
        const(outputs, inputs, seed=seed, low=-0.3, high=0.2),
        units=None,
    )
    return relay.add(const(outputs, seed=seed), relay.reshape(y, [batch_of(x), S, outputs]))


def linear_gluonnlp(x, inputs, outputs, seed):
    y = relay.nn.dense(
        relay.reverse_reshape(x, [-1, 0]),
        const(outputs, inputs, seed=seed, low=-0.3, high=0.2),
        units=outputs,
    )
    y = relay.nn.bias_add(y, const(outputs, seed=seed), axis=-1)
    return relay.nn.dropout(relay.reshape(y, [batch_of(x), S, outputs]), 0.1)


# --- layer normalisation --------------------------------------------------------------------------


def parameters(seed):
    return const(C, seed=seed, low=0.5, high=1.5), const(C, seed=seed + 50)


def layer_norm_kept(x, seed):
    gamma, beta = parameters(seed)
    return relay.nn.layer_norm(x, gamma, beta, epsilon=EPSILON)


def layer_norm_onnx13(x, seed):
    gamma, beta = parameters(seed)
    centred = relay.subtract(x, relay.mean(x, axis=[-1], keepdims=True))
    square = relay.power(centred, relay.const(2.0))
    variance = relay.add(relay.mean(square, axis=[-1], keepdims=True), relay.const(EPSILON))
    y = relay.divide(centred, relay.sqrt(variance))
    return relay.add(relay.multiply(y, gamma), beta)


def layer_norm_onnx17(x, seed):
    gamma, beta = parameters(seed)
    mean = relay.mean(x, axis=[2], keepdims=True)
    variance = relay.variance(x, axis=[2], keepdims=True, with_mean=mean)
    root = relay.sqrt(relay.add(variance, relay.const(EPSILON)))
    y = relay.multiply(relay.subtract(x, mean), relay.divide(relay.const(1.0), root))
    return relay.add(relay.multiply(y, gamma), beta)


def layer_norm_simplified(x, seed):
    """As TVM's SimplifyInference leaves it."""
    gamma, beta = parameters(seed)
    mean = relay.mean(x, axis=[-1], keepdims=True)
    variance = relay.variance(x, axis=[-1], keepdims=True, with_mean=mean)
    root = relay.rsqrt(relay.add(variance, relay.const(EPSILON)))
    y = relay.multiply(relay.subtract(x, mean), root)
    return relay.add(relay.multiply(y, gamma), beta)


# --- GELU -----------------------------------------------------------------------------------------


def gelu_torch(x):
    erf = relay.erf(relay.multiply(x, relay.const(0.707107)))
    return relay.multiply(x, relay.add(relay.const(0.5), relay.multiply(erf, relay.const(0.5))))


def gelu_onnx(x):
    erf = relay.erf(relay.divide(x, relay.const(1.41421)))
    return relay.multiply(relay.multiply(x, relay.add(erf, relay.const(1.0))), relay.const(0.5))


def gelu_gluonnlp(x):
    erf = relay.erf(relay.divide(x, relay.const(1.41421)))
    return relay.multiply(relay.multiply(x, relay.const(0.5)), relay.add(relay.const(1.0), erf))


# --- attention ------------------------------------------------------------------------------------


def heads(x, axes=(0, 2, 1, 3)):
    return relay.transpose(relay.reshape(x, [batch_of(x), S, -1, D]), list(axes))


def merged(context, batch):
    """Return (batch · H, S, D) as (batch, S, C)."""
    context = relay.squeeze(relay.reshape(context, [batch, H, S, D]), axis=[])
    return relay.reshape(relay.transpose(context, [0, 2, 1, 3]), [batch, S, -1])


def attention_eager(query, key, value, mask):
    batch = batch_of(query)
    query = relay.broadcast_to(heads(query), [batch, H, S, D])
    key = relay.broadcast_to(relay.transpose(heads(key), [0, 1, 3, 2]), [batch, H, D, S])
    scores = relay.nn.batch_matmul(
        relay.reshape(query, [-1, S, D]), relay.reshape(key, [-1, D, S]), transpose_b=False
    )
    scores = relay.squeeze(relay.reshape(scores, [batch, H, S, S]), axis=[])
    scores = relay.add(relay.multiply(scores, relay.const(0.25)), mask)
    weights = relay.nn.dropout(relay.nn.softmax(scores), 0.0)
    context = relay.nn.batch_matmul(
        relay.reshape(weights, [-1, S, S]), relay.reshape(heads(value), [-1, S, D]),
        transpose_b=False,
    )  # fmt: skip
    return merged(context, batch)


def attention_sdpa(query, key, value, mask):
    batch = batch_of(query)
    scores = relay.nn.batch_matmul(
        relay.reshape(heads(query), [-3, -2]), relay.reshape(heads(key), [-3, -2])
    )
    scores = relay.squeeze(relay.reshape(scores, [-4, batch, -1, -2]), axis=[])
    nothing = relay.full(relay.const(0.0), [S, S], "float32")
    scores = relay.add(relay.multiply(scores, relay.const(0.25)), relay.add(nothing, mask))
    weights = relay.nn.dropout(relay.nn.softmax(scores), 0.0)
    context = relay.nn.batch_matmul(
        relay.reshape(weights, [-3, -2]), relay.reshape(heads(value), [-3, -2]), transpose_b=False
    )
    return merged(relay.reshape(context, [-4, batch, -1, -2]), batch)


def attention_onnx(query, key, value, mask, scale_inside=False):
    """Transposed once more for a product that transposes; opset 14 scales query and key."""
    batch = batch_of(query)
    query, key = heads(query), heads(key, (0, 2, 3, 1))
    if scale_inside:
        query, key = (relay.multiply(x, relay.const(0.5)) for x in (query, key))
    key = relay.transpose(relay.reshape(key, [-1, D, S]), [0, 2, 1])
    scores = relay.nn.batch_matmul(relay.reshape(query, [-1, S, D]), key)
    scores = relay.reshape(scores, [batch, H, S, S])
    if not scale_inside:
        scores = relay.multiply(scores, relay.const(0.25))
    weights = relay.nn.softmax(relay.add(scores, mask), axis=3)
    value = relay.transpose(relay.reshape(heads(value), [-1, S, D]), [0, 2, 1])
    context = relay.nn.batch_matmul(relay.reshape(weights, [-1, S, S]), value)
    return merged(context, batch)


def attention_onnx14(query, key, value, mask):
    return attention_onnx(query, key, value, mask, scale_inside=True)


def attention_gluonnlp(batch=B):
    """One layer for query, key and value, and a mask by lengths; of (S, batch, C)."""
    x = relay.nn.layer_norm(var("x", S, batch, C), *parameters(1), epsilon=EPSILON)
    parts = [relay.reverse_reshape(const(C, C, seed=s), [H, -1, 0]) for s in (2, 3, 4)]
    weights = relay.reverse_reshape(relay.concatenate(parts, -2), [-1, 0])
    biases = [relay.reverse_reshape(const(C, seed=s), [H, -1]) for s in (2, 3, 4)]
    bias = relay.reshape(relay.stack(biases, 1), [-1])
    y = relay.nn.dense(relay.reverse_reshape(x, [-1, 0]), weights, units=3 * C)
    y = relay.reshape(relay.nn.bias_add(y, bias, axis=-1), [S, batch, 3 * C])

    def part(i):
        heads = relay.take(relay.reshape(y, [0, 0, H, 3, -1]), relay.const(i), axis=3)
        return relay.reverse_reshape(relay.transpose(heads, [1, 2, 0, 3]), [-1, 0, 0])

    query, key, value = map(part, range(3))
    size = relay.take(relay.shape_of(query), relay.const(2))
    query = relay.divide(query, relay.sqrt(relay.cast(size, "float32")))
    scores = relay.reshape(relay.nn.batch_matmul(query, key), [batch * H * S, -1])
    lengths = var("lengths", batch * H * S, dtype="int32")
    scores = relay.sequence_mask(scores, lengths, float(np.finfo("float32").min), axis=1)
    weights = relay.reshape(relay.nn.softmax(scores, axis=1), [batch * H, S, S])
    weights = relay.nn.dropout(weights, 0.1)
    context = relay.nn.batch_matmul(weights, relay.transpose(value, [0, 2, 1]))
    context = relay.transpose(relay.reverse_reshape(context, [-1, H, 0, 0]), [2, 0, 1, 3])
    context = relay.reshape(context, [0, 0, -1])
    y = relay.nn.dense(relay.reverse_reshape(context, [-1, 0]), const(C, C, seed=5), units=C)
    y = relay.nn.dropout(relay.reshape(relay.nn.bias_add(y, const(C)), [S, batch, C]), 0.1)
    return relay.nn.layer_norm(relay.add(y, x), *parameters(6), epsilon=EPSILON)


SPELLINGS = {
    "torch eager": Spelling(linear_torch, layer_norm_kept, gelu_torch, attention_eager),
    "torch sdpa": Spelling(linear_torch, layer_norm_kept, gelu_torch, attention_sdpa),
    "onnx 13": Spelling(linear_onnx, layer_norm_onnx13, gelu_onnx, attention_onnx),
    "onnx 14": Spelling(linear_onnx, layer_norm_onnx13, gelu_onnx, attention_onnx14),
    "onnx 17": Spelling(linear_onnx, layer_norm_onnx17, gelu_onnx, attention_onnx),
    "gluonnlp": Spelling(linear_gluonnlp, layer_norm_kept, gelu_gluonnlp, attention_eager),
    "simplified": Spelling(linear_onnx, layer_norm_simplified, gelu_torch, attention_sdpa),
}


def numpy_layer_norm(x, gamma, beta, epsilon=EPSILON):
    """In float64; the formula is that of Ba, Kiros and Hinton, 2016."""
    x = np.asarray(x, np.float64)
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * gamma + beta
