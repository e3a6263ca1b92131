"""The rows of perf/derivatives in JAX: the same models, data, sizes and dtypes."""
import math
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from common import row, write

jax.config.update("jax_enable_x64", True)
root = Path(__file__).resolve().parent.parent.parent
rng = np.random.default_rng(1)

table = np.loadtxt(root / "examples/data/digits.csv", delimiter=",")
x = jnp.asarray(table[:, :64] / 16, jnp.float32)
y = jnp.asarray(table[:, 64], jnp.int32)
params = tuple(jnp.asarray(v, jnp.float32) for v in
               (rng.uniform(-.2, .2, (64, 64)), np.zeros(64), rng.uniform(-.2, .2, (64, 10)),
                np.zeros(10)))


def logits(p, image):
    w1, b1, w2, b2 = p
    return jnp.tanh(image @ w1 + b1) @ w2 + b2


def loss(p, image, label):
    return -jax.nn.log_softmax(logits(p, image))[label]


per_example = jax.jit(jax.vmap(jax.grad(loss), (None, 0, 0)))
row("per_example_gradients/256/jax", lambda: per_example(params, x[:256], y[:256]))
saliency = jax.jit(jax.vmap(lambda image: jax.jacrev(lambda v: logits(params, v))(image)))
row("jacobian/logits/359/jax", lambda: saliency(x[:359]))

x64, y64 = x[:1437].astype(jnp.float64), y[:1437]


def softmax_loss(theta, image, label):
    weights = theta.reshape(65, 10)
    return -jax.nn.log_softmax(image @ weights[:64] + weights[64])[label]


def objective(theta):
    losses = jax.vmap(softmax_loss, (None, 0, 0))(theta, x64, y64)
    return jnp.mean(losses) + 0.0005 * jnp.sum(theta ** 2)


theta = jnp.asarray(rng.uniform(-.1, .1, 650))
hessian = jax.jit(jax.hessian(objective))
row("hessian/softmax/650/jax", lambda: hessian(theta))


def read_gmm(path):
    words = path.read_text().split()
    d, k, n = (int(w) for w in words[:3])
    values = np.array(words[3:-2], dtype=np.float64)
    sizes = [k, k * d, k * d * (d + 1) // 2, n * d]
    alphas, means, factors, points = np.split(values, np.cumsum(sizes)[:-1])
    return (d, k, n, float(words[-2]), int(words[-1]), jnp.asarray(alphas),
            jnp.asarray(means.reshape(k, d)),
            jnp.asarray(factors.reshape(k, -1)), jnp.asarray(points.reshape(n, d)))


for size in ("d10_K25", "d20_K50", "d64_K25"):
    d, k, n, gamma, m, alphas, means, factors, points = read_gmm(root / f"perf/data/gmm_{size}.txt")
    place = np.zeros((d, d), np.int32)
    following = d
    for column in range(d):
        for line in range(column + 1, d):
            place[line, column] = following
            following += 1
    degrees = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(
        math.lgamma(0.5 * degrees + 0.5 * (1 - j)) for j in range(1, d + 1))
    constant = -0.5 * n * d * math.log(2 * math.pi) - k * (
        degrees * d * (math.log(gamma) - 0.5 * math.log(2)) - log_gamma)

    def gmm(alphas, means, factors, d=d, n=n, m=m, gamma=gamma, place=place, points=points,
            constant=constant):
        log_diagonal = factors[:, :d]
        log_determinant = log_diagonal.sum(1)
        q = jax.vmap(lambda row, diagonal: jnp.tril(row[place], -1) + jnp.diag(jnp.exp(diagonal)))(
            factors, log_diagonal)
        one = lambda x, mean, q: jnp.sum((q @ (x - mean)) ** 2)
        distances = jax.vmap(jax.vmap(one, (None, 0, 0)), (0, None, None))(points, means, q)
        terms = alphas + log_determinant - 0.5 * distances
        likelihood = jax.nn.logsumexp(terms, axis=1).sum() - n * jax.nn.logsumexp(alphas)
        squares = jnp.sum(jnp.exp(log_diagonal) ** 2) + jnp.sum(factors[:, d:] ** 2)
        return likelihood + 0.5 * gamma * gamma * squares - m * jnp.sum(log_determinant) + constant

    value, gradient = jax.jit(gmm), jax.jit(jax.grad(gmm, (0, 1, 2)))
    print(size, float(value(alphas, means, factors)), file=sys.stderr)
    row(f"gmm/{size}/objective/jax", lambda: value(alphas, means, factors))
    row(f"gmm/{size}/gradient/jax", lambda: gradient(alphas, means, factors))

write()
