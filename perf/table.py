"""Turns the benchmarks' JSON into one table: every row beside its peer or limit, from the same run,
with what is to be reached."""
import math


class Row:
    """The figure is peer time / our time. `peer`: a row name, seconds, or ("flops", count, row name
    of the peak). `rate`: the counter that is shown in place of times."""

    def __init__(self, title, ours, peer, target, rate=None):
        self.title, self.ours, self.peer, self.target, self.rate = title, ours, peer, target, rate


def rows():
    out = [
        # Absolute figures: the peer is a number of seconds.
        Row("record and transform 1,000 ops: vmap(grad(f))", "record/1000/vmap_grad", 1e-3, 1.0),
        Row("call a compiled function of 10 elements, against 2 us", "call/10/vt", 2e-6, 1.0),
        Row("… against JAX", "call/10/vt", "call/10/jax", 10.0),
        Row("first call, 20 ops, cold, against 12 ms", "first_call/20_ops/cold", 12e-3, 1.0),
        Row("… from the disk cache, against 1 ms", "first_call/20_ops/disk", 1e-3, 1.0),
        Row("… cold, and the first compilation of the process, which loads libLLVM",
            "first_call/20_ops/first_of_process", 12e-3, None),
        Row("… cold, against JAX", "first_call/20_ops/cold", "first_call/20_ops/jax", None),
        Row("first call of VGG16's logits and of their gradient, cold, against 0.7 s",
            "first_call/vgg16/forward_and_gradient/cold", 0.7, 1.0),
        Row("… against JAX's compile time", "first_call/vgg16/forward_and_gradient/cold",
            "first_call/vgg16/forward_and_gradient/jax", 10.0),
        Row("… from the disk cache, against 2 · 30 ms",
            "first_call/vgg16/forward_and_gradient/disk", 60e-3, 1.0),
        Row("… the logits alone, cold, against JAX's compile time", "first_call/vgg16/forward/cold",
            "first_call/vgg16/forward/jax", 10.0),
        Row("… from the disk cache, against 30 ms", "first_call/vgg16/forward/disk", 30e-3, 1.0),
    ]
    for t in (1, 2):
        out.append(Row(f"fused chain, 1e7 f32, {t} threads, share of copy bandwidth",
                       f"chain/f32/10000000/threads:{t}/vt",
                       f"chain/f32/10000000/threads:{t}/memcpy", 0.85))
    out.append(Row("… against JAX", "chain/f32/10000000/threads:2/vt", "chain/f32/10000000/jax",
                   None))
    for t in (1, 2):
        for what in ("axis0", "axis1", "all"):
            out.append(Row(f"sum {what}, 4096x4096 f32, {t} threads, share of read bandwidth",
                           f"sum/{what}/threads:{t}/vt",
                           f"sum/limit/threads:{t}/read", 0.85))
    for what in ("axis0", "axis1", "all"):
        out.append(Row(f"sum {what}, 2 threads, against JAX", f"sum/{what}/threads:2/vt",
                       f"sum/{what}/jax", None))
    for t in (1, 2):
        for limit, walks in (("read", ("max0", "argmax0", "sum0_f64", "sum0_bf16", "sum_middle")),
                             ("copy", ("transpose_f32", "transpose_f64", "transpose_batched",
                                       "transpose_chain", "cumsum0", "cumsum1", "cummax1",
                                       "softmax", "segment_sum"))):
            for walk in walks:
                out.append(Row(f"{walk}, 64 MiB, {t} threads, share of {limit} bandwidth",
                               f"walk/{walk}/threads:{t}/vt",
                               f"walk/limit/threads:{t}/{limit}", None))
    for dtype in ("f32", "f64"):
        for n in (256, 512, 1024, 2048):
            for t in (1, 2):
                name = f"matmul/{dtype}/{n}/threads:{t}"
                out.append(Row(f"matmul {dtype} n={n}, {t} threads, against Eigen native",
                               name + "/vt", name + "/eigen", 1.1))
                out.append(Row("… share of FMA peak", name + "/vt",
                               ("flops", 2.0 * n ** 3, f"fma_peak/{dtype}/threads:{t}"), 0.8))
            out.append(Row("… 2 threads, against JAX", f"matmul/{dtype}/{n}/threads:2/vt",
                           f"matmul/{dtype}/{n}/jax", None))
    for n in (4, 8, 16, 32, 64):
        out.append(Row(f"batched matmul f32 n={n}, 1 thread, against Eigen native loop",
                       f"batched_matmul/f32/{n}/vt",
                       f"batched_matmul/f32/{n}/eigen", 2.0))
    for what in ("relu", "tanh"):
        for size in ("512x512x512", "2048x1024x64"):
            name = f"product_epilogue/{what}/f32/{size}"
            title = f"{what}(x·w + b) f32 {size}, inside the product, against a kernel of its own"
            out.append(Row(title, name + "/inside", name + "/apart", None))
    out.append(Row("exp, 1e6 f32, 2 threads, against 2.5 G/s", "function/exp/f32/threads:2/vt",
                   1e6 / 2.5e9, 1.0))
    for name in ("exp", "log", "sin", "tanh"):
        out.append(Row(f"{name}, 1e6 f32, 2 threads, against JAX",
                       f"function/{name}/f32/threads:2/vt", f"function/{name}/f32/jax", 1.0))
        out.append(Row(f"{name}, 1 thread, against libm", f"function/{name}/f32/threads:1/vt",
                       f"function/{name}/f32/threads:1/libm", None))
    for dtype in ("f32", "f64"):
        for t in (1, 2):
            out.append(Row(f"sort 1e6 {dtype}, {t} threads, against std::sort",
                           f"sort/{dtype}/1000000/threads:{t}/vt", f"sort/{dtype}/1000000/std",
                           1.0))
        out.append(Row("… 2 threads, against JAX", f"sort/{dtype}/1000000/threads:2/vt",
                       f"sort/{dtype}/1000000/jax", 4.0))
    out.append(Row("… f32, 2 threads, against NumPy", "sort/f32/1000000/threads:2/vt",
                   "sort/f32/1000000/numpy", None))
    for t in (1, 2):
        out.append(Row(f"argsort 16 x 1e5 f32, {t} threads, against std::stable_sort",
                       f"argsort/f32/16x100000/threads:{t}/vt",
                       "argsort/f32/16x100000/std", 1.0))
        out.append(Row("… along columns", f"argsort/f32/100000x16/axis0/threads:{t}/vt",
                       "argsort/f32/16x100000/std", 1.0))
    out.append(Row("… 2 threads, against JAX", "argsort/f32/16x100000/threads:2/vt",
                   "argsort/f32/16x100000/jax", 4.0))
    out.append(Row("100 greatest of 1e6 f32, 1 thread, against std::partial_sort",
                   "top_k/100/f32/1000000/threads:1/vt",
                   "top_k/100/f32/1000000/std", None))
    out.append(Row("… 2 threads, against JAX", "top_k/100/f32/1000000/threads:2/vt",
                   "top_k/100/f32/1000000/jax", None))
    out.append(Row("median of 1e6 f32, 2 threads, against JAX", "median/f32/1000000/threads:2/vt",
                   "median/f32/1000000/jax", None))
    out.append(Row("sort 1e5 rows of 10 f32, 1 thread, against std::sort",
                   "sort/f32/100000x10/threads:1/vt", "sort/f32/100000x10/std", None))
    out.append(Row("… 2 threads, against JAX", "sort/f32/100000x10/threads:2/vt",
                   "sort/f32/100000x10/jax", None))
    for t in (1, 2):
        out.append(Row(f"1e8 normal draws f32, {t} threads, against JAX",
                       f"random/normal/f32/100000000/threads:{t}/vt",
                       "random/normal/f32/100000000/jax",
                       2.0 if t == 2 else None))
    for name, title in (("random/gamma/f32/1000000", "1e6 gamma draws, a = 0.7"),
                        ("random/poisson/1000000", "1e6 Poisson draws, mean 20"),
                        ("special/igamma/f32/1000000", "igamma of 1e6 f32"),
                        ("special/i0e/f32/1000000", "i0e of 1e6 f32")):
        out.append(Row(f"{title}, 2 threads, against JAX", f"{name}/threads:2/vt", f"{name}/jax",
                       None))
    out += control()
    out += linalg()
    out += spectral()
    out += convolutions()
    out += jacobians()
    out += [
        Row("per-example gradients, 256 digits, against the loop", "per_example_gradients/256/vt",
            "per_example_gradients/256/loop", 30.0),
        Row("… against a loop of compiled calls", "per_example_gradients/256/vt",
            "per_example_gradients/256/compiled_loop", None),
        Row("… against JAX", "per_example_gradients/256/vt", "per_example_gradients/256/jax", 1.5),
        Row("Jacobian of the logits, 359 images, against JAX", "jacobian/logits/359/vt",
            "jacobian/logits/359/jax", 1.5),
        Row("Hessian of the softmax regression, against JAX", "hessian/softmax/650/vt",
            "hessian/softmax/650/jax", 1.5),
    ]
    for size in ("d10_K25", "d20_K50", "d64_K25"):
        out.append(Row(f"GMM {size} f64: gradient, at most 3 objectives", f"gmm/{size}/gradient/vt",
                       f"gmm/{size}/objective/vt", 1 / 3))
        out.append(Row("… gradient against JAX", f"gmm/{size}/gradient/vt",
                       f"gmm/{size}/gradient/jax", 1.0))
    out += adbench()
    return out


