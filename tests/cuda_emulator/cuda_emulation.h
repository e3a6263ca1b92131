// CUDA C++ as the emulator compiles it: what stands in front of every kernel's source. Short on
// purpose, as every kernel pays for it.
#pragma once

#define VT_EMULATED 1
#include "module_interface.h"

typedef unsigned long size_t;

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
// The emulator knows them by their symbols, as functions have no other static variables.
#define __shared__ static

extern "C" {
vt_place vt_place_now;
// The same, as a thread sees it: nothing of it changes as long as the thread lives, although the
// emulator sets it for each.
extern const vt_place vt_here __asm__("vt_place_now");
vt_services vt_services_now;
extern const vt_services vt_emulator __asm__("vt_services_now");

#define VT_DECLARE1(name) \
  double name(double);    \
  float name##f(float);
#define VT_DECLARE2(name)      \
  double name(double, double); \
  float name##f(float, float);
// clang-format off
VT_DECLARE1(sin) VT_DECLARE1(cos) VT_DECLARE1(tan) VT_DECLARE1(asin) VT_DECLARE1(acos)
VT_DECLARE1(atan) VT_DECLARE1(sinh) VT_DECLARE1(cosh) VT_DECLARE1(tanh) VT_DECLARE1(asinh)
VT_DECLARE1(acosh) VT_DECLARE1(atanh) VT_DECLARE1(exp) VT_DECLARE1(exp2) VT_DECLARE1(expm1)
VT_DECLARE1(log) VT_DECLARE1(log2) VT_DECLARE1(log10) VT_DECLARE1(log1p) VT_DECLARE1(logb)
VT_DECLARE1(sqrt) VT_DECLARE1(cbrt) VT_DECLARE1(erf) VT_DECLARE1(erfc) VT_DECLARE1(lgamma)
VT_DECLARE1(tgamma) VT_DECLARE1(floor) VT_DECLARE1(ceil) VT_DECLARE1(trunc) VT_DECLARE1(round)
VT_DECLARE1(rint) VT_DECLARE1(nearbyint) VT_DECLARE1(fabs) VT_DECLARE1(j0) VT_DECLARE1(j1)
VT_DECLARE1(y0) VT_DECLARE1(y1) VT_DECLARE2(pow) VT_DECLARE2(atan2) VT_DECLARE2(fmod)
VT_DECLARE2(remainder) VT_DECLARE2(fmin) VT_DECLARE2(fmax) VT_DECLARE2(fdim) VT_DECLARE2(hypot)
VT_DECLARE2(copysign) VT_DECLARE2(nextafter)
double fma(double, double, double);
// clang-format on
#undef VT_DECLARE1
#undef VT_DECLARE2
float fmaf(float, float, float);
double ldexp(double, int);
float ldexpf(float, int);
double scalbn(double, int);
float scalbnf(float, int);
double frexp(double, int*);
float frexpf(float, int*);
double modf(double, double*);
float modff(float, float*);
int ilogb(double);
int ilogbf(float);
long lrint(double);
long lrintf(float);
long long llrint(double);
long long llrintf(float);
long lround(double);
long lroundf(float);
long long llround(double);
long long llroundf(float);
void sincos(double, double*, double*);
void sincosf(float, float*, float*);
int abs(int);
long labs(long);
long long llabs(long long);
int printf(const char*, ...);
void* memcpy(void*, const void*, size_t);
void* memset(void*, int, size_t);
}

// ---- what the compiler calls in front of accesses (-fsanitize=thread)

extern "C" {
#define VT_TOLD __attribute__((visibility("hidden"), no_sanitize("thread")))
#define VT_TOLD_OF(bytes)                                                                \
  VT_TOLD void __tsan_read##bytes(void* p) { vt_emulator.plain(p, bytes, 0); }           \
  VT_TOLD void __tsan_write##bytes(void* p) { vt_emulator.plain(p, bytes, 1); }          \
  VT_TOLD void __tsan_unaligned_read##bytes(void* p) { vt_emulator.plain(p, bytes, 0); } \
  VT_TOLD void __tsan_unaligned_write##bytes(void* p) { vt_emulator.plain(p, bytes, 1); }
VT_TOLD_OF(1)
VT_TOLD_OF(2)
VT_TOLD_OF(4)
VT_TOLD_OF(8)
VT_TOLD_OF(16)
VT_TOLD void __tsan_read_range(void* p, long bytes) {
  vt_emulator.plain(p, static_cast<unsigned>(bytes), 0);
}
VT_TOLD void __tsan_write_range(void* p, long bytes) {
  vt_emulator.plain(p, static_cast<unsigned>(bytes), 1);
}
VT_TOLD void __tsan_func_entry(void*) {}
VT_TOLD void __tsan_func_exit() {}
VT_TOLD void __tsan_init() {}
#undef VT_TOLD_OF
}

