"""The problems of perf/native/problems.hpp in JAX: functions of one example, by name."""
import math

import jax
import jax.numpy as jnp
import numpy as np


def bundle_block(x):
    def rotate(r, v):
        squared = r @ r

        def about():
            angle = jnp.sqrt(squared)
            axis = r / angle
            return (v * jnp.cos(angle) + jnp.cross(axis, v) * jnp.sin(angle)
                    + axis * (axis @ v) * (1 - jnp.cos(angle)))
        return jax.lax.cond(squared != 0, about, lambda: v + jnp.cross(r, v))
    p = rotate(x[:3], x[11:14] - x[3:6])
    flat = p[:2] / p[2]
    r = flat @ flat
    return x[14] * (x[6] * flat * (1 + x[9] * r + x[10] * r * r) + x[7:9] - jnp.array([0.3, -0.2]))


def runge_kutta(slope, h, u):
    a = slope(u)
    b = slope(u + h / 2 * a)
    c = slope(u + h / 2 * b)
    return u + h / 6 * (a + 2 * b + 2 * c + slope(u + h * c))


def lotka_volterra(x):
    def slope(u):
        meet = u[0] * u[1]
        return jnp.stack([x[2] * u[0] - x[3] * meet, x[5] * meet - x[4] * u[1]])
    return jax.lax.fori_loop(0, 100, lambda i, u: runge_kutta(slope, 0.05, u), x[:2])


# --- robots ---------------------------------------------------------------------------------------
def arm(i):
    return i - 1


def body(i):
    return -1 if i in (0, 6, 12) else 14 if i in (15, 22, 29) else i - 1


def torques(parent, q, speed, acceleration, gravity=9.81):
    cross, z, none = jnp.cross, jnp.array([0.0, 0.0, 1.0]), jnp.zeros(3)
    place, centre, turn, w, dw, a, force, moment = ([] for _ in range(8))
    for i in range(q.shape[0]):
        above = parent(i)
        place.append(jnp.array([0, 0.1 * (i % 3), 0.3]))
        centre.append(jnp.array([0.01 * i, 0.02, 0.1]))
        inertia = jnp.array([[0.1 + 0.01 * i, 0.001, 0.002], [0.001, 0.12, 0.003],
                             [0.002, 0.003, 0.05]])
        t, c, s = (1.0 if i % 2 else -1.0), jnp.cos(q[i]), jnp.sin(q[i])
        turn.append(jnp.array([[1.0, 0, 0], [0, 0, -t], [0, t, 0]])
                    @ jnp.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]))
        w0, dw0, a0 = (w[above], dw[above], a[above]) if above >= 0 else (none, none, gravity * z)
        carried = turn[i].T @ w0
        a.append(turn[i].T @ (a0 + cross(dw0, place[i]) + cross(w0, cross(w0, place[i]))))
        w.append(carried + z * speed[i])
        dw.append(turn[i].T @ dw0 + cross(carried, z * speed[i]) + z * acceleration[i])
        force.append((1 + 0.1 * i) * (a[i] + cross(dw[i], centre[i])
                                      + cross(w[i], cross(w[i], centre[i]))))
        moment.append(inertia @ dw[i] + cross(w[i], inertia @ w[i]) + cross(centre[i], force[i]))
    for i in reversed(range(q.shape[0])):
        above = parent(i)
        if above >= 0:
            f = turn[i] @ force[i]
            force[above] = force[above] + f
            moment[above] = moment[above] + turn[i] @ moment[i] + cross(place[i], f)
    return jnp.stack([m[2] for m in moment])


def inverse_dynamics(parent):
    return lambda x: torques(parent, *jnp.split(x, 3))


def forward_dynamics(parent):
    def f(x):
        q, speed, torque = jnp.split(x, 3)
        none = jnp.zeros(q.shape)
        masses = jax.vmap(lambda a: torques(parent, q, none, a, 0.0))(jnp.eye(q.size))
        return jnp.linalg.solve(masses, torque - torques(parent, q, speed, none))
    return f


# --- control, particles, finance ------------------------------------------------------------------
def quadrotor_slope(x, u):
    inertia = jnp.array([0.02, 0.025, 0.04])
    s, v, w, lift = x[3], x[4:7], x[10:13], jnp.sum(u) / 0.8
    up = jnp.stack([2 * (v[0] * v[2] + s * v[1]), 2 * (v[1] * v[2] - s * v[0]),
                    1 - 2 * (v[0] * v[0] + v[1] * v[1])])
    moment = jnp.stack([0.25 * (u[1] - u[3]), 0.25 * (u[2] - u[0]),
                        0.1 * (u[0] - u[1] + u[2] - u[3])])
    return jnp.concatenate([x[7:10], -0.5 * (v @ w)[None], 0.5 * (s * w + jnp.cross(v, w)),
                            up * lift - jnp.array([0, 0, 9.81]),
                            (moment - jnp.cross(w, inertia * w)) / inertia])