def adbench():
    """Of the suite's other objectives; a Jacobian may cost so many objectives."""
    out = []
    for name, title, derivative, objectives in (
            [(f"text/{size}", f"character LSTM, {size[1]} layers", "gradient", 3)
             for size in ("l2", "l4")] +
            [(f"hand/{kind}/{size}", f"hand tracking, {kind}, {size[1:]} points", "jacobian",
              0.6 * columns)
             for kind, columns in (("simple", 26), ("complicated", 28))
             for size in ("c100", "c800")] +
            [(f"bundle/{size}", f"bundle adjustment, {count} observations", "jacobian", 3)
             for size, count in (("ba1", "31,843"), ("ba5", "225,911"))]):
        out.append(Row(f"{title}: {derivative}, at most {objectives:.3g} objectives",
                       f"{name}/{derivative}/vt", f"{name}/objective/vt", 1 / objectives))
        out.append(Row(f"… {derivative} against JAX", f"{name}/{derivative}/vt",
                       f"{name}/{derivative}/jax", None))
        out.append(Row("… objective against JAX", f"{name}/objective/vt", f"{name}/objective/jax",
                       None))
    return out


def control():
    out = []
    for what in ("value", "gradient"):
        for t in (1, 2):
            out.append(Row(f"scan of an LSTM cell, {what}, {t} threads, against JAX",
                           f"scan/lstm/{what}/threads:{t}/vt", f"scan/lstm/{what}/jax",
                           3.0 if t == 2 else None))
    for loop in ("while", "fori"):
        name = f"{loop}/value/vt"
        out.append(Row(f"{loop}, 1e6 rounds of 10 ops f64, at most 1.5 times g++ -O2", name,
                       "while/value/plain", 1 / 1.5))
        out.append(Row("… against JAX", name, f"{loop}/value/jax", 10.0))
        out.append(Row("… its gradient, against g++ -O2 carrying the derivative along",
                       f"{loop}/gradient/vt", "while/gradient/plain", None))
    out.append(Row("… its gradient, against JAX", "fori/gradient/vt", "fori/gradient/jax", None))
    for t in (1, 2):
        name = f"while/lanes/value/threads:{t}/vt"
        out.append(Row(f"vmap of a while of 1 to 1,000 rounds, 4,096 lanes, {t} threads, "
                       "against a g++ -O2 loop", name, "while/lanes/value/plain", None))
        out.append(Row("… against JAX", name, "while/lanes/value/jax", 3.0 if t == 2 else None))
        out.append(Row("… its gradient, against a g++ -O2 loop carrying the derivative along",
                       f"while/lanes/gradient/threads:{t}/vt",
                       "while/lanes/gradient/plain", None))
    for what, title in (("one", "1e6 updates in a loop"),
                        ("lanes", "… in a loop of 4 lanes, each to its own end")):
        for size in (100_000, 1_000_000):
            out.append(Row(f"{title}, array of {size:,} f64, against one of 1,000",
                           f"update/{what}/{size}/vt", f"update/{what}/1000/vt", 0.9))
    for n in (1, 16, 256):
        name = f"ragged/lstm/{n}"
        out.append(Row(f"vmap of an LSTM by while, {n} sequences of 1 to 100, "
                       "against the loop over them", name + "/vt", name + "/loop",
                       10.0 if n == 256 else 1.0, "Gtoken/s"))
        out.append(Row("… against JAX", name + "/vt", name + "/jax", None))
    return out