namespace {  // so that what a kernel does not use is not compiled

#define threadIdx (vt_here.thread)
#define blockIdx (vt_here.block)
#define blockDim (vt_here.block_dim)
#define gridDim (vt_here.grid_dim)
constexpr int warpSize = 32;

// What other threads do meanwhile the compiler cannot know.
#define VT_FENCE() asm volatile("" ::: "memory")

template <class T>
struct vt_same {
  typedef T type;
};

// Accesses by VT_LOAD and VT_STORE are checked by what they index, and not told of a second time.
#define VT_UNTOLD __attribute__((noinline, no_sanitize("thread")))

template <class T>
__attribute__((no_sanitize("thread"))) inline T* vt_checked(const volatile T* p, long index,
                                                            int writes) {
  return static_cast<T*>(vt_emulator.at(reinterpret_cast<unsigned long>(p),
                                        index * static_cast<long>(sizeof(T)), sizeof(T), alignof(T),
                                        writes));
}
template <class T>
VT_UNTOLD inline T vt_load(const volatile T* p, long index) {
  return *vt_checked(p, index, 0);
}
template <class T>
VT_UNTOLD inline void vt_store(volatile T* p, long index, typename vt_same<T>::type value) {
  *vt_checked(p, index, 1) = value;
}
#define VT_LOAD(pointer, index) vt_load(pointer, static_cast<long>(index))
#define VT_STORE(pointer, index, value) vt_store(pointer, static_cast<long>(index), value)
#define VT_DYNAMIC_SHARED(name) unsigned char* const name = vt_here.dynamic_shared

template <class T>
inline T __ldg(const T* p) {
  return vt_load(p, 0);
}
template <class T>
inline T __ldcg(const T* p) {
  return vt_load(p, 0);
}
template <class T>
inline T __ldcs(const T* p) {
  return vt_load(p, 0);
}
template <class T>
inline void __stcs(T* p, typename vt_same<T>::type value) {
  vt_store(p, 0, value);
}

// ---- waiting for each other

#define __syncthreads() (vt_emulator.sync_threads(__LINE__), vt_fence())
#define __syncthreads_count(predicate) \
  vt_emulator.sync_threads_with(vt_block_count, (predicate) != 0, __LINE__)
#define __syncthreads_and(predicate) \
  vt_emulator.sync_threads_with(vt_block_and, (predicate) != 0, __LINE__)
#define __syncthreads_or(predicate) \
  vt_emulator.sync_threads_with(vt_block_or, (predicate) != 0, __LINE__)
inline void vt_fence() { VT_FENCE(); }
inline void __threadfence() { VT_FENCE(); }
inline void __threadfence_block() { VT_FENCE(); }
inline void __threadfence_system() { VT_FENCE(); }
inline void vt_sync_warp(int line, unsigned mask = 0xffffffffu) {
  vt_emulator.warp(vt_warp_barrier, mask, 0, 0, line);
  VT_FENCE();
}
#define __syncwarp(...) vt_sync_warp(__LINE__ __VA_OPT__(, ) __VA_ARGS__)

template <class T>
inline T vt_shuffle(int line, unsigned mask, T value, int source) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles take numbers of 32 and 64 bits");
  unsigned long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = vt_emulator.warp(vt_warp_shuffle, mask, bits, static_cast<unsigned>(source), line);
  VT_FENCE();
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
inline T vt_shuffle_index(int line, unsigned mask, T value, int source, int width = 32) {
  const int lane = static_cast<int>(vt_here.lane);
  return vt_shuffle(line, mask, value, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <class T>
inline T vt_shuffle_up(int line, unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = static_cast<int>(vt_here.lane), source = lane - static_cast<int>(delta);
  return vt_shuffle(line, mask, value, source < (lane & ~(width - 1)) ? lane : source);
}
template <class T>
inline T vt_shuffle_down(int line, unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = static_cast<int>(vt_here.lane), source = lane + static_cast<int>(delta);
  return vt_shuffle(line, mask, value, source > (lane | (width - 1)) ? lane : source);
}
template <class T>
inline T vt_shuffle_xor(int line, unsigned mask, T value, int bits, int width = 32) {
  const int lane = static_cast<int>(vt_here.lane), source = lane ^ bits;
  return vt_shuffle(line, mask, value, source > (lane | (width - 1)) ? lane : source);
}
#define __shfl_sync(...) vt_shuffle_index(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) vt_shuffle_up(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) vt_shuffle_down(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) vt_shuffle_xor(__LINE__, __VA_ARGS__)
inline unsigned vt_ballot(int line, unsigned mask, int predicate) {
  return static_cast<unsigned>(vt_emulator.warp(vt_warp_ballot, mask, predicate != 0, 0, line));
}
#define __ballot_sync(mask, predicate) vt_ballot(__LINE__, mask, predicate)
#define __any_sync(mask, predicate) (vt_ballot(__LINE__, mask, predicate) != 0)
#define __all_sync(mask, predicate) (vt_ballot(__LINE__, mask, !(predicate)) == 0)
template <class T>
inline unsigned vt_match(int line, unsigned mask, T value) {
  unsigned long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return static_cast<unsigned>(vt_emulator.warp(vt_warp_match, mask, bits, 0, line));
}
#define __match_any_sync(mask, value) vt_match(__LINE__, mask, value)
// Which lanes happen to run together is not to be relied on.
inline unsigned __activemask() { return 1u << vt_here.lane; }

// ---- atomics: one thread runs at a time

#define VT_ATOMIC(name, expression)                                \
  template <class T>                                               \
  VT_UNTOLD inline T name(T* p, typename vt_same<T>::type value) { \
    T* at = vt_checked(p, 0, 2);                                   \
    const T old = *at;                                             \
    *at = expression;                                              \
    return old;                                                    \
  }
VT_ATOMIC(atomicAdd, static_cast<T>(old + value))
VT_ATOMIC(atomicSub, static_cast<T>(old - value))
VT_ATOMIC(atomicMin, value < old ? value : old)
VT_ATOMIC(atomicMax, value > old ? value : old)
VT_ATOMIC(atomicExch, value)
VT_ATOMIC(atomicOr, static_cast<T>(old | value))
VT_ATOMIC(atomicAnd, static_cast<T>(old& value))
VT_ATOMIC(atomicXor, static_cast<T>(old ^ value))
VT_ATOMIC(atomicInc, old >= value ? T(0) : static_cast<T>(old + 1))
VT_ATOMIC(atomicDec, old == 0 || old > value ? value : static_cast<T>(old - 1))
#undef VT_ATOMIC
template <class T>
VT_UNTOLD inline T atomicCAS(T* p, typename vt_same<T>::type expected,
                             typename vt_same<T>::type value) {
  T* at = vt_checked(p, 0, 2);
  const T old = *at;
  if (old == expected) *at = value;
  return old;
}

inline void __trap() { vt_emulator.stop(719, "__trap()", 0); }
inline void __nanosleep(unsigned) {}
#define assert(condition) ((condition) ? (void)0 : vt_emulator.stop(710, #condition, __LINE__))

// ---- bits and integers

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned y = 0;
  for (int i = 0; i < 32; ++i) y |= (x >> i & 1u) << (31 - i);
  return y;
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
inline int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>((static_cast<__int128>(a) * b) >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32 | low) << (by & 31)) >>
                               32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (by & 31));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = selector >> (4 * i) & 15u;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (pick & 7u))) & 255u;
    if (pick & 8u) byte = byte & 128u ? 255u : 0u;
    result |= byte << (8 * i);
  }
  return result;
}

