// The text that every CUDA kernel begins with.
#include "prelude.hpp"

namespace vt::detail::cuda {

// Numbers in registers have these types; f16 and bf16 are floats that were rounded. `idx`: the type
// of offsets, chosen by each kernel.
const std::string_view prelude = R"cuda(
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64; typedef unsigned long long u64; typedef float f32; typedef double f64;
#define VT_FN static __device__ __forceinline__
#ifndef VT_EMULATED
#pragma nv_diag_suppress 177  // no kernel uses all of this
#pragma nv_diag_suppress 128  // what a thread group of one leaves out
#endif
#ifndef VT_LOAD
#define VT_LOAD(p, i) ((p)[i])
#define VT_STORE(p, i, x) ((p)[i] = (x))
#define VT_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif
#define VT_INF __int_as_float(0x7f800000)
#define VT_NAN __int_as_float(0x7fc00000)

// --- the 16-bit float formats
#ifdef VT_EMULATED
VT_FN f32 vt_f16(u16 h) {
  const u32 sign = (u32)(h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 0x3ffu;
  if (e == 31) return __uint_as_float(sign | 0x7f800000u | (m ? 0x400000u | m << 13 : 0u));
  if (e) return __uint_as_float(sign | (e + 112u) << 23 | m << 13);
  const f32 x = (f32)m * 5.9604644775390625e-08f;
  return sign ? -x : x;
}
VT_FN u16 vt_f16_bits(f32 value) {
  const u32 x = __float_as_uint(value), sign = x >> 16 & 0x8000u, mag = x & 0x7fffffffu;
  if (mag > 0x7f800000u) return (u16)(sign | 0x7e00u | (mag >> 13 & 0x3ffu));
  if (mag >= 0x477ff000u) return (u16)(sign | 0x7c00u);
  if (mag <= 0x33000000u) return (u16)sign;
  if (mag < 0x38800000u) {
    const int shift = 126 - (int)(mag >> 23);
    const u32 m = (mag & 0x7fffffu) | 0x800000u, kept = m >> shift, rest = m & ((1u << shift) - 1u),
              half = 1u << (shift - 1);
    return (u16)(sign | (kept + (rest > half || (rest == half && (kept & 1u)))));
  }
  return (u16)(sign | ((mag - 0x38000000u + 0xfffu + (mag >> 13 & 1u)) >> 13));
}
#else
VT_FN f32 vt_f16(u16 h) { f32 x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h)); return x; }
VT_FN u16 vt_f16_bits(f32 x) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return x != x ? (u16)(__float_as_uint(x) >> 16 & 0x8000u | 0x7e00u |
                        (__float_as_uint(x) >> 13 & 0x3ffu))
                : h;
}
#endif
VT_FN f32 vt_bf16(u16 h) { return __uint_as_float((u32)h << 16); }
VT_FN u16 vt_bf16_bits(f32 value) {
  const u32 x = __float_as_uint(value);
  if ((x & 0x7fffffffu) > 0x7f800000u) return (u16)(x >> 16 | 0x40u);
  return (u16)((x + 0x7fffu + (x >> 16 & 1u)) >> 16);
}
VT_FN f32 vt_round_f16(f32 x) { return vt_f16(vt_f16_bits(x)); }
VT_FN f32 vt_round_bf16(f32 x) { return vt_bf16(vt_bf16_bits(x)); }
// f64 to f32 where a number between two floats becomes the odd one: rounding it again to fewer bits
// gives what one rounding would.
VT_FN f32 vt_odd(f64 x) {
  const f32 nearest = (f32)x;
  const f64 back = nearest;
  if (back == x || x != x) return nearest;
  u32 bits = __float_as_uint(nearest);
  if (!(bits & 1u)) bits = (back < 0 ? -back : back) > (x < 0 ? -x : x) ? bits - 1u : bits + 1u;
  return __uint_as_float(bits);
}
// An integer as a double that lost no bit which rounding to 16 bits must see.
VT_FN f64 vt_sticky(u64 m) {
  return (f64)(m >= 1ull << 53 ? (m & ~0x7ffull) | (m & 0x7ffull ? 0x800ull : 0ull) : m);
}
VT_FN f64 vt_sticky(i64 x) { return x < 0 ? -vt_sticky(0ull - (u64)x) : vt_sticky((u64)x); }
VT_FN f64 vt_sticky(i32 x) { return x; }
VT_FN f64 vt_sticky(u32 x) { return x; }
VT_FN f64 vt_sticky(f64 x) { return x; }
VT_FN f64 vt_sticky(f32 x) { return x; }

