"""nuts_logistic of the suite lanes in Stan, compiled by g++ through PyStan: its sampler of one
chain, in f64. A leaf of its trees is one leapfrog step. PyStan has no sampler without a warm-up,
which chooses the step size; and it sends all data to the model anew each time. So a row is what
more draws cost beyond few of them, with the same warm-up.

Usage: lanes_stan.py [--repeat TIMES].
"""
import contextlib
import json
import sys
import time

from lanes_common import (MAX_DEPTH, POINTS, REGRESSORS, STEP_SIZE, arguments, regression, starts)

import stan

MODEL = """
data {
  int n;
  int k;
  matrix[n, k] x;
  array[n] int y;
}
parameters { vector[k] w; }
model {
  w ~ normal(0, 1);
  y ~ bernoulli_logit_glm(x, 0, w);
}
"""


WARM_UP, FEW, MANY = 100, 10, 210


def main():
    options = arguments()
    x, labels, weights = regression()
    data = {"n": POINTS, "k": REGRESSORS, "x": x.tolist(), "y": (labels > 0).astype(int).tolist()}
    init = [{"w": starts(weights, 1)[0].tolist()}]

    def sample(model, draws):
        begin = time.perf_counter()
        fit = model.hmc_nuts_diag_e_adapt(num_chains=1, num_warmup=WARM_UP, num_samples=draws,
                                          init=init, stepsize=STEP_SIZE, max_depth=MAX_DEPTH)
        seconds = time.perf_counter() - begin
        return seconds, int(fit["n_leapfrog__"].sum()), float(fit["stepsize__"].mean())

    best = 0
    for _ in range(options.repeat):
        # With a new seed, since it keeps what it has sampled before.
        with contextlib.redirect_stdout(sys.stderr):
            model = stan.build(MODEL, data=data, random_seed=time.time_ns() % 2 ** 31)
        (few_seconds, few, _), (seconds, many, step_size) = sample(model, FEW), sample(model, MANY)
        best = max(best, (many - few) / (seconds - few_seconds))
    print(json.dumps({"name": "nuts_logistic/1", "who": "stan", "unit": "gradients/s",
                      "value": best, "units": many - few, "runs": options.repeat,
                      "step_size": round(step_size, 5)}), flush=True)
    print(f"nuts_logistic/1 stan: {best:.0f} gradients/s", file=sys.stderr, flush=True)


main()