#define VT_MIN_MAX(T)                              \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
VT_MIN_MAX(int)
VT_MIN_MAX(unsigned)
VT_MIN_MAX(long)
VT_MIN_MAX(unsigned long)
VT_MIN_MAX(long long)
VT_MIN_MAX(unsigned long long)
#undef VT_MIN_MAX
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline long abs(long a) { return labs(a); }
inline long long abs(long long a) { return llabs(a); }
inline float abs(float a) { return fabsf(a); }
inline double abs(double a) { return fabs(a); }

// ---- numbers as bits

#define VT_BITS(name, To, From)          \
  inline To name(From x) {               \
    To y;                                \
    __builtin_memcpy(&y, &x, sizeof(y)); \
    return y;                            \
  }
VT_BITS(__float_as_uint, unsigned, float)
VT_BITS(__float_as_int, int, float)
VT_BITS(__uint_as_float, float, unsigned)
VT_BITS(__int_as_float, float, int)
VT_BITS(__double_as_longlong, long long, double)
VT_BITS(__longlong_as_double, double, long long)
#undef VT_BITS
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(
      static_cast<long long>(static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 |
                             static_cast<unsigned>(low)));
}

// ---- conversions to integers: the device's end at the ends of the range; NaN is 0,
// or the least number of 64 bits

