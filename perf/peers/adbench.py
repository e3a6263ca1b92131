"""The rows of perf/adbench in JAX: the same objectives, data and dtypes. Values go to stderr."""
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from common import row, write

jax.config.update("jax_enable_x64", True)
data = Path(__file__).resolve().parent.parent / "data"
rng = np.random.default_rng(1)


def rotate(rotation, v):
    squared = rotation @ rotation
    turned = squared != 0
    angle = jnp.sqrt(jnp.where(turned, squared, 1.0))
    axis = rotation / angle
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.where(turned, v * c + jnp.cross(axis, v) * s + axis * ((axis @ v) * (1 - c)),
                     v + jnp.cross(rotation, v))


def reprojection_error(camera, point, weight, feature):
    seen = rotate(camera[:3], point - camera[3:6])
    flat = seen[:2] / seen[2]
    squared = flat @ flat
    distorted = flat * (1 + camera[9] * squared + camera[10] * squared * squared)
    return weight * (camera[6] * distorted + camera[7:9] - feature)


def weight_error(weight):
    return 1 - weight * weight


for size in ("ba1_n49_m7776_p31843", "ba5_n257_m65132_p225911"):
    words = (data / f"{size}.txt").read_text().split()
    n, m, p = (int(w) for w in words[:3])
    numbers = np.array(words[3:], np.float64)
    spread = lambda rows, first: jnp.asarray(
        first * (1 + rng.uniform(-1e-3, 1e-3, (rows, len(first)))))
    cameras, points, weights, features = (spread(n, numbers[:11]), spread(m, numbers[11:14]),
                                          spread(p, numbers[14:15])[:, 0],
                                          spread(p, numbers[15:17]))
    camera_of, point_of = jnp.arange(p) % n, jnp.arange(p) % m

    def objective(cameras, points, weights, camera_of=camera_of, point_of=point_of,
                  features=features):
        reprojected = jax.vmap(reprojection_error)
        return (reprojected(cameras[camera_of], points[point_of], weights, features),
                jax.vmap(weight_error)(weights))

    def blocks(cameras, points, weights, camera_of=camera_of, point_of=point_of, features=features):
        of_one = jax.jacrev(reprojection_error, (0, 1, 2))
        return (jax.vmap(of_one)(cameras[camera_of], points[point_of], weights, features),
                jax.vmap(jax.grad(weight_error))(weights))

    value, jacobian = jax.jit(objective), jax.jit(blocks)
    row(f"bundle/{size[:3]}/objective/jax", lambda: value(cameras, points, weights))
    row(f"bundle/{size[:3]}/jacobian/jax", lambda: jacobian(cameras, points, weights))


lines = lambda name: [line.split(":") for line in (data / "hand" / name).read_text().split()]
bones = lines("bones.txt")
parents = [int(b[1]) for b in bones]
relatives, inverses = (
    jnp.asarray([[float(v) for v in b[first:first + 16]] for b in bones]).reshape(-1, 4, 4)
    for first in (2, 18))
mesh = lines("vertices.txt")
skin = np.zeros((len(mesh), len(bones), 4))
for i, line in enumerate(mesh):
    for k in range(int(line[8])):
        weight = float(line[10 + 2 * k])
        skin[i, int(line[9 + 2 * k])] = np.array([*line[:3], 1.0], np.float64) * weight
skin = jnp.asarray(skin)
triangles = jnp.asarray([[int(v) for v in line] for line in lines("triangles.txt")])
place = np.full((len(bones), 3), 26)
for finger in range(5):
    for i in range(3):
        place[2 + 4 * finger + i, 0] = 6 + 4 * finger + (i + 1 if i else 0)
    place[2 + 4 * finger, 1] = 7 + 4 * finger


def rotation_about(v):
    def turn(v):
        angle = jnp.linalg.norm(v)
        axis = v / angle
        s, c = axis * jnp.sin(angle), jnp.cos(angle)
        crossed = jnp.array([[0, -s[2], s[1]], [s[2], 0, -s[0]], [-s[1], s[0], 0]])
        return c * jnp.eye(3) + crossed + (1 - c) * jnp.outer(axis, axis)
    return jax.lax.cond(v @ v < 1e-8, lambda v: jnp.eye(3), turn, v)


def joint(angles):
    (sx, sz, sy), (cx, cz, cy) = jnp.sin(angles), jnp.cos(angles)
    return jnp.array([[cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx, 0],
                      [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx, 0],
                      [-sy, cy * sx, cy * cx, 0], [0, 0, 0, 1]])