def linalg():
    out = []
    for name in ("f32", "f64"):
        for n in (2, 3, 4, 8, 16):
            for what in ("cholesky", "solve", "eigh"):
                row = f"{what}/{name}/100000x{n}x{n}"
                title = f"100,000 times {what} {n}x{n} {name}, 1 thread, against Eigen's loop"
                out.append(Row(title, f"{row}/threads:1/vt", f"{row}/eigen", None))
                out.append(Row("… 2 threads, against Eigen's loop", f"{row}/threads:2/vt",
                               f"{row}/eigen", 4.0))
                out.append(Row("… against JAX", f"{row}/threads:2/vt", f"{row}/jax", 10.0))
    for n in (32, 64, 128, 300):
        for what in ("cholesky", "lu", "solve", "qr", "eigh", "svd"):
            row = f"{what}/f64/{n}x{n}"
            out.append(Row(f"{what} {n}x{n} f64, 1 thread, against Eigen", f"{row}/threads:1/vt",
                           f"{row}/eigen", 1.0))
            out.append(Row("… against JAX", f"{row}/threads:1/vt", f"{row}/jax", None))
    return out


def spectral():
    out = []
    for name in ("c64", "c128"):
        for what in [f"fft/{name}/{1 << p}" for p in (10, 12, 14, 16, 18, 20)] + [
                f"{kind}/{name}/{size}"
                for kind, size in (("fft", "1000x1024"), ("fft", "1000x1000"), ("fft", "100x10007"),
                                   ("fft2", "1024x1024"),
                                                           ("rfft", "1000x1024"),
                                                           ("filter", "1000x1024"))]:
            out.append(Row(f"{what}, 1 thread, against NumPy", f"{what}/threads:1/vt",
                           f"{what}/numpy", 1.0))
            out.append(Row("… 2 threads, against JAX", f"{what}/threads:2/vt", f"{what}/jax", None))
    for what in ("exp/c64/1000000", "chain/c64/1000000", "matmul/c64/512"):
        out.append(Row(f"complex {what}, 2 threads, against JAX", f"complex/{what}/threads:2/vt",
                       f"complex/{what}/jax", None))
    return out