template <class To, class From>
inline To vt_to_integer(From x, To nan) {
  constexpr bool is_signed = static_cast<To>(-1) < static_cast<To>(0);
  constexpr int bits = sizeof(To) * 8 - (is_signed ? 1 : 0);
  const To largest = static_cast<To>(~static_cast<To>(0)) ^
                     (is_signed ? static_cast<To>(static_cast<To>(1) << (sizeof(To) * 8 - 1))
                                : static_cast<To>(0));
  if (x != x) return nan;
  const From end = static_cast<From>(static_cast<unsigned long long>(1) << (bits - 1)) * 2;
  if (x >= end) return largest;
  if (x < (is_signed ? -end : static_cast<From>(0)))
    return is_signed ? static_cast<To>(-largest - 1) : static_cast<To>(0);
  return static_cast<To>(x);
}
#define VT_TO_INTEGERS(from, From, suffix)                                                 \
  inline int __##from##2int_rz(From x) { return vt_to_integer<int>(x, 0); }                \
  inline int __##from##2int_rn(From x) { return vt_to_integer<int>(rint##suffix(x), 0); }  \
  inline int __##from##2int_rd(From x) { return vt_to_integer<int>(floor##suffix(x), 0); } \
  inline int __##from##2int_ru(From x) { return vt_to_integer<int>(ceil##suffix(x), 0); }  \
  inline unsigned __##from##2uint_rz(From x) { return vt_to_integer<unsigned>(x, 0u); }    \
  inline unsigned __##from##2uint_rn(From x) {                                             \
    return vt_to_integer<unsigned>(rint##suffix(x), 0u);                                   \
  }                                                                                        \
  inline long long __##from##2ll_rz(From x) {                                              \
    return vt_to_integer<long long>(x, static_cast<long long>(1ull << 63));                \
  }                                                                                        \
  inline long long __##from##2ll_rn(From x) {                                              \
    return vt_to_integer<long long>(rint##suffix(x), static_cast<long long>(1ull << 63));  \
  }                                                                                        \
  inline unsigned long long __##from##2ull_rz(From x) {                                    \
    return vt_to_integer<unsigned long long>(x, 1ull << 63);                               \
  }                                                                                        \
  inline unsigned long long __##from##2ull_rn(From x) {                                    \
    return vt_to_integer<unsigned long long>(rint##suffix(x), 1ull << 63);                 \
  }
VT_TO_INTEGERS(float, float, f)
VT_TO_INTEGERS(double, double, )
#undef VT_TO_INTEGERS
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
inline double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

// ---- arithmetic rounded as it says

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __drcp_rn(double a) { return 1.0 / a; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __saturatef(float a) { return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f; }

// ---- functions that C does not have

#define VT_SPECIAL(name, number)                                                    \
  inline double name(double x) { return vt_emulator.special(number, x); }           \
  inline float name##f(float x) {                                                   \
    return static_cast<float>(vt_emulator.special(number, static_cast<double>(x))); \
  }
