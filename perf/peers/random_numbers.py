"""The rows of perf/random in JAX."""
import jax
import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np

from common import row, write

key, rng = jax.random.key(1), np.random.default_rng(1)
million = 1_000_000
normal = jax.jit(lambda k: jax.random.normal(k, (100_000_000,), dtype=jnp.float32))
gamma = jax.jit(lambda k: jax.random.gamma(k, 0.7, (million,), dtype=jnp.float32))
poisson = jax.jit(lambda k: jax.random.poisson(k, 20.0, (million,)))
a, x = (jnp.asarray(rng.uniform(low, high, million).astype(np.float32))
        for low, high in ((1, 9), (9, 41)))
igamma, i0e = jax.jit(special.gammainc), jax.jit(special.i0e)
row("random/normal/f32/100000000/jax", lambda: normal(key))
row("random/gamma/f32/1000000/jax", lambda: gamma(key))
row("random/poisson/1000000/jax", lambda: poisson(key))
row("special/igamma/f32/1000000/jax", lambda: igamma(a, x))
row("special/i0e/f32/1000000/jax", lambda: i0e(x))

write()