// --- which types are what
template <class T> struct vt_is { static const bool real = false, has_sign = (T)-1 < (T)0; };
template <> struct vt_is<f32> { static const bool real = true, has_sign = true; };
template <> struct vt_is<f64> { static const bool real = true, has_sign = true; };
template <class T> struct vt_wide { typedef u32 type; };
template <> struct vt_wide<i64> { typedef u64 type; };
template <> struct vt_wide<u64> { typedef u64 type; };
template <class T> struct vt_bits_of { typedef typename vt_wide<T>::type type; };
template <> struct vt_bits_of<i8> { typedef u8 type; };
template <> struct vt_bits_of<u8> { typedef u8 type; };
template <> struct vt_bits_of<i16> { typedef u16 type; };
template <> struct vt_bits_of<u16> { typedef u16 type; };
template <> struct vt_bits_of<bool> { typedef bool type; };

// --- conversions: floats to integers truncate and saturate, NaN becomes 0
template <class T, class F>
VT_FN T vt_to_int(F x, F least, F beyond, T low, T high) {
  return x != x ? (T)0 : x <= least ? low : x >= beyond ? high : (T)x;
}
template <class F> VT_FN i8 vt_i8(F x) { return vt_to_int<i8, F>(x, (F)-128, (F)127, -128, 127); }
template <class F> VT_FN u8 vt_u8(F x) { return vt_to_int<u8, F>(x, 0, (F)255, 0, 255); }
template <class F>
VT_FN i16 vt_i16(F x) {
  return vt_to_int<i16, F>(x, (F)-32768, (F)32767, -32768, 32767);
}
template <class F> VT_FN u16 vt_u16(F x) { return vt_to_int<u16, F>(x, 0, (F)65535, 0, 65535); }
template <class F>
VT_FN i32 vt_i32(F x) {
  return vt_to_int<i32, F>(x, (F)-2147483648.0, (F)2147483648.0, (i32)0x80000000u, 2147483647);
}
template <class F>
VT_FN u32 vt_u32(F x) {
  return vt_to_int<u32, F>(x, 0, (F)4294967296.0, 0u, 0xffffffffu);
}
template <class F>
VT_FN i64 vt_i64(F x) {
  return vt_to_int<i64, F>(x, (F)-9223372036854775808.0, (F)9223372036854775808.0,
                           (i64)(1ull << 63), (i64) ~(1ull << 63));
}
template <class F>
VT_FN u64 vt_u64(F x) {
  return vt_to_int<u64, F>(x, 0, (F)18446744073709551616.0, 0ull, ~0ull);
}