VT_SPECIAL(erfinv, 0)
VT_SPECIAL(erfcinv, 1)
VT_SPECIAL(normcdf, 2)
VT_SPECIAL(normcdfinv, 3)
VT_SPECIAL(erfcx, 4)
VT_SPECIAL(cyl_bessel_i0, 5)
VT_SPECIAL(cyl_bessel_i1, 6)
#undef VT_SPECIAL
inline float rsqrtf(float x) { return static_cast<float>(1.0 / sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rcbrtf(float x) { return static_cast<float>(1.0 / cbrt(static_cast<double>(x))); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline float exp10f(float x) { return static_cast<float>(pow(10.0, static_cast<double>(x))); }
inline double exp10(double x) { return pow(10.0, x); }
inline float fdividef(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline double sinpi(double x) {
  // exact; then within half a turn of 0, so that the ends are exact as well
  double r = fmod(x, 2.0);
  if (r > 1.0) r -= 2.0;
  if (r < -1.0) r += 2.0;
  if (r > 0.5) r = 1.0 - r;
  if (r < -0.5) r = -1.0 - r;
  return sin(r * 3.141592653589793);
}
inline double cospi(double x) {
  double r = fabs(fmod(x, 2.0));
  if (r > 1.0) r = 2.0 - r;
  return r == 0.5  ? 0.0
         : r < 0.5 ? cos(r * 3.141592653589793)
                   : -cos((1.0 - r) * 3.141592653589793);
}
inline float sinpif(float x) { return static_cast<float>(sinpi(x)); }
inline float cospif(float x) { return static_cast<float>(cospi(x)); }
inline void sincospi(double x, double* s, double* c) {
  *s = sinpi(x);
  *c = cospi(x);
}
inline void sincospif(float x, float* s, float* c) {
  *s = sinpif(x);
  *c = cospif(x);
}
inline bool isnan(double x) { return x != x; }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }
inline bool isnan(float x) { return x != x; }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }

// The overloads that C++ has for float.
#define VT_OVERLOAD1(name) \
  using ::name;            \
  inline float name(float x) { return name##f(x); }
#define VT_OVERLOAD2(name) \
  using ::name;            \
  inline float name(float x, float y) { return name##f(x, y); }
// clang-format off
VT_OVERLOAD1(sin) VT_OVERLOAD1(cos) VT_OVERLOAD1(tan) VT_OVERLOAD1(tanh) VT_OVERLOAD1(exp)
VT_OVERLOAD1(log) VT_OVERLOAD1(sqrt) VT_OVERLOAD1(fabs) VT_OVERLOAD1(floor) VT_OVERLOAD1(ceil)
VT_OVERLOAD1(trunc) VT_OVERLOAD1(rint) VT_OVERLOAD2(pow) VT_OVERLOAD2(fmin) VT_OVERLOAD2(fmax)
// clang-format on
#undef VT_OVERLOAD1
#undef VT_OVERLOAD2

// ---- vectors

#define VT_VECTOR(T, name, align)                                    \
  struct __align__(align(1)) name##1 { T x; };                       \
  struct __align__(align(2)) name##2 { T x, y; };                    \
  struct name##3 { T x, y, z; };                                     \
  struct __align__(align(4)) name##4 { T x, y, z, w; };              \
  inline name##1 make_##name##1(T x) { return {x}; }                 \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }         \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define VT_ALIGN1(n) n
#define VT_ALIGN2(n) 2 * n
#define VT_ALIGN4(n) 4 * n
#define VT_ALIGN8(n) 8 * n > 16 ? 16 : 8 * n
    // clang-format off
VT_VECTOR(signed char, char, VT_ALIGN1) VT_VECTOR(unsigned char, uchar, VT_ALIGN1)
VT_VECTOR(short, short, VT_ALIGN2) VT_VECTOR(unsigned short, ushort, VT_ALIGN2)
VT_VECTOR(int, int, VT_ALIGN4) VT_VECTOR(float, float, VT_ALIGN4)
VT_VECTOR(double, double, VT_ALIGN8) VT_VECTOR(long long, longlong, VT_ALIGN8)
VT_VECTOR(unsigned long long, ulonglong, VT_ALIGN8)
struct uint1 { unsigned x; };
// clang-format on
#undef VT_VECTOR
struct __align__(8) uint2 {
  unsigned x, y;
};
struct __align__(16) uint4 {
  unsigned x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

extern "C" inline void cudaGraphSetConditional(unsigned long long handle, unsigned value) {
  vt_emulator.set_condition(handle, value);
}

// ---- how the emulator calls a kernel

template <class... T>
struct vt_sizes {
  static constexpr unsigned of[sizeof...(T) + 1] = {sizeof(T)..., 0};
};
template <int... i>
struct vt_indices {};
template <auto kernel, class... T, int... i>
VT_UNTOLD inline void vt_call_with(void (*)(T...), vt_indices<i...>, void** p) {
  kernel(*static_cast<T*>(p[i])...);
}
#if defined(__clang__)
template <class, int... i>
using vt_indices_of = vt_indices<i...>;
template <int n>
using vt_count = __make_integer_seq<vt_indices_of, int, n>;
#else
template <int n>
using vt_count = vt_indices<__integer_pack(n)...>;
#endif
template <auto kernel, class... T>
constexpr vt_kernel vt_describe(const char* name, int max_threads, void (*)(T...)) {
  return {name, [](void** p) { vt_call_with<kernel>(kernel, vt_count<sizeof...(T)>{}, p); },
          vt_sizes<T...>::of, sizeof...(T), max_threads};
}
}  // namespace
