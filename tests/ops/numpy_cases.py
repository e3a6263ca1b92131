#!/usr/bin/env python3
"""Writes ops_numpy_cases.inc: calls of vt functions with the results that NumPy and SciPy give.

    python3 numpy_cases.py > ops_numpy_cases.inc

The script needs numpy and scipy; the tests themselves do not.
"""
import colorsys
import re

import numpy as np
from scipy import special

rng = np.random.default_rng(7)
names = {"bool": "bool", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16",
         "int32": "i32", "uint32": "u32",
         "int64": "i64", "uint64": "u64", "float16": "f16", "float32": "f32", "float64": "f64"}
lines = []


def number(v, dtype):
    if dtype.kind in "biu":
        return str(int(v))
    v = float(v)
    if np.isnan(v):
        return "nan"
    if np.isinf(v):
        return "inf" if v > 0 else "-inf"
    return np.format_float_positional(v, unique=True, trim="-") if 1e-3 < abs(v) < 1e6 else repr(v)


def tensor(a):
    a = np.asarray(a)
    shape = ",".join(str(n) for n in a.shape)
    flat = a.astype(np.float64) if a.dtype.kind == "f" else a
    if a.dtype == np.float32:
        values = " ".join(number(np.float32(v), a.dtype) for v in a.ravel())
    else:
        values = " ".join(number(v, a.dtype) for v in flat.ravel())
    return f't("{names[a.dtype.name]}[{shape}] {values}")'


def wrapped(line):
    """A statement broken at 100 columns: behind commas, and longer strings between words."""
    parts = re.findall(r'(?:"[^"]*"|[^",]|,(?! ))+(?:, )?', line.strip())
    lines = ["  "]
    for part in parts:
        if len(lines[-1]) + len(part.rstrip()) > 100 and lines[-1].strip():
            lines.append(" " * 8)
        while len(lines[-1]) + len(part.rstrip()) > 100:
            end = part.rindex(" ", 0, 99 - len(lines[-1])) + 1
            lines[-1] += part[:end] + '"'
            lines.append(" " * 10)
            part = '"' + part[end:]
        lines[-1] += part
    return "\n".join(text.rstrip() for text in lines)


def case(call, args, expected, ulps=0):
    name = call.replace('"', "'")
    for k, a in enumerate(args):
        call = call.replace(f"${k}", tensor(a))
    lines.append(wrapped(f'check("{name}", {call}, {tensor(expected)}, {ulps});'))


def group(name):
    lines.extend(["}", f"TEST(OpsNumpy, {name}) {{"] if lines else [f"TEST(OpsNumpy, {name}) {{"])


def f32(*shape):
    return np.round(rng.normal(size=shape) * 2, 2).astype(np.float32)


def f64(*shape):
    return np.round(rng.normal(size=shape) * 2, 2)


def ints(low, high, *shape, dtype=np.int32):
    return rng.integers(low, high, size=shape).astype(dtype)


inf, nan = np.inf, np.nan

group("Arithmetic")
a, b = np.array([7, -7, 7, -7, 0, 6, -6], np.int32), np.array([2, 2, -2, -2, 3, 3, 3], np.int32)
x, y = a.astype(np.float64) + 0.5, b.astype(np.float64)
case("vt::floor_divide($0, $1)", [a, b], np.floor_divide(a, b))
case("vt::mod($0, $1)", [a, b], np.mod(a, b))
case("vt::fmod($0, $1)", [a, b], np.fmod(a, b))
case("$0 % $1", [a, b], np.fmod(a, b))
case("$0 / $1", [a, b], np.trunc(a / b).astype(np.int32))
case("vt::divide($0, $1)", [a, b], (a.astype(np.float32) / b.astype(np.float32)))
case("vt::floor_divide($0, $1)", [x, y], np.floor_divide(x, y))
case("vt::mod($0, $1)", [x, y], np.mod(x, y))
case("vt::fmod($0, $1)", [x, y], np.fmod(x, y))
tricky = np.array([1.0, 0.3, -1.0, 6.0, -6.0, 5.0])
step = np.array([0.1, 0.1, 0.1, 0.1, 0.1, -0.1])
case("vt::floor_divide($0, $1)", [tricky, step], np.floor_divide(tricky, step))
case("vt::mod($0, $1)", [tricky, step], np.mod(tricky, step))
with np.errstate(all="ignore"):
    z = np.array([1.0, -1.0, 0.0, nan])
    case("vt::floor_divide($0, 0.0)", [z], np.floor_divide(z, 0.0))
u, v = np.array([200, 7, 255], np.uint8), np.array([7, 200, 2], np.uint8)
case("vt::floor_divide($0, $1)", [u, v], u // v)
case("vt::mod($0, $1)", [u, v], u % v)
case("vt::add($0, $1)", [u, v], u + v)
case("vt::multiply($0, $1)", [u, v], u * v)
h1, h2 = np.array([3, 1e200, 1e-200, 0, inf, nan, -5]), np.array([4, 1e200, 1e-200, 0, nan, 1, 12])
case("vt::hypot($0, $1)", [h1, h2], np.hypot(h1, h2), 2)
m = np.array([1, -1, 0, -0.0, inf, nan], np.float32)
s = np.array([-0.0, 0.0, -1, 1, -inf, 1], np.float32)
case("1.0 / vt::copysign($0, $1)", [m, s], 1 / np.copysign(m, s))
la = np.array([0, -inf, inf, 1000, -1000, 0, -inf, inf, nan])
lb = np.array([0, -inf, inf, 1001, -1000.5, -40, 3, -inf, 1])
case("vt::logaddexp($0, $1)", [la, lb], np.logaddexp(la, lb), 2)
xl, yl = np.array([0.0, 0.0, 2.0, 0.0, 3.0]), np.array([0.0, 5.0, 3.0, inf, 0.5])
case("vt::special::xlogy($0, $1)", [xl, yl], special.xlogy(xl, yl), 2)
p, q = f64(3, 1), f64(4)
case("vt::squared_difference($0, $1)", [p, q], (p - q) ** 2)
case("vt::pow($0, 3)", [a], a ** 3)
case("vt::pow($0, $1)", [a, np.array([2, 3, 1, 0, 5, 4, 3], np.int32)],
     a ** np.array([2, 3, 1, 0, 5, 4, 3], np.int32))
case("vt::pow($0, -2)", [np.array([1.0, 2, -4])], np.array([1.0, 2, -4]) ** -2)
pw = np.abs(f64(5)) + 0.1
case("vt::pow($0, 2.5)", [pw], pw ** 2.5, 4)
case("vt::pow(2.0, $0)", [pw], 2.0 ** pw, 4)
r = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2.4, -2.6, inf, nan])
case("vt::round($0)", [r], np.round(r))
case("vt::trunc($0)", [r], np.trunc(r))
case("vt::floor($0)", [r], np.floor(r))
case("vt::ceil($0)", [r], np.ceil(r))
case("vt::sign($0)", [r], np.sign(r))
case("vt::sign($0)", [a], np.sign(a))
case("vt::log10($0)", [np.array([1.0, 10, 1000, 0.001])],
     np.log10(np.array([1.0, 10, 1000, 0.001])), 2)
case("vt::deg2rad($0)", [r[:6] * 90], np.deg2rad(r[:6] * 90), 2)
case("vt::rad2deg($0)", [r[:6]], np.rad2deg(r[:6]), 2)
case("vt::reciprocal($0)", [np.array([1, 2, 4], np.int32)],
     (1 / np.array([1, 2, 4])).astype(np.float32))
case("vt::sqrt($0)", [np.array([1, 4, 9], np.int32)], np.array([1, 2, 3], np.float32))
case("vt::negative($0)", [np.array([True, False])], np.array([-1, 0], np.int32))
case("vt::abs($0)", [np.array([-128, 127, -3], np.int8)],
     np.abs(np.array([-128, 127, -3], np.int8)))

prob = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
with np.errstate(all="ignore"):
    case("vt::special::logit($0)", [prob], special.logit(prob), 4)
odd = np.array([nan, inf, -inf, -0.0, 2.5], np.float32)
case("vt::signbit($0)", [odd[1:]], np.signbit(odd[1:]))
case("vt::nan_to_num($0)", [odd], np.nan_to_num(odd))
case("vt::nan_to_num($0, 1.0, 2.0, -3.0)", [odd],
     np.nan_to_num(odd, nan=1.0, posinf=2.0, neginf=-3.0))
case("vt::heaviside($0, 0.25)", [odd], np.heaviside(odd, np.float32(0.25)))
case("vt::special::xlog1py($0, $1)", [xl, yl - 1], special.xlog1py(xl, yl - 1), 2)

