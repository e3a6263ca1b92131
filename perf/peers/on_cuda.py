"""The rows of perf/cuda in JAX and PyTorch (eager, compiled) on the same GPU; a table of ratios.

The name is not cuda.py: PyTorch imports a module `cuda`, NVIDIA's bindings, and would find this.

Usage: on_cuda.py PROGRAM [--peers] [--tiny] [--filter REGEX] [--out FOLDER]

Runs the program, then, with --peers, the same work in whichever of the two are installed and find a
GPU; prints the table and writes a JSON named after the device and the date into FOLDER.
"""
import argparse
import datetime
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--peers", action="store_true")
parser.add_argument("--tiny", action="store_true")
parser.add_argument("--filter", default=".")
parser.add_argument("--out", default="perf/results")
arguments = parser.parse_args()
tiny = arguments.tiny


def size(full, small):
    return small if tiny else full


def wanted(name):
    return re.search(arguments.filter, name)


def run_program():
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [arguments.program, "--json", file.name, "--filter",
                   arguments.filter] + ["--tiny"] * tiny
        status = subprocess.run(command).returncode
        if status:
            sys.exit(status)
        return json.load(open(file.name))


# --- timing

def by_clock(call, wait, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        result = call()
    wait(result)
    return time.perf_counter() - begin


def timed(call, wait, group):
    """Seconds a call, many of which are given to the device before anybody waits: the median of
    groups, each of them timed by `group`."""
    for _ in range(2 if tiny else 4):
        wait(call())
    once = max(group(call, wait, 1), 1e-6)
    calls = 1 if tiny else max(1, min(2000, int(0.02 / once)))
    return statistics.median(group(call, wait, calls) / calls for _ in range(1 if tiny else 9))


peers = {}


def peer(row, name, call, wait, group=by_clock):
    if not wanted(row):
        return
    try:
        peers.setdefault(row, {})[name] = timed(call, wait, group)
        print(f"{row} {name}: {peers[row][name] * 1e6:.3f} us", file=sys.stderr, flush=True)
    except Exception as problem:  # one row that does not fit leaves the others
        print(f"{row} {name}: {problem}", file=sys.stderr, flush=True)


# --- JAX

def jax_rows():
    import jax
    import jax.numpy as jnp
    from jax import lax
    from networks import conv, lstm, lstm_cell, lstm_logits, pool, vgg16, vgg16_logits

    if not tiny and jax.default_backend() != "gpu":
        print("peers: JAX finds no GPU", file=sys.stderr)
        return
    keys = iter(jax.random.split(jax.random.key(1), 1000))

    def numbers(*shape, scale=1.0, dtype=jnp.float32):
        return jax.random.uniform(next(keys), shape, jnp.float32, -scale, scale).astype(dtype)

    def weights(*shape):
        return numbers(*shape, scale=math.sqrt(6 * shape[-1] / math.prod(shape)))

    def add(row, function, *operands):
        if wanted(row):
            jitted = jax.jit(function)
            peer(row, "jax", lambda: jitted(*operands), jax.block_until_ready)

    def vjp(function):
        return lambda *x: jax.vjp(function, *x[:-1])[1](x[-1])

    if any(map(wanted, ("elementwise/1GB", "reduce/", "transpose/"))):
        x, y = numbers(size(1 << 26, 256)), numbers(size(1 << 26, 256))
        add("elementwise/1GB", lambda x, y: (jnp.tanh(x) * y + 0.5, jnp.exp(y) - x), x, y)
        x = numbers(size(16384, 32), size(16384, 32))
        add("reduce/all/1GB", lambda x: jnp.sum(x * x), x)
        add("reduce/rows/1GB", lambda x: jnp.sum(jnp.abs(x), 1), x)
        add("reduce/columns/1GB", lambda x: jnp.max(x, 0), x)
        add("transpose/1GB", lambda x: x.T + 1.0, x)
    rows, columns = size(8192, 8), size(4096, 40)
    x, up = numbers(rows, columns), numbers(rows, columns)
    scale, shift = numbers(columns), numbers(columns)

    def norm(x, scale, shift):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift

    add("softmax/forward", jax.nn.softmax, x)
    add("softmax/backward", vjp(jax.nn.softmax), x, up)
    add("layer_norm/forward", norm, x, scale, shift)
    add("layer_norm/backward", vjp(norm), x, scale, shift, up)

    def cross_entropy(logits, label):
        return jax.nn.logsumexp(logits) - logits[label]

    def convnet_loss(p, x, kept, label):
        h = pool(jax.nn.relu(conv(x, p[0]) + p[1]))
        h = pool(jax.nn.relu(conv(h, p[2]) + p[3]))
        h = jax.nn.relu(h.reshape(-1) @ p[4] + p[5]) * kept
        return cross_entropy(h @ p[6] + p[7], label)

    f, dense, width, steps = size(32, 2), size(1024, 8), size(128, 8), size(10, 2)
    convnet = [weights(5, 5, 1, f), numbers(f), weights(5, 5, f, 2 * f), numbers(2 * f),
               weights(98 * f, dense), numbers(dense), weights(dense, 10),
               numbers(10)]
    net = lstm(width, 10, weights, numbers)
    for batch in (2,) if tiny else (1, 16, 64, 256, 1024):
        y, kept = jnp.arange(batch) % 10, (numbers(batch, dense) > 0).astype(jnp.float32)
        add(f"per_example/convnet/{batch}", jax.vmap(jax.grad(convnet_loss), (None, 0, 0, 0)),
            convnet, numbers(batch, 28, 28, 1), kept, y)
        add(f"per_example/lstm/{batch}",
            jax.vmap(jax.grad(lambda p, x, y: cross_entropy(lstm_logits(p, x), y)), (None, 0, 0)),
            net,
            numbers(batch, steps, width), y)

    for outputs in () if tiny else (1, 8, 32, 128):
        for pixels in (48, 224):
            row = f"jacobian/vgg16_{pixels}/{outputs}"
            if wanted(row):
                add(row, lambda p, x: jax.jacrev(lambda v: vgg16_logits(p, v))(x),
                    vgg16(outputs, pixels, weights, numbers), numbers(pixels, pixels, 3))
        add(f"jacobian/lstm/{outputs}", lambda p, x: jax.jacrev(lambda v: lstm_logits(p, v))(x),
            lstm(128, outputs, weights, numbers), numbers(10, 128))

    longest = size(100, 3)

    def last(p, xs, length):
        start = jnp.zeros(width)
        return lax.while_loop(lambda s: s[0] < length,
                              lambda s: (s[0] + 1, *lstm_cell(p, xs[s[0]], s[1:])),
                              (0, start, start))[1]

    p = lstm(width, 1, weights, numbers)
    for batch in (3,) if tiny else (1, 10, 100, 1000, 10000):
        if wanted(f"ragged_lstm/{batch}"):
            add(f"ragged_lstm/{batch}", jax.vmap(last, (None, 0, 0)), p,
                numbers(batch, longest, width), jnp.arange(batch) * 37 % longest + 1)


# --- PyTorch: cuBLAS itself for products, its compiled kernels for softmax and layer norm

def torch_rows():
    import torch
    import torch.nn.functional as F

    if not tiny and not torch.cuda.is_available():
        print("peers: PyTorch finds no GPU", file=sys.stderr)
        return
    place = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False

    def wait(_):
        if place == "cuda":
            torch.cuda.synchronize()

    def by_events(call, wait, calls):  # as vt's own rows
        if place != "cuda":
            return by_clock(call, wait, calls)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3

    def numbers(*shape, dtype=torch.float32):
        return (torch.rand(*shape, device=place) * 2 - 1).to(dtype)

    def add(row, function, *operands, compiled=True,
            call=lambda function, operands: function(*operands)):
        if not wanted(row):
            return
        peer(row, "torch", lambda: call(function, operands), wait, by_events)
        if compiled and not tiny:
            faster = torch.compile(function)
            peer(row, "torch.compile", lambda: call(faster, operands), wait, by_events)

    # Compiled is the function, with it its gradient: torch.compile does not look into
    # torch.autograd.grad.
    def pulled(function, operands):
        return torch.autograd.grad(function(*operands[:-1]), operands[:-1], operands[-1])

    if any(map(wanted, ("elementwise/1GB", "reduce/", "transpose/"))):
        x, y = numbers(size(1 << 26, 256)), numbers(size(1 << 26, 256))
        add("elementwise/1GB", lambda x, y: (torch.tanh(x) * y + 0.5, torch.exp(y) - x), x, y)
        x = numbers(size(16384, 32), size(16384, 32))
        add("reduce/all/1GB", lambda x: (x * x).sum(), x)
        add("reduce/rows/1GB", lambda x: x.abs().sum(1), x)
        add("reduce/columns/1GB", lambda x: x.amax(0), x)
        add("transpose/1GB", lambda x: x.t().contiguous() + 1.0, x)
    rows, columns = size(8192, 8), size(4096, 40)
    x, up = numbers(rows, columns), numbers(rows, columns)
    scale, shift = numbers(columns), numbers(columns)
    x.requires_grad_()
    scale.requires_grad_()
    shift.requires_grad_()
    softmax = lambda x: F.softmax(x, -1)
    norm = lambda x, scale, shift: F.layer_norm(x, (columns,), scale, shift)
    with torch.no_grad():
        add("softmax/forward", softmax, x)
        add("layer_norm/forward", norm, x, scale, shift)
    # With the forward part, as vt has it too: it recomputes what the gradient needs.
    add("softmax/backward", softmax, x, up, call=pulled)
    add("layer_norm/backward", norm, x, scale, shift, up, call=pulled)
    n = size(4096, 24)
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        add(f"matmul/{name}/4096", torch.matmul, numbers(n, n, dtype=dtype),
            numbers(n, n, dtype=dtype), compiled=False)
    for k in (16, 32, 64):
        if wanted(f"batched_matmul/f32/{k}"):
            batch = size((1 << 26) // (k * k), 3)
            add(f"batched_matmul/f32/{k}", torch.bmm, numbers(batch, k, k), numbers(batch, k, k),
                compiled=False)

    def ten_kernels(x):
        for _ in range(5):
            x = x - torch.tanh(x.sum(0) * 0.1) + x.sum(1, keepdim=True) * 0.01
        return x

    add("launch/10_kernels", ten_kernels, numbers(64, 64))


# --- the table

def targets(rows):
    """(what, ours, peer's seconds or None, at least): the ratio is peer / ours."""

    def get(name):
        return rows[name]["seconds"] if name in rows else None

    def of(name, *who):
        known = [peers.get(name, {}).get(w) for w in who]
        return min([k for k in known if k], default=None)

    out = []
    copy = rows.get("copy/1GB")
    for name in ("elementwise/1GB", "reduce/all/1GB", "reduce/rows/1GB", "reduce/columns/1GB",
                 "transpose/1GB"):
        limit = copy and rows.get(name) and copy["seconds"] / copy["bytes"] * rows[name]["bytes"]
        out.append((f"{name}, share of copy bandwidth", get(name), limit, 0.88))
    for name in ("softmax/forward", "softmax/backward", "layer_norm/forward",
                 "layer_norm/backward"):
        out.append((f"{name} against torch.compile", get(name), of(name, "torch.compile"), 1.0))
        out.append((f"{name} against JAX", get(name), of(name, "jax"), None))
    out.append(("CPU time of a launch of 10 kernels, against 6 us", get("launch/10_kernels"), 6e-6,
                1.0))
    for name in ("matmul/f32/4096", "matmul/bf16/4096"):
        out.append((f"{name} against cuBLAS", get(name), of(name, "torch"), 0.97))
    for k in (16, 32, 64):
        out.append((f"batched_matmul/f32/{k} against cuBLAS", get(f"batched_matmul/f32/{k}"),
                    of(f"batched_matmul/f32/{k}", "torch"), 1.5))
    for name in sorted(rows,
                       key=lambda n: (n.split("/")[:2], int(n.split("/")[2])
                                      if n.count("/") > 1 and n.split("/")[2].isdigit() else 0)):
        loop = get(name + "/loop")
        if name.startswith("per_example/") and not name.endswith("/loop"):
            out.append((f"{name} against JAX", get(name), of(name, "jax"), 1.2))
            if loop:
                out.append((f"{name} against the loop", get(name), loop, 38.0))
        if name.startswith("jacobian/") and not name.endswith("/loop"):
            out.append((f"{name} against JAX", get(name), of(name, "jax"), 1.0))
            if loop:
                out.append((f"{name} against the loop", get(name), loop,
                            60.0 if name.endswith("/128") else None))
        if name.startswith("ragged_lstm/"):
            out.append((f"{name} against JAX", get(name), of(name, "jax"), 5.0))
    out.append(("first call of 20 ops, cold, against 60 ms", get("first_call/20_ops/cold"), 60e-3,
                1.0))
    out.append(("… from the disk cache, against 2 ms", get("first_call/20_ops/disk"), 2e-3, 1.0))
    return [row for row in out if row[1]]


def shown(seconds):
    for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


measured = run_program()
if arguments.peers:
    for make in (jax_rows, torch_rows):
        try:
            make()
        except ImportError as missing:
            print(f"peers: {missing}", file=sys.stderr)
table = targets(measured["rows"])
print(f"\n{measured['device']}, driver for CUDA {measured['driver']}, NVRTC {measured['nvrtc']}\n")
print("| what | vt | peer or limit | ratio | wanted | reached |")
print("| --- | --- | --- | --- | --- | --- |")
for what, ours, theirs, least in table:
    ratio = theirs / ours if theirs else None
    print(f"| {what} | {shown(ours)} | {shown(theirs) if theirs else ''} "
          f"| {f'{ratio:.2f}' if ratio else ''} | {f'{least:.2f}' if least else ''} | "
          f"{'' if not (ratio and least) else 'yes' if ratio >= least else 'NO'} |")
measured["peers"] = peers
measured["table"] = [{"what": w, "seconds": o, "peer": t, "wanted": l} for w, o, t, l in table]
measured["date"] = datetime.date.today().isoformat()
name = re.sub(r"[^A-Za-z0-9]+", "-", measured["device"]).strip("-").lower()
path = f"{arguments.out}/cuda-{name}{'-tiny' if tiny else ''}-{measured['date']}.json"
with open(path, "w") as file:
    json.dump(measured, file, indent=1)
print(f"\nwritten: {path}", file=sys.stderr)
