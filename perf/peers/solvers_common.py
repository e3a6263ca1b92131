"""What the peers of the suite solvers in Python share. Import it first: it sets the number of
threads. vt's program, which runs before, leaves the inputs and answers of a row in files."""
import one_thread  # noqa: F401

import json
import sys
import time

import numpy as np

folder, row_name = sys.argv[1:3]
first_part, *parts = row_name.split("/")
CONSTANTS = {  # as perf/solvers/problems.hpp has them
    "lorenz": {"rtol": 1e-8, "atol": 1e-8},
    "robertson": {"rtol": 1e-6, "atol": 1e-10, "t1": 1e5, "y0": (1.0, 0.0, 0.0)},
    "hires": {"rtol": 1e-6, "atol": 1e-10, "t1": 321.8122, "y0": (1.0,) + 6 * (0.0,) + (0.0057,)},
}


def read(what, name=row_name):
    return np.fromfile(f"{folder}/{name.replace('/', '_')}.{what}")


def error_of(values, answers, width=1):
    """As report::error_of of perf/solvers/report.hpp."""
    values = np.asarray(values, float).reshape(-1, width)
    answers = answers[:values.size].reshape(-1, width)
    off = np.abs(values - answers).max(1) / np.abs(answers).max(1)
    return float(off.max()) if np.isfinite(off).all() else np.inf


def print_row(who, seconds, lanes=1, allowed=0.0, name=row_name, **figures):
    """`figures`: error, work, rtol, if there are any."""
    error = figures.get("error", 0.0)
    if not error <= allowed:
        sys.exit(f"{name}: the answers of {who} are off by {error:.3g}, more than {allowed:.3g}")
    print(json.dumps({"name": name, "who": who, "seconds": seconds, "lanes": lanes, **figures}),
          flush=True)


def median_seconds(call):
    """Seconds of the processor: of at least five calls, unless they take more than 20 seconds.
    The first call, in which it may be compiled, does not count."""
    call()
    times, begin = [], time.process_time()
    while (spent := time.process_time() - begin) < 20 and (len(times) < 5 or spent < 0.3):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return sorted(times)[len(times) // 2]


# --- the right sides of perf/solvers/problems.hpp: lists of numbers ------------------------------
def lorenz(y):
    a, b, c = y
    return [10 * (b - a), 28 * a - b - a * c, a * b - (8 / 3) * c]


def robertson(k, y):
    a, b, c = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] * y[1]
    return [b - a, a - b - c, c]


def hires(k, y):
    fast = k[1] * y[5] * y[7]
    return [-k[0] * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
            k[0] * y[0] - 8.75 * y[1],
            -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
            8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
            -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
            -fast + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + k[2] * y[6],
            fast - 1.81 * y[6],
            1.81 * y[6] - fast]
