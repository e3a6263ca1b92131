"""Rows of the suite solvers in JAX: Optimistix, Optax and Diffrax. Lanes are jax.vmap's; where all
would take minutes, some of them run, and the row says how many.

Usage: solvers_jax.py FOLDER ROW.
"""
from solvers_common import (CONSTANTS, error_of, first_part, hires, lorenz, median_seconds, parts,
                            print_row, read, robertson, row_name)

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


def timed(call, *arguments):
    compiled = jax.jit(call)
    return median_seconds(lambda: jax.block_until_ready(compiled(*arguments))), compiled(*arguments)


def peaks():
    import optimistix as optx
    side, few = 15, 1000
    images = read("images").reshape(-1, side, side)[:few]
    places = jnp.arange(side, dtype=float)

    def residuals(p, image):
        squared = (places - p[1]) ** 2 + (places[:, None] - p[2]) ** 2
        return p[0] * jnp.exp(-squared / (2 * p[3] ** 2)) + p[4] - image

    def fit(image):
        least, most = image.min(), image.max()
        s = optx.least_squares(residuals, optx.LevenbergMarquardt(rtol=1e-8, atol=1e-8),
                               jnp.array([most - least, 7.0, 7.0, 2.0, least]), args=image,
                               max_steps=1000, throw=False)
        return s.value.at[3].set(jnp.abs(s.value[3]))

    seconds, x = timed(jax.vmap(fit), images)
    print_row("optimistix", seconds, len(images), 1e-4, error=error_of(x, read("answers"), 5))


def rosenbrock():
    import optax
    import optimistix as optx
    size = int(parts[0])
    starts = read("starts").reshape(-1, size)[:100]

    def f(x, _=None):
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def by_optimistix(start):
        s = optx.minimise(f, optx.LBFGS(rtol=1e-10, atol=1e-10, history_length=6), start,
                          max_steps=10_000, throw=False)
        return s.value, s.stats["num_steps"]

    def by_optax(start):
        solver = optax.lbfgs(memory_size=6)
        value_and_grad = optax.value_and_grad_from_state(f)

        def step(carry):
            x, state, steps = carry
            value, grad = value_and_grad(x, state=state)
            updates, state = solver.update(grad, state, x, value=value, grad=grad, value_fn=f)
            return optax.apply_updates(x, updates), state, steps + 1

        def goes_on(carry):
            grad = optax.tree_utils.tree_get(carry[1], "grad")
            return (carry[2] == 0) | ((jnp.abs(grad).max() > 1e-8) & (carry[2] < 10_000))

        return jax.lax.while_loop(goes_on, step, (start, solver.init(start), 0))[::2]

    for who, solve in (("optax", by_optax), ("optimistix", by_optimistix)):
        seconds, (x, steps) = timed(jax.vmap(solve), starts)
        error = float(jnp.abs(jax.vmap(jax.grad(f))(x)).max())
        print_row(who, seconds, len(starts), 1e-1, error=error, work=int(steps.sum()))


def differential_equation():
    import diffrax
    constants = CONSTANTS[first_part]
    stiff = "t1" in constants
    all_lanes = int(parts[0])
    few = min(all_lanes, 100 if stiff else 1000)
    x = read("x").reshape(-1, 3)[:few]
    ends = read("t1")[:few]

    def solve(x, t1):
        if first_part == "lorenz":
            f, y0, args, solver = (lambda t, y, _: jnp.stack(lorenz(y))), x, None, diffrax.Dopri5()
        else:
            side = {"robertson": robertson, "hires": hires}[first_part]
            f, y0, args = (lambda t, y, k: jnp.stack(side(k, y))), jnp.array(constants["y0"]), x
            t1, solver = constants["t1"], diffrax.Kvaerno5()
        s = diffrax.diffeqsolve(
            diffrax.ODETerm(f), solver, 0.0, t1, 1e-3 if stiff else None, y0, args, max_steps=4096,
            stepsize_controller=diffrax.PIDController(rtol=constants["rtol"],
                                                      atol=constants["atol"]))
        return s.ys[-1], s.stats["num_steps"]

    def loss(x, t1):
        y = solve(x, t1)[0]
        return jnp.sum(y * jnp.array([1.0, 1e4, 2.0]) if first_part == "robertson" else y)

    allowed = 1e-2 if stiff else 0.3
    seconds, (y, steps) = timed(jax.vmap(solve), x, ends)
    width = 1 if stiff else 3
    print_row("diffrax", seconds, few, allowed, error=error_of(y, read("answers"), width),
              work=int(steps.sum()))
    seconds, slopes = timed(jax.vmap(jax.grad(loss)), x, ends)
    below = f"{row_name}/gradient"
    # The greatest error of a lane, where errors grow so, says more of the lane than of the method.
    error = error_of(np.asarray(slopes)[:64], read("answers", below), 3)
    print_row("diffrax", seconds, few, 0.05, below, error=error)


{"peaks": peaks, "rosenbrock": rosenbrock, "lorenz": differential_equation,
 "robertson": differential_equation, "hires": differential_equation}[first_part]()