group("Bits")
i1, i2 = np.array([1, -8, 100, -1, 5], np.int32), np.array([3, 1, 2, 31, 40], np.int32)
case("($0 << $1)", [i1[:4], i2[:4]], i1[:4] << i2[:4])
case("($0 >> $1)", [i1[:4], i2[:4]], i1[:4] >> i2[:4])
case("($0 << $1)", [i1, i2], np.append(i1[:4] << i2[:4], np.int32(0)))
case("($0 >> 40)", [i1], np.where(i1 < 0, -1, 0).astype(np.int32))
case("vt::shift_right_logical($0, 1)", [i1], (i1.view(np.uint32) >> 1).view(np.int32))
case("($0 & $1)", [i1, i2], i1 & i2)
case("($0 | $1)", [i1, i2], i1 | i2)
case("($0 ^ $1)", [i1, i2], i1 ^ i2)
case("~$0", [i1], ~i1)
case("!$0", [np.array([0, 3, 0], np.int32)], np.array([True, False, True]))
case("vt::popcount($0)", [np.array([0, 1, 255, 128], np.uint8)], np.array([0, 1, 8, 1], np.uint8))
case("vt::clz($0)", [np.array([0, 1, 255, 128], np.uint8)], np.array([8, 7, 0, 0], np.uint8))
case("vt::logical_and($0, $1)", [i1, np.array([0, 1, 0, 2, 1], np.int32)],
     np.array([False, True, False, True, True]))
case("vt::logical_xor($0, $1)", [i1, np.array([0, 1, 0, 2, 1], np.int32)],
     np.array([True, False, True, False, False]))

group("Compare")
c1, c2 = np.array([1.0, nan, inf, -inf, 0.0, 1.0]), np.array([1.0 + 1e-9, nan, inf, inf, -0.0, 1.1])
case("vt::isclose($0, $1)", [c1, c2], np.isclose(c1, c2))
case("vt::isclose($0, $1, 1e-5, 1e-8, true)", [c1, c2], np.isclose(c1, c2, equal_nan=True))
case("vt::isclose($0, $1, 0.2)", [c1, c2], np.isclose(c1, c2, rtol=0.2))
case("vt::allclose($0, $0)", [p], np.array(True))
case("vt::allclose($0, $1)", [p, p + 1], np.array(False))
case("($0 < $1)", [p, q], p < q)
case("($0 != $0)", [c1], c1 != c1)
case("vt::maximum($0, $1)", [c1, c2], np.maximum(c1, c2))
case("vt::minimum($0, $1)", [c1, c2[::-1]], np.minimum(c1, c2[::-1]))
case("vt::where($0 > 0, $0, $1)", [p, q], np.where(p > 0, p, q))
w1 = ints(0, 5, 3)
for first, second, both in [("f8", "i4", "f8"), ("?", "i4", "i4"), ("i4", "f4", "f4")]:
    some, other = w1[:, None].astype(first), np.array([-6, 8, 3, 0]).astype(second)
    low, high = np.arange(12, dtype=np.int32).reshape(3, 4) % 5 // 3, np.array([1, 0, 0, 1], "i4")
    case("vt::select({$0 > 0, $1 > 0}, {$2, $3}, 7)", [low, high, some, other],
         np.select([low > 0, np.broadcast_to(high > 0, (3, 4))],
                   np.broadcast_arrays(some, other, low)[:2], 7).astype(both))
case("vt::where($0, $1, 7)", [np.array([[True], [False]]), w1],
     np.where(np.array([[True], [False]]), w1, 7).astype(np.int32))
case("vt::clip($0, -1.0, 1.0)", [p], np.clip(p, -1, 1))
case("vt::clip($0, std::nullopt, $1)", [p, q], np.minimum(p, q))
case("vt::clamp(-1, $0, 2)", [i1], np.clip(i1, -1, 2))

group("Reduce")
x, g, e = f64(2, 3, 4), ints(-4, 5, 3, 4), np.zeros((0, 3), np.float32)
for axes, keep in [(None, False), (0, False), (-1, True), ((0, 2), False), ((-1, 0), True),
                   ((), False)]:
    if axes is None or isinstance(axes, int):
        cpp = "{}" if axes is None else str(axes)
    else:
        cpp = "vt::Axes{" + ", ".join(map(str, axes)) + "}"
    k = "true" if keep else "false"
    for name, fn, ulps in [("sum", np.sum, 4), ("prod", np.prod, 8), ("max", np.max, 0),
                           ("min", np.min, 0), ("mean", np.mean, 4)]:
        case(f"vt::{name}($0, {cpp}, {k})", [x], fn(x, axis=axes, keepdims=keep), ulps)
    case(f"vt::logsumexp($0, {cpp}, {k})", [x],
         special.logsumexp(x, axis=axes if axes != () else (), keepdims=keep) if axes != () else x,
         8)
    if axes != ():
        case(f"vt::var($0, {cpp}, 1, {k})", [x], np.var(x, axis=axes, ddof=1, keepdims=keep), 8)
        case(f"vt::std($0, {cpp}, 0, {k})", [x], np.std(x, axis=axes, keepdims=keep), 8)
        case(f"vt::ptp($0, {cpp}, {k})", [x], np.ptp(x, axis=axes, keepdims=keep))
        for o, text in [(2, "2.0"), (1, "1.0"), (inf, "inf"), (-inf, "-inf"), (0, "0.0"),
                        (3, "3.0"), (2.5, "2.5")]:
            big = np.abs(x)
            value = (big.max(axis=axes, keepdims=keep) if o == inf
                     else big.min(axis=axes, keepdims=keep) if o == -inf else
                     (x != 0).sum(axis=axes, keepdims=keep).astype(float) if o == 0
                     else (big ** o).sum(axis=axes, keepdims=keep) ** (1 / o))
            case(f"vt::linalg::vector_norm($0, {text}, {cpp}, {k})", [x], value, 8)
            if np.isscalar(axes):
                case(f"vt::norm($0, {text}, {cpp}, {k})", [x], value, 8)
    case(f"vt::any($0 > 2, {cpp}, {k})", [x], np.any(x > 2, axis=axes, keepdims=keep))
    case(f"vt::all($0 < 2, {cpp}, {k})", [x], np.all(x < 2, axis=axes, keepdims=keep))
    case(f"vt::count_nonzero($0 > 0, {cpp}, {k})", [x],
         np.asarray(np.sum(x > 0, axis=axes, keepdims=keep)).astype(np.int32))
b8 = ints(-100, 100, 9, dtype=np.int8)
case("vt::sum($0)", [b8], b8.sum(dtype=np.int32))
case("vt::prod($0)", [ints(1, 5, 6, dtype=np.uint8) * 0 + 3], np.uint32(3 ** 6))
case("vt::sum($0, 0)", [e], e.sum(0))
case("vt::sum($0, 1)", [e], e.sum(1))
case("vt::prod($0)", [e], e.prod())
case("vt::max($0, 1)", [e], np.zeros(0, np.float32))
case("vt::any($0 > 0)", [e], np.array(False))
case("vt::all($0 > 0)", [e], np.array(True))
case("vt::mean($0)", [e], np.float32(nan))
case("vt::logsumexp($0, 0)", [e], np.full(3, -inf, np.float32))
case("vt::mean($0)", [g], np.float32(g.astype(np.float32).mean()), 2)
case("vt::argmax($0)", [g], np.int32(g.argmax()))
case("vt::argmin($0, 0)", [g], g.argmin(0).astype(np.int32))
case("vt::argmax($0, -1, true)", [g], g.argmax(-1, keepdims=True).astype(np.int32))
n = np.array([[1, nan, 3, nan], [5, 2, 5, 1]])
case("vt::argmax($0, 1)", [n], n.argmax(1).astype(np.int32))
case("vt::argmin($0, 1)", [n], n.argmin(1).astype(np.int32))
case("vt::max($0, 1)", [n], n.max(1))
case("vt::min($0)", [n], n.min())
case("vt::argmax($0)", [np.array([False, True, True])], np.int32(1))
case("vt::max($0)", [np.array([False, True, True])], np.array(True))
ls = np.array([[-inf, -inf], [inf, 1], [1000, 1000], [-1000, -1001], [-inf, 3]])
case("vt::logsumexp($0, 1)", [ls], special.logsumexp(ls, axis=1), 4)
h = np.full(70000, 1, np.float16)
case("vt::mean(vt::full({70000}, 1.0, f16))", [], np.float16(1))

case("vt::average($0, $1, 1)", [np.array([[1.0, 2, 3], [4, 5, 7]]), np.array([1, 2, 5], np.int32)],
     np.average([[1.0, 2, 3], [4, 5, 7]], 1, [1, 2, 5]), 2)

group("Scan")
case("vt::diff($0)", [x], np.diff(x))
case("vt::diff($0, 2, 1)", [x], np.diff(x, 2, 1), 4)
case("vt::diff($0, 9, 0)", [x], np.zeros((0, 3, 4)))
case("vt::diff($0)", [np.array([True, True, False])], np.array([False, True]))
for axis in (0, 1, -1):
    case(f"vt::cumsum($0, {axis})", [x], np.cumsum(x, axis), 4)
    case(f"vt::cumprod($0, {axis})", [x], np.cumprod(x, axis), 8)
    case(f"vt::cummax($0, {axis})", [x], np.maximum.accumulate(x, axis))
    case(f"vt::cummin($0, {axis}, {{.reverse = true}})", [x],
         np.flip(np.minimum.accumulate(np.flip(x, axis), axis), axis))
    case(f"vt::cumsum($0, {axis}, {{.reverse = true}})", [x],
         np.flip(np.cumsum(np.flip(x, axis), axis), axis), 4)
    case(f"vt::cumlogsumexp($0, {axis})", [x], np.logaddexp.accumulate(x, axis), 8)