// --- arithmetic: integers wrap, division by zero gives 0
template <class T>
VT_FN T vt_add(T a, T b) {
  return (T)((typename vt_wide<T>::type)a + (typename vt_wide<T>::type)b);
}
template <class T>
VT_FN T vt_sub(T a, T b) {
  return (T)((typename vt_wide<T>::type)a - (typename vt_wide<T>::type)b);
}
template <class T>
VT_FN T vt_mul(T a, T b) {
  return (T)((typename vt_wide<T>::type)a * (typename vt_wide<T>::type)b);
}
VT_FN f32 vt_add(f32 a, f32 b) { return a + b; }
VT_FN f64 vt_add(f64 a, f64 b) { return a + b; }
VT_FN f32 vt_sub(f32 a, f32 b) { return a - b; }
VT_FN f64 vt_sub(f64 a, f64 b) { return a - b; }
VT_FN f32 vt_mul(f32 a, f32 b) { return a * b; }
VT_FN f64 vt_mul(f64 a, f64 b) { return a * b; }
VT_FN bool vt_add(bool a, bool b) { return a | b; }
VT_FN bool vt_mul(bool a, bool b) { return a & b; }
template <class T>
VT_FN T vt_div(T a, T b) {
  return b == 0 ? (T)0 : vt_is<T>::has_sign && b == (T)-1 ? vt_sub((T)0, a) : (T)(a / b);
}
VT_FN f32 vt_div(f32 a, f32 b) { return a / b; }
VT_FN f64 vt_div(f64 a, f64 b) { return a / b; }
template <class T>
VT_FN T vt_rem(T a, T b) {
  return b == 0 || (vt_is<T>::has_sign && b == (T)-1) ? (T)0 : (T)(a % b);
}
VT_FN f32 vt_rem(f32 a, f32 b) { return fmodf(a, b); }
VT_FN f64 vt_rem(f64 a, f64 b) { return fmod(a, b); }
template <class T> VT_FN bool vt_nan(T) { return false; }
VT_FN bool vt_nan(f32 x) { return x != x; }
VT_FN bool vt_nan(f64 x) { return x != x; }
template <class T> VT_FN T vt_max(T a, T b) { return vt_nan(b) ? b : b > a ? b : a; }
template <class T> VT_FN T vt_min(T a, T b) { return vt_nan(b) ? b : b < a ? b : a; }
template <class T> VT_FN T vt_neg(T a) { return vt_sub((T)0, a); }
VT_FN f32 vt_neg(f32 a) { return -a; }
VT_FN f64 vt_neg(f64 a) { return -a; }
VT_FN bool vt_neg(bool a) { return a; }
template <class T>
VT_FN T vt_abs(T a) {
  return vt_is<T>::has_sign && a < (T)0 ? vt_sub((T)0, a) : a;
}
VT_FN f32 vt_abs(f32 a) { return fabsf(a); }
VT_FN f64 vt_abs(f64 a) { return fabs(a); }
template <class T>
VT_FN T vt_sign(T a) {
  return vt_is<T>::has_sign && a < (T)0 ? (T)-1 : (T)(a != (T)0);
}
VT_FN f32 vt_sign(f32 a) { return a == 0 || a != a ? a : a < 0 ? -1.0f : 1.0f; }
VT_FN f64 vt_sign(f64 a) { return a == 0 || a != a ? a : a < 0 ? -1.0 : 1.0; }
template <class T> VT_FN T vt_shl(T a, T b) { return (u64)b < 64 ? (T)((u64)a << (u64)b) : (T)0; }
template <class T>
VT_FN T vt_shr(T a, T b) {
  return (u64)b < 64 ? (T)((u64)(typename vt_bits_of<T>::type)a >> (u64)b) : (T)0;
}
template <class T> VT_FN T vt_sar(T a, T b) {
  const i64 x = sizeof(T) == 1   ? (i64)(i8)a
                : sizeof(T) == 2 ? (i64)(i16)a
                : sizeof(T) == 4 ? (i64)(i32)a
                                 : (i64)a;
  return (T)(x >> ((u64)b < 64 ? (u64)b : 63));
}
template <class T>
VT_FN T vt_popcount(T a) {
  return (T)__popcll((u64)(typename vt_bits_of<T>::type)a);
}
template <class T>
VT_FN T vt_clz(T a) {
  return (T)(__clzll((i64)(u64)(typename vt_bits_of<T>::type)a) - (64 - 8 * (int)sizeof(T)));
}
template <class T> VT_FN T vt_power(T x, unsigned n) {
  T result = (T)1;
  bool first = true;
  for (; n; n >>= 1) {
    if (n & 1u) { result = first ? x : vt_mul(result, x); first = false; }
    if (n > 1) x = vt_mul(x, x);
  }
  return result;
}
// x^-n, n > 0: the power of half the exponent is inverted, as the whole one may be beyond the range
// where its inverse is subnormal.
template <class T> VT_FN T vt_inverse_power(T x, unsigned n) {
  if (n == 1) return (T)1 / x;
  const T root = (T)1 / vt_power(x, n / 2);
  return n & 1u ? root * root / x : root * root;
}
// Integer powers; a negative exponent gives 0, but ±1 for ±1.
template <class T> VT_FN T vt_pow(T base, T exponent) {
  if (vt_is<T>::has_sign && exponent < (T)0)
    return base == (T)1                          ? (T)1
           : vt_is<T>::has_sign && base == (T)-1 ? ((u64)exponent & 1u ? (T)-1 : (T)1)
                                                 : (T)0;
  T result = (T)1;
  for (u64 e = (u64)exponent; e; e >>= 1) {
    if (e & 1u) result = vt_mul(result, base);
    base = vt_mul(base, base);
  }
  return result;
}
VT_FN f32 vt_pow(f32 a, f32 b) { return powf(a, b); }
VT_FN f64 vt_pow(f64 a, f64 b) { return pow(a, b); }
// The exponential does not overflow: far to the left small numbers are left.
VT_FN f32 vt_sigmoid(f32 x) {
  const f32 e = expf(-fabsf(x));
  return (x < 0 ? e : 1.0f) / (1.0f + e);
}
VT_FN f64 vt_sigmoid(f64 x) { const f64 e = exp(-fabs(x)); return (x < 0 ? e : 1.0) / (1.0 + e); }
VT_FN u32 vt_turn(u32 x, int by) { return x << by | x >> (32 - by); }