def convolutions():
    out = []
    for n in (1, 16, 64, 256):
        name = f"convnet/{n}"
        out.append(Row(f"network for 28x28 images: gradients of each of {n}, against JAX",
                       f"{name}/each/vt", f"{name}/each/jax", 1.5 if n >= 64 else None))
        out.append(Row("… of their mean, against JAX", f"{name}/mean/vt", f"{name}/mean/jax", None))
        out.append(Row("… its logits, against JAX", f"{name}/logits/vt", f"{name}/logits/jax",
                       None))
    out.append(Row("… gradients of each of 64, against a loop of compiled calls",
                   "convnet/64/each/vt", "convnet/64/each/loop", None))
    for layer in ("28x28x1*5x5x32", "14x14x32*5x5x64", "14x14x128*3x3x128", "56x56x32*3x3x64/2",
                  "28x28x64*3x3 in 8 groups", "28x28x64*3x3 in 64 groups"):
        for what, title in (("value", "convolution " + layer), ("by_x", "… its derivative by x"),
                            ("by_filter", "… by the filter")):
            out.append(Row(f"{title}, against JAX", f"conv/{layer}/{what}/vt",
                           f"conv/{layer}/{what}/jax", None))
    for window in ("2x2", "3x3/2"):
        for what in ("value", "gradient"):
            out.append(Row(f"max_pool {window} of 64 28x28x32, {what}, against JAX",
                           f"max_pool/{window}/{what}/vt", f"max_pool/{window}/{what}/jax", None))
    return out


def jacobians():
    out = []
    for name, title in (("vgg16", "VGG16, 48x48 pixels"), ("lstm", "LSTM unrolled 10 steps")):
        for outputs in (1, 8, 32, 128):
            row = f"jacobian/{name}/{outputs}"
            out.append(Row(f"Jacobian of {outputs} logits by the input, {title}, against the loop "
                           "over rows", row + "/vt", row + "/loop",
                           20.0 if name == "lstm" and outputs == 128 else None))
            out.append(Row("… against JAX", row + "/vt", row + "/jax", 1.2))
    return out


def duration(seconds):
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def speed(per_second, unit):
    """A counter, which is in thousand millions of its unit, as a person reads it."""
    return f"{per_second * 1e6:,.0f} k {unit.removeprefix('G')}"