case("vt::cumsum($0, 0)", [e], e)
case("vt::cumsum($0)", [np.array([True, True, False, True])], np.array([1, 2, 2, 3], np.int32))
case("vt::cummax($0)", [np.array([1.0, nan, 3.0])], np.array([1.0, nan, nan]))

group("Shape")
x, z = ints(0, 99, 2, 3, 4), np.zeros((2, 0, 3), np.float32)
case("vt::reshape($0, {4, -1})", [x], x.reshape(4, -1))
case("vt::reshape($0, {0, 7})", [z], z.reshape(0, 7))
case("vt::ravel($0)", [x], x.ravel())
case("vt::transpose($0)", [x], x.T)
case("vt::transpose($0, {1, -1, 0})", [x], x.transpose(1, -1, 0))
case("vt::swapaxes($0, 0, -1)", [x], np.swapaxes(x, 0, -1))
case("vt::moveaxis($0, 0, -1)", [x], np.moveaxis(x, 0, -1))
case("vt::moveaxis($0, {0, 1}, {-1, 0})", [x], np.moveaxis(x, (0, 1), (-1, 0)))
case("vt::matrix_transpose($0)", [x], np.swapaxes(x, -1, -2))
case("vt::broadcast_to($0, {2, 3, 4})", [x[:, :1]], np.broadcast_to(x[:, :1], (2, 3, 4)))
case("vt::broadcast_to($0, {3, 0, 3})", [z[:1]], np.broadcast_to(z[:1], (3, 0, 3)))
case("vt::broadcast_in_dim($0, {4, 2, 3}, {2, 1})", [x[:, :, 0].T],
     np.broadcast_to(x[:, :, 0], (4, 2, 3)))
case("vt::expand_dims($0, {0, -1})", [x], np.expand_dims(x, (0, -1)))
case("vt::squeeze($0)", [x[:1, :, :1]], np.squeeze(x[:1, :, :1]))
case("vt::squeeze($0, -1)", [x[:1, :, :1]], np.squeeze(x[:1, :, :1], -1))
case("vt::concatenate({$0, $1}, 1)", [x, x[:, :1]], np.concatenate([x, x[:, :1]], 1))
case("vt::concatenate({$0, $1}, -1)", [x, x[..., :0] + 0.5],
     np.concatenate([x, x[..., :0]], -1).astype(np.float64))
case("vt::stack({$0, $1}, -1)", [x, x + 1], np.stack([x, x + 1], -1))
case("vt::stack({$0, $1})", [np.float32(1), np.float32(2)], np.array([1, 2], np.float32))
case("vt::unstack($0, -1)[2]", [x], x[..., 2])
case("vt::split($0, 2, 2)[1]", [x], np.split(x, 2, 2)[1])
for k in range(3):
    case(f"vt::split($0, std::vector<std::int64_t>{{1, 3}}, -1)[{k}]", [x],
         np.split(x, [1, 3], -1)[k])
    case(f"vt::split($0, std::vector<std::int64_t>{{-1, 9}}, 2)[{k}]", [x],
         np.split(x, [-1, 9], 2)[k])
case("vt::pad($0, {{1, 0}, {0, 2}, {1, 1}}, 9)", [x],
     np.pad(x, ((1, 0), (0, 2), (1, 1)), constant_values=9))
case("vt::pad($0, {{1, 2}}, -1)", [x[0, 0]], np.pad(x[0, 0], (1, 2), constant_values=-1))
case("vt::pad($0, {{1, 1}})", [z], np.pad(z, 1))
case("vt::pad($0, {{-1, 2}})", [x[0, 0]], np.pad(x[0, 0][1:], (0, 2)))
interior = np.zeros(10, np.int32)
interior[0::3] = x[0, 0]
case("vt::pad($0, 0, {0}, {0}, {2})", [x[0, 0]], interior)
case("vt::flip($0)", [x], np.flip(x))
case("vt::flip($0, {0, -1})", [x], np.flip(x, (0, -1)))
case("vt::rev($0, {1})", [x], np.flip(x, 1))
case("vt::roll($0, 5)", [x], np.roll(x, 5))
case("vt::roll($0, -1, 1)", [x], np.roll(x, -1, 1))
case("vt::roll($0, 7, -1)", [x], np.roll(x, 7, -1))
case("vt::roll($0, 1, 1)", [z], z)
for odd_even in (x, x[:, :2, :3]):
    case("vt::fftshift($0)", [odd_even], np.fft.fftshift(odd_even))
    case("vt::ifftshift($0, {1, 2})", [odd_even], np.fft.ifftshift(odd_even, (1, 2)))
case("vt::tile($0, {2})", [x], np.tile(x, 2))
case("vt::tile($0, {2, 1, 3, 1})", [x], np.tile(x, (2, 1, 3, 1)))
case("vt::tile($0, {0, 2})", [x], np.tile(x, (0, 2)))
case("vt::tile($0, {3})", [np.int32(5)], np.tile(np.int32(5), 3))
case("vt::repeat($0, 2)", [x[0]], np.repeat(x[0], 2))
case("vt::repeat($0, 3, -2)", [x], np.repeat(x, 3, -2))
case("vt::repeat($0, 0, 0)", [x], np.repeat(x, 0, 0))
m1, m2, m3 = ints(0, 9, 2), ints(0, 9, 3), ints(0, 9, 4)
for k in range(3):
    case(f"vt::meshgrid({{$0, $1, $2}})[{k}]", [m1, m2, m3], np.meshgrid(m1, m2, m3)[k])
    case(f"vt::meshgrid({{$0, $1, $2}}, true)[{k}]", [m1, m2, m3],
         np.meshgrid(m1, m2, m3, indexing="ij")[k])
s2d = ints(0, 99, 1, 4, 2, 3)
d = s2d.reshape(1, 2, 2, 1, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 1, 12)
case("vt::space_to_depth($0, 2)", [s2d], d)
case("vt::depth_to_space($0, 2)", [d], s2d)

group("Create")
case("vt::eye(3)", [], np.eye(3, dtype=np.float32))
case("vt::eye(2, 4, 1, i32)", [], np.eye(2, 4, 1, dtype=np.int32))
case("vt::eye(4, 2, -2, bool_)", [], np.eye(4, 2, -2, dtype=bool))
case("vt::arange(5)", [], np.arange(5, dtype=np.int32))
case("vt::arange(5, f16)", [], np.arange(5, dtype=np.float16))
case("vt::arange(2, 11, 3)", [], np.arange(2, 11, 3, dtype=np.int32))
case("vt::arange(5, -6, -2)", [], np.arange(5, -6, -2, dtype=np.int32))
case("vt::arange(3, 3)", [], np.arange(0, dtype=np.int32))
case("vt::arange(5000000000, 5000000003)", [], np.arange(5000000000, 5000000003))
case("vt::arange(0.0, 1.0, 0.25)", [], np.arange(0.0, 1.0, 0.25, dtype=np.float32))
case("vt::arange(1, 0, -0.3, f64)", [], np.arange(1, 0, -0.3), 4)
case("vt::linspace(0., 1., 5)", [], np.linspace(0, 1, 5, dtype=np.float32))
case("vt::linspace(-1, 2, 7, true, f64)", [], np.linspace(-1, 2, 7), 1)
case("vt::linspace(0, 1, 4, false, f64)", [], np.linspace(0, 1, 4, endpoint=False))
case("vt::linspace(0.1, 0.7, 1, true, f64)", [], np.linspace(0.1, 0.7, 1))
case("vt::linspace(-5, 5, 4, true, i32)", [], np.linspace(-5, 5, 4, dtype=np.int32))
case("vt::full({2, 2}, 7.0)", [], np.full((2, 2), 7.0))
case("vt::full({2, 2}, $0, f32)", [np.array([1, 2], np.int32)],
     np.full((2, 2), np.array([1, 2]), dtype=np.float32))
case("vt::ones_like($0)", [x], np.ones_like(x))
case("vt::full_like($0, 2.7)", [z + 1], np.full_like(z, 2.7))
case("vt::iota(f32, {2, 3}, -1)", [], np.broadcast_to(np.arange(3, dtype=np.float32), (2, 3)))

group("Index")
x = ints(0, 99, 4, 3, 5)
case("$0[-1]", [x], x[-1])
case("$0[1][2][0]", [x], x[1][2][0])
for text, py in [("1, 3", slice(1, 3)), ("std::nullopt, std::nullopt, -1", slice(None, None, -1)),
                 ("-3, -1", slice(-3, -1)),
                 ("3, 0, -2", slice(3, 0, -2)), ("1, 99, 2", slice(1, 99, 2)),
                 ("3, 1", slice(3, 1)), ("-99, 2", slice(-99, 2)),
                 ("std::nullopt, 1, -1", slice(None, 1, -1)), ("2, std::nullopt", slice(2, None)),
                 ("-1, -99, -3", slice(-1, -99, -3))]:
    case(f"$0[vt::slice({text})]", [x], x[py])
