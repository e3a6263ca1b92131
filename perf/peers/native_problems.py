"""The problems of perf/native/problems.hpp in JAX: functions of one example, by name."""
import jax
import jax.numpy as jnp


def bundle_block(x):
    def rotate(r, v):
        squared = r @ r

        def about():
            angle = jnp.sqrt(squared)
            axis = r / angle
            return (v * jnp.cos(angle) + jnp.cross(axis, v) * jnp.sin(angle)
                    + axis * (axis @ v) * (1 - jnp.cos(angle)))
        return jax.lax.cond(squared != 0, about, lambda: v + jnp.cross(r, v))
    p = rotate(x[:3], x[11:14] - x[3:6])
    flat = p[:2] / p[2]
    r = flat @ flat
    return x[14] * (x[6] * flat * (1 + x[9] * r + x[10] * r * r) + x[7:9] - jnp.array([0.3, -0.2]))


def runge_kutta(slope, h, u):
    a = slope(u)
    b = slope(u + h / 2 * a)
    c = slope(u + h / 2 * b)
    return u + h / 6 * (a + 2 * b + 2 * c + slope(u + h * c))


def lotka_volterra(x):
    def slope(u):
        meet = u[0] * u[1]
        return jnp.stack([x[2] * u[0] - x[3] * meet, x[5] * meet - x[4] * u[1]])
    return jax.lax.fori_loop(0, 100, lambda i, u: runge_kutta(slope, 0.05, u), x[:2])


problems = {
    "logsumexp": jax.nn.logsumexp,
    "bundle_block": bundle_block,
    "lotka_volterra": lotka_volterra,
}