def laid_out(head, lines, markdown):
    if markdown:
        return "\n".join("| " + " | ".join(cells) + " |"
                         for cells in [head, ("---",) * len(head), *lines])
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                  for i, (cell, w) in enumerate(zip(line, widths))) for line in [head, *lines])


def codegen_text(times, markdown=False):
    """The suite `codegen`: each row beside the best of its peers and beside JAX, and what all of it
    amounts to."""
    peers = ("jax", "torch", "inductor", "numpy")
    lines, ratios, jax_ratios = [], [], []
    for ours, seconds in times.items():
        if not (ours.startswith("codegen/") and ours.endswith("/vt")):
            continue
        name = ours.removesuffix("/vt")
        there = {peer: times[f"{name}/{peer}"] for peer in peers if f"{name}/{peer}" in times}
        cells = [name.removeprefix("codegen/"), duration(seconds), "", "", "", "", ""]
        if there:
            best = min(there, key=there.get)
            ratios.append(there[best] / seconds)
            cells[2:5] = [duration(there[best]), best, f"{ratios[-1]:.2f}"]
            marks = ["peer"] if ratios[-1] < 0.9 else []
            if "jax" in there:
                jax_ratios.append(there["jax"] / seconds)
                cells[5] = f"{jax_ratios[-1]:.2f}"
                marks += ["jax"] if jax_ratios[-1] < 1 else []
            cells[6] = " ".join(marks)
        lines.append(tuple(cells))
    out = laid_out(("row", "vt", "best peer", "which", "ratio", "of JAX", "below"), lines, markdown)
    for what, all_ratios, least in (("the best peer", ratios, 0.9), ("JAX", jax_ratios, 1.0)):
        if all_ratios:
            mean = math.exp(sum(map(math.log, all_ratios)) / len(all_ratios))
            below = sum(r < least for r in all_ratios)
            out += (f"\n{len(all_ratios)} rows beside {what}: geometric mean {mean:.2f}, "
                    f"{below} below {least}")
    return out


native_peers = ("plain", "differences", "ceres", "eigen", "stan", "adolc", "casadi", "pinocchio",
                "jax")


def native_text(times, counters, markdown=False):
    """The suite `native`: each row beside plain C++ and its peers, and vt's derivatives beside its
    own values; what memory it takes besides arguments and results."""
    shown = [peer for peer in native_peers if any(name.endswith("/" + peer) for name in times)]
    lines = []
    for ours, seconds in times.items():
        if not ours.endswith("/vt"):
            continue
        name = ours.removesuffix("/vt")
        there = [times.get(f"{name}/{peer}") for peer in shown]
        value = times.get(name.removesuffix("derivative") + "value/vt")
        lines.append((name, duration(seconds),
                      f"{seconds / value:.2f}" if name.endswith("/derivative") and value else "",
                      f"{counters[ours]['extra_KB']:.0f}" if counters.get(ours) else "",
                      *(f"{duration(t)} ({t / seconds:.2f})" if t else "" for t in there)))
    return laid_out(("row", "vt", "of value", "KB", *shown), lines, markdown)


# Examples a second that vt is to train with, on one thread of an AVX-512 machine.
autobatch_targets = {"tagger": 450, "tagger_chars": 380, "tree_lstm": 800, "parser": 150,
                     "parser_once": 150, "synthetic_tagger": 111}


def autobatch_text(rows, markdown=False):
    """The suite `autobatch`: examples a second of vt and its peers. `rows`: what the programs
    print, a dictionary a row."""
    peers = ("dynet", "dynet_native", "torch", "jax")
    speeds = {(row["name"], row["who"]): row["value"] for row in rows}
    lines = []
    for name, target in autobatch_targets.items():
        shown = [speeds.get((name, who)) for who in ("vt", "dynet_unbatched", *peers)]
        if not any(shown):
            continue
        ours, best = shown[0], max(filter(None, shown[2:]), default=None)
        lines.append((name, *(f"{speed:.1f}" if speed else "" for speed in shown),
                      f"{ours / best:.2f}" if ours and best else "", str(target),
                      "" if not ours else "yes" if ours >= target else "NO"))
    head = ("examples/s", "vt", "DyNet unbatched", "DyNet", "DyNet native", "PyTorch", "JAX",
            "of the best peer", "wanted", "reached")
    return laid_out(head, lines, markdown)


