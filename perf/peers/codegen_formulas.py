"""What the rows of the suite `codegen` compute, as people write it: for JAX, PyTorch and, where it
is usual, NumPy; by the first parts of their names."""
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = F = None

formulas = {}


def add(name, in_jax, in_torch, in_numpy=None):
    formulas[name] = (in_jax, in_torch, in_numpy)


def all_three(name, f, in_torch=None):
    """`f` takes jnp or np first; `in_torch` where PyTorch says it otherwise."""
    add(name, lambda *x: f(jnp, *x), in_torch or (lambda *x: f(torch, *x)), lambda *x: f(np, *x))


# --- element-wise ---

all_three("pointwise", lambda xp, x, y: x * y + x)
all_three("mask/where", lambda xp, x, y: xp.where((x > 0) & (y < 0.5), x, y))
all_three("mask/bool", lambda xp, x, y: (x > 0) | (y < 0.5))
add("gelu", lambda x: jax.nn.gelu(x, approximate=False), lambda x: F.gelu(x))
add("gelu_tanh", lambda x: jax.nn.gelu(x, approximate=True),
    lambda x: F.gelu(x, approximate="tanh"))
add("pow", lambda x, y: x ** y, lambda x, y: x ** y, lambda x, y: x ** y)
cast_names = ("float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "bool")
add("cast", lambda x: [x.astype(d) for d in cast_names if d != x.dtype.name],
    lambda x: [x.to(d) for d in (getattr(torch, name) for name in cast_names) if d != x.dtype])


def adam(sqrt, *x):
    n = len(x) // 4
    moved, means, squares = [], [], []
    for p, g, m, v in zip(x[:n], x[n:2 * n], x[2 * n:3 * n], x[3 * n:]):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * (g * g)
        moved.append(p - 1e-3 * (m / 0.1) / (sqrt(v / 0.001) + 1e-8))
        means.append(m)
        squares.append(v)
    return moved + means + squares


add("adam", lambda *x: adam(jnp.sqrt, *x), lambda *x: adam(torch.sqrt, *x))

# --- reductions and scans ---

for direction, axis in (("axis0", 0), ("axis1", 1), ("axis2", 2), ("middle", 1), ("all", None)):
    def torch_axis(axis=axis):
        return (tuple(range(2)) if axis is None else axis)

    def sum_dtype(x):
        return {"int8": "int32", "uint8": "uint32"}.get(x.dtype.name, x.dtype)

    dims = torch_axis()
    add(f"sum/{direction}", lambda x, axis=axis: jnp.sum(x, axis, dtype=sum_dtype(x)),
        lambda x, dims=dims: torch.sum(x, dims, dtype=torch.int32
                                       if x.dtype in (torch.int8, torch.uint8) else x.dtype),
        lambda x, axis=axis: np.sum(x, axis, dtype=sum_dtype(x)))
    add(f"max/{direction}", lambda x, axis=axis: jnp.max(x, axis),
        lambda x, dims=dims: torch.amax(x, dims), lambda x, axis=axis: np.max(x, axis))
    add(f"var/{direction}", lambda x, axis=axis: jnp.var(x, axis),
        lambda x, dims=dims: torch.var(x, dims, correction=0),
        lambda x, axis=axis: np.var(x, axis))
    add(f"any/{direction}", lambda x, axis=axis: jnp.any(x > 2, axis),
        lambda x, dims=dims: torch.any(x > 2, dims),
        lambda x, axis=axis: np.any(x > 2, axis))
    add(f"prod/{direction}", lambda x, axis=axis: jnp.prod(x, axis),
        lambda x, axis=axis: torch.prod(x) if axis is None else torch.prod(x, axis),
        lambda x, axis=axis: np.prod(x, axis))
    add(f"argmax/{direction}",
        lambda x, axis=axis: lax.argmax(x if axis is not None else x.reshape(-1), axis or 0,
                                        np.int32),
        lambda x, axis=axis: torch.argmax(x, axis), lambda x, axis=axis: np.argmax(x, axis))
for axis in (0, 1):
    add(f"cumsum/axis{axis}", lambda x, axis=axis: jnp.cumsum(x, axis),
        lambda x, axis=axis: torch.cumsum(x, axis, dtype=x.dtype),
        lambda x, axis=axis: np.cumsum(x, axis, dtype=x.dtype))
add("cumprod", lambda x: jnp.cumprod(x, 1), lambda x: torch.cumprod(x, 1),
    lambda x: np.cumprod(x, 1))
add("cummax", lambda x: lax.cummax(x, 1), lambda x: torch.cummax(x, 1).values,
    lambda x: np.maximum.accumulate(x, 1))
add("cumlogsumexp", lambda x: lax.cumlogsumexp(x, 1), lambda x: torch.logcumsumexp(x, 1),
    lambda x: np.logaddexp.accumulate(x, 1))

# --- layouts and indices ---

for order in ("10", "021", "210", "120", "0312"):
    axes = tuple(map(int, order))
    add(f"transpose/{order}", lambda x, axes=axes: jnp.transpose(x, axes),
        lambda x, axes=axes: x.permute(axes).contiguous(),
        lambda x, axes=axes: np.ascontiguousarray(np.transpose(x, axes)))
all_three("concat", lambda xp, a, b, c: xp.concatenate([a * 2, xp.maximum(b, 0), c], 1),
          lambda a, b, c: torch.cat([a * 2, torch.relu(b), c], 1))
all_three("concat_sum", lambda xp, a, b, c: xp.concatenate([a * 2, xp.maximum(b, 0), c], 1).sum(1),
          lambda a, b, c: torch.cat([a * 2, torch.relu(b), c], 1).sum(1))


def stencil(pad):
    def f(x):
        p = pad(x)
        n, m = x.shape
        return p[0:n, 1:m + 1] + p[2:n + 2, 1:m + 1] + p[1:n + 1, 0:m] + p[1:n + 1, 2:m + 2] - 4 * x

    return f


add("pad_stencil", stencil(lambda x: jnp.pad(x, 1)), stencil(lambda x: F.pad(x, (1, 1, 1, 1))),
    stencil(lambda x: np.pad(x, 1)))
add("pad_reflect", lambda x: jnp.pad(x, 3, mode="reflect"),
    lambda x: F.pad(x[None], (3, 3, 3, 3), mode="reflect")[0],
    lambda x: np.pad(x, 3, mode="reflect"))
all_three("inner", lambda xp, x, y: xp.einsum("ijk,ijk->ik", x, y))
all_three("stencil", lambda xp, x: xp.roll(x, 1, 0) + xp.roll(x, -1, 0) + xp.roll(x, 1, 1) +
          xp.roll(x, -1, 1) - x * 4)
all_three("cross", lambda xp, a, b: xp.cross(a, b), torch.linalg.cross)
all_three("roll", lambda xp, x: x - xp.roll(x, 1, 1))
all_three("flip", lambda xp, x: xp.flip(x, 1) * 2, lambda x: torch.flip(x, (1,)) * 2)
all_three("stack", lambda xp, x, y, z: xp.stack([x, y * 2, z], 2))
add("glu", lambda x: jax.nn.glu(x, 1), lambda x: F.glu(x, 1))
all_three("repeat", lambda xp, x, y: xp.repeat(x, 16, 1) * y,
          lambda x, y: torch.repeat_interleave(x, 16, 1) * y)
all_three("tile", lambda xp, x, y: xp.tile(x, (1, 16)) * y, lambda x, y: x.repeat(1, 16) * y)
add("strided", lambda x: x[:, ::2] - x[:, 1::2], lambda x: x[:, ::2] - x[:, 1::2],
    lambda x: x[:, ::2] - x[:, 1::2])
add("take", lambda x, i: jnp.take(x, i, mode="clip"), lambda x, i: torch.index_select(x, 0, i),
    lambda x, i: np.take(x, i))
add("embedding", lambda x, i: x[i], lambda x, i: F.embedding(i, x), lambda x, i: x[i])
add("take_along", lambda x, i: jnp.take_along_axis(x, i, 1),
    lambda x, i: torch.gather(x, 1, i.long()), lambda x, i: np.take_along_axis(x, i, 1))
add("sort", lambda x: jnp.sort(x), lambda x: torch.sort(x).values, lambda x: np.sort(x))
add("top_k", lambda x: lax.top_k(x, 100)[0], lambda x: torch.topk(x, 100).values)

# --- models ---

add("softmax", lambda x: jax.nn.softmax(x), lambda x: F.softmax(x, -1))
add("log_softmax/0", lambda x: jax.nn.log_softmax(x, 0), lambda x: F.log_softmax(x, 0))


def layer_norm(x, scale, shift):
    mean = jnp.mean(x, -1, keepdims=True)
    return (x - mean) * lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * scale + shift


def group_norm(groups):
    def f(x, scale, shift):
        parts = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
        mean = jnp.mean(parts, (1, 3), keepdims=True)
        normal = (parts - mean) * lax.rsqrt(jnp.var(parts, (1, 3), keepdims=True) + 1e-5)
        return normal.reshape(x.shape) * scale + shift

    return f


add("layer_norm", layer_norm, lambda x, s, b: F.layer_norm(x, x.shape[-1:], s, b, 1e-5))
add("norm_softmax", lambda x, s, b: jax.nn.softmax(layer_norm(x, s, b)),
    lambda x, s, b: F.softmax(F.layer_norm(x, x.shape[-1:], s, b, 1e-5), -1))
for groups in (2, 3, 6):
    add(f"group_norm/{groups}", group_norm(groups),
        lambda x, s, b, groups=groups: (
            F.group_norm(x.permute(0, 3, 1, 2), groups, s, b, 1e-5).permute(0, 2, 3, 1)))


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))