// Threefry-2x32, 20 rounds.
VT_FN u64 vt_threefry(u64 key, u64 counter) {
  const u32 k0 = (u32)(key >> 32), k1 = (u32)key, k2 = k0 ^ k1 ^ 0x1bd11bdau;
  u32 x = (u32)(counter >> 32) + k0, y = (u32)counter + k1;
#define VT_ROUND(r) x += y; y = vt_turn(y, r) ^ x;
#define VT_EVEN VT_ROUND(13) VT_ROUND(15) VT_ROUND(26) VT_ROUND(6)
#define VT_ODD VT_ROUND(17) VT_ROUND(29) VT_ROUND(16) VT_ROUND(24)
  VT_EVEN x += k1; y += k2 + 1u;
  VT_ODD x += k2; y += k0 + 2u;
  VT_EVEN x += k0; y += k1 + 3u;
  VT_ODD x += k1; y += k2 + 4u;
  VT_EVEN x += k2; y += k0 + 5u;
  return (u64)x << 32 | y;
}
// Rounds to fewer exponent and mantissa bits, to nearest even.
template <class U>
VT_FN U vt_fewer_bits(U u, int mantissa, int exponent, int kept_mantissa, int kept_exponent) {
  const U sign = u & (U)1 << (mantissa + exponent), one = 1;
  if (kept_mantissa < mantissa) {
    const int drop = mantissa - kept_mantissa;
    u += (u >> drop & one) + ((one << (drop - 1)) - one);
    u &= ~((one << drop) - one);
  }
  if (kept_exponent < exponent) {
    const U bias = (one << (exponent - 1)) - one, reduced = (one << (kept_exponent - 1)) - one,
            infinity = ((one << exponent) - one) << mantissa;
    const U field = u & infinity;
    if (field > (bias + reduced) << mantissa) u = sign | infinity;
    else if (field <= (bias - reduced) << mantissa) u = sign;
  }
  return u;
}
VT_FN f32 vt_precision(f32 x, int m, int e) {
  return x != x ? x : __uint_as_float(vt_fewer_bits<u32>(__float_as_uint(x), 23, 8, m, e));
}
VT_FN f64 vt_precision(f64 x, int m, int e) {
  return x != x ? x
                : __longlong_as_double(
                      (i64)vt_fewer_bits<u64>((u64)__double_as_longlong(x), 52, 11, m, e));
}
VT_FN f32 vt_precision_f16(f32 x, int m, int e) {
  return x != x ? x : vt_f16((u16)vt_fewer_bits<u32>(vt_f16_bits(x), 10, 5, m, e));
}
// The next number of a format of 16 bits towards another.
VT_FN u16 vt_next_bits(u16 a, u16 b, f32 x, f32 y) {
  if (x != x) return a;
  if (y != y || x == y) return b;
  if (x == 0) return (u16)((b & 0x8000u) | 1u);
  return (u16)((x < y) == (x > 0) ? a + 1 : a - 1);
}
VT_FN f32 vt_next_f16(f32 x, f32 y) {
  return vt_f16(vt_next_bits(vt_f16_bits(x), vt_f16_bits(y), x, y));
}
VT_FN f32 vt_next_bf16(f32 x, f32 y) {
  return vt_bf16(vt_next_bits(vt_bf16_bits(x), vt_bf16_bits(y), x, y));
}

// --- indices: division rounds to minus infinity
template <class I>
VT_FN I vt_floor_div(I a, I b) {
  const I q = a / b;
  return a % b < 0 ? q - 1 : q;
}
template <class I> VT_FN I vt_floor_mod(I a, I b) { const I r = a % b; return r < 0 ? r + b : r; }