def quadrotor_step(x):
    return runge_kutta(lambda state: quadrotor_slope(state, x[13:]), 0.05, x[:13])


def quadrotor_stage(x):
    return (jnp.cos(jnp.arange(13) + 1.0) @ quadrotor_step(x) + x[:13] @ x[:13]
            + 0.1 * x[13:] @ x[13:])


def bodies(x):
    at, mass = x.reshape(32, 3), 1 + 0.1 * jnp.arange(32)

    def pair(a, b, m, k):
        return m * k / jnp.sqrt((a - b) @ (a - b) + 0.01)
    row = jax.vmap(pair, (None, 0, None, 0))
    return -jnp.sum(jnp.tril(jax.vmap(row, (0, None, 0, None))(at, at, mass, mass), -1))


def asian_option(x):
    path, step = np.mgrid[:1000, :50]
    h = x[3] / 50
    drift, spread = (x[1] - x[2] * x[2] / 2) * h, x[2] * jnp.sqrt(h)

    def gain(normal):
        return jax.nn.relu(jnp.mean(x[0] * jnp.exp(jnp.cumsum(drift + spread * normal))) - x[4])
    normals = jnp.array(np.sqrt(2) * np.sin(1.7 * path + 1.0 * step * step))
    return jnp.exp(-x[1] * x[3]) * jnp.mean(jax.vmap(gain)(normals))


# --- GradBench's small ones -----------------------------------------------------------------------
def least_squares(x):
    t = jnp.array(2.0 * np.arange(250) / 249 - 1)

    def away(t):
        return t ** jnp.arange(16) @ x + jnp.where(t < 0, 1.0, -1.0)
    return 0.5 * jnp.sum(jax.vmap(away)(t) ** 2)


def clusters(x):
    points = jnp.array(np.sin(np.arange(2000.0) ** 2).reshape(500, 4))
    return jnp.sum(jax.vmap(lambda p: jnp.min(jnp.sum((x.reshape(10, 4) - p) ** 2, 1)))(points))


def minors(x):
    def minor(m, row, columns):
        if len(columns) == 1:
            return m[row, columns[0]]
        return sum((-1) ** k * m[row, c] * minor(m, row + 1, columns[:k] + columns[k + 1:])
                   for k, c in enumerate(columns))
    return minor(x.reshape(6, 6), 0, tuple(range(6)))


def particle(w):
    def potential(x):
        def of(height):
            return 1 / jnp.hypot(x[0] - 10, x[1] - height)
        return of(10 - w[0]) + of(0.0)

    def step(s):
        x, v = s
        return x + 0.1 * v, v - 0.1 * jax.grad(potential)(x)
    x, v = jax.lax.while_loop(lambda s: (s[0] + 0.1 * s[1])[1] > 0, step,
                              (jnp.array([0.0, 8.0]), jnp.array([0.75, 0.0])))
    return (x[0] - x[1] / v[1] * v[0]) ** 2


def saddle(x):
    def height(x, z):
        return x @ x - z @ z
    return height(x, jax.lax.fori_loop(0, 100, lambda i, z: z + 0.05 * jax.grad(height, 1)(x, z),
                                       jnp.ones(2)))


# --- GradBench's models, small --------------------------------------------------------------------
def mixture(x):
    d, k, n = 3, 5, 100
    points = jnp.array(2 * np.sin(np.arange(1.0 * n * d) ** 2).reshape(n, d))
    shares, means, factors = x[:k], x[k:k * (1 + d)].reshape(k, d), x[k * (1 + d):].reshape(k, -1)
    constant = sum(math.lgamma(0.5 * (d + 2 - j)) for j in range(1, d + 1))
    constant += 0.25 * d * (d - 1) * math.log(math.pi) + 0.5 * (d + 1) * d * math.log(2)
    columns, rows = np.triu_indices(d, 1)

    def matrix(f):
        return jnp.diag(jnp.exp(f[:d])).at[rows, columns].set(f[d:])

    def one(point):
        away = jnp.einsum("kij,kj->ki", q, point - means)
        return jax.nn.logsumexp(shares + jnp.sum(factors[:, :d], 1) - 0.5 * jnp.sum(away ** 2, 1))
    q = jax.vmap(matrix)(factors)
    likelihood = jnp.sum(jax.vmap(one)(points)) - n * jax.nn.logsumexp(shares)
    return (likelihood + 0.5 * jnp.sum(q ** 2) - 0.5 * n * d * math.log(2 * math.pi)
            + k * constant)


