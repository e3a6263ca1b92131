"""The rows of perf/jacobians in JAX, and what compiling VGG16 takes there."""
import math
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

from common import results, row, write
from networks import lstm, lstm_logits, vgg16, vgg16_logits

rng = np.random.default_rng(1)


def numbers(*shape, scale=1.0):
    return jnp.asarray((rng.uniform(-1, 1, shape) * scale).astype(np.float32))


def weights(*shape):
    return numbers(*shape, scale=math.sqrt(6 / math.prod(shape[:-1])))


width, steps = 128, 10
for name, make, logits, x in (("vgg16", lambda outputs: vgg16(outputs, 48, weights, numbers),
                               vgg16_logits, numbers(48, 48, 3)),
                              ("lstm", lambda outputs: lstm(width, outputs, weights, numbers),
                               lstm_logits, numbers(steps, width))):
    jacobian = jax.jit(lambda p, x, logits=logits: jax.jacrev(lambda v: logits(p, v))(x))
    for outputs in (1, 8, 32, 128):
        p = make(outputs)
        row(f"jacobian/{name}/{outputs}/jax", lambda: jacobian(p, x))

joints = 6


def tip(angles):
    pose = jnp.eye(4)
    for i in range(joints):
        twist, reach, rise = -1.57 if i % 2 else 1.57, 0.3, 0.1 * i
        c, s, x, y = math.cos(twist), math.sin(twist), jnp.cos(angles[i]), jnp.sin(angles[i])
        link = [x, -y * c, y * s, x * reach, y, x * c, -x * s, y * reach, 0.0, s, c, rise, 0.0, 0.0,
                0.0, 1.0]
        pose = pose @ jnp.stack([jnp.asarray(e, jnp.float32) for e in link]).reshape(4, 4)
    return pose[:3, 3]


def inverse_kinematics(angles, target):
    def step(_, q):
        j = jax.jacrev(tip)(q)
        return q - jnp.linalg.solve(j.T @ j + 0.01 * jnp.eye(joints), j.T @ (tip(q) - target))

    return jax.lax.fori_loop(0, 10, step, angles)


many, some, targets = numbers(10000, joints), numbers(1000, joints), numbers(1000, 3)
arm_jacobian, solved = jax.jit(jax.vmap(jax.jacrev(tip))), jax.jit(jax.vmap(inverse_kinematics))
row("jacobian/arm/10000/jax", lambda: arm_jacobian(many))
row("inverse_kinematics/1000/jax", lambda: solved(some, targets))


def fly(state, forces):
    velocity, q, rate = state[3:6], state[6:10], state[10:13]
    w, x, y, z = q
    inertia = jnp.array([0.02, 0.03, 0.04])
    up = jnp.stack([2 * (x * z + w * y), 2 * (y * z - w * x), w * w - x * x - y * y + z * z])
    pull = up * forces.sum() - jnp.array([0.0, 0.0, 9.81])
    turn = jnp.stack([-x * rate[0] - y * rate[1] - z * rate[2],
                      w * rate[0] + y * rate[2] - z * rate[1],
                      w * rate[1] - x * rate[2] + z * rate[0],
                      w * rate[2] + x * rate[1] - y * rate[0]])
    torque = jnp.stack([0.2 * (forces[1] - forces[3]), 0.2 * (forces[2] - forces[0]),
                        0.01 * (forces[0] - forces[1] + forces[2] - forces[3])])
    turned = q + 0.005 * turn
    return jnp.concatenate([state[:3] + 0.01 * velocity, velocity + 0.01 * pull,
                            turned / jnp.linalg.norm(turned),
                            rate + 0.01 * (torque - jnp.cross(rate, inertia * rate)) / inertia])


def flight(state, plan):
    def step(s, forces):
        s = fly(s, forces)
        return s, s

    return jax.lax.scan(step, state, plan)[1]


flights = jax.vmap(flight)
quadrotor_jacobian, flown = jax.jit(jax.vmap(jax.jacfwd(fly))), jax.jit(flights)
gradient = jax.jit(jax.grad(lambda s, p: jnp.sum(flights(s, p) ** 2), argnums=1))
states, forces = numbers(10000, 13), numbers(10000, 4)
first, plans = numbers(256, 13), numbers(256, 100, 4)
row("jacobian/quadrotor/10000/jax", lambda: quadrotor_jacobian(states, forces))
row("flights/quadrotor/256x100/jax", lambda: flown(first, plans))
row("flights/quadrotor/256x100/gradient/jax", lambda: gradient(first, plans))

# Recording and compiling, without the first run, as what JAX is asked to be quick at.
p, x = vgg16(10, 48, weights, numbers), numbers(48, 48, 3)


def loss(p, x):
    y = vgg16_logits(p, x)
    return jax.nn.logsumexp(y) - y.mean()


jax.block_until_ready(jax.jit(lambda v: v * 2 + 1)(x))
forward, gradient = [], []
for _ in range(3):
    for function, times in ((vgg16_logits, forward), (jax.grad(loss), gradient)):
        jax.clear_caches()
        begin = time.perf_counter()
        jax.jit(function).lower(p, x).compile()
        times.append(time.perf_counter() - begin)
results["first_call/vgg16/forward/jax"] = statistics.median(forward)
results["first_call/vgg16/forward_and_gradient/jax"] = (statistics.median(forward) +
                                                        statistics.median(gradient))

write()