def autobatch_figures_text(rows, markdown=False):
    """What the figures of the paper compare, of vt alone: three tables."""
    strategies = {"vt_none": "one by one", "vt_by_depth": "by depth", "vt": "agenda"}
    phases = ("record", "schedule", "emit", "transforms", "forward", "backward", "update")
    of = {figure: [row for row in rows if row["figure"] == figure]
          for figure in ("by_hand", "strategies", "sizes")}
    for row in of["by_hand"]:
        row["backward_ms"] = row["run_ms"] - row["forward_ms"]
    tables = [laid_out(
        ("ms a minibatch", "strategy", "groups", *phases, "examples/s"),
        [(row["name"], strategies[row["who"]], str(row["groups"]),
          *(f"{row[phase + '_ms']:.1f}" for phase in phases), f"{row['value']:.1f}")
         for row in of["by_hand"]], markdown)]

    def speeds(figure, key, title):
        shown = [who for who in strategies if any(row["who"] == who for row in of[figure])]
        known = {(row[key], row["who"]): row["value"] for row in of[figure]}
        names = dict.fromkeys(row[key] for row in of[figure])
        return laid_out((title, *(strategies[who] for who in shown)),
                        [(str(name), *(f"{known[name, who]:.1f}" for who in shown))
                         for name in names], markdown)

    tables.append(speeds("strategies", "name", "examples/s"))
    tables.append(speeds("sizes", "batch", "trees at a time"))
    return "\n\n".join(tables)


# Units a second that vt is to reach on one thread of an AVX-512 machine.
lanes_targets = {"nuts_logistic/1": 5_000, "nuts_logistic/10": 12_000,
                 "nuts_logistic/100": 20_000, "fibonacci": 200_000_000}


def lanes_text(rows, markdown=False):
    """The suite `lanes`: units a second by schedule and in the peers, and how many of the gradients
    that run are of use. `rows`: what the programs print, a dictionary a row."""
    schedules = ("automatic", "groups", "hybrid", "program_counter", "one_by_one")
    peers = ("tfp", "blackjax", "numpyro", "stan", "vt_plain")
    speeds = {(row["name"], row["who"]): row["value"] for row in rows}
    lines = []
    for name in dict.fromkeys(row["name"] for row in rows if "waiting" not in row):
        ours = speeds.get((name, "vt_automatic"))
        target = lanes_targets.get(name)
        shown = [speeds.get((name, who)) for who in
                 (*("vt_" + s for s in schedules), "vt_gradient_alone", *peers)]
        lines.append((name, *(f"{speed:,.0f}" if speed else "" for speed in shown),
                      f"{target:,}" if target else "",
                      "" if not (target and ours) else "yes" if ours >= target else "NO"))
    head = ("units/s", *schedules, "gradient alone", "TFP", "BlackJAX", "NumPyro", "Stan",
            "plain C++", "wanted", "reached")
    tables = [laid_out(head, lines, markdown)] if lines else []
    used = {row["name"]: row for row in rows if "waiting" in row}
    if used:
        chains = dict.fromkeys(name.split("/")[1] for name in used)
        trajectories = dict.fromkeys(name.split("/")[2] for name in used)
        for key, title in (("waiting", "chains wait at each trajectory"),
                           ("possible", "chains wait at the end"),
                           ("gradient_utilisation", "as it ran, by program counter")):
            tables.append(laid_out(
                (title, *(f"{t} trajectories" for t in trajectories)),
                [(f"{c} chains", *(f"{used[name][key]:.2f}" if (name := f"nuts_gaussian/{c}/{t}")
                                   in used else "" for t in trajectories)) for c in chains],
                markdown))
    return "\n\n".join(tables)


# How many times as fast as a peer vt is to be, by row; "value" is vt's own value of a gradient,
# "squares" the sum of squares alone of normal equations, "tenth" with tolerances a tenth as large,
# "loop" one start after the other.
solver_targets = {
    "peaks/10000": {"cminpack": 10, "ceres": 12, "optimistix": 40},
    "peaks/10000/flat": {"cminpack": 10, "ceres": 12, "optimistix": 40},
    "normal/polynomial": {"hand": 1 / 1.5, "hand_vector": 1 / 1.5, "squares": 1 / 2.5},
    "normal/exponentials": {"hand": 1 / 1.5, "hand_vector": 1 / 1.5, "squares": 1 / 2.5},
    "rosenbrock/100/1": {"lbfgs": 1},
    "rosenbrock/100/1000": {"loop": 4},
    "lorenz/1": {"boost": 1},
    "lorenz/10000": {"boost": 4, "diffrax": 20},
    "robertson/10000": {"boost": 15, "cvode": 100},
    "hires/10000": {"boost": 15},
    "lorenz/1/gradient": {"value": 1 / 4},
    "lorenz/10000/gradient": {"value": 1 / 6, "diffrax": 8},
    "robertson/10000/gradient": {"value": 1 / 6, "diffrax": 8},
}
solver_first_seconds = 0.5
solver_megabytes = {"lorenz/10000/gradient": 200}