def posed_vertices(theta):
    angles = jnp.concatenate([theta, jnp.zeros(1)])[place]
    posed = jax.vmap(lambda rest, angles: rest @ joint(angles))(relatives, angles)
    absolute = []
    for i, parent in enumerate(parents):
        absolute.append(posed[i] if parent < 0 else absolute[parent] @ posed[i])
    transforms = jnp.stack(absolute)[:, :3] @ inverses
    turn = rotation_about(theta[:3])
    return jax.vmap(lambda own: turn @ jnp.einsum("bij,bj->i", transforms, own) + theta[3:6])(skin)


def point_residual(u, corners, measured):
    return measured - (u[0] * corners[0] + u[1] * corners[1] + (1 - u[0] - u[1]) * corners[2])


for size in ("c100", "c800"):
    for kind in ("simple", "complicated"):
        words = (data / f"hand/{kind}_{size}.txt").read_text().split()
        n = int(words[0])
        table = np.array(words[2:2 + 4 * n], np.float64).reshape(n, 4)
        of, measured = jnp.asarray(table[:, 0], jnp.int32), jnp.asarray(table[:, 1:])
        theta, us = jnp.asarray(words[-26:], jnp.float64), None
        if kind == "simple":
            f = lambda theta, of=of, measured=measured: measured - posed_vertices(theta)[of]
            value, jacobian, arguments = jax.jit(f), jax.jit(jax.jacfwd(f)), (theta,)
        else:
            us = jnp.asarray(words[2 + 4 * n:2 + 6 * n], jnp.float64).reshape(n, 2)
            corners = lambda theta, of=of: posed_vertices(theta)[triangles[of]]
            f = lambda theta, us, measured=measured, corners=corners: jax.vmap(point_residual)(
                us, corners(theta), measured)
            by_u = lambda theta, us, measured=measured, corners=corners: jax.vmap(
                jax.jacfwd(point_residual))(us, corners(theta), measured)
            both = lambda theta, us, f=f, by_u=by_u: (jax.jacfwd(f)(theta, us), by_u(theta, us))
            value, jacobian, arguments = jax.jit(f), jax.jit(both), (theta, us)
        print(kind, size, float(jnp.sum(value(*arguments) ** 2)), file=sys.stderr)
        row(f"hand/{kind}/{size}/objective/jax", lambda: value(*arguments))
        row(f"hand/{kind}/{size}/jacobian/jax", lambda: jacobian(*arguments))

for size in ("l2", "l4"):
    words = (data / f"lstm_{size}_c1024.txt").read_text().split()
    l, c, b = (int(w) for w in words[:3])
    parts = np.split(np.array(words[3:], np.float64), np.cumsum([8 * l * b, 3 * b, 2 * l * b]))
    shapes = [(l, 2, 4, b), (3, b), (l, 2, b), (c, b)]
    layers, edges, start, text = (jnp.asarray(part.reshape(shape))
                                  for part, shape in zip(parts, shapes))

    def lstm(layers, edges, start=start, text=text):
        def cell(layer, state, signal):
            (wf, wi, wo, wc), (bf, bi, bo, bc) = layer
            hidden, memory = state
            memory = (memory * jax.nn.sigmoid(signal * wf + bf) +
                      jax.nn.sigmoid(hidden * wi + bi) * jnp.tanh(hidden * wc + bc))
            return jnp.stack([jax.nn.sigmoid(signal * wo + bo) * jnp.tanh(memory), memory])

        def step(states, character):
            following, signal = [], character * edges[0]
            for layer, state in zip(layers, states):
                following.append(cell(layer, state, signal))
                signal = following[-1][0]
            return jnp.stack(following), signal * edges[1] + edges[2]

        predicted = jax.lax.scan(step, start, text[:-1])[1]
        likelihood = lambda predicted, actual: jnp.sum(
            actual * (predicted - jnp.log(2 + jnp.sum(jnp.exp(predicted)))))
        return -jnp.mean(jax.vmap(likelihood)(predicted, text[1:])) / text.shape[1]

    value, gradient = jax.jit(lstm), jax.jit(jax.grad(lstm, (0, 1)))
    print("text", size, float(value(layers, edges)), file=sys.stderr)
    row(f"text/{size}/objective/jax", lambda: value(layers, edges))
    row(f"text/{size}/gradient/jax", lambda: gradient(layers, edges))

write()
