"""The rows of perf/dispatch, elementwise and matmul that people would write in JAX or NumPy."""
import time

import jax
import jax.numpy as jnp
import numpy as np

from common import results, row, write

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(1)


def numbers(shape, dtype=np.float32):
    return jnp.asarray(rng.uniform(-1, 1, shape).astype(dtype))


x, y = jnp.arange(10, dtype=jnp.float32), jnp.ones(10, jnp.float32)
f = jax.jit(lambda x, y: jnp.sin(x) * y + 1)
row("call/10/jax", lambda: f(x, y))


def long_function(x, count, seed):
    for i in range(count):
        kind = (i + seed // (1 << (2 * (i % 12)))) % 4
        of_kind = (jnp.sin, lambda x: x * 1.5, lambda x: x + 0.25, jnp.tanh)
        x = of_kind[kind](x)
    return x


hundred = jnp.ones(100, jnp.float32)
first = []
for seed in range(7):
    begin = time.perf_counter()
    jax.block_until_ready(jax.jit(lambda x: long_function(x, 20, seed * 7919))(hundred))
    first.append(time.perf_counter() - begin)
results["first_call/20_ops/jax"] = sorted(first)[len(first) // 2]

n = 10_000_000
big = numbers(n)


@jax.jit
def chain(x):
    y = x * x * 0.5 + x
    return jnp.maximum(y - 0.25, 0) * (1 + x) - jnp.abs(y)


row("chain/f32/10000000/jax", lambda: chain(big))

square = numbers((4096, 4096))
for name, axis in (("axis0", 0), ("axis1", 1), ("all", None)):
    total = jax.jit(lambda x, axis=axis: jnp.sum(x, axis))
    row(f"sum/{name}/jax", lambda: total(square))
    host = np.asarray(square)
    row(f"sum/{name}/numpy", lambda: host.sum(axis))

product = jax.jit(jnp.matmul)
for dtype in ("f32", "f64"):
    for size in (256, 512, 1024, 2048):
        a, b = (numbers((size, size), {"f32": np.float32, "f64": np.float64}[dtype])
                for _ in range(2))
        row(f"matmul/{dtype}/{size}/jax", lambda: product(a, b))
for size in (4, 8, 16, 32, 64):
    count = 1000 if size >= 32 else 4000
    a, b = numbers((count, size, size)), numbers((count, size, size))
    row(f"batched_matmul/f32/{size}/jax", lambda: product(a, b))

million = 5 * numbers(1_000_000)
positive = jnp.abs(million) + 1e-3
for name, function, argument in (("exp", jnp.exp, million), ("log", jnp.log, positive),
                                 ("sin", jnp.sin, million), ("tanh", jnp.tanh, million)):
    fast = jax.jit(function)
    row(f"function/{name}/f32/jax", lambda: fast(argument))

write()
