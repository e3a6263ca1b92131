"""nuts_logistic of the suite lanes in JAX: the iterative samplers of NumPyro and of BlackJAX, whose
chains are lanes of jax.vmap. A leaf of their trees is one leapfrog step.

Usage: lanes_jax.py numpyro|blackjax [CHAINS ...] [--repeat TIMES].
"""
import sys

from lanes_common import (MAX_DEPTH, REGRESSORS, STEP_SIZE, TRAJECTORIES, arguments, regression,
                          row, starts)

import jax
import jax.numpy as jnp


def with_numpyro(log_density, start, trajectories):
    from numpyro.infer import MCMC, NUTS
    kernel = NUTS(potential_fn=lambda w: -log_density(w), step_size=STEP_SIZE,
                  adapt_step_size=False, adapt_mass_matrix=False, max_tree_depth=MAX_DEPTH)
    chains = len(start)
    mcmc = MCMC(kernel, num_warmup=0, num_samples=trajectories, num_chains=chains,
                chain_method="vectorized", progress_bar=False)

    def run():
        mcmc.run(jax.random.PRNGKey(1), init_params=start if chains > 1 else start[0],
                 extra_fields=("num_steps",))
        return mcmc.get_extra_fields()["num_steps"].sum()

    return run


def with_blackjax(log_density, start, trajectories):
    import blackjax
    kernel = blackjax.nuts(log_density, STEP_SIZE, jnp.ones(REGRESSORS, jnp.float32),
                           max_num_doublings=MAX_DEPTH)

    def chain(key, at):
        def step(state, key):
            state, info = kernel.step(key, state)
            return state, (state.position, info.num_integration_steps)
        return jax.lax.scan(step, kernel.init(at), jax.random.split(key, trajectories))[1]

    sample = jax.jit(jax.vmap(chain))
    keys = jax.random.split(jax.random.PRNGKey(1), len(start))
    return lambda: jax.block_until_ready(sample(keys, start))[1].sum()


def main():
    who = sys.argv.pop(1)
    prepare = {"numpyro": with_numpyro, "blackjax": with_blackjax}[who]
    options = arguments()
    x, labels, weights = regression()
    x, labels = jnp.asarray(x), jnp.asarray(labels)

    def log_density(w):
        return -jnp.sum(jax.nn.softplus(-labels * (x @ w))) - 0.5 * jnp.sum(w * w)

    for chains in options.chains:
        row(chains, who, prepare(log_density, jnp.asarray(starts(weights, chains)),
                                 TRAJECTORIES[chains]), options.repeat)


main()