add("cross_entropy", cross_entropy, lambda x, y: F.cross_entropy(x, y.long()))


def attention(q, k, v, causal=False):
    scores = q @ jnp.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]))
    if causal:
        place = jnp.arange(q.shape[-2])
        scores = jnp.where(place[:, None] >= place, scores, -1e30)
    return jax.nn.softmax(scores) @ v


add("attention", attention, lambda q, k, v: F.scaled_dot_product_attention(q, k, v))
add("causal_attention", lambda q, k, v: attention(q, k, v, True),
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))


def transformer(norm, attend, gelu, x, s1, b1, qkv, out, s2, b2, w1, c1, w2, c2):
    n, length, width = x.shape
    parts = (norm(x, s1, b1) @ qkv).reshape(n, length, 3, width // 64, 64)
    seen = attend(*(parts[:, :, i].swapaxes(1, 2) for i in range(3)))
    seen = seen.swapaxes(1, 2).reshape(n, length, width)
    y = x + seen @ out
    return y + gelu(norm(y, s2, b2) @ w1 + c1) @ w2 + c2


add("transformer", lambda *p: transformer(layer_norm, attention, jax.nn.gelu, *p),
    lambda *p: transformer(lambda x, s, b: F.layer_norm(x, x.shape[-1:], s, b, 1e-5),
                           F.scaled_dot_product_attention,
                           lambda x: F.gelu(x, approximate="tanh"), *p))
all_three("matmul/plain", lambda xp, a, b: xp.matmul(a, b))
add("matmul/i8",
    lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=np.int32),
    lambda a, b: torch._int_mm(a, b))
