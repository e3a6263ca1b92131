"""nuts_logistic of the suite lanes in TensorFlow Probability: the recursive sampler, which its
auto_batching runs by program counter, compiled by XLA.

Usage: lanes_tfp.py [CHAINS ...] [--repeat TIMES].
"""
from lanes_common import (LEAPFROGS, MAX_DEPTH, STEP_SIZE, TRAJECTORIES, arguments, regression, row,
                          starts)

import tensorflow as tf
from tensorflow_probability.python.experimental.mcmc import nuts_autobatching

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)


def main():
    options = arguments()
    x, labels, weights = regression()
    x, labels = tf.constant(x), tf.constant(labels)

    def log_density(w):  # [chains, regressors] → [chains]
        fits = tf.math.softplus(-labels * tf.matmul(w, x, transpose_b=True))
        return -tf.reduce_sum(fits, -1) - 0.5 * tf.reduce_sum(w * w, -1)

    for chains in options.chains:
        kernel = nuts_autobatching.NoUTurnSampler(
            log_density, STEP_SIZE, max_tree_depth=MAX_DEPTH, unrolled_leapfrog_steps=LEAPFROGS,
            num_trajectories_per_step=TRAJECTORIES[chains], seed=1)

        @tf.function(jit_compile=True, autograph=False)
        def step(at):
            return kernel.one_step(at, kernel.bootstrap_results(at))

        start = tf.constant(starts(weights, chains))

        def run():
            return step(start)[1].leapfrogs_taken.numpy().sum()

        row(chains, "tfp", run, options.repeat)


main()