idx = np.array([[0, -1], [3, 2]], np.int32)
case("$0[$1]", [x, idx], x[idx])
case("$0[$1]", [x, np.int64(-2)], x[-2])
case("$0[$1]", [x, np.array([9, -9, 3], np.int32)], x[[3, 0, 3]])
case("vt::take($0, $1)", [x, np.array([0, 59, -1, 7], np.int32)], np.take(x, [0, 59, -1, 7]))
case("vt::take($0, $1, 1)", [x, idx % 3], np.take(x, idx % 3, 1))
case("vt::take($0, $1, -1)", [x, np.array([4, 4, 0], np.uint8)], np.take(x, [4, 4, 0], -1))
case("vt::take($0, 2, 2)", [x], np.take(x, 2, 2))
case("vt::take($0, $1, 0)", [x, np.zeros((0,), np.int32)], x[:0])
long = ints(0, 1000, 300)
case("vt::take($0, $1)", [long, np.array([-1, 127, -128], np.int8)], long[[-1, 127, -128]])
for axis in (0, 1, -1):
    order = np.argsort(x, axis=axis, kind="stable").astype(np.int32)
    case(f"vt::take_along_axis($0, $1, {axis})", [x, order], np.take_along_axis(x, order, axis))
case("vt::take_along_axis($0, $1, 1)", [x, np.array([[[0], [-1]]], np.int64)],
     np.take_along_axis(x, np.broadcast_to([[[0], [-1]]], (4, 2, 5)), 1))
ta = ints(0, 3, 4, 2, 5)
case("vt::take_along_axis($0, $1, 1)", [x[:1], ta],
     np.take_along_axis(np.broadcast_to(x[:1], x.shape), ta, 1))
v = ints(100, 200, 2, 3, 5)
y = x.copy(); y[[1, -1]] = v
case("vt::index_update($0, $1, $2)", [x, np.array([1, -1], np.int32), v], y)
y = x.copy(); y[2] = 7
case("vt::index_update($0, 2, 7)", [x], y)
y = x.copy(); np.add.at(y, [1, 1, -1], 10)
case("vt::index_add($0, $1, 10)", [x, np.array([1, 1, -1, 4, -5, 99], np.int32)], y)
y = x.astype(np.float32).copy(); np.multiply.at(y, [0, 0, 2], np.float32(1.5))
case("vt::index_mul($0, $1, 1.5)", [x.astype(np.float32), np.array([0, 0, 2, 17], np.int64)], y)
y = x.copy(); np.minimum.at(y, [0, 3], v)
case("vt::index_min($0, $1, $2)", [x, np.array([0, 3], np.int32), v], y)
y = x.copy(); np.maximum.at(y, [0, 3], 50)
case("vt::index_max($0, $1, 50)", [x, np.array([0, 3], np.int32)], y)
pairs = np.array([[0, 1], [-1, 2], [3, -3]], np.int32)
case("vt::gather_nd($0, $1)", [x, pairs], x[pairs[:, 0], pairs[:, 1]])
case("vt::gather_nd($0, $1)", [x, np.array([[[1, 2, 3]]], np.int32)], x[1, 2, 3].reshape(1, 1))
case("vt::gather_nd($0, $1)", [x[0], np.zeros((2, 0), np.int32)], np.stack([x[0], x[0]]))
y = np.zeros((4, 3), np.int32); np.add.at(y, (pairs[:, 0], pairs[:, 1]), [5, 6, 7])
case("vt::scatter_nd($0, $1, {4, 3})", [pairs, np.array([5, 6, 7], np.int32)], y)
case("vt::scatter_nd($0, $1, {4, 3})",
     [np.array([[0, 1], [0, 1], [4, 0], [0, -4]], np.int32), np.array([5, 6, 7, 8], np.int32)],
     np.array([[0, 11, 0], [0] * 3, [0] * 3, [0] * 3], np.int32))
case("vt::slice($0, {1, 0, 0}, {3, 3, 5}, {1, 2, 3})", [x], x[1:3, ::2, ::3])
case("vt::slice_in_dim($0, 1, -1, -1, 2)", [x], x[..., 1:-1:2])
case("vt::dynamic_slice($0, {1, 1, 9}, {2, 1, 2})", [x], x[1:3, 1:2, 3:5])
case("vt::dynamic_slice($0, {-7, 1, $1}, {2, 1, 2})", [x, np.int64(1)], x[0:2, 1:2, 1:3])
y = x.copy(); y[1:3, 0:3, 3:5] = v[:, :, :2]
case("vt::dynamic_update_slice($0, $1, {1, 5, 4})", [x, v[:, :, :2]], y)
case("vt::dynamic_slice_in_dim($0, 2, 2, 1)", [x], x[:, 1:3])
y = x.copy(); y[..., 2:4] = v[0, 0, 0]
case("vt::dynamic_update_slice_in_dim($0, vt::broadcast_to($1, {4, 3, 2}), 2, -1)",
     [x, v[0, 0, :1]], y)
case("vt::one_hot($0, 4)", [np.array([[0, 3], [4, -1]], np.int32)],
     np.eye(5, dtype=np.float32)[[[0, 3], [4, 4]]][..., :4])
case("vt::one_hot($0, 3, i32, 0)", [np.array([2, 0], np.uint8)],
     np.eye(3, dtype=np.int32)[[2, 0]].T)

group("Segments")
data, ids = f64(6, 2), np.array([0, 2, 2, 5, -1, 0], np.int32)
total = np.zeros((4, 2)); np.add.at(total, [0, 2, 2, 0], data[[0, 1, 2, 5]])
case("vt::segment_sum($0, $1, 4)", [data, ids], total)
prod = np.ones((4, 2)); np.multiply.at(prod, [0, 2, 2, 0], data[[0, 1, 2, 5]])
case("vt::segment_prod($0, $1, 4)", [data, ids], prod, 2)
high = np.full((4, 2), -inf); np.maximum.at(high, [0, 2, 2, 0], data[[0, 1, 2, 5]])
case("vt::segment_max($0, $1, 4)", [data, ids], high)
low = np.full((4, 2), inf); np.minimum.at(low, [0, 2, 2, 0], data[[0, 1, 2, 5]])
case("vt::segment_min($0, $1, 4)", [data, ids], low)
case("vt::segment_max($0, $1, 2)", [np.array([3, 4], np.int8), np.array([0, 0], np.int32)],
     np.array([4, -128], np.int8))
case("vt::segment_min($0, $1, 2)", [np.array([3, 4], np.uint16), np.array([0, 0], np.int32)],
     np.array([3, 65535], np.uint16))
case("vt::segment_mean($0, $1, 4)", [data, ids], total / np.array([2, 1, 2, 1])[:, None], 2)
case("vt::segment_sum($0, $1, 2)",
     [np.array([[1, 2], [3, 4]], np.int32), np.array([[0, 1], [1, 1]], np.int32)],
     np.array([1, 9], np.int32))
counts = ints(0, 6, 20)
case("vt::bincount($0, 8)", [counts], np.bincount(counts, minlength=8).astype(np.int32))
case("vt::bincount($0, 3)", [np.array([0, 5, -1, 2, 2], np.int32)], np.array([1, 0, 2], np.int32))
case("vt::bincount($0, 3)", [np.array([[True, False, True], [True, True, True]])],
     np.array([1, 5, 0], np.int32))
hx = np.array([0.0, 0.5, 1.0, 2.0, 2.5, 3.0, -0.1, 3.1, nan, 1.5, inf])
case("vt::histogram($0, 3, 0.0, 3.0)", [hx],
     np.histogram(hx[np.isfinite(hx)], 3, (0, 3))[0].astype(np.int32))
case("vt::histogram($0, 4, 0.0, 8.0)", [counts],
     np.histogram(counts, 4, (0, 8))[0].astype(np.int32))
for size in (0, 1, 5, 64, 65, 200):
    edges = np.sort(np.round(rng.normal(size=size) * 3, 1))
    at = np.concatenate([np.round(rng.normal(size=5) * 3, 1), edges[:2], [-99, 99]])
    case("vt::bucketize($0, $1)", [at, edges], np.searchsorted(edges, at, "left").astype(np.int32))
    case("vt::bucketize($0, $1, true)", [at, edges],
         np.searchsorted(edges, at, "right").astype(np.int32))
case("vt::searchsorted($0, $1)", [np.array([1, 3, 3, 9], np.int32), np.array([[0.5, 3], [4, 9]])],
     np.searchsorted([1, 3, 3, 9], [[0.5, 3], [4, 9]]).astype(np.int32))
case("vt::searchsorted($0, 3, true)", [np.array([1, 3, 3, 9], np.int32)], np.int32(3))
holes = np.array([[0, 3, 0, 1], [5, 0, 0, 2]], np.float32)
for k in range(2):
    where = np.nonzero(holes)[k].astype(np.int32)
    case(f"vt::nonzero($0, 5)[{k}]", [holes], np.append(where, np.int32(0)))
    case(f"vt::nonzero($0, 3)[{k}]", [holes], where[:3])
    case(f"vt::nonzero($0, 7, -1)[{k}]", [holes],
         np.append(where, np.array([-1, -1, -1], np.int32)))
    case(f"vt::nonzero($0, 2, 9)[{k}]", [holes[:0]], np.array([9, 9], np.int32))