// --- neighbours that are read and written by one access
template <int bytes> struct vt_raw { struct __align__(16) type { u32 x[4]; }; };
template <> struct vt_raw<8> { struct __align__(8) type { u32 x[2]; }; };
template <> struct vt_raw<4> { typedef u32 type; };
template <> struct vt_raw<2> { typedef u16 type; };
template <int n, class T> VT_FN void vt_load_pack(T (&to)[n], const T* from) {
  typedef typename vt_raw<(int)sizeof(T) * n>::type raw;
  const raw r = VT_LOAD((const raw*)from, 0);
  memcpy(to, &r, sizeof(r));
}
template <int n, class T> VT_FN void vt_store_pack(T* to, const T (&from)[n]) {
  typedef typename vt_raw<(int)sizeof(T) * n>::type raw;
  raw r;
  memcpy(&r, from, sizeof(r));
  VT_STORE((raw*)to, 0, r);
}

// --- thread groups: the threads that work on one iteration of a kernel's shared loops. Sums go
// over the same tree whatever the grid.
struct vt_sum { template <class T> VT_FN T of(T a, T b) { return vt_add(a, b); } };
struct vt_product { template <class T> VT_FN T of(T a, T b) { return vt_mul(a, b); } };
struct vt_maximum { template <class T> VT_FN T of(T a, T b) { return vt_max(a, b); } };
struct vt_minimum { template <class T> VT_FN T of(T a, T b) { return vt_min(a, b); } };
struct vt_any { VT_FN bool of(bool a, bool b) { return a | b; } };
struct vt_all { VT_FN bool of(bool a, bool b) { return a & b; } };
template <int size> struct vt_warp {
  template <class T> VT_FN T down(T x, int by) { return __shfl_down_sync(0xffffffffu, x, by); }
  template <class T> VT_FN T up(T x, int by) { return __shfl_up_sync(0xffffffffu, x, by); }
  template <class T> VT_FN T from(T x, int in_warp) { return __shfl_sync(0xffffffffu, x, in_warp); }
};
struct vt_narrow {
  template <class T>
  VT_FN T down(T x, int by) {
    return (T)__shfl_down_sync(0xffffffffu, (int)x, by);
  }
  template <class T> VT_FN T up(T x, int by) { return (T)__shfl_up_sync(0xffffffffu, (int)x, by); }
  template <class T>
  VT_FN T from(T x, int in_warp) {
    return (T)__shfl_sync(0xffffffffu, (int)x, in_warp);
  }
};
template <> struct vt_warp<1> : vt_narrow {};
template <> struct vt_warp<2> : vt_narrow {};