all_three("matmul/tn", lambda xp, a, b: a.T @ b)
all_three("matmul/nt", lambda xp, a, b: a @ b.T)
add("dense_tanh", lambda x, w, b: jnp.tanh(x @ w + b),
    lambda x, w, b: torch.tanh(torch.addmm(b, x, w)))
add("dense_relu", lambda x, w, b: jax.nn.relu(x @ w + b),
    lambda x, w, b: torch.relu(torch.addmm(b, x, w)))


def conv(x, w, padding="SAME", stride=1, groups=1):
    return lax.conv_general_dilated(x, w, (stride, stride), padding,
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                    feature_group_count=groups)


def torch_conv(x, w, b=None, padding="same", stride=1, groups=1):
    """On [N,C,H,W] with channels last in memory; w as (height, width, in, out)."""
    return F.conv2d(x, w.permute(3, 2, 0, 1), b, stride=stride, padding=padding, groups=groups)


def torch_images(x):
    return x.permute(0, 3, 1, 2)


for name, options in (("3x3", {}), ("1x1", {}), ("depthwise", {"groups": 64}),
                      ("7x7_strided", {"stride": 2, "padding": "VALID"})):
    lower = {k: v.lower() if k == "padding" else v for k, v in options.items()}
    add(f"conv/{name}", lambda x, w, options=options: conv(x, w, **options),
        lambda x, w, lower=lower: torch_conv(torch_images(x), w, **lower).permute(0, 2, 3, 1))


def pool(h):
    return lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def convnet(p, x, kept):
    h = pool(jax.nn.relu(conv(x, p[0]) + p[1]))
    h = pool(jax.nn.relu(conv(h, p[2]) + p[3]))
    return (jax.nn.relu(h.reshape(len(x), -1) @ p[4] + p[5]) * kept) @ p[6] + p[7]


def torch_convnet(p, x, kept):
    h = F.max_pool2d(torch.relu(torch_conv(torch_images(x), p[0], p[1])), 2)
    h = F.max_pool2d(torch.relu(torch_conv(h, p[2], p[3])), 2)
    h = h.permute(0, 2, 3, 1).reshape(len(x), -1)
    return (torch.relu(h @ p[4] + p[5]) * kept) @ p[6] + p[7]


blocks = (2, 2, 3, 3, 3)


def vgg16(p, x):
    at = 0
    for layers in blocks:
        for _ in range(layers):
            x = jax.nn.relu(conv(x, p[at]) + p[at + 1])
            at += 2
        x = pool(x)
    x = x.reshape(len(x), -1)
    for layer in range(3):
        x = x @ p[at + 2 * layer] + p[at + 2 * layer + 1]
        x = jax.nn.relu(x) if layer < 2 else x
    return x


def torch_vgg16(p, x):
    at, x = 0, torch_images(x)
    for layers in blocks:
        for _ in range(layers):
            x = torch.relu(torch_conv(x, p[at], p[at + 1]))
            at += 2
        x = F.max_pool2d(x, 2)
    x = x.permute(0, 2, 3, 1).reshape(len(x), -1)
    for layer in range(3):
        x = x @ p[at + 2 * layer] + p[at + 2 * layer + 1]
        x = torch.relu(x) if layer < 2 else x
    return x


add("train/convnet", lambda *x: cross_entropy(convnet(x[:8], x[8], x[9]), x[10]),
    lambda *x: F.cross_entropy(torch_convnet(x[:8], x[8], x[9]), x[10].long()))
add("train/vgg16", lambda *x: cross_entropy(vgg16(x[:-2], x[-2]), x[-1]),
    lambda *x: F.cross_entropy(torch_vgg16(x[:-2], x[-2]), x[-1].long()))