xp, fp = np.array([0.0, 1.0, 2.5, 4.0]), np.array([3.0, -1.0, 2.0, 0.5])
at = np.array([[-1.0, 0.0, 0.3], [1.0, 3.3, 4.0], [5.0, 2.5, inf]])
case("vt::interp($0, $1, $2)", [at, xp, fp], np.interp(at, xp, fp), 2)
case("vt::interp($0, $1, $2)", [at, xp[:1], fp[:1]], np.interp(at, xp[:1], fp[:1]))

group("Matrix")
x, sq, vec = f64(2, 3, 4), f64(3, 3), f64(3)
for k in (-3, -1, 0, 1, 2, 9):
    case(f"vt::diagonal($0, {k}, 1, 2)", [x], np.diagonal(x, k, 1, 2))
    case(f"vt::diagonal($0, {k}, -1, 0)", [x], np.diagonal(x, k, -1, 0))
    case(f"vt::tril($0, {k})", [x], np.tril(x, k))
    case(f"vt::triu($0, {k})", [x], np.triu(x, k))
    case(f"vt::trace($0, {k})", [sq], np.trace(sq, k), 2)
    if abs(k) < 4:
        case(f"vt::diag($0, {k})", [vec], np.diag(vec, k))
        case(f"vt::diag($0, {k})", [sq], np.diag(sq, k))
case("vt::trace($0)", [x], np.trace(x), 2)
case("vt::diagonal($0)", [np.zeros((0, 3))], np.zeros(0))
case("vt::matrix_diag($0)", [x[0]], np.stack([np.diag(r) for r in x[0]]))
for shape in ((3, 4), (4, 3), (3, 3)):
    mat, dg = f64(2, *shape), f64(2, 3)
    want = mat.copy()
    for b in range(2):
        want[b, range(3), range(3)] = dg[b]
    case("vt::matrix_set_diag($0, $1)", [mat, dg], want)
r, c = np.indices((3, 4))
for lower, upper in ((0, 0), (1, 0), (-1, 1), (2, -1), (-1, -1)):
    mask = ((r - c <= lower) | (lower < 0)) & ((c - r <= upper) | (upper < 0))
    case(f"vt::band_part($0, {lower}, {upper})", [x], np.where(mask, x, 0))
case("vt::kron($0, $1)", [sq, x[0]], np.kron(sq, x[0]))
case("vt::kron($0, $1)", [vec, x[0, :2]], np.kron(vec, x[0, :2]))
v2 = f64(2, 3)
case("vt::cross($0, $1)", [v2, vec], np.cross(v2, vec), 4)
case("vt::cross($0, $1, 0)", [v2.T, f64(3, 2) * 0 + 1.5],
     np.cross(v2.T, np.full((3, 2), 1.5), axis=0), 4)
case("vt::cross($0, $1)", [v2[:, :2], v2[::-1, :2]],
     v2[:, 0] * v2[::-1, 1] - v2[:, 1] * v2[::-1, 0], 4)
case("vt::cross($0, $1)", [v2[:, :2], v2[::-1]],
     np.cross(np.pad(v2[:, :2], ((0, 0), (0, 1))), v2[::-1]), 4)
case("vt::polyval($0, $1)", [vec, x[0]], np.polyval(vec, x[0]), 4)
case("vt::polyval($0, $1)", [vec[:0], x[0]], np.zeros((3, 4)))
for n in (0, 1, 2, 5, 8):
    case(f"vt::matrix_power($0, {n})", [sq], np.linalg.matrix_power(sq, n), 64)
case("vt::cov($0)", [x[0]], np.cov(x[0]), 16)
case("vt::cov($0, false, 0)", [x[0]], np.cov(x[0], rowvar=False, ddof=0), 16)
case("vt::cov($0)", [vec], np.cov(vec), 16)
case("vt::corrcoef($0)", [x[0]], np.corrcoef(x[0]), 16)

group("Contract")
def mat(*shape):
    return (rng.integers(-8, 9, size=shape) / 4).astype(np.float32)
for sa, sb in [((3, 4), (4, 2)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 2)), ((5, 3, 4), (4, 2)),
               ((3, 4), (5, 4, 2)), ((5, 3, 4), (5, 4, 2)),
               ((5, 1, 3, 4), (2, 4, 2)), ((1, 3, 4), (5, 4, 2)), ((5, 3, 4), (1, 4, 2)),
               ((4,), (5, 4, 2)), ((5, 3, 4), (4,)), ((0, 4), (4, 2)),
               ((3, 0), (0, 2)), ((2, 1, 3, 4), (1, 5, 4, 2)), ((0, 3, 4), (4, 2)),
               ((1, 1, 4), (1, 4, 1))]:
    a, b = mat(*sa), mat(*sb)
    case("vt::matmul($0, $1)", [a, b], np.matmul(a, b))
for sa, sb in [((3, 4), (4, 2)), ((2, 3, 4), (5, 4, 2)), ((4,), (4,)), ((2, 3, 4), (4,)),
               ((), (3,))]:
    a, b = mat(*sa), mat(*sb)
    case("vt::dot($0, $1)", [a, b], np.dot(a, b))
a, b = mat(2, 3, 4), mat(5, 4)
case("vt::inner($0, $1)", [a, b], np.inner(a, b))
case("vt::outer($0, $1)", [a[0], b[0]], np.outer(a[0], b[0]))
case("vt::vdot($0, $1)", [a, a[:, ::-1]], np.vdot(a, a[:, ::-1]))
t1, t2 = mat(4, 2), mat(3, 4, 2)
case("vt::tensordot($0, $1, 1)", [a, t1], np.tensordot(a, t1, 1))
case("vt::tensordot($0, $1)", [a, t2], np.tensordot(a, t2))
case("vt::tensordot($0, $1, 0)", [t1, b], np.tensordot(t1, b, 0))
case("vt::tensordot($0, $1, {1, -1}, {0, 1})", [a, t2], np.tensordot(a, t2, ((1, -1), (0, 1))))
case("vt::dot_general($0, $1, {.lhs_contract = {2}, .rhs_contract = {1}, .lhs_batch = {0}, "
     ".rhs_batch = {2}})", [a, t2],
     np.einsum("bik,jkb->bij", a, t2))
ia, ib = ints(-9, 9, 2, 3, dtype=np.int8), ints(-9, 9, 3, 2, dtype=np.int64)
case("vt::matmul($0, $1)", [ia, ib], ia @ ib)
for text, shapes in [("ij,jk", ((2, 3), (3, 4))), ("ii", ((3, 3),)), ("ii->i", ((3, 3),)),
                     ("ij->ji", ((2, 3),)), ("ij->", ((2, 3),)),
                     ("...ij,...jk->...ik", ((5, 2, 3), (3, 4))),
                     ("i...,i...->...", ((2, 3), (2, 3))), ("iij->ij", ((3, 3, 2),)),
                     ("iji->j", ((3, 2, 3),)), ("i,j", ((2,), (3,))),
                     ("ij,ij->i", ((2, 3), (2, 3))), ("ba", ((2, 3),)),
                     (" i j , j k -> k i ", ((2, 3), (3, 4))), ("a...b->b...a", ((2, 3, 4),)),
                     ("...ij", ((5, 2, 3),)),
                     ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 2))),
                     ("bij,bjk,bk->bi", ((2, 3, 4), (2, 4, 3), (2, 3))),
                     ("i,ij,j->", ((2,), (2, 3), (3,))), ("iii->i", ((3, 3, 3),)),
                     ("ij,j", ((2, 3), (3,))), ("...,...", ((2, 3), (3,))),
                     ("aab,bcc->ac", ((2, 2, 3), (3, 4, 4))), ("Ab,bA->A", ((2, 3), (3, 2))),
                     (",ij", ((), (2, 3)))]:
    ops = [mat(*s) for s in shapes]
    call = ", ".join(f"${k}" for k in range(len(ops)))
    case(f'vt::einsum("{text}", {call})', ops, np.einsum(text, *ops))

group("Networks")
x = f64(3, 4)
with np.errstate(all="ignore"):
    wild = np.array([[-inf, 0.0, 1.0, 1000.0], [-1000.0, -1001.0, -inf, -1002.0]])
    for name, fn in (("softmax", special.softmax), ("log_softmax", special.log_softmax)):
        for axis in (-1, 0):
            case(f"vt::{name}($0, {axis})", [x], fn(x, axis=axis), 8)
        case(f"vt::{name}($0)", [wild], fn(wild, axis=-1), 8)
wild = np.array([-inf, -1000.0, -30.0, -1.0, -0.0, 0.0, 1.0, 30.0, 1000.0, inf, nan])
sig = special.expit(wild)
case("vt::sigmoid($0)", [wild], sig, 4)
case("vt::softplus($0)", [wild], np.logaddexp(wild, 0), 4)
case("vt::relu($0)", [wild], np.maximum(wild, 0))
case("vt::relu6($0)", [wild], np.clip(wild, 0, 6))
case("vt::elu($0, 0.5)", [wild], np.where(wild > 0, wild, 0.5 * np.expm1(np.minimum(wild, 0))), 4)
case("vt::selu($0)", [wild], 1.0507009873554804934193349852946 *
     np.where(wild > 0, wild, 1.6732632423543772848170429916717 * np.expm1(np.minimum(wild, 0))), 4)
