"""The networks of several rows in JAX: parameters, made by the caller's `weights` and `numbers`,
and what they compute of one example."""
import jax
import jax.numpy as jnp
from jax import lax

stages = (2, 2, 3, 3, 3)  # VGG16's convolutions before each pooling


def conv(x, w):
    return lax.conv_general_dilated(x[None], w, (1, 1), "SAME",
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))[0]


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (2, 2, 1), (2, 2, 1), "VALID")


def vgg16(outputs, pixels, weights, numbers):
    p, channels = [], 3
    for layers, features in zip(stages, (64, 128, 256, 512, 512)):
        for _ in range(layers):
            p += [weights(3, 3, channels, features), numbers(features, scale=0.1)]
            channels = features
    channels *= (pixels // 32) ** 2
    for features in (4096, 4096, outputs):
        p += [weights(channels, features), numbers(features, scale=0.1)]
        channels = features
    return p


def vgg16_logits(p, x):
    at = 0
    for layers in stages:
        for _ in range(layers):
            x = jax.nn.relu(conv(x, p[at]) + p[at + 1])
            at += 2
        x = pool(x)
    x = x.reshape(-1)
    for layer in range(3):
        x = x @ p[at] + p[at + 1]
        at += 2
        if layer < 2:
            x = jax.nn.relu(x)
    return x


def lstm(width, outputs, weights, numbers):
    return [weights(2 * width, 4 * width), numbers(4 * width, scale=0.1), weights(width, outputs),
            numbers(outputs, scale=0.1)]


def lstm_cell(p, x, state):
    h, c = state
    i, f, g, o = jnp.split(jnp.concatenate([x, h]) @ p[0] + p[1], 4)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def lstm_logits(p, xs):
    state = (jnp.zeros(xs.shape[1]),) * 2
    for x in xs:
        state = lstm_cell(p, x, state)
    return state[0] @ p[2] + p[3]