// An extreme and where it is; at −1: none yet. NaN beats numbers, earlier beats later.
template <class T, class P> struct vt_best { T x; P at; };
template <bool greatest, class T, class P> VT_FN bool vt_wins(T x, P at, T y, P where) {
  if (at == (P)-1) return false;
  if (where == (P)-1) return true;
  const bool xn = vt_nan(x), yn = vt_nan(y);
  if (xn || yn) return xn && (!yn || at < where);
  return (greatest ? x > y : x < y) || (x == y && at < where);
}
template <int group, class Op, class T> VT_FN T vt_reduce(T x) {
  if (group == 1) return x;
#pragma unroll
  for (int by = 16; by; by >>= 1) x = Op::of(x, vt_warp<sizeof(T)>::down(x, by));
  if (group == 32) return vt_warp<sizeof(T)>::from(x, 0);
  __shared__ T parts[32];
  __syncthreads();
  if (threadIdx.x % 32 == 0) VT_STORE(parts, threadIdx.x / 32, x);
  __syncthreads();
  x = VT_LOAD(parts, 0);
  for (int w = 1; w < group / 32; ++w) x = Op::of(x, VT_LOAD(parts, w));
  return x;
}
template <int group, bool greatest, class T, class P>
VT_FN vt_best<T, P> vt_reduce_best(vt_best<T, P> b) {
  if (group == 1) return b;
#pragma unroll
  for (int by = 16; by; by >>= 1) {
    const T x = vt_warp<sizeof(T)>::down(b.x, by);
    const P at = vt_warp<sizeof(P)>::down(b.at, by);
    if (vt_wins<greatest>(x, at, b.x, b.at)) { b.x = x; b.at = at; }
  }
  if (group == 32) {
    b.x = vt_warp<sizeof(T)>::from(b.x, 0);
    b.at = vt_warp<sizeof(P)>::from(b.at, 0);
    return b;
  }
  __shared__ T extremes[32];
  __shared__ P places[32];
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    VT_STORE(extremes, threadIdx.x / 32, b.x);
    VT_STORE(places, threadIdx.x / 32, b.at);
  }
  __syncthreads();
  b.x = VT_LOAD(extremes, 0);
  b.at = VT_LOAD(places, 0);
  for (int w = 1; w < group / 32; ++w) {
    const T x = VT_LOAD(extremes, w);
    const P at = VT_LOAD(places, w);
    if (vt_wins<greatest>(x, at, b.x, b.at)) { b.x = x; b.at = at; }
  }
  return b;
}
// Of thread groups that are columns of a block; only the first thread of each has the result.
template <int columns, int group, class Op, class T> VT_FN T vt_reduce_columns(T x) {
  __shared__ T parts[columns * group];
  __syncthreads();
  VT_STORE(parts, threadIdx.x, x);
  __syncthreads();
  if (threadIdx.x < columns)
    for (int w = 1; w < group; ++w) x = Op::of(x, VT_LOAD(parts, w * columns + threadIdx.x));
  return x;
}
template <int columns, int group, bool greatest, class T, class P>
VT_FN vt_best<T, P> vt_reduce_best_columns(vt_best<T, P> b) {
  __shared__ T extremes[columns * group];
  __shared__ P places[columns * group];
  __syncthreads();
  VT_STORE(extremes, threadIdx.x, b.x);
  VT_STORE(places, threadIdx.x, b.at);
  __syncthreads();
  if (threadIdx.x < columns)
    for (int w = 1; w < group; ++w) {
      const T x = VT_LOAD(extremes, w * columns + threadIdx.x);
      const P at = VT_LOAD(places, w * columns + threadIdx.x);
      if (vt_wins<greatest>(x, at, b.x, b.at)) { b.x = x; b.at = at; }
    }
  return b;
}
// What the first thread of a thread group has.
template <int group, class T> VT_FN T vt_share(T x) {
  if (group == 1) return x;
  if (group == 32) return vt_warp<sizeof(T)>::from(x, 0);
  __shared__ T first[1];
  __syncthreads();
  if (threadIdx.x == 0) VT_STORE(first, 0, x);
  __syncthreads();
  return VT_LOAD(first, 0);
}
// The results so far for each thread of a thread group, after `carry`, which becomes that of the
// last thread.
template <int group, class Op, class T> VT_FN T vt_running(T x, T& carry) {
  if (group == 1) return carry = Op::of(carry, x);
  const int in_warp = threadIdx.x % 32;
#pragma unroll
  for (int by = 1; by < 32; by <<= 1) {
    const T before = vt_warp<sizeof(T)>::up(x, by);
    if (in_warp >= by) x = Op::of(before, x);
  }
  if (group == 32) {
    x = Op::of(carry, x);
    carry = vt_warp<sizeof(T)>::from(x, 31);
    return x;
  }
  __shared__ T ends[32];
  __syncthreads();
  if (in_warp == 31) VT_STORE(ends, threadIdx.x / 32, x);
  __syncthreads();
  T before = carry;
  for (int w = 0; w < group / 32; ++w) {
    if (w == (int)(threadIdx.x / 32)) x = Op::of(before, x);
    before = Op::of(before, VT_LOAD(ends, w));
  }
  carry = before;
  return x;
}

// `width` elements from `column` on of the rows of a warp's lanes, by way of shared memory, so that
// neighbours read and write neighbours.
template <int width, class T>
VT_FN void vt_rows_in(T* tile, const T* from, i64 first, i64 lanes, int row_length, int column) {
  __syncwarp();
  for (int k = threadIdx.x % 32; k < 32 * width; k += 32)
    if (first + k / width < lanes)
      VT_STORE(tile, k / width * (width | 1) + k % width,
               VT_LOAD(from, (first + k / width) * row_length + column + k % width));
  __syncwarp();
}
template <int width, class T>
VT_FN void vt_rows_out(const T* tile, T* to, i64 first, i64 lanes, int row_length, int column) {
  __syncwarp();
  for (int k = threadIdx.x % 32; k < 32 * width; k += 32)
    if (first + k / width < lanes)
      VT_STORE(to, (first + k / width) * row_length + column + k % width,
               VT_LOAD(tile, k / width * (width | 1) + k % width));
}
)cuda";

}  // namespace vt::detail::cuda
