"""The rows of perf/conv in JAX."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from common import row, write

rng = np.random.default_rng(1)


def numbers(shape, scale=1.0):
    return jnp.asarray((rng.uniform(-1, 1, shape) * scale).astype(np.float32))


def conv(x, w, stride=1, groups=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME",
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                    feature_group_count=groups)


def pool(h, window=2, padding="VALID"):
    return lax.reduce_window(h, -jnp.inf, lax.max, (1, window, window, 1), (1, 2, 2, 1), padding)


def logits(p, image, kept):
    h = pool(jax.nn.relu(conv(image[None], p[0]) + p[1]))
    h = pool(jax.nn.relu(conv(h, p[2]) + p[3]))
    return (jax.nn.relu(h.reshape(-1) @ p[4] + p[5]) * kept) @ p[6] + p[7]


def loss(p, image, kept, label):
    return -jax.nn.log_softmax(logits(p, image, kept))[label]


params = [numbers((5, 5, 1, 32), 0.3), numbers((32,), 0.1), numbers((5, 5, 32, 64), 0.05),
          numbers((64,), 0.1), numbers((3136, 1024), 0.03),
          numbers((1024,), 0.1), numbers((1024, 10), 0.05), numbers((10,), 0.1)]
each = jax.jit(jax.vmap(jax.grad(loss), (None, 0, 0, 0)))
mean = jax.jit(jax.grad(lambda p, x, k, y: jnp.mean(jax.vmap(loss, (None, 0, 0, 0))(p, x, k, y))))
forward = jax.jit(jax.vmap(logits, (None, 0, 0)))
for n in (1, 16, 64, 256):
    x, kept = numbers((n, 28, 28, 1)), (numbers((n, 1024)) > 0).astype(jnp.float32)
    y = jnp.arange(n, dtype=jnp.int32) % 10
    row(f"convnet/{n}/each/jax", lambda: each(params, x, kept, y))
    row(f"convnet/{n}/mean/jax", lambda: mean(params, x, kept, y))
    row(f"convnet/{n}/logits/jax", lambda: forward(params, x, kept))

for name, x, w, stride, groups in (("28x28x1*5x5x32", (64, 28, 28, 1), (5, 5, 1, 32), 1, 1),
                                   ("14x14x32*5x5x64", (64, 14, 14, 32), (5, 5, 32, 64), 1, 1),
                                   ("14x14x128*3x3x128", (64, 14, 14, 128), (3, 3, 128, 128), 1, 1),
                                   ("56x56x32*3x3x64/2", (8, 56, 56, 32), (3, 3, 32, 64), 2, 1),
                                   ("28x28x64*3x3 in 8 groups", (16, 28, 28, 64), (3, 3, 8, 64), 1,
                                    8),
                                   ("28x28x64*3x3 in 64 groups", (16, 28, 28, 64), (3, 3, 1, 64), 1,
                                    64)):
    a, b = numbers(x), numbers(w)
    f = jax.jit(lambda a, b: conv(a, b, stride, groups))
    ct = jnp.ones_like(f(a, b))
    by_x = jax.jit(lambda a, b, ct: jax.grad(lambda t: jnp.sum(conv(t, b, stride, groups) * ct))(a))
    by_filter = jax.jit(
        lambda a, b, ct: jax.grad(lambda t: jnp.sum(conv(a, t, stride, groups) * ct))(b))
    row(f"conv/{name}/value/jax", lambda: f(a, b))
    row(f"conv/{name}/by_x/jax", lambda: by_x(a, b, ct))
    row(f"conv/{name}/by_filter/jax", lambda: by_filter(a, b, ct))

x = numbers((64, 28, 28, 32))
for name, window, padding in (("2x2", 2, "VALID"), ("3x3/2", 3, "SAME")):
    value = jax.jit(lambda t: pool(t, window, padding))
    slope = jax.jit(jax.grad(lambda t: jnp.sum(jnp.square(pool(t, window, padding)))))
    row(f"max_pool/{name}/value/jax", lambda: value(x))
    row(f"max_pool/{name}/gradient/jax", lambda: slope(x))

write()
