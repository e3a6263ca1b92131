"""The rows of perf/linalg in JAX."""
import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np

from common import row, write

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(1)
count = 100_000
cholesky, solve = jax.jit(jnp.linalg.cholesky), jax.jit(jnp.linalg.solve)
eigh = jax.jit(jnp.linalg.eigh)

for name, dtype in (("f32", np.float32), ("f64", np.float64)):
    for n in (2, 3, 4, 8, 16):
        host = rng.uniform(-1, 1, (count, n, n)).astype(dtype)
        x, b = jnp.asarray(host), jnp.asarray(rng.uniform(-1, 1, (count, n, 1)).astype(dtype))
        a = jnp.asarray(host @ host.transpose(0, 2, 1) + np.eye(n, dtype=dtype))
        shape = f"/{name}/100000x{n}x{n}/jax"
        row("cholesky" + shape, lambda: cholesky(a))
        row("solve" + shape, lambda: solve(x, b))
        row("eigh" + shape, lambda: eigh(a))

for name, dtype in (("f32", np.float32), ("f64", np.float64)):
    for n in (32, 64, 128, 300):
        host = rng.uniform(-1, 1, (n, n)).astype(dtype)
        x, right = jnp.asarray(host), jnp.asarray(rng.uniform(-1, 1, (n, n)).astype(dtype))
        b, a = right[:, :1], jnp.asarray(host @ host.T + np.eye(n, dtype=dtype))
        shape = f"/{name}/{n}x{n}/jax"
        lu, qr = jax.jit(jax.lax.linalg.lu), jax.jit(jnp.linalg.qr)
        svd = jax.jit(lambda m: jnp.linalg.svd(m, full_matrices=False))
        inv, eig = jax.jit(jnp.linalg.inv), jax.jit(jnp.linalg.eig)
        expm = jax.jit(jax.scipy.linalg.expm)
        triangular = jax.jit(
            lambda m, y: jax.lax.linalg.triangular_solve(m, y, left_side=True, lower=True))
        for row_name, call in (("cholesky", lambda: cholesky(a)), ("lu", lambda: lu(x)),
                               ("solve", lambda: solve(x, b)),
                               ("triangular_solve", lambda: triangular(a, right)),
                               ("inv", lambda: inv(x)), ("qr", lambda: qr(x)),
                               ("eigh", lambda: eigh(a)), ("svd", lambda: svd(x)),
                               ("eig", lambda: eig(x)), ("expm", lambda: expm(x))):
            row(row_name + shape, call)

write()
