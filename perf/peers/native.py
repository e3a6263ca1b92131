"""The rows of perf/native in CasADi, whose C is compiled by gcc -O3, and in JAX."""
import ctypes
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import common
from common import results, write
from native_problems import problems

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


wanted, reference = re.compile(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())


def row(name, call):
    if wanted.search(name):
        common.row(name, call)


# --- a planar quadrotor ---------------------------------------------------------------------------
def quadrotor(sin, cos, stack):
    def motion(x, u):
        thrust = u[0] + u[1]
        return stack(x[3], x[4], x[5], -thrust * sin(x[2]) / 0.8,
                     thrust * cos(x[2]) / 0.8 - 9.81, (u[0] - u[1]) * 0.25 / 0.02)

    def step(x, u):
        h = 0.05
        a = motion(x, u)
        b = motion(x + h / 2 * a, u)
        c = motion(x + h / 2 * b, u)
        d = motion(x + h * c, u)
        return x + h / 6 * (a + 2 * b + 2 * c + d)
    return step


ROUNDS = 50


def casadi_rows():
    try:
        import casadi as ca
    except ImportError:
        return
    step = quadrotor(ca.sin, ca.cos, ca.vertcat)
    x, u, controls = ca.SX.sym("x", 6), ca.SX.sym("u", 2), ca.SX.sym("c", 2, ROUNDS)
    by_all = ca.densify(ca.jacobian(step(x, u), ca.vertcat(x, u)))
    state, cost = x, 0
    for i in range(ROUNDS):
        state = step(state, controls[:, i])
        cost += ca.sumsqr(state) + 0.1 * ca.sumsqr(controls[:, i])
    functions = {"step/jacobian": ca.Function("derivative", [x, u], [by_all]),
                 "rollout/gradient":
                     ca.Function("slope", [x, controls], [ca.densify(ca.gradient(cost, controls))])}
    arguments = {"step/jacobian": (np.linspace(0.1, 0.6, 6), np.array([4.1, 3.9])),
                 "rollout/gradient": (np.linspace(0.1, 0.6, 6),
                                      np.stack([4 + 0.01 * np.arange(ROUNDS),
                                                3.9 - 0.005 * np.arange(ROUNDS)], 1).ravel())}
    timed = """
#include <time.h>
double timed(int (*f)(const double**, double**, long long*, double*, int), const double** arg,
             double** res, double* w, long calls) {
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (long i = 0; i < calls; ++i) {
    f(arg, res, 0, w, 0);
    __asm__ volatile("" ::: "memory");
  }
  clock_gettime(CLOCK_MONOTONIC, &b);
  return (b.tv_sec - a.tv_sec + 1e-9 * (b.tv_nsec - a.tv_nsec)) / calls;
}
"""
    with tempfile.TemporaryDirectory() as folder:
        generator = ca.CodeGenerator("peer.c")
        for f in functions.values():
            generator.add(f)
        generator.generate(folder + "/")
        source = Path(folder) / "peer.c"
        source.write_text(source.read_text() + timed)
        library = f"{folder}/peer.so"
        subprocess.run(["gcc", "-O3", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
        code = ctypes.CDLL(library)
        code.timed.restype = ctypes.c_double
        for name, f in functions.items():
            pointers = ctypes.POINTER(ctypes.c_double) * 2
            given = [np.ascontiguousarray(a) for a in arguments[name]]
            out, work = np.zeros(f.numel_out(0)), np.zeros(f.sz_w() + 16)
            as_pointer = lambda a: a.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
            arg, res = pointers(*map(as_pointer, given)), pointers(as_pointer(out))
            call = getattr(code, f.name())
            best = sorted(code.timed(call, arg, res, as_pointer(work), ctypes.c_long(3000))
                          for _ in range(15))
            results[f"{name}/casadi"] = best[len(best) // 2]
            expected = np.asarray(f(*[a if i == 0 or name == "step/jacobian" else
                                      a.reshape(ROUNDS, 2).T for i, a in enumerate(given)]))
            if not np.allclose(out, expected.ravel(order="F")):
                sys.exit(f"{name}: CasADi's C and CasADi differ")


# --- tables ---------------------------------------------------------------------------------------
def chain(n):
    def f(x):
        t = jnp.zeros(n).at[0].set(x)
        return jnp.sum(jax.lax.fori_loop(1, n, lambda i, t: t.at[i].set(jnp.sin(t[i - 1])), t))
    return f


def chosen(x):
    n = x.shape[0]
    return jnp.sum(jax.lax.fori_loop(
        0, n, lambda i, t: jnp.where(x[i] > 0, t.at[i].set(x[i] * x[i]), t), jnp.zeros(n)))


def pushed(x):
    def push(s, v):
        b, n = s
        good = v > 0
        return (jnp.where(good, b.at[n].set(v), b), n + good), n
    return jax.lax.scan(push, (jnp.zeros(100_000), 0), x)[0][0]


def pushed_rows(x):
    def push(s, v):
        b, n = s
        b = jax.lax.cond(v[0, 0] > 0, lambda b: b.at[n].set(v), lambda b: b, b)
        return (b, n + 1), n
    return jax.lax.scan(push, (jnp.zeros(x.shape), 0), x)[0][0]


def soft_edit(c):
    n = c.shape[0]

    def one(k, d):
        i, j = k // n, k % n
        least = -jnp.log(jnp.exp(-(d[i, j] + c[i, j])) + jnp.exp(-(d[i + 1, j] + 1))
                         + jnp.exp(-(d[i, j + 1] + 1)))
        return d.at[i + 1, j + 1].set(least)
    return jax.lax.fori_loop(0, n * n, one, jnp.zeros((n + 1, n + 1)))[n, n]


def jax_row(name, f, *arguments):
    compiled = jax.jit(f)
    row(name + "/jax", lambda: compiled(*arguments))


def jax_problem(name, f):
    """The rows of a problem of perf/native, at its inputs, once its results are those of vt."""
    def compare(what, actual, expected):
        if not np.allclose(np.ravel(actual), expected, rtol=1e-8, atol=1e-8):
            sys.exit(f"{what} of {name}: JAX and vt differ")

    given = reference[name]
    x, lanes = np.array(given["x"], float), given["lanes"]
    second = len(given["d"]) > x.size * len(given["y"])
    derivative = jax.hessian(f) if second else jax.jacobian(f)
    if len(given["y"]) == 1 and not second:
        derivative = jax.jacfwd(f) if x.size == 1 else jax.grad(f)  # JAX cannot reverse a while
    for many in (0, lanes) if lanes else (0,):
        at, path, forms = jnp.array(x), name, {"value": f, "derivative": derivative}
        if many:
            at = at * (1 + 1e-3 * jnp.sin(jnp.arange(float(many))))[:, None]
            path, forms = f"{name}/{many}", {k: jax.vmap(g) for k, g in forms.items()}
        for what, g in forms.items():
            if not wanted.search(f"{path}/{what}/jax"):
                continue
            compiled = jax.jit(g)
            begin = time.perf_counter()
            out = jax.block_until_ready(compiled(at))
            if what == "derivative":
                results[f"{path}/first/jax"] = time.perf_counter() - begin
            compare(what, out[0] if many else out, given[what[0].replace("v", "y")])
            row(f"{path}/{what}/jax", lambda: compiled(at))


def jax_rows():
    for name, f in problems.items():
        if name in reference:
            jax_problem(name, f)
    step = quadrotor(jnp.sin, jnp.cos, lambda *all: jnp.stack(all))
    x, u = jnp.linspace(0.1, 0.6, 6), jnp.array([4.1, 3.9])
    controls = jnp.stack([4 + 0.01 * jnp.arange(ROUNDS), 3.9 - 0.005 * jnp.arange(ROUNDS)], 1)

    def cost(x, controls):
        def one(x, u):
            y = step(x, u)
            return y, jnp.sum(y * y) + 0.1 * jnp.sum(u * u)
        return jnp.sum(jax.lax.scan(one, x, controls)[1])
    jax_row("step/jacobian", jax.jacobian(step, (0, 1)), x, u)
    jax_row("rollout/gradient", jax.grad(cost, 1), x, controls)
    for n in (1_000, 8_000):
        jax_row(f"table/chain/{n}/value", chain(n), 0.7)
        jax_row(f"table/chain/{n}/gradient", jax.grad(chain(n)), 0.7)
        xs = jnp.sin(jnp.arange(float(n)))
        jax_row(f"table/where/{n}/value", chosen, xs)
        jax_row(f"table/where/{n}/gradient", jax.grad(chosen), xs)
    jax_row("table/push/2000/value", pushed, jnp.sin(jnp.arange(2000.0)))
    jax_row("table/push_rows/2000/value", pushed_rows,
            jnp.sin(jnp.arange(200_000.0)).reshape(2000, 10, 10))
    for n in (50, 200):
        c = jnp.abs(jnp.sin(jnp.arange(float(n * n)))).reshape(n, n)
        jax_row(f"table/soft_edit/{n}/value", soft_edit, c)
        jax_row(f"table/soft_edit/{n}/gradient", jax.grad(soft_edit), c)


casadi_rows()
jax_rows()
write()
