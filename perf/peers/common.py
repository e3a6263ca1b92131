"""What the peers share: timing (median of at least five runs) and the result file: a JSON object
from row name to seconds."""
import json
import statistics
import sys
import time

import jax

results = {}


def row(name, call, seconds=0.3):
    """Times `call`, which must return something to wait for; repeats it until `seconds` are spent,
    at least five times."""
    jax.block_until_ready(call())
    times = []
    started = time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - started < seconds and len(times) < 1000):
        begin = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - begin)
    results[name] = statistics.median(times)
    print(f"{name}: {results[name] * 1e3:.4f} ms", file=sys.stderr, flush=True)


def write():
    json.dump(results, sys.stdout, indent=1)
