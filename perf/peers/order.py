"""The rows of perf/order in JAX and NumPy."""
import jax
import jax.numpy as jnp
import numpy as np

from common import row, write

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(1)


def numbers(shape, dtype=np.float32):
    return jnp.asarray(rng.uniform(-1, 1, shape).astype(dtype))


x, wide = numbers(1_000_000), numbers(1_000_000, np.float64)
rows, small = numbers((16, 100_000)), numbers((100_000, 10))
sort, argsort, median = jax.jit(jnp.sort), jax.jit(jnp.argsort), jax.jit(jnp.median)
top = jax.jit(lambda x: jax.lax.top_k(x, 100))
host = np.asarray(x)
row("sort/f32/1000000/jax", lambda: sort(x))
row("sort/f64/1000000/jax", lambda: sort(wide))
row("sort/f32/1000000/numpy", lambda: np.sort(host))
row("argsort/f32/16x100000/jax", lambda: argsort(rows))
row("top_k/100/f32/1000000/jax", lambda: top(x))
row("median/f32/1000000/jax", lambda: median(x))
row("sort/f32/100000x10/jax", lambda: sort(small))

write()
