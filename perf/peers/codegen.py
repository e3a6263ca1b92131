"""The rows of perf/codegen in JAX (jit), PyTorch (eager and torch.compile) and NumPy, on two
threads each, with vt's inputs.

Usage: codegen.py PROGRAM FILTER. Runs the rows of the program perf/codegen one by one, each just
before its peers, so that a slow minute of the machine hits both sides. What vt gives is compared
with each peer's results; where they differ, a line on stderr says so and the exit status is 1.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.abspath("build/bench/inductor"))
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import jax
import ml_dtypes
import numpy as np

from codegen_formulas import formulas
from common import results, row, write

try:
    import torch
except ImportError as missing:
    torch = None
    print(f"peers: no PyTorch ({missing}): only JAX and NumPy", file=sys.stderr)

jax.config.update("jax_enable_x64", True)
if torch:
    torch.set_num_threads(2)
dtypes = {"bool": np.bool_, "i8": np.int8, "u8": np.uint8, "i32": np.int32, "i64": np.int64,
          "f16": np.float16, "bf16": ml_dtypes.bfloat16,
          "f32": np.float32, "f64": np.float64}


def numbers(n, seed):
    """perf::numbers: a linear congruential generator, here by doubling: in one step every state so
    far is advanced by their number."""
    multiply, add, mask = 6364136223846793005, 1442695040888963407, (1 << 64) - 1
    seeds = np.array([(seed * multiply + add) & mask], np.uint64)
    while len(seeds) < n:
        seeds = np.concatenate([seeds, seeds * np.uint64(multiply) + np.uint64(add)])
        multiply, add = multiply * multiply & mask, (multiply * add + add) & mask
    return (seeds[:n] >> np.uint64(11)).astype(np.float64) * 2.0 ** -52 - 1.0


def make(described, seed):
    shape, kind = described["shape"], described["dtype"]
    x = numbers(int(np.prod(shape)), seed).reshape(shape) * described["scale"] + described["offset"]
    if kind == "f64":
        return x
    x = np.asarray(x, np.float32)
    return x > 0 if kind == "bool" else x.astype(dtypes[kind])


def of_torch(x, filters):
    """Filters (height, width, in, out) lie in memory as PyTorch wants them, images with channels
    as the last axis."""
    if x.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    if filters and x.ndim == 4 and x.shape[0] < 8:
        return torch.from_numpy(x.transpose(3, 2, 0, 1).copy()).permute(2, 3, 1, 0)
    return torch.from_numpy(x)


def host(x):
    if torch and isinstance(x, torch.Tensor):
        x = x.detach()
        return (x.float() if x.dtype == torch.bfloat16 else x).numpy().astype(np.float64)
    return np.asarray(x).astype(np.float64)


def compare(name, who, described, theirs_all):
    """Whether they are vt's: shapes, sums and the elements of the sample, within what the dtype's
    rounding may add up to."""
    if len(theirs_all) != len(described["results"]):
        return [f"{name}: {who} has {len(theirs_all)} results, vt {len(described['results'])}"]
    wrong = []
    coarse = {"bf16", "f16"} & {d["dtype"] for d in described["inputs"] + described["results"]}
    for at, (ours, theirs) in enumerate(zip(described["results"], map(host, theirs_all))):
        if list(theirs.shape) != ours["shape"]:
            wrong.append(f"{name}: result {at} is {ours['shape']}, {who}'s is {list(theirs.shape)}")
            continue
        exact = ours["dtype"] in ("bool", "i8", "u8", "i32", "i64")
        # A variance's mean.
        cancelled = max((abs(d["offset"]) / d["scale"] for d in described["inputs"] if d["scale"]),
                        default=0)
        of_f64 = max(1e-9, 1e-15 * cancelled)
        tolerance = 0 if exact else 3e-2 if coarse else of_f64 if ours["dtype"] == "f64" else 2e-3
        n = theirs.size
        scale = (ours["squares"] / n) ** 0.5
        flat = theirs.reshape(-1)
        got = flat[np.arange(100) * (n - 1) // 99]
        mine = np.array(ours["elements"])
        off = float(np.max(np.abs(got - mine) / (np.abs(mine) + scale + 1e-30)))
        off_sum = abs(float(np.sum(flat)) - ours["sum"]) / (n * scale + 1e-30)
        if not (off <= tolerance and off_sum <= max(tolerance, 1e-12)):
            wrong.append(f"{name}: result {at} is not {who}'s: off by {off:.3g} of its size, "
                         f"its mean by {off_sum:.3g}")
    return wrong


def list_of(y):
    return list(y) if isinstance(y, (tuple, list)) else [y]


def in_jax(f, described):
    by, rate = described["by"], described["rate"]

    def computed(*x):
        if not by:
            return list_of(f(*x))
        y, pull = jax.vjp(lambda *p: f(*p, *x[by:-1]), *x[:by])
        slopes = pull(x[-1])
        return [p - np.float32(rate) * g for p, g in zip(x, slopes)] if rate else [y, *slopes]

    return jax.jit(computed)


def in_torch(f, described):
    by, rate = described["by"], described["rate"]

    def computed(*x):
        if not by:
            with torch.no_grad():
                return list_of(f(*x))
        y = f(*x[:-1])
        slopes = torch.autograd.grad(y, x[:by], x[-1])
        with torch.no_grad():
            if not rate:
                return [y, *slopes]
            return list(torch._foreach_add(list(x[:by]), slopes, alpha=-rate))

    return computed


def run_vt(program, test):
    """Times one row of vt and gives its description with a sample of its results."""
    with tempfile.NamedTemporaryFile() as values:
        out = subprocess.run([program, f"--benchmark_filter=^{re.escape(test)}$",
                              "--benchmark_min_time=0.05", "--benchmark_repetitions=5",
                              "--benchmark_report_aggregates_only=true", "--benchmark_format=json",
                              f"--values={values.name}"],
                             check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        described = json.load(values)[0]
    median = next(b for b in json.loads(out)["benchmarks"] if b["aggregate_name"] == "median")
    results[f"codegen/{described['name']}/vt"] = median["real_time"] * {
        "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[median["time_unit"]]
    return described


def main():
    program, wanted = sys.argv[1:]
    tests = subprocess.run([program, "--benchmark_list_tests", f"--benchmark_filter={wanted}"],
                           check=True, stdout=subprocess.PIPE, text=True).stdout
    wrong = []
    for test in tests.split():
        described = run_vt(program, test)
        name = described["name"]
        parts = name.removeprefix("gradient/").split("/")
        with_jax, with_torch, with_numpy = next(formulas[key] for n in range(len(parts), 0, -1)
                                                if (key := "/".join(parts[:n])) in formulas)
        x = [make(d, i + 1) for i, d in enumerate(described["inputs"])]
        calls = {}
        inputs = [jax.numpy.asarray(v) for v in x]
        compiled = in_jax(with_jax, described)
        calls["jax"] = lambda: compiled(*inputs)
        small_floats = any(d["dtype"] in ("f16", "bf16") for d in described["inputs"])
        if with_numpy and not described["by"] and not small_floats:
            calls["numpy"] = lambda: list_of(with_numpy(*x))
        if torch and with_torch:
            tensors = [of_torch(v, parts[0] in ("conv", "train")) for v in x]
            for t in tensors[:described["by"]]:
                t.requires_grad_()
            eager = in_torch(with_torch, described)
            torch._dynamo.reset()
            fast = in_torch(torch.compile(with_torch, dynamic=False), described)
            calls["torch"] = lambda: eager(*tensors)
            calls["inductor"] = lambda: fast(*tensors)
        for who, call in calls.items():
            try:
                wrong += compare(name, who, described, call())
                row(f"codegen/{name}/{who}", call, 0.15)
            except Exception as error:  # a peer that cannot do a row has no time in it
                print(f"{name}: {who} fails: {type(error).__name__}: {str(error)[:300]}",
                      file=sys.stderr)
    write()
    print("\n".join(wrong), file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