def text_model(x):
    layers, bits, characters = 2, 14, 12
    i = np.arange(characters * bits)
    text = jnp.array((i * i % 7 < 3).astype(float).reshape(characters, bits))
    weights = x[:layers * 8 * bits].reshape(layers, 2, 4, bits)
    edges = x[-3 * bits:].reshape(3, bits)

    def step(states, character):
        out, signal = [], character * edges[0]
        for (w, o), (hidden, cell) in zip(weights, states):
            forget, change = jax.nn.sigmoid(signal * w[0] + o[0]), jnp.tanh(hidden * w[3] + o[3])
            cell = cell * forget + jax.nn.sigmoid(hidden * w[1] + o[1]) * change
            signal = jax.nn.sigmoid(signal * w[2] + o[2]) * jnp.tanh(cell)
            out.append(jnp.stack([signal, cell]))
        return jnp.stack(out), signal * edges[1] + edges[2]

    def likelihood(predicted, actual):
        return jnp.sum(actual * (predicted - jnp.log(2 + jnp.sum(jnp.exp(predicted)))))
    predicted = jax.lax.scan(step, jnp.zeros((layers, 2, bits)), text[:-1])[1]
    return -jnp.mean(jax.vmap(likelihood)(predicted, text[1:])) / bits


def hand(x):
    bones, points = 16, 30
    i = np.arange(bones * 16)

    def entries(i):
        row, column = i // 4 % 4, i % 4
        made = np.where(row == column, 1.0, np.where(row == 3, 0.0, 0.2 * np.sin(i + 1.0)))
        return jnp.array(made.reshape(-1, 4, 4))
    rest, back = entries(i), entries(7 * 16 + i)
    point, k = np.mgrid[:points, :4]
    vertices = np.where(k == 3, 1.0, np.cos(3.0 * point + k))
    skin = np.zeros((points, bones, 4))
    for p in range(points):
        skin[p, p % bones] += 0.5 * vertices[p]
        skin[p, (7 * p + 3) % bones] += 0.5 * vertices[p]
    angles = jnp.append(x, 0.0)[np.array(
        [(26, 26)] + [(f, f + 1) if j == 0 else (f + j + 1, 26)
                      for f in range(6, 26, 4) for j in range(3)])]

    def joint(angles):
        (sx, sz), (cx, cz) = jnp.sin(angles), jnp.cos(angles)
        return jnp.array([[cz, -sz * cx, sz * sx, 0], [sz, cz * cx, -cz * sx, 0], [0, sx, cx, 0],
                          [0, 0, 0, 1]])
    posed, placed = jnp.einsum("bij,bjk->bik", rest, jax.vmap(joint)(angles)), []
    for bone in range(bones):
        above = 0 if bone % 3 == 1 else bone - 1
        placed.append(placed[above] @ posed[bone] if bone else posed[bone])
    moved = jnp.einsum("bij,bjk->bik", jnp.stack(placed), back)[:, :3]
    v = jnp.einsum("bij,pbj->pi", moved, jnp.array(skin))
    angle = jnp.sqrt(x[:3] @ x[:3])
    axis = x[:3] / angle
    turned = (v * jnp.cos(angle) + jnp.cross(axis, v) * jnp.sin(angle)
              + jnp.outer(v @ axis, axis) * (1 - jnp.cos(angle)))
    return (jnp.array(np.sin(2.0 * np.arange(90)).reshape(30, 3)) - turned - x[3:6]).ravel()


problems = {
    "logsumexp": jax.nn.logsumexp,
    "bundle_block": bundle_block,
    "lotka_volterra": lotka_volterra,
    "arm7/torques": inverse_dynamics(arm),
    "arm7/accelerations": forward_dynamics(arm),
    "body30/torques": inverse_dynamics(body),
    "quadrotor/step": quadrotor_step,
    "quadrotor/stage": quadrotor_stage,
    "bodies32/energy": bodies,
    "asian_option": asian_option,
    "square": lambda x: x[0] * x[0],
    "least_squares": least_squares,
    "clusters": clusters,
    "clusters/hessian": clusters,
    "minors6": minors,
    "particle": particle,
    "saddle": saddle,
    "mixture": mixture,
    "text_model": text_model,
    "hand": hand,
}