def solvers_text(rows, markdown=False):
    """The suite `solvers`: each row beside each of its peers, by lane, with errors; and first calls
    beyond later ones, with the memory that the program took. `rows`: what the programs print, a
    dictionary a row."""
    all_rows = {(row["name"], row["who"]): row for row in rows}
    firsts, lines = [], []

    def reached(is_so):
        return "yes" if is_so else "NO"

    for (name, who), row in all_rows.items():
        if who != "vt":
            continue
        there = {other.removeprefix("vt_"): peer for (of, other), peer in all_rows.items()
                 if of == name.removesuffix("/flat") and other != "vt"}
        if name.endswith("/gradient"):
            there = {"value": all_rows[name.removesuffix("/gradient"), "vt"], **there}
        seconds = row["seconds"] / row["lanes"]
        ours = (name, duration(seconds), f"{row['error']:.1e}" if "error" in row else "")
        if not there:
            lines.append((*ours, *5 * ("",), ""))
        for peer, other in there.items():
            ratio = other["seconds"] / other["lanes"] / seconds
            wanted = solver_targets.get(name, {}).get(peer)
            some = other["lanes"] != row["lanes"]
            lines.append((*ours, peer + (f", {other['lanes']:,} lanes" if some else ""),
                          duration(other["seconds"] / other["lanes"]),
                          f"{other['error']:.1e}" if "error" in other and peer != "value" else "",
                          f"{ratio:.2f}", f"{wanted:.2f}" if wanted else "",
                          reached(ratio >= wanted) if wanted else ""))
            ours = ("…", "", "")
        most = solver_megabytes.get(name)
        firsts.append((name, f"{row['first_s']:.2f}", f"{row['first_processor_s']:.2f}",
                       reached(row["first_processor_s"] <= solver_first_seconds),
                       f"{row['megabytes']:.0f}", str(most or ""),
                       reached(row["megabytes"] <= most) if most else ""))
    return "\n\n".join((
        laid_out(("a lane", "vt", "error", "beside", "its time", "its error", "ratio", "wanted",
                  "reached"), lines, markdown),
        laid_out(("first call", "s", "processors' s", f"at most {solver_first_seconds}", "MB",
                  "wanted", "reached"), firsts, markdown)))


def solver_figures_text(rows, markdown=False):
    """How exact solvers of differential equations are: a table for each problem, with error,
    evaluations and time by tolerance."""
    of = {}
    for row in rows:
        of.setdefault(row["name"].removeprefix("figures/"), {}).setdefault(
            row["who"], {})[row["rtol"]] = row
    tables = []
    for name, methods in of.items():
        tolerances = sorted({rtol for known in methods.values() for rtol in known}, reverse=True)
        tables.append(laid_out(
            (f"{name}, rtol", *methods),
            [(f"{rtol:.0e}", *(f"{row['error']:.1e}, {row['work']:,.0f}, {duration(row['seconds'])}"
                               if (row := known.get(rtol)) else "" for known in methods.values()))
             for rtol in tolerances], markdown))
    return "\n\n".join(tables)


# The same of the suite distributed, by row without its MPI: "one" is one process with all of a
# batch, "raw" MPI itself, beside which a sum of one number may take 0.4 us more.
distributed_targets = {
    "psum/loop": {"mpi4jax": 1 / 0.75},
    "psum/8388608": {"raw": 1 / 1.10},
    "digits/32768": {"one": 2 * 0.95},
    "heat/2048": {"raw": 0.9},
}
distributed_parts = {"vt", "still", "borders", "spun", "spin", "measured", "predicted",
                     "predicted from one", "compute", "compute of one", "wait", "transfer"}
distributed_more_seconds = {"psum/loop": {"raw": 0.4e-6}}