case("vt::leaky_relu($0, 0.1)", [wild], np.where(wild >= 0, wild, 0.1 * wild))
finite = wild[1:-2]
case("vt::silu($0)", [finite], finite * special.expit(finite), 4)
case("vt::gelu($0)", [x], x * 0.5 * (1 + special.erf(x / np.sqrt(2))), 16)
case("vt::gelu($0, true)", [x],
     0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))), 64)
case("vt::softsign($0)", [finite], finite / (1 + np.abs(finite)))
case("vt::hard_tanh($0)", [wild], np.clip(wild, -1, 1))
scale, shift = f64(4), f64(4)
mu, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
case("vt::layer_norm($0, $1, $2)", [x, scale, shift],
     (x - mu) / np.sqrt(var + 1e-5) * scale + shift, 64)
mu, var = x.mean(0), x.var(0)
case("vt::layer_norm($0, 1.0, 0.0, 0, 1e-3)", [x], (x - mu) / np.sqrt(var + 1e-3), 64)
case("vt::rms_norm($0, $1)", [x, scale],
     x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6) * scale, 64)
img = f64(2, 3, 2, 4)
grp = img.reshape(2, 3, 2, 2, 2)
norm = ((grp - grp.mean((1, 2, 4), keepdims=True)) /
        np.sqrt(grp.var((1, 2, 4), keepdims=True) + 1e-5)).reshape(img.shape)
case("vt::group_norm($0, 2, $1, $2)", [img, scale, shift], norm * scale + shift, 64)
mu, var = img.mean((0, 1, 2)), img.var((0, 1, 2))
case("vt::batch_norm_training($0, $1, $2).y", [img, scale, shift],
     (img - mu) / np.sqrt(var + 1e-5) * scale + shift, 64)
case("vt::batch_norm_training($0, $1, $2).mean", [img, scale, shift], mu, 64)
case("vt::batch_norm_training($0, $1, $2).variance", [img, scale, shift], var, 64)
case("vt::batch_norm_inference($0, $1, $2, $3, $4)", [img, scale, shift, mu, var + 0.5],
     (img - mu) / np.sqrt(var + 0.5 + 1e-5) * scale + shift, 64)
target = special.softmax(f64(3, 4), -1)
case("vt::cross_entropy($0, $1)", [x, target], -(target * special.log_softmax(x, -1)).sum(-1), 16)
hot = np.array([[-inf, 1.0, 2.0]]), np.array([[0.0, 1.0, 0.0]])
case("vt::cross_entropy($0, $1)", list(hot), np.array([np.log(1 + np.exp(1))]), 4)
labels = np.array([3, 0, -2], np.int32)
case("vt::sparse_cross_entropy($0, $1)", [x, labels],
     -special.log_softmax(x, -1)[[0, 1, 2], labels], 16)
case("vt::l2_loss($0)", [x], (x ** 2).sum() / 2, 8)
case("vt::sum_of_squares($0)", [labels], np.int32((labels ** 2).sum()))

group("Images")
rgb = np.array([[[[0.1, 0.5, 0.9], [0.4, 0.4, 0.4], [0.0, 0.0, 0.0]],
                 [[1.0, 0.25, 0.5], [0.75, 0.5, 0.25], [0.2, 0.9, 0.3]]]])


def each(f, images):
    return np.array([f(*p) for p in images.reshape(-1, 3)]).reshape(images.shape)


hsv = each(colorsys.rgb_to_hsv, rgb)
case("vt::rgb_to_hsv($0)", [rgb], hsv, 4)
case("vt::hsv_to_rgb($0)", [hsv], rgb, 4)
case("vt::adjust_hue($0, 0.3)", [rgb], each(colorsys.hsv_to_rgb, (hsv + [0.3, 0, 0]) % [1, 9, 9]),
     8)
case("vt::adjust_saturation($0, 1.7)", [rgb],
     each(colorsys.hsv_to_rgb, np.minimum(hsv * [1, 1.7, 1], [2, 1, 2])), 8)
centre = rgb.mean((-3, -2), keepdims=True)
case("vt::adjust_contrast($0, 2.5)", [rgb], (rgb - centre) * 2.5 + centre, 8)

group("Order")
m, ties, wild = f64(3, 5), ints(-2, 3, 4, 5), np.array([2.5, nan, -inf, 0.0, inf, -1.5, nan, 2.5])
for axis in (0, 1, -1):
    case(f"vt::sort($0, {axis})", [m], np.sort(m, axis))
    case(f"vt::argsort($0, {axis})", [ties], np.argsort(ties, axis, kind="stable").astype(np.int32))
case("vt::sort($0, std::nullopt)", [m], np.sort(m, None))
case("vt::argsort($0, std::nullopt)", [ties],
     np.argsort(ties, None, kind="stable").astype(np.int32))
case("vt::sort($0)", [wild], np.sort(wild))
case("vt::argsort($0)", [wild], np.argsort(wild, kind="stable").astype(np.int32))
case("vt::lexsort({$0, $1})", [ties[0], ties[1]], np.lexsort((ties[0], ties[1])).astype(np.int32))
case("vt::lexsort({$0, $1, $2}, 0)", [ties, -ties, ties * 2],
     np.lexsort((ties, -ties, ties * 2), 0).astype(np.int32))
case("vt::slice_in_dim(vt::partition($0, 2), 2, 3)", [m[0]], np.partition(m[0], 2)[2:3])
case("vt::take($0, vt::argpartition($0, -2))[-2]", [m[0]], np.partition(m[0], -2)[-2])
case("vt::searchsorted(vt::sort($0), $1)", [m[0], m[1]],
     np.searchsorted(np.sort(m[0]), m[1]).astype(np.int32))
gaps = np.array([1.5, nan, -2.0, 0.25, nan, 3.0])
for method in ("linear", "lower", "higher", "nearest", "midpoint"):
    name = f"vt::QuantileMethod::{method}"
    for q in (0.0, 0.125, 0.5, 0.7, 1.0):
        case(f"vt::quantile($0, {q}, 1, {name})", [m], np.quantile(m, q, 1, method=method), 2)
    qs = np.array([0.0, 0.25, 0.3, 0.5, 0.875, 1.0])
    case(f"vt::quantile($0, $1, 0, {name})", [m, qs], np.quantile(m, qs, 0, method=method), 2)
    case(f"vt::percentile($0, $1, {{}}, {name})", [m, qs * 100],
         np.percentile(m, qs * 100, method=method), 4)
    case(f"vt::nanquantile($0, $1, {{}}, {name})", [gaps, qs],
         np.nanquantile(gaps, qs, method=method), 2)
case("vt::quantile($0, 0.25)", [m], np.quantile(m, 0.25), 2)
k = f64(2, 3, 4)
case("vt::quantile($0, 0.25, {0, 2})", [k], np.quantile(k, 0.25, (0, 2)), 2)
case("vt::quantile($0, $1, {0, 2}, vt::QuantileMethod::linear, true)", [k, qs],
     np.quantile(k, qs, (0, 2), keepdims=True), 2)
case("vt::median($0)", [m], np.median(m))
even = f64(4, 3)
case("vt::median($0, 0, true)", [even], np.median(even, 0, keepdims=True), 2)
whole = ints(0, 50, 6)
case("vt::median($0)", [whole], np.float32(np.median(whole)))
holes = np.where(m > 1, nan, m)
holes[1] = nan
case("vt::median($0, 1)", [holes], np.median(holes, 1))
case("vt::nanmedian($0, 1)", [holes],
     np.array([np.nanmedian(r) if not np.isnan(r).all() else nan for r in holes]), 2)
case("vt::nanpercentile($0, 30)", [holes], np.nanpercentile(holes, 30), 2)
for data in (ties, wild, np.array([True, False, True])):
    values, index, inverse, counts = np.unique(data, True, True, True)
    case("vt::unique($0)", [data], values)
    case("vt::unique_all($0).index", [data], index.astype(np.int32))
    case("vt::unique_all($0).inverse", [data], inverse.reshape(data.shape).astype(np.int32))
    case("vt::unique_all($0).counts", [data], counts.astype(np.int32))
case("vt::nonzero($0)[1]", [ties], np.nonzero(ties)[1].astype(np.int32))


group("EdgesBlocksAndSizes")
e2, e3 = ints(0, 99, 3, 4), f64(2, 1, 3)
for mode in ("edge", "reflect", "symmetric", "wrap"):
    case(f"vt::pad($0, {{{{2, 1}}, {{0, 9}}}}, vt::PadMode::{mode})", [e2],
         np.pad(e2, ((2, 1), (0, 9)), mode))
    case(f"vt::pad($0, {{{{3, 2}}}}, vt::PadMode::{mode})", [e3], np.pad(e3, (3, 2), mode))
