"""What the peers of the suite lanes share: the regression that they sample, the numbers of chains
and trajectories, and the rows that they print. Import it first: it sets the number of threads."""
import argparse
import json
import os
import sys
import time

import one_thread  # noqa: F401

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np

POINTS, REGRESSORS = 10_000, 100
STEP_SIZE, LEAPFROGS, MAX_DEPTH = 0.007, 4, 10
TRAJECTORIES = {1: 50, 10: 20, 100: 10, 1000: 3, 10_000: 1}  # by the number of chains


def numbers(n, seed):
    """perf::numbers of perf/data.hpp, with variance 1."""
    out = np.empty(n)
    for i in range(n):
        seed = (seed * 6364136223846793005 + 1442695040888963407) & (2 ** 64 - 1)
        out[i] = (seed >> 11) * 2.0 ** -52 - 1
    return out * np.sqrt(3.0)


def regression():
    """Regressors, labels −1 or 1, and the weights that these were drawn with; see perf/lanes.cpp.
    """
    x = numbers(POINTS * REGRESSORS, 1).reshape(POINTS, REGRESSORS)
    x *= 1 - 0.8 * np.arange(REGRESSORS) / (REGRESSORS - 1)
    weights = 0.2 * numbers(REGRESSORS, 2)
    uniform = (numbers(POINTS, 3) / np.sqrt(3.0) + 1) / 2
    labels = np.where(uniform < 1 / (1 + np.exp(-x @ weights)), 1.0, -1.0)
    return x.astype(np.float32), labels.astype(np.float32), weights


def starts(weights, chains):
    noise = numbers(chains * REGRESSORS, 4).reshape(chains, REGRESSORS)
    return (weights + 0.03 * noise).astype(np.float32)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("chains", type=int, nargs="*", default=[1, 10, 100])
    parser.add_argument("--repeat", type=int, default=5)
    return parser.parse_args()


def row(chains, who, run, repeat):
    """`run` samples, and gives the number of useful gradients. The first time, in which it
    compiles, does not count; it is repeated for at most 20 seconds."""
    begin = time.perf_counter()
    run()
    first = time.perf_counter() - begin
    best = spent = runs = 0
    used = time.process_time()
    while runs < repeat and (runs == 0 or spent < 20):
        begin = time.perf_counter()
        units = float(run())
        seconds = time.perf_counter() - begin
        best, spent, runs = max(best, units / seconds), spent + seconds, runs + 1
    processors = (time.process_time() - used) / spent
    print(json.dumps({"name": f"nuts_logistic/{chains}", "who": who, "unit": "gradients/s",
                      "value": best, "units": units, "runs": runs, "first_s": round(first, 2),
                      "processors": round(processors, 2)}), flush=True)
    print(f"nuts_logistic/{chains} {who}: {best:.0f} gradients/s", file=sys.stderr, flush=True)
