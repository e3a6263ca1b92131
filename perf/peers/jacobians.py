"""The rows of perf/jacobians in JAX, and what compiling VGG16 takes there."""
import math
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from common import results, row, write

rng = np.random.default_rng(1)


def numbers(*shape, scale=1.0):
    return jnp.asarray((rng.uniform(-1, 1, shape) * scale).astype(np.float32))


def weights(*shape):
    return numbers(*shape, scale=math.sqrt(6 / math.prod(shape[:-1])))


def vgg16(outputs):
    p, channels = [], 3
    for layers, features in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(layers):
            p += [weights(3, 3, channels, features), numbers(features, scale=0.1)]
            channels = features
    for features in (4096, 4096, outputs):
        p += [weights(channels, features), numbers(features, scale=0.1)]
        channels = features
    return p


def vgg16_logits(p, x):
    x, at = x[None], 0
    for layers in (2, 2, 3, 3, 3):
        for _ in range(layers):
            x = jax.nn.relu(lax.conv_general_dilated(x, p[at], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + p[at + 1])
            at += 2
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.reshape(-1)
    for layer in range(3):
        x = x @ p[at] + p[at + 1]
        at += 2
        if layer < 2:
            x = jax.nn.relu(x)
    return x


width, steps = 128, 10


def lstm(outputs):
    return [weights(2 * width, 4 * width), numbers(4 * width, scale=0.1), weights(width, outputs), numbers(outputs, scale=0.1)]


def lstm_logits(p, xs):
    h = c = jnp.zeros(width)
    for t in range(steps):
        i, f, g, o = jnp.split(jnp.concatenate([xs[t], h]) @ p[0] + p[1], 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return h @ p[2] + p[3]


for name, make, logits, x in (("vgg16", vgg16, vgg16_logits, numbers(48, 48, 3)), ("lstm", lstm, lstm_logits, numbers(steps, width))):
    jacobian = jax.jit(lambda p, x, logits=logits: jax.jacrev(lambda v: logits(p, v))(x))
    for outputs in (1, 8, 32, 128):
        p = make(outputs)
        row(f"jacobian/{name}/{outputs}/jax", lambda: jacobian(p, x))

# Recording and compiling, without the first run, as what JAX is asked to be quick at.
p, x = vgg16(10), numbers(48, 48, 3)


def loss(p, x):
    y = vgg16_logits(p, x)
    return jax.nn.logsumexp(y) - y.mean()


jax.block_until_ready(jax.jit(lambda v: v * 2 + 1)(x))
forward, gradient = [], []
for _ in range(3):
    for function, times in ((vgg16_logits, forward), (jax.grad(loss), gradient)):
        jax.clear_caches()
        begin = time.perf_counter()
        jax.jit(function).lower(p, x).compile()
        times.append(time.perf_counter() - begin)
results["first_call/vgg16/forward/jax"] = statistics.median(forward)
results["first_call/vgg16/forward_and_gradient/jax"] = statistics.median(forward) + statistics.median(gradient)

write()