for axis in (0, 1, -1):
    rows = rng.integers(0, 2, size=(5, 6, 2)[: 3 if axis else 2]).astype(np.int32)
    values, index, inverse, counts = np.unique(rows, True, True, True, axis)
    case(f"vt::unique($0, {{.axis = {axis}}})", [rows], values)
    case(f"vt::unique_all($0, {{.axis = {axis}}}).index", [rows], index.astype(np.int32))
    case(f"vt::unique_all($0, {{.axis = {axis}}}).inverse", [rows],
         inverse.ravel().astype(np.int32))
    case(f"vt::unique_all($0, {{.axis = {axis}}}).counts", [rows], counts.astype(np.int32))
holes = np.array([[1.0, nan, 2], [0, nan, 2], [1, nan, 2], [0, nan, nan]])
case("vt::unique($0, {.axis = 0})", [holes], np.array([[0, nan, 2], [0, nan, nan], [1, nan, 2]]))
s2b = ints(0, 99, 2, 3, 4, 2)
cut = np.pad(s2b, ((0, 0), (1, 0), (0, 2), (0, 0))).reshape(2, 2, 2, 2, 3, 2)
cut = cut.transpose(2, 4, 0, 1, 3, 5).reshape(12, 2, 2, 2)
case("vt::space_to_batch($0, {2, 3}, {{1, 0}, {0, 2}})", [s2b], cut)
case("vt::batch_to_space($0, {2, 3}, {{1, 0}, {0, 2}})", [cut], s2b)
case("vt::space_to_batch($0, {1}, {{0, 0}})", [s2b], s2b)


def kernel(method, x):
    if method == "linear":
        return np.maximum(1 - x, 0)
    if method == "cubic":
        return np.where(x >= 2, 0,
                        np.where(x >= 1, ((-0.5 * x + 2.5) * x - 4) * x + 2,
                                 (1.5 * x - 2.5) * x * x + 1))
    r = int(method[-1])
    return np.where(x > r, 0, np.sinc(x) * np.sinc(x / r))


def weights(n, m, method, antialias):
    wide = max(n / m, 1) if antialias else 1
    w = kernel(method, abs((np.arange(m) + 0.5) * n / m - 0.5 - np.arange(n)[:, None]) / wide)
    return w / w.sum(0)


picture = f64(5, 4, 2)
for method in ("linear", "cubic", "lanczos3", "lanczos5"):
    for m, antialias in ((3, True), (3, False), (11, True)):
        out = np.einsum("hwc,hi,wj->ijc", picture, weights(5, m, method, antialias),
                        weights(4, m + 1, method, antialias))
        case(f"vt::resize($0, {{{m}, {m + 1}, 2}}, vt::Resize::{method}, {str(antialias).lower()})",
             [picture], out, 200)
near = lambda n, m: np.floor((np.arange(m) + 0.5) * n / m).astype(int)
case("vt::resize($0, {3, 9, 2}, vt::Resize::nearest)", [picture],
     picture[near(5, 3)][:, near(4, 9)])
case("vt::resize($0, {6, 2}, vt::Resize::nearest)", [e2], e2[near(3, 6)][:, near(4, 2)])

group("OptionsOfReductions")
a, n0 = f64(3, 4), np.zeros((2, 0, 3))
case("vt::max($0, 1, {.initial = 0.5})", [a], a.max(1, initial=0.5))
case("vt::min($0, {}, {.initial = -9, .keepdims = true})", [a], a.min(initial=-9, keepdims=True))
case("vt::sum($0, {0, 1}, {.initial = 100.0})", [a], a.sum(initial=100), 2)
case("vt::prod($0, 0, {.initial = 2})", [a], a.prod(0, initial=2), 4)
case("vt::max($0, 1, {.initial = -1.5})", [n0], n0.max(1, initial=-1.5))
case("vt::min($0, {}, {.initial = 7})", [n0.astype(np.int32)], np.int32(7))
case("vt::max($0, {}, {.initial = 3})", [np.zeros(0, np.uint8)], np.uint8(3))
case("vt::sum($0, {})", [a], a.sum(), 4)
case("vt::max($0, {})", [a], a.max())
case("vt::max($0, {0})", [a], a.max(0))
case("vt::max($0, {0, 1})", [a], a.max())
ties = np.array([[3, 1, 3, 3], [0, 0, 0, 0], [1, 2, 2, 1]], np.int32)
last = lambda x, axis: x.shape[axis] - 1 - np.argmax(np.flip(x, axis), axis)
case("vt::argmax($0, 1, {.last = true})", [ties], last(ties, 1).astype(np.int32))
case("vt::argmin($0, 0, {.last = true})", [ties], last(-ties, 0).astype(np.int32))
case("vt::argmax($0, 1, {.last = true, .keepdims = true})", [ties],
     last(ties, 1)[:, None].astype(np.int32))
case("vt::argmax($0, std::nullopt, {.last = true})", [ties], np.int32(3))
case("vt::argmax($0, std::nullopt, {.last = true, .keepdims = true})", [ties],
     np.array([[3]], np.int32))
case("vt::top_k($0, 3, -1, {.smallest = true}).first", [ties], np.sort(ties, 1)[:, :3])
case("vt::top_k($0, 3, 1, {.smallest = true}).second", [ties],
     np.argsort(ties, 1, kind="stable")[:, :3].astype(np.int32))
case("vt::top_k($0, 2, 0, {.smallest = true}).first", [np.array([nan, 2.0, -1.0])],
     np.array([-1.0, 2.0]))

group("WithoutNaN")
gaps = f64(3, 4)
gaps[0, 1] = gaps[1, :] = gaps[2, 0] = nan
few = gaps[[0, 2]]
for axes, text in [((0, 1), "{}"), (0, "0"), (1, "1")]:
    for keep in (False, True):
        k = "true" if keep else "false"
        case(f"vt::nansum($0, {text}, {k})", [gaps], np.nansum(gaps, axes, keepdims=keep), 4)
        case(f"vt::nanprod($0, {text}, {k})", [gaps], np.nanprod(gaps, axes, keepdims=keep), 4)
        case(f"vt::nanmax($0, {text}, {k})", [gaps], np.nanmax(gaps, axes, keepdims=keep))
        case(f"vt::nanmin($0, {text}, {k})", [gaps], np.nanmin(gaps, axes, keepdims=keep))
        case(f"vt::nanmean($0, {text}, {k})", [gaps], np.nanmean(gaps, axes, keepdims=keep), 4)
        case(f"vt::nanvar($0, {text}, 1, {k})", [gaps],
             np.nanvar(gaps, axes, ddof=1, keepdims=keep), 8)
        case(f"vt::nanstd($0, {text}, 0, {k})", [gaps], np.nanstd(gaps, axes, keepdims=keep), 8)
case("vt::nanargmax($0, 1)", [few], np.nanargmax(few, 1).astype(np.int32))
case("vt::nanargmin($0)", [few], np.int32(np.nanargmin(few)))
case("vt::nanargmax($0, 1)", [gaps], np.array([np.nanargmax(gaps[0]), -1, np.nanargmax(gaps[2])],
                                             np.int32))
case("vt::nanmean($0)", [ties], np.float32(ties.mean()), 2)
case("vt::nanmax($0)", [ties], np.int32(3))
case("vt::nanmean($0)", [np.array([1, nan, 4], np.float16)], np.float16(2.5))
case("vt::nancumsum($0, 1)", [gaps], np.nancumsum(gaps, 1), 2)
case("vt::nancumprod($0, 0)", [gaps], np.nancumprod(gaps, 0), 2)

group("Exclusive")
w = ints(1, 9, 3, 4)
shift = lambda x, start, axis: np.concatenate([np.full_like(np.take(x, [0], axis), start),
                                               np.delete(x, -1, axis)], axis)
for axis in (0, 1):
    o = "{.exclusive = true}"
    case(f"vt::cumsum($0, {axis}, {o})", [w],
         shift(np.cumsum(w, axis, dtype=np.int32), 0, axis))
    case(f"vt::cumprod($0, {axis}, {o})", [w],
         shift(np.cumprod(w, axis, dtype=np.int32), 1, axis))
    case(f"vt::cummax($0, {axis}, {o})", [a], shift(np.maximum.accumulate(a, axis), -inf, axis))
    case(f"vt::cummin($0, {axis}, {o})", [w],
         shift(np.minimum.accumulate(w, axis), np.iinfo(np.int32).max, axis))
    case(f"vt::cumlogsumexp($0, {axis}, {o})", [a],
         shift(np.logaddexp.accumulate(a, axis), -inf, axis), 8)
    back = np.flip(shift(np.cumsum(np.flip(w, axis), axis, dtype=np.int32), 0, axis), axis)
    case(f"vt::cumsum($0, {axis}, {{.reverse = true, .exclusive = true}})", [w], back)
case("vt::cumsum($0, 0, {.exclusive = true})", [np.zeros((0, 3))], np.zeros((0, 3)))
case("vt::cumsum($0, 0, {.exclusive = true})", [np.array([True, True, False])],
     np.array([0, 1, 2], np.int32))

group("ByTensors")
for by in (-7, 0, 2, 5):
    s = np.array(by, np.int32)
    case("vt::roll($0, $1, 1)", [w, s], np.roll(w, by, 1))
    case("vt::roll($0, $1)", [w, s], np.roll(w, by))