def distributed_text(rows, markdown=False):
    """The suite `distributed`: each row by both MPIs beside its peers; and of the heat equation,
    which part of the time that exchanges take alone it hides; and what vt::distributed::scaling
    predicts for two processes. `rows`: what the programs print."""
    all_rows = {(row["name"], row["who"]): row["seconds"] for row in rows}
    medians = {(row["name"], row["who"]): row["ratio"] for row in rows if "ratio" in row}
    lines, hidden, predicted = [], [], []
    for (name, who), seconds in all_rows.items():
        if who == "measured":
            of = {other: theirs for (row, other), theirs in all_rows.items() if row == name}
            family, row = name.split("/", 1)
            off = [of[which] / seconds - 1 for which in ("predicted", "predicted from one")]
            predicted.append((
                row, family, duration(seconds), duration(of["predicted"]), f"{100 * off[0]:+.0f} %",
                duration(of["predicted from one"]), f"{100 * off[1]:+.0f} %",
                duration(of["compute"]), duration(of["compute of one"]), duration(of["wait"]),
                duration(of["transfer"]), "yes" if abs(off[0]) <= 0.2 else "NO",
                "yes" if abs(off[1]) <= 0.2 else "NO"))
        if who != "vt":
            continue
        family, row = name.split("/", 1)
        ours = (row, family, duration(seconds))
        there = {other: theirs for (of, other), theirs in all_rows.items()
                 if of == name and other not in distributed_parts}
        for peer, theirs in there.items():
            if theirs == 0:
                lines.append((*ours, peer, "fails", *4 * ("",)))
                ours = ("…", "", "")
                continue
            wanted = distributed_targets.get(row, {}).get(peer)
            more = distributed_more_seconds.get(row, {}).get(peer)
            reached = seconds <= theirs + more if more else wanted and theirs / seconds >= wanted
            median = medians.get((name, peer))
            lines.append((*ours, peer, duration(theirs), f"{theirs / seconds:.2f}",
                          f"{median:.2f}" if median else "",
                          f"{wanted:.2f}" if wanted else f"+ {duration(more)}" if more else "",
                          ("yes" if reached else "NO") if wanted or more else ""))
            ours = ("…", "", "")
        if (name, "borders") in all_rows:
            still, borders = all_rows[name, "still"], all_rows[name, "borders"]
            hidden.append((row, family, duration(seconds), duration(still), duration(borders),
                           duration(all_rows[name, "spun"] - all_rows[name, "spin"]),
                           f"{100 * borders / seconds:.1f} %",
                           f"{100 * (1 - (seconds - still) / borders):.0f} %"
                           if borders > 0.05 * seconds else "too little to tell"))
    out = laid_out(("two processes", "MPI", "vt", "beside", "its time", "ratio", "median",
                    "wanted", "reached"), lines, markdown)
    if hidden:
        out += "\n\n" + laid_out(("a step", "MPI", "vt", "without exchanges", "exchanges alone",
                                  "MPI's own work", "of the step", "hidden"), hidden, markdown)
    if predicted:
        out += "\n\n" + laid_out(("a step, median", "MPI", "measured", "predicted", "off",
                                  "from one process", "off", "compute", "of one", "wait",
                                  "transfer", "within 20 %", "from one"), predicted, markdown)
    return out


def text(times, counters, markdown=False):
    """`times`: seconds by row name; `counters`: further figures by row name. Rows without both
    sides are left out."""
    lines = []
    for row in rows():
        ours = times.get(row.ours)
        if isinstance(row.peer, tuple):
            _, flops, limit = row.peer
            rate = counters.get(limit, {}).get("GFLOP/s")
            peer = flops / (rate * 1e9) if rate else None
        else:
            peer = row.peer if isinstance(row.peer, float) else times.get(row.peer)
        if ours is None or peer is None:
            continue
        ratio = peer / ours
        verdict = "" if row.target is None else "yes" if ratio >= row.target else "NO"
        shown = [duration(ours), duration(peer)]
        if row.rate:
            shown = [speed(counters[name][row.rate], row.rate) for name in (row.ours, row.peer)]
        lines.append((row.title, *shown, f"{ratio:.2f}",
                      "" if row.target is None else f"{row.target:.2f}", verdict))
    memory = counters.get("memory/chain50/f32/4000000", {}).get("extra_KB")
    if memory is not None:
        lines.append(("memory of a 50-op chain beyond inputs and outputs", f"{memory:.0f} KB",
                      "128 KB", "", "", "yes" if memory <= 128 else "NO"))
    return laid_out(("what", "vt", "peer or limit", "ratio", "wanted", "reached"), lines, markdown)
