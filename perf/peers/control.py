"""The rows of perf/control in JAX, on the same numbers; a plain loop checks each result first."""
import sys

import jax
import jax.numpy as jnp
import numpy as np

from common import row, write

jax.config.update("jax_enable_x64", True)
MILLION = 1_000_000


def numbers(shape, seed, dtype):
    """perf::numbers of perf/support.hpp."""
    out = np.empty(int(np.prod(shape)))
    for i in range(out.size):
        seed = (seed * 6364136223846793005 + 1442695040888963407) & (2 ** 64 - 1)
        out[i] = (seed >> 11) * 2.0 ** -52 - 1
    return out.reshape(shape).astype(dtype)


def counts(n, most, seed):
    drawn = ((numbers((n,), seed, np.float64) + 1) / 2 * most).astype(int)
    return (1 + np.minimum(most - 1, drawn)).astype(np.int32)


def expect(what, actual, expected, tolerance):
    actual, expected = np.asarray(actual), np.asarray(expected)
    if not np.all(np.abs(actual - expected) <= tolerance):
        sys.exit(f"{what}: {actual}, but the plain loop gives {expected}")


def weights(width):
    return tuple(numbers(shape, seed, np.float32) * np.float32(0.1)
                 for seed, shape in ((1, (width, 4 * width)), (2, (width, 4 * width)),
                                     (3, (4 * width,))))


def cell(w, state, x, xp=jnp, sigmoid=jax.nn.sigmoid):
    output, memory = state
    gates = xp.split(x @ w[0] + output @ w[1] + w[2], 4, -1)
    memory = sigmoid(gates[0]) * memory + sigmoid(gates[1]) * xp.tanh(gates[2])
    return sigmoid(gates[3]) * xp.tanh(memory), memory


def plain_cell(w, state, x):
    return cell(w, state, x, np, lambda v: 1 / (1 + np.exp(-v)))


# The LSTM by scan.
STEPS, BATCH, WIDTH = 100, 32, 128


def objective(w, xs):
    def step(state, x):
        state = cell(w, state, x)
        return state, state[0]
    start = jnp.zeros((BATCH, WIDTH), jnp.float32)
    return jnp.sum(jax.lax.scan(step, (start, start), xs)[1] ** 2)


def plain_objective(w, xs):
    state, total = (np.zeros((BATCH, WIDTH)), np.zeros((BATCH, WIDTH))), 0.0
    for x in xs.astype(np.float64):
        state = plain_cell(w, state, x)
        total += np.sum(state[0] ** 2)
    return total


w, xs = weights(WIDTH), numbers((STEPS, BATCH, WIDTH), 4, np.float32)
wide = [v.astype(np.float64) for v in w]
signs = [np.where(numbers(v.shape, 9, np.float64) < 0, -1.0, 1.0) for v in w]
value, gradient = jax.jit(objective), jax.jit(jax.grad(objective))
total = plain_objective(wide, xs)
expect("LSTM by scan", value(w, xs), total, 1e-5 * total)
g = [np.asarray(v, np.float64) for v in gradient(w, xs)]
sides = [plain_objective([v + h * s for v, s in zip(wide, signs)], xs) for h in (1e-5, -1e-5)]
expect("gradient of the LSTM along a direction", sum(np.sum(v * s) for v, s in zip(g, signs)),
       (sides[0] - sides[1]) / 2e-5,
       1e-4 * np.sqrt(sum(np.sum(v * v) for v in g)))
w, xs = jax.device_put(w), jax.device_put(xs)
row("scan/lstm/value/jax", lambda: value(w, xs))
row("scan/lstm/gradient/jax", lambda: gradient(w, xs))


# Scalar loops and their lanes.
def oscillate(x, p, s):
    p = p - 0.01 * (x + 0.1 * x * x * x)
    x = x + 0.01 * p
    s = s + x * p
    return x, p, s


def plain_loop(x, trips):
    p, s = 0.5, 0.0
    for _ in range(trips):
        x, p, s = oscillate(x, p, s)
    return x + p + s


def plain_derivative(x, trips):
    p, dx, dp, ds = 0.5, 1.0, 0.0, 0.0
    for _ in range(trips):
        dp = dp - 0.01 * (1 + 0.3 * x * x) * dx
        x, p, _ = oscillate(x, p, 0.0)
        dx = dx + 0.01 * dp
        ds = ds + (dx * p + x * dp)
    return dx + dp + ds


def by_while(start, trips):
    end = jax.lax.while_loop(lambda c: c[0] < trips, lambda c: (c[0] + 1, *oscillate(*c[1:])),
                             (jnp.int32(0), start, jnp.float64(0.5), jnp.float64(0)))
    return end[1] + end[2] + end[3]


def by_fori(start):
    return sum(jax.lax.fori_loop(0, MILLION, lambda _, c: oscillate(*c),
                                 (start, jnp.float64(0.5), jnp.float64(0))))


looped, counted, counted_gradient = jax.jit(by_while), jax.jit(by_fori), jax.jit(jax.grad(by_fori))
start, trips = jnp.float64(1.5), jnp.int32(MILLION)
end, slope = plain_loop(1.5, MILLION), plain_derivative(1.5, MILLION)
expect("while", looped(start, trips), end, 1e-6 * abs(end))
expect("fori", counted(start), end, 1e-6 * abs(end))
expect("gradient of fori", counted_gradient(start), slope, 1e-6 * abs(slope))
row("while/value/jax", lambda: looped(start, trips))
row("fori/value/jax", lambda: counted(start))
row("fori/gradient/jax", lambda: counted_gradient(start))

trips, starts = counts(4096, 1000, 5), numbers((4096,), 6, np.float64)
lanes = jax.jit(jax.vmap(by_while))
expected = np.array([plain_loop(x, int(n)) for x, n in zip(starts[:256], trips)])
expect("lanes of while", lanes(starts, trips)[:256], expected, 1e-11 * (1 + np.abs(expected)))
trips, starts = jax.device_put(trips), jax.device_put(starts)
row("while/lanes/value/jax", lambda: lanes(starts, trips))


# Sequences of different lengths.
def last_output(w, xs, length):
    start = jnp.zeros(w[1].shape[0], jnp.float32)
    return jax.lax.while_loop(lambda c: c[0] < length,
                              lambda c: (c[0] + 1, cell(w, c[1], xs[c[0]])),
                              (jnp.int32(0), (start, start)))[1][0]


w = weights(64)
wide = [v.astype(np.float64) for v in w]
together = jax.jit(jax.vmap(last_output, (None, 0, 0)))
for sequences in (1, 16, 256):
    lengths, xs = counts(sequences, 100, 7), numbers((sequences, 100, 64), 8, np.float32)
    for i, output in enumerate(np.asarray(together(w, xs, lengths))[:16]):
        state = np.zeros(64), np.zeros(64)
        for x in xs[i, :lengths[i]].astype(np.float64):
            state = plain_cell(wide, state, x)
        expect("LSTM over sequences of different lengths", output, state[0], 1e-5)
    placed = jax.device_put((w, xs, lengths))
    row(f"ragged/lstm/{sequences}/jax", lambda placed=placed: together(*placed))

write()