case("vt::roll($0, $1, 0)", [w, np.array(250, np.uint8)], np.roll(w, 250, 0))
c3 = np.array([2, 0, 3], np.int32)
case("vt::repeat($0, $1, 0)", [w, c3], np.repeat(w, c3, 0))
case("vt::repeat($0, $1)", [w[0, :3], c3], np.repeat(w[0, :3], c3))
case("vt::repeat($0, $1, 0)", [w, np.array(2, np.int32)], np.repeat(w, 2, 0))
case("vt::repeat($0, $1, 0, 7)", [w, c3], w[[0, 0, 2, 2, 2, 2, 2]])
case("vt::repeat($0, $1, 0, 3)", [w, c3], w[[0, 0, 2]])
case("vt::repeat($0, $1, 0, 4)", [w, np.array([-2, 1, 9], np.int32)], w[[1, 2, 2, 2]])
low, high = f64(3, 1), f64(4)
case("vt::linspace($0, $1, 5)", [low, high], np.linspace(low, high, 5), 4)
case("vt::linspace($0, 1, 4, false)", [low], np.linspace(low, 1, 4, endpoint=False), 4)
case("vt::linspace($0, $1, 1)", [low, high], np.linspace(low, high, 1))
case("vt::linspace($0, $1, 0)", [low, high], np.linspace(low, high, 0))
case("vt::linspace($0, 3, 4)", [np.array([0, 6], np.int32)],
     np.linspace([0, 6], 3, 4).astype(np.float32), 2)

group("Places")
flat = ints(0, 24, 2, 3)
for k, at in enumerate(np.unravel_index(flat, (2, 3, 4))):
    case(f"vt::unravel_index($0, {{2, 3, 4}})[{k}]", [flat], at.astype(np.int32))
case("vt::unravel_index($0, {2, 3, 4})[2]", [np.array([-1, 99], np.int32)], np.array([3, 3], "i4"))
i0, i1 = ints(0, 3, 5), ints(0, 4, 5)
case("vt::ravel_multi_index({$0, $1}, {3, 4})", [i0, i1],
     np.ravel_multi_index((i0, i1), (3, 4)).astype(np.int32))
case("vt::ravel_multi_index({$0, $1}, {3, 4})", [np.array([-1, 7], "i4"), np.array([0, 9], "i4")],
     np.array([8, 11], "i4"))

group("Curves")
y = f64(3, 5)
t5 = np.array([0, 0.5, 0.75, 2, 3.5])
case("vt::trapezoid($0)", [y], np.trapezoid(y), 8)
case("vt::trapezoid($0, 0.25, 0)", [y], np.trapezoid(y, dx=0.25, axis=0), 8)
case("vt::trapezoid($0, $1)", [y, t5], np.trapezoid(y, t5), 8)
case("vt::trapezoid($0, $1, 0)", [y, np.cumsum(y * y, 0)],
     np.trapezoid(y, np.cumsum(y * y, 0), axis=0), 8)
for mode in ("full", "same", "valid"):
    for p, q in [(f64(7), f64(3)), (f64(3), f64(6)), (ints(-5, 5, 6), ints(-5, 5, 4))]:
        case(f"vt::convolve($0, $1, vt::ConvolveMode::{mode})", [p, q],
             np.convolve(p, q, mode).astype(p.dtype), 8)
case("vt::vander($0, 3)", [t5], np.vander(t5, 3), 2)
case("vt::vander($0, 4, true)", [c3], np.vander(c3, 4, True).astype(np.int32))
case("vt::vander($0)", [t5[:3]], np.vander(t5[:3]), 2)
case("vt::polyfit($0, $1, 2)", [t5, y[0]], np.polyfit(t5, y[0], 2), 2000)
case("vt::polyfit($0, $1, 1)", [t5, y.T], np.polyfit(t5, y.T, 1), 2000)

def index_text(index, first):
    """An index tuple of NumPy as vt's indices, and the arrays in it, which are $first and on."""
    texts, arrays = [], []
    for i in index:
        if isinstance(i, slice):
            bounds = [i.start, i.stop, i.step]
            while bounds and bounds[-1] is None:
                bounds.pop()
            if len(bounds) == 1:
                bounds.append(None)
            texts.append("vt::slice(" + ", ".join("std::nullopt" if b is None else str(b)
                                                  for b in bounds) + ")")
        elif isinstance(i, np.ndarray):
            texts.append(f"${first + len(arrays)}")
            arrays.append(i)
        else:
            texts.append({None: "vt::newaxis", Ellipsis: "vt::ellipsis"}.get(i, str(i)))
    return ", ".join(texts), arrays


group("Indices")
every, rest, new = slice(None), Ellipsis, None
x = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
lines.append("  const Tensor x = vt::reshape(vt::arange(60), {3, 4, 5});")
i0, i1 = np.array([0, 2, -1], np.int32), np.array([[1], [-2]], np.int64)
i2 = np.array([3, 0, 2], np.uint8)
one, two = np.array(1, np.int32), np.array(-1, np.int8)
index_tuples = [
    (1, 2), (1, -1, 3), (-1,), (every, 2), (every, every, 1), (rest, 1), (0, rest), (0, rest, -2),
    (rest,), (rest, new), (new, rest), (new, 1, new, every, new), (1, rest, new, 2),
    (slice(1, 3), slice(None, None, 2)), (slice(None, None, -1), slice(3, 0, -2), slice(-2, None)),
    (slice(2, 2), 0), (slice(-9, 9), slice(9, -9, -3)), (rest, slice(None, None, -2)),
    (i0,), (i0, 1), (1, i0), (i0, i2), (i0, i0, i2), (i1, i0), (i0, i1, i2),
    (every, i0), (every, i0, i2), (every, i1, i2), (i0, every, i2), (i0, slice(1, 3)),
    (i0, slice(None, None, -2), i2), (0, every, i0), (0, i0), (i0, every, 1), (every, 0, i0),
    (every, i0, 0), (1, rest, i0), (i0, rest, 2), (i0, rest), (rest, i0), (rest, i1, i0),
    (i0, new, i2), (i0, i2, new), (new, i0, i2), (every, new, i0, new), (0, new, i0),
    (one,), (one, two), (one, every, two), (one, i0), (one, every, i0), (every, one, i0),
    (one, new, i0), (0, one, i0), (0, every, one), (one, slice(3, None, -1), 2),
    (every, i1, slice(4, 0, -2)), (slice(2, None, -1), i0, slice(0, 5, 3)),
    (i0, i0, rest, i2), (new, i0, new, i0, new), (0, 1, i0), (0, i0, 1), (i0, 0, 1),
    (slice(0, 2), i0, rest, new), (i1, slice(None, None, 2), one),
]
for index in index_tuples:
    text, arrays = index_text(index, 0)
    case(f"x({text})", arrays, np.asarray(x[index]))

group("Writing")
lines.append("  const Tensor x = vt::reshape(vt::arange(60), {3, 4, 5});")
for k, index in enumerate(index_tuples):
    shape = x[index].shape
    v = ints(-99, 99, *shape[len(shape) // 2 if k % 3 else 0:])
    once = np.zeros(x.shape, np.int32)
    np.add.at(once, index, 1)
    text, arrays = index_text(index, 1)
    if once.max() <= 1:
        y = x.copy()
        y[index] = v
        case(f"vt::at(x, {text}).set($0)", [v] + arrays, y)
    name, ufunc = [("add", np.add), ("mul", np.multiply), ("min", np.minimum),
                   ("max", np.maximum)][k % 4]
    y = x.copy()
    ufunc.at(y, index, v)
    case(f"vt::at(x, {text}).{name}($0)", [v] + arrays, y)
mask, first = x % 3 == 0, np.array([True, False, True])
for m, v in ((mask, ints(0, 9, 5)), (mask, ints(0, 9, 3, 1, 1)), (first, ints(0, 9, 4, 5)),
             (mask[:, :, 0], ints(0, 9, 5))):
    wide = m.reshape(m.shape + (1,) * (x.ndim - m.ndim))
    case("vt::at(x, $1).set($0)", [v, m], np.where(wide, v, x))
    case("vt::at(x, $1).add($0)", [v, m], np.where(wide, x + v, x))
for axis in (0, 1, -1):
    order = np.argsort(x * 7 % 11, axis).astype(np.int32)
    v = ints(0, 99, *x.shape)
    y = x.copy()
    np.put_along_axis(y, order, v, axis)
    case(f"vt::put_along_axis(x, $0, $1, {axis})", [order, v], y)
few, v = np.array([[[1], [-1], [0], [2]]], np.int64), ints(0, 99, 3, 4, 1)
y = x.copy()
np.put_along_axis(y, few, v, 2)
case("vt::put_along_axis(x, $0, $1, 2)", [few, v], y)
few = ints(-4, 4, 3, 6, 5)
y, v = x.copy(), ints(0, 9, 6, 1)
np.add.at(y, (np.arange(3)[:, None, None], few, np.arange(5)), v)
case("vt::put_along_axis(x, $0, $1, 1, vt::Combine::add)", [few, v], y)

print("// Written by numpy_cases.py: calls of vt functions and what NumPy and SciPy give."
      " Do not edit.")
print("\n".join(lines + ["}"]))
