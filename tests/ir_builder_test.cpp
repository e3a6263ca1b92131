// The builder's semantics, run: every conversion pair, integer edge cases, 16-bit floats, tails, strides, reductions, control flow.
#include <gtest/gtest.h>

#include "cpu_kernels.hpp"

#if VT_HAS_LLVM_HEADERS

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

#include <vt/error.hpp>

namespace {

using namespace vt_test;
using vt::BFloat16;
using vt::Float16;
using vt::detail::with_type;
using vt::detail::cpu::Compare;
using vt::detail::cpu::Linker;
using vt::detail::cpu::Reduce;

constexpr DType every_dtype[] = {vt::bool_, vt::i8,  vt::u8,  vt::i16,  vt::u16, vt::i32, vt::u32,
                                 vt::i64,   vt::u64, vt::f16, vt::bf16, vt::f32, vt::f64};

template <class T>
constexpr bool is_half_v = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool is_floating_v = std::is_floating_point_v<T> || is_half_v<T>;

// ---- the reference: plain C++ on single values ---------------------------------------------------------------------------

/// The 16-bit float nearest to x, found among the neighbours of its f32 rounding by exact distance; ties go to even bits.
template <class H>
H nearest_half(long double x) {
  const H guess(static_cast<float>(x));
  if (!std::isfinite(x) || std::isnan(static_cast<float>(guess))) return guess;
  // An infinity takes part as the number that would follow the largest finite one.
  const auto value = [](H h) {
    const auto f = static_cast<float>(h);
    const float largest = static_cast<float>(std::is_same_v<H, Float16> ? H(65504.0f) : std::bit_cast<H>(std::uint16_t{0x7f7f}));
    const long double step = std::is_same_v<H, Float16> ? 32.0L : std::ldexp(1.0L, 120);
    return std::isinf(f) ? std::copysign(static_cast<long double>(largest) + step, static_cast<long double>(f)) : static_cast<long double>(f);
  };
  H best = guess;
  for (int step : {-1, 1}) {
    H other;
    other.bits = static_cast<std::uint16_t>(guess.bits + step);
    if (((guess.bits ^ other.bits) & 0x8000u) != 0 || std::isnan(static_cast<float>(other))) continue;
    const long double d = std::fabs(value(other) - x), best_d = std::fabs(value(best) - x);
    if (d < best_d || (d == best_d && (other.bits & 1) == 0)) best = other;
  }
  return best;
}

template <class To, class From>
To reference_convert(From x) {
  if constexpr (is_half_v<From>) {
    return reference_convert<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (is_half_v<To>) {
    if constexpr (std::is_same_v<From, bool>) return To(x ? 1.0f : 0.0f);
    else return nearest_half<To>(static_cast<long double>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(x)) return 0;
    const long double t = std::trunc(static_cast<long double>(x));
    if (t < static_cast<long double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (t > static_cast<long double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(t);
  } else {
    return static_cast<To>(x);
  }
}

template <class T>
std::vector<T> interesting() {
  std::vector<T> v;
  if constexpr (std::is_same_v<T, bool>) {
    return {};
  } else if constexpr (is_floating_v<T>) {
    for (double x : {0.0,
                     -0.0,
                     1.0,
                     -1.0,
                     0.5,
                     -0.5,
                     1.5,
                     2.5,
                     0.1,
                     -3.75,
                     126.5,
                     127.0,
                     127.99,
                     128.0,
                     -128.5,
                     -129.0,
                     255.0,
                     255.5,
                     256.0,
                     32767.5,
                     32768.0,
                     -32769.0,
                     65535.5,
                     65536.0,
                     65504.0,
                     65519.0,
                     65520.0,
                     2147483520.0,
                     2147483648.0,
                     -2147483648.0,
                     4294967040.0,
                     4294967296.0,
                     9.2233715e18,
                     9.223372036854775807e18,
                     -9.3e18,
                     1.8446742e19,
                     1.8446744073709551615e19,
                     1e30,
                     -1e30,
                     3e38,
                     1e300,
                     1e-8,
                     5.9e-8,
                     2.9e-8,
                     3.0e-8,
                     6.1e-5,
                     1e-40,
                     1e-45,
                     1e-300,
                     5e-324,
                     1.00048828125,
                     1.0005,
                     1.00146484375,
                     1.00390625,
                     1.01171875,
                     1.00048828125 + 0x1p-40,
                     1.00048828125 - 0x1p-40,
                     1.01171875 - 0x1p-45,
                     1.00390625 + 0x1p-50,
                     2.98023223876953125e-8 * (1 + 0x1p-45),
                     65520.0 - 0x1p-30,
                     static_cast<double>(INFINITY),
                     -static_cast<double>(INFINITY),
                     static_cast<double>(NAN)})
      v.push_back(T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(x)));
    std::mt19937 random(7);
    for (int k = 0; k < 60; ++k) {
      const double x = std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random), std::uniform_int_distribution<int>(-30, 66)(random));
      v.push_back(T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(x)));
    }
  } else {
    using L = std::numeric_limits<T>;
    for (T x : {T(0),
                T(1),
                T(2),
                T(3),
                T(7),
                T(-1),
                T(-2),
                T(-7),
                L::min(),
                T(L::min() + 1),
                L::max(),
                T(L::max() - 1),
                T(L::max() / 2),
                T(100),
                T(8),
                T(16),
                T(31),
                T(32),
                T(33),
                T(63),
                T(64),
                T(2049),
                T(4098),
                T(65519),
                T(65520),
                T(0x4040001),
                T(0x101000000000001),
                T(0x808000000000000),
                T(0x8080000000000001)})
      v.push_back(x);
    std::mt19937_64 random(11);
    for (int k = 0; k < 40; ++k) v.push_back(static_cast<T>(random() >> (random() % 64)));
  }
  return v;
}

template <class T>
std::vector<std::uint8_t> bytes_of(const std::vector<T>& v) {
  std::vector<std::uint8_t> b(v.size() * sizeof(T));
  if (!v.empty()) std::memcpy(b.data(), v.data(), b.size());
  return b;
}

/// The test values of a dtype as raw memory.
std::vector<std::uint8_t> inputs_of(DType d) {
  if (d == vt::bool_) return {0, 1, 1, 0, 1};
  return with_type(d, [](auto t) {
    if constexpr (std::is_same_v<decltype(t), bool>) return std::vector<std::uint8_t>{};
    else return bytes_of(interesting<decltype(t)>());
  });
}

template <class T>
T element(const std::vector<std::uint8_t>& b, std::size_t i) {
  T x;
  std::memcpy(&x, b.data() + i * sizeof(T), sizeof(T));
  return x;
}

template <class T>
bool same(T a, T b) {
  if constexpr (is_half_v<T>) {
    const auto x = static_cast<float>(a), y = static_cast<float>(b);
    return std::isnan(y) ? std::isnan(x) : a.bits == b.bits;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(b) ? std::isnan(a) : a == b && std::signbit(a) == std::signbit(b);
  } else {
    return a == b;
  }
}

template <class T>
std::string shown(T x) {
  if constexpr (is_floating_v<T>) return std::to_string(static_cast<double>(x));
  else return std::to_string(+x);
}

class IrBuilderTest : public testing::TestWithParam<NamedIsa> {
 protected:
  void SetUp() override {
    if (const std::string& why = vt::detail::cpu::llvm_unavailable_reason(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(IrBuilderTest, ConvertsEveryPairOfDtypes) {
  Kernels kernels(GetParam().isa);
  const auto name = [](DType from, DType to, int lanes) {
    return std::string(vt::name_of(from)) + "_" + vt::name_of(to) + "_" + std::to_string(lanes);
  };
  for (DType from : every_dtype)
    for (DType to : every_dtype)
      for (int lanes : {1, 16})
        kernels.map(name(from, to, lanes), {from}, lanes, [&](IrBuilder& b, const vt::Vec<Value>& x) { return b.convert(x[0], to); });
  kernels.compile();
  for (DType from : every_dtype) {
    std::vector<std::uint8_t> in = inputs_of(from);
    const std::size_t n = in.size() / vt::size_of(from);
    for (DType to : every_dtype)
      for (int lanes : {1, 16}) {
        std::vector<std::uint8_t> out((n + 1) * vt::size_of(to), 0xa5);
        kernels.run(name(from, to, lanes), {in.data(), out.data()}, static_cast<std::int64_t>(n));
        EXPECT_EQ(out.back(), 0xa5) << "written past the end";
        with_type(from, [&](auto f) {
          with_type(to, [&](auto t) {
            for (std::size_t i = 0; i < n; ++i) {
              const auto want = reference_convert<decltype(t)>(element<decltype(f)>(in, i));
              const auto got = element<decltype(t)>(out, i);
              EXPECT_TRUE(same(got, want)) << name(from, to, lanes) << " of " << shown(element<decltype(f)>(in, i)) << ": " << shown(got) << ", not "
                                           << shown(want);
            }
          });
        });
      }
  }
}

// ---- binary operations -----------------------------------------------------------------------------------------------------

enum class Binary { add, sub, mul, div, rem, max, min, bit_and, bit_or, bit_xor, shl, shr, sar, eq, ne, lt, le, gt, ge };
constexpr const char* binary_names[] = {"add", "sub", "mul", "div", "rem", "max", "min", "and", "or", "xor",
                                        "shl", "shr", "sar", "eq",  "ne",  "lt",  "le",  "gt",  "ge"};
constexpr int binary_count = 19;

Value emit(IrBuilder& b, Binary op, Value x, Value y) {
  switch (op) {
    case Binary::add: return b.add(x, y);
    case Binary::sub: return b.sub(x, y);
    case Binary::mul: return b.mul(x, y);
    case Binary::div: return b.div(x, y);
    case Binary::rem: return b.rem(x, y);
    case Binary::max: return b.max(x, y);
    case Binary::min: return b.min(x, y);
    case Binary::bit_and: return b.bit_and(x, y);
    case Binary::bit_or: return b.bit_or(x, y);
    case Binary::bit_xor: return b.bit_xor(x, y);
    case Binary::shl: return b.shift_left(x, y);
    case Binary::shr: return b.shift_right_logical(x, y);
    case Binary::sar: return b.shift_right_arithmetic(x, y);
    default: return b.compare(static_cast<Compare>(static_cast<int>(op) - static_cast<int>(Binary::eq)), x, y);
  }
}

template <class T>
bool reference_compare(Binary op, T x, T y) {
  switch (op) {
    case Binary::eq: return x == y;
    case Binary::ne: return x != y;
    case Binary::lt: return x < y;
    case Binary::le: return x <= y;
    case Binary::gt: return x > y;
    default: return x >= y;
  }
}

template <class T>
T reference_integer(Binary op, T x, T y) {
  using U = std::make_unsigned_t<T>;
  using W = unsigned long long;  // wide enough, and wraps
  const W a = static_cast<W>(x), b = static_cast<W>(y);
  const unsigned width = sizeof(T) * 8;
  const bool within = static_cast<U>(y) < width;
  switch (op) {
    case Binary::add: return static_cast<T>(a + b);
    case Binary::sub: return static_cast<T>(a - b);
    case Binary::mul: return static_cast<T>(a * b);
    case Binary::div:
      if (y == 0) return 0;
      if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(W(0) - a);
      return static_cast<T>(x / y);
    case Binary::rem:
      if (y == 0 || (std::is_signed_v<T> && y == static_cast<T>(-1))) return 0;
      return static_cast<T>(x % y);
    case Binary::max: return x > y ? x : y;
    case Binary::min: return x < y ? x : y;
    case Binary::bit_and: return static_cast<T>(x & y);
    case Binary::bit_or: return static_cast<T>(x | y);
    case Binary::bit_xor: return static_cast<T>(x ^ y);
    case Binary::shl: return within ? static_cast<T>(static_cast<U>(x) << static_cast<U>(y)) : T(0);
    case Binary::shr: return within ? static_cast<T>(static_cast<U>(static_cast<U>(x) >> static_cast<U>(y))) : T(0);
    default: {
      using S = std::make_signed_t<T>;
      return static_cast<T>(static_cast<S>(static_cast<S>(x) >> (within ? static_cast<U>(y) : static_cast<U>(width - 1))));
    }
  }
}

TEST_P(IrBuilderTest, IntegerOperationsAtTheEdges) {
  Kernels kernels(GetParam().isa);
  const auto name = [](DType d, int op, int lanes) { return std::string(vt::name_of(d)) + "_" + binary_names[op] + "_" + std::to_string(lanes); };
  for (DType d : every_dtype)
    if (vt::is_int(d))
      for (int op = 0; op < binary_count; ++op)
        for (int lanes : {1, 8})
          kernels.map(name(d, op, lanes), {d, d}, lanes,
                      [&](IrBuilder& b, const vt::Vec<Value>& x) { return emit(b, static_cast<Binary>(op), x[0], x[1]); });
  kernels.compile();
  for (DType d : every_dtype) {
    if (!vt::is_int(d)) continue;
    with_type(d, [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        std::vector<T> xs, ys;
        for (T x : interesting<T>())
          for (T y : interesting<T>()) xs.push_back(x), ys.push_back(y);
        for (int op = 0; op < binary_count; ++op)
          for (int lanes : {1, 8}) {
            const auto check = [&](auto out_type, auto reference) {
              using O = decltype(out_type);
              std::vector<std::uint8_t> out(xs.size() * sizeof(O));
              kernels.run(name(d, op, lanes), {xs.data(), ys.data(), out.data()}, static_cast<std::int64_t>(xs.size()));
              for (std::size_t i = 0; i < xs.size(); ++i)
                ASSERT_EQ(+element<O>(out, i), +reference(xs[i], ys[i])) << name(d, op, lanes) << " of " << +xs[i] << ", " << +ys[i];
            };
            const auto o = static_cast<Binary>(op);
            if (o >= Binary::eq) check(bool{}, [&](T x, T y) { return reference_compare(o, x, y); });
            else check(T{}, [&](T x, T y) { return reference_integer(o, x, y); });
          }
      }
    });
  }
}

TEST_P(IrBuilderTest, DivisionByConstants) {
  Kernels kernels(GetParam().isa);
  const std::vector<std::int32_t> divisors = {0, 1, -1, 2, -3, 7, 10, 641, INT32_MAX, INT32_MIN};
  for (std::int32_t c : divisors)
    for (bool remainder : {false, true})
      kernels.map("k" + std::to_string(c) + (remainder ? "r" : "q"), {vt::i32}, 16, [&](IrBuilder& b, const vt::Vec<Value>& x) {
        const Value y = b.integer(vt::i32, c, 16);
        return remainder ? b.rem(x[0], y) : b.div(x[0], y);
      });
  kernels.compile();
  std::vector<std::int32_t> in = interesting<std::int32_t>(), out(in.size());
  for (std::int32_t c : divisors)
    for (bool remainder : {false, true}) {
      kernels.run("k" + std::to_string(c) + (remainder ? "r" : "q"), {in.data(), out.data()}, static_cast<std::int64_t>(in.size()));
      for (std::size_t i = 0; i < in.size(); ++i)
        EXPECT_EQ(out[i], reference_integer(remainder ? Binary::rem : Binary::div, in[i], c)) << in[i] << " by " << c;
    }
}

TEST_P(IrBuilderTest, FloatArithmeticIsStrictAndHalfRoundsEachResult) {
  Kernels kernels(GetParam().isa);
  const DType floats[] = {vt::f16, vt::bf16, vt::f32, vt::f64};
  const Binary ops[] = {Binary::add, Binary::sub, Binary::mul, Binary::div, Binary::max, Binary::min,
                        Binary::eq,  Binary::ne,  Binary::lt,  Binary::le,  Binary::gt,  Binary::ge};
  const auto name = [](DType d, Binary op, int lanes) {
    return std::string(vt::name_of(d)) + "_" + binary_names[static_cast<int>(op)] + "_" + std::to_string(lanes);
  };
  for (DType d : floats)
    for (Binary op : ops)
      for (int lanes : {1, 16})
        kernels.map(name(d, op, lanes), {d, d}, lanes, [&](IrBuilder& b, const vt::Vec<Value>& x) { return emit(b, op, x[0], x[1]); });
  kernels.compile();
  for (DType d : floats)
    with_type(d, [&](auto t) {
      using T = decltype(t);
      if constexpr (is_floating_v<T>) {
        using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
        std::vector<T> xs, ys;
        for (T x : interesting<T>())
          for (T y : interesting<T>()) xs.push_back(x), ys.push_back(y);
        for (Binary op : ops)
          for (int lanes : {1, 16}) {
            const bool compares = op >= Binary::eq;
            std::vector<std::uint8_t> out(xs.size() * sizeof(T));
            kernels.run(name(d, op, lanes), {xs.data(), ys.data(), out.data()}, static_cast<std::int64_t>(xs.size()));
            for (std::size_t i = 0; i < xs.size(); ++i) {
              const C x = static_cast<C>(xs[i]), y = static_cast<C>(ys[i]);
              const auto where = [&] { return name(d, op, lanes) + " of " + std::to_string(x) + ", " + std::to_string(y); };
              if (compares) {
                ASSERT_EQ(element<bool>(out, i), reference_compare(op, x, y)) << where();
                continue;
              }
              C want = op == Binary::add ? x + y : op == Binary::sub ? x - y : op == Binary::mul ? x * y : x / y;
              if (op == Binary::max || op == Binary::min) {
                want = std::isnan(x) || std::isnan(y) ? static_cast<C>(NAN) : op == Binary::max ? (x < y ? y : x) : (y < x ? y : x);
              }
              ASSERT_TRUE(same(element<T>(out, i), T(want))) << where() << ": " << shown(element<T>(out, i));
            }
          }
      }
    });
}

TEST_P(IrBuilderTest, UnaryOperations) {
  Kernels kernels(GetParam().isa);
  struct Unary {
    const char* name;
    Value (*emit)(IrBuilder&, Value);
    double (*reference)(double);
  };
  const Unary unary[] = {
      {"neg", [](IrBuilder& b, Value x) { return b.neg(x); }, [](double x) { return -x; }},
      {"abs", [](IrBuilder& b, Value x) { return b.abs(x); }, [](double x) { return std::fabs(x); }},
      {"sign", [](IrBuilder& b, Value x) { return b.sign(x); }, [](double x) { return x > 0   ? 1.0
                                                                                      : x < 0 ? -1.0
                                                                                              : x; }},
      {"sqrt", [](IrBuilder& b, Value x) { return b.sqrt(x); }, [](double x) { return std::sqrt(x); }},
      {"floor", [](IrBuilder& b, Value x) { return b.floor(x); }, [](double x) { return std::floor(x); }},
      {"ceil", [](IrBuilder& b, Value x) { return b.ceil(x); }, [](double x) { return std::ceil(x); }},
      {"trunc", [](IrBuilder& b, Value x) { return b.trunc(x); }, [](double x) { return std::trunc(x); }},
      {"round_even", [](IrBuilder& b, Value x) { return b.round_even(x); }, [](double x) { return std::nearbyint(x); }},
  };
  const DType dtypes[] = {vt::f16, vt::bf16, vt::f32, vt::f64};
  for (DType d : dtypes)
    for (const Unary& u : unary)
      for (int lanes : {1, 8})
        kernels.map(std::string(u.name) + vt::name_of(d) + std::to_string(lanes), {d}, lanes,
                    [&](IrBuilder& b, const vt::Vec<Value>& x) { return u.emit(b, x[0]); });
  kernels.compile();
  for (DType d : dtypes)
    with_type(d, [&](auto t) {
      using T = decltype(t);
      if constexpr (is_floating_v<T>)
        for (const Unary& u : unary)
          for (int lanes : {1, 8}) {
            std::vector<T> in = interesting<T>(), out(in.size());
            kernels.run(std::string(u.name) + vt::name_of(d) + std::to_string(lanes), {in.data(), out.data()}, static_cast<std::int64_t>(in.size()));
            for (std::size_t i = 0; i < in.size(); ++i) {
              // Exact in double for all but sqrt, whose double result rounds to f32 without a double-rounding error.
              const double want = u.reference(static_cast<double>(in[i]));
              EXPECT_TRUE(same(out[i], reference_convert<T>(want)))
                  << u.name << " " << vt::name_of(d) << " of " << shown(in[i]) << ": " << shown(out[i]);
            }
          }
    });
}

TEST_P(IrBuilderTest, IntegerUnaryOperationsAndBool) {
  Kernels kernels(GetParam().isa);
  kernels.map("abs", {vt::i8}, 16, [](IrBuilder& b, const vt::Vec<Value>& x) { return b.abs(x[0]); });
  kernels.map("sign", {vt::i8}, 16, [](IrBuilder& b, const vt::Vec<Value>& x) { return b.sign(x[0]); });
  kernels.map("popcount", {vt::u16}, 16, [](IrBuilder& b, const vt::Vec<Value>& x) { return b.popcount(x[0]); });
  kernels.map("clz", {vt::u16}, 16, [](IrBuilder& b, const vt::Vec<Value>& x) { return b.clz(x[0]); });
  kernels.map("not", {vt::u16}, 16, [](IrBuilder& b, const vt::Vec<Value>& x) { return b.bit_not(x[0]); });
  for (const char* op : {"add", "mul", "sub", "div", "shl"})
    kernels.map(std::string("bool_") + op, {vt::bool_, vt::bool_}, 16, [&](IrBuilder& b, const vt::Vec<Value>& x) {
      const std::string o = op;
      return o == "add"   ? b.add(x[0], x[1])
             : o == "mul" ? b.mul(x[0], x[1])
             : o == "sub" ? b.sub(x[0], x[1])
             : o == "div" ? b.div(x[0], x[1])
                          : b.shift_left(x[0], x[1]);
    });
  kernels.compile();
  std::vector<std::int8_t> a(256), r(256);
  std::iota(a.begin(), a.end(), std::int8_t(-128));
  kernels.run("abs", {a.data(), r.data()}, 256);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(r[i], static_cast<std::int8_t>(std::abs(a[i])));
  kernels.run("sign", {a.data(), r.data()}, 256);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(r[i], (a[i] > 0) - (a[i] < 0));
  std::vector<std::uint16_t> u = interesting<std::uint16_t>(), v(u.size());
  kernels.run("popcount", {u.data(), v.data()}, static_cast<std::int64_t>(u.size()));
  for (std::size_t i = 0; i < u.size(); ++i) EXPECT_EQ(v[i], std::popcount(u[i]));
  kernels.run("clz", {u.data(), v.data()}, static_cast<std::int64_t>(u.size()));
  for (std::size_t i = 0; i < u.size(); ++i) EXPECT_EQ(v[i], std::countl_zero(u[i]));
  kernels.run("not", {u.data(), v.data()}, static_cast<std::int64_t>(u.size()));
  for (std::size_t i = 0; i < u.size(); ++i) EXPECT_EQ(v[i], static_cast<std::uint16_t>(~u[i]));
  std::uint8_t p[] = {0, 0, 1, 1}, q[] = {0, 1, 0, 1}, s[4];
  const std::map<std::string, std::vector<int>> want = {
      {"bool_add", {0, 1, 1, 1}}, {"bool_mul", {0, 0, 0, 1}}, {"bool_sub", {0, 1, 1, 0}}, {"bool_div", {0, 0, 0, 1}}, {"bool_shl", {0, 0, 1, 0}}};
  for (const auto& [name, values] : want) {
    kernels.run(name, {p, q, s}, 4);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(s[i], values[static_cast<std::size_t>(i)]) << name << " " << i;
  }
}

// ---- memory ----------------------------------------------------------------------------------------------------------------

TEST_P(IrBuilderTest, MaskedTailsTouchNothingBeyond) {
  Kernels kernels(GetParam().isa);
  for (DType d : every_dtype)
    for (int lanes : {1, 3, 16, 32})
      kernels.map(std::string(vt::name_of(d)) + std::to_string(lanes), {d}, lanes, [](IrBuilder&, const vt::Vec<Value>& x) { return x[0]; });
  kernels.compile();
  for (DType d : every_dtype)
    for (int lanes : {1, 3, 16, 32})
      for (std::size_t n : {0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 37}) {
        const std::size_t bytes = n * vt::size_of(d);
        // Exactly as long as needed: AddressSanitizer sees a read beyond; the guard after `out` sees a write.
        std::vector<std::uint8_t> in(bytes), out(bytes + 64, 0xcd);
        for (std::size_t i = 0; i < bytes; ++i)
          in[i] = d == vt::bool_ ? (i * 7 % 3 == 0) : vt::is_float(d) ? 0x3c : static_cast<std::uint8_t>(i * 31 + 1);
        kernels.run(std::string(vt::name_of(d)) + std::to_string(lanes), {in.data(), out.data()}, static_cast<std::int64_t>(n));
        EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin())) << vt::name_of(d) << " " << lanes << " " << n;
        for (std::size_t i = bytes; i < out.size(); ++i) ASSERT_EQ(out[i], 0xcd) << vt::name_of(d) << " " << lanes << " " << n;
      }
}

TEST_P(IrBuilderTest, StridedAndIndexedAccess) {
  Kernels kernels(GetParam().isa);
  IrBuilder& b = kernels.builder;
  const int strides[] = {-3, -1, 0, 1, 2, 3, 4, 5, 9};
  const DType dtypes[] = {vt::u8, vt::f16, vt::f32, vt::i64, vt::bool_};
  constexpr int lanes = 8, middle = 40;
  for (DType d : dtypes)
    for (int s : strides)
      for (int form = 0; form < 3; ++form) {  // literal stride, run-time stride, literal stride with a mask
        kernels.open(std::string(vt::name_of(d)) + "_" + std::to_string(s) + "_" + std::to_string(form));
        const Value at = b.offset(kernels.buffer(0), d, b.index(middle));
        const Value mask = b.tail_mask(lanes, kernels.n());
        const Value x = form == 0   ? b.load_strided(at, d, lanes, s)
                        : form == 1 ? b.load_strided(at, d, lanes, b.sub(b.index(s + 5), kernels.n()), mask)
                                    : b.load_strided(at, d, lanes, s, mask);
        b.store(kernels.buffer(1), x);
        kernels.done();
      }
  kernels.open("scatter");
  b.store_strided(kernels.buffer(1), b.load(kernels.buffer(0), vt::f32, lanes), b.index(3), b.tail_mask(lanes, kernels.n()));
  kernels.done();
  for (DType index : {vt::i32, vt::u32, vt::i64, vt::u8})
    kernels.map(std::string("gather_") + vt::name_of(index), {index}, 16,
                [&](IrBuilder& g, const vt::Vec<Value>& i) { return g.gather(kernels.buffer(2), vt::f64, i[0]); });
  kernels.compile();
  for (DType d : dtypes)
    with_type(d, [&](auto t) {
      using T = decltype(t);
      std::vector<std::uint8_t> table(120 * sizeof(T));
      for (std::size_t i = 0; i < 120; ++i) {
        T x{};
        if constexpr (std::is_same_v<T, bool>) x = i % 3 == 0;
        else if constexpr (is_half_v<T>) x = T(static_cast<float>(i) * 0.25f);
        else x = static_cast<T>(i * 2 + 1);
        std::memcpy(table.data() + i * sizeof(T), &x, sizeof(T));
      }
      for (int s : strides)
        for (int form = 0; form < 3; ++form) {
          std::vector<std::uint8_t> out(lanes * sizeof(T));
          kernels.run(std::string(vt::name_of(d)) + "_" + std::to_string(s) + "_" + std::to_string(form), {table.data(), out.data()}, 5);
          for (int k = 0; k < lanes; ++k) {
            const bool on = form == 0 || k < 5;
            const T want = on ? element<T>(table, static_cast<std::size_t>(middle + k * s)) : T(0);
            EXPECT_TRUE(same(element<T>(out, static_cast<std::size_t>(k)), want))
                << vt::name_of(d) << " stride " << s << " form " << form << " lane " << k;
          }
        }
    });
  std::vector<float> in(lanes), out(3 * lanes, -1.0f);
  std::iota(in.begin(), in.end(), 1.0f);
  kernels.run("scatter", {in.data(), out.data()}, 6);
  for (int i = 0; i < 3 * lanes; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], i % 3 == 0 && i / 3 < 6 ? static_cast<float>(i / 3 + 1) : -1.0f);
  std::vector<double> table(256), got(20);
  std::iota(table.begin(), table.end(), 0.5);
  for (DType index : {vt::i32, vt::u32, vt::i64, vt::u8})
    with_type(index, [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_integral_v<T>) {
        std::vector<std::uint8_t> where(20 * sizeof(T));
        for (std::size_t i = 0; i < 20; ++i) {
          const T at = static_cast<T>(i * 13 % 251);
          std::memcpy(where.data() + i * sizeof(T), &at, sizeof(T));
        }
        kernels.run(std::string("gather_") + vt::name_of(index), {where.data(), got.data(), table.data()}, 20);
        for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(got[i], static_cast<double>(i * 13 % 251) + 0.5);
      }
    });
}

// ---- reductions ------------------------------------------------------------------------------------------------------------

float fold_tree(std::vector<float> v, float (*op)(float, float)) {
  std::size_t p = std::bit_floor(v.size());
  for (std::size_t i = p; i < v.size(); ++i) v[i - p] = op(v[i - p], v[i]);
  while (p > 1) {
    p /= 2;
    for (std::size_t i = 0; i < p; ++i) v[i] = op(v[i], v[i + p]);
  }
  return v[0];
}

TEST_P(IrBuilderTest, LaneReductionsHaveOneFixedOrder) {
  Kernels kernels(GetParam().isa);
  IrBuilder& b = kernels.builder;
  const int counts[] = {1, 2, 3, 5, 8, 13, 16, 32};
  const std::pair<Reduce, const char*> ops[] = {{Reduce::add, "add"}, {Reduce::mul, "mul"}, {Reduce::max, "max"}, {Reduce::min, "min"}};
  for (int lanes : counts)
    for (const auto& [op, name] : ops) {
      kernels.open(std::string(name) + std::to_string(lanes));
      b.store(kernels.buffer(1), b.reduce_lanes(op, b.load(kernels.buffer(0), vt::f32, lanes)));
      kernels.done();
      kernels.open(std::string("int_") + name + std::to_string(lanes));
      b.store(kernels.buffer(1), b.reduce_lanes(op, b.load(kernels.buffer(0), vt::i16, lanes)));
      kernels.done();
    }
  const std::pair<Reduce, const char*> bit_ops[] = {{Reduce::bit_and, "and"}, {Reduce::bit_or, "or"}, {Reduce::bit_xor, "xor"}};
  for (const auto& [op, name] : bit_ops) {
    kernels.open(name);
    b.store(kernels.buffer(1), b.reduce_lanes(op, b.load(kernels.buffer(0), vt::u32, 13)));
    kernels.done();
  }
  kernels.open("any_all");
  const Value mask = b.load(kernels.buffer(0), vt::bool_, 13);
  b.store(kernels.buffer(1), b.any(mask));
  b.store(b.offset(kernels.buffer(1), vt::bool_, b.index(1)), b.all(mask));
  b.store(b.offset(kernels.buffer(1), vt::bool_, b.index(2)), b.reduce_lanes(Reduce::max, mask));
  b.store(b.offset(kernels.buffer(1), vt::bool_, b.index(3)), b.reduce_lanes(Reduce::mul, mask));
  kernels.done();
  kernels.compile();
  std::mt19937 random(3);
  for (int lanes : counts) {
    const auto n = static_cast<std::size_t>(lanes);
    std::vector<float> x(n);
    for (float& f : x) f = std::normal_distribution<float>(0, 1)(random);
    float (*const reference[])(float, float) = {[](float p, float q) { return p + q; }, [](float p, float q) { return p * q; },
                                                [](float p, float q) { return p > q ? p : q; }, [](float p, float q) { return p < q ? p : q; }};
    for (std::size_t k = 0; k < 4; ++k) {
      float r = 0;
      kernels.run(std::string(ops[k].second) + std::to_string(lanes), {x.data(), &r}, 0);
      EXPECT_EQ(r, fold_tree(x, reference[k])) << ops[k].second << lanes;
      std::vector<float> with_nan = x;
      with_nan[n / 2] = NAN;
      kernels.run(std::string(ops[k].second) + std::to_string(lanes), {with_nan.data(), &r}, 0);
      EXPECT_TRUE(std::isnan(r)) << ops[k].second << lanes;
    }
    std::vector<std::int16_t> i(n);
    for (auto& v : i) v = static_cast<std::int16_t>(random());
    std::int16_t r = 0;
    kernels.run("int_add" + std::to_string(lanes), {i.data(), &r}, 0);
    EXPECT_EQ(r, static_cast<std::int16_t>(std::accumulate(i.begin(), i.end(), 0)));
    kernels.run("int_max" + std::to_string(lanes), {i.data(), &r}, 0);
    EXPECT_EQ(r, *std::max_element(i.begin(), i.end()));
    kernels.run("int_min" + std::to_string(lanes), {i.data(), &r}, 0);
    EXPECT_EQ(r, *std::min_element(i.begin(), i.end()));
  }
  std::vector<std::uint32_t> bits(13);
  for (auto& v : bits) v = static_cast<std::uint32_t>(random()) | 0x10;
  std::uint32_t r = 0, want_and = ~0u, want_or = 0, want_xor = 0;
  for (auto v : bits) want_and &= v, want_or |= v, want_xor ^= v;
  kernels.run("and", {bits.data(), &r}, 0);
  EXPECT_EQ(r, want_and);
  kernels.run("or", {bits.data(), &r}, 0);
  EXPECT_EQ(r, want_or);
  kernels.run("xor", {bits.data(), &r}, 0);
  EXPECT_EQ(r, want_xor);
  for (int on : {-1, 12, 13}) {  // none, only the last, all
    std::vector<std::uint8_t> m(13, on == 13), out(4);
    if (on == 12) m[12] = 1;
    kernels.run("any_all", {m.data(), out.data()}, 0);
    EXPECT_EQ(out, (std::vector<std::uint8_t>{on >= 0, on == 13, on >= 0, on == 13}));
  }
}

// ---- control flow, functions, errors -------------------------------------------------------------------------------------------

TEST_P(IrBuilderTest, LoopsBranchesHelpersAndFrameArrays) {
  Kernels kernels(GetParam().isa);
  IrBuilder& b = kernels.builder;
  kernels.open("collatz");  // steps of n to 1, with a loop carrying two values and a branch
  const vt::Vec<Value> out = b.loop(b.index(0), b.index(200), 1, {kernels.n(), b.index(0)}, [&](Value, const vt::Vec<Value>& c) {
    return b.if_else(
        b.compare(Compare::gt, c[0], b.index(1)),
        [&] {
          const Value odd = b.compare(Compare::eq, b.bit_and(c[0], b.index(1)), b.index(1));
          const Value next = b.if_else(
              odd, [&] { return vt::Vec<Value>{b.add(b.mul(c[0], b.index(3)), b.index(1))}; },
              [&] { return vt::Vec<Value>{b.shift_right_logical(c[0], 1)}; })[0];
          return vt::Vec<Value>{next, b.add(c[1], b.index(1))};
        },
        [&] { return c; });
  });
  b.store(kernels.buffer(0), out[1]);
  kernels.done();
  kernels.open("frame");  // fills a frame array, then sums it through a private function
  b.declare_buffers(2);
  const Value array = b.with_buffer(b.stack_array(vt::f64, 64), 1);
  b.for_range(b.index(0), b.index(64), 1, [&](Value i) { b.store(b.offset(array, vt::f64, i), b.convert(i, vt::f64)); }, true);
  const Value total = b.loop(b.index(0), b.index(64), 8, {b.real(vt::f64, 0, 8)}, [&](Value i, const vt::Vec<Value>& c) {
    return vt::Vec<Value>{b.call_helper("add8", vt::f64, 8, {c[0], b.load(b.offset(array, vt::f64, i), vt::f64, 8)},
                                        [&](const vt::Vec<Value>& a) { return b.add(a[0], a[1]); })};
  })[0];
  b.store(b.with_buffer(kernels.buffer(0), 0), b.reduce_lanes(Reduce::add, total));
  kernels.done();
  kernels.open("runtime");
  b.call_runtime_void("vt_lanes_sin", {kernels.buffer(0), b.index(1)});
  kernels.done();
  kernels.open("fill");
  b.copy_bytes(b.offset_bytes(kernels.buffer(0), b.index(64)), kernels.buffer(0), kernels.n());
  b.zero_bytes(kernels.buffer(0), kernels.n());
  kernels.done();
  kernels.compile();
  std::int64_t steps = 0;
  kernels.run("collatz", {&steps}, 27);
  EXPECT_EQ(steps, 111);
  kernels.run("collatz", {&steps}, 1);
  EXPECT_EQ(steps, 0);
  double x = 0;
  kernels.run("frame", {&x}, 0);
  EXPECT_EQ(x, 63 * 32);
  x = 0.5;
  kernels.run("runtime", {&x}, 0);
  EXPECT_EQ(x, std::sin(0.5));
  std::vector<std::uint8_t> block(128, 7);
  kernels.run("fill", {block.data()}, 33);
  for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(block[i], i < 33 ? 0 : 7) << i;
}

INSTANTIATE_TEST_SUITE_P(AllIsas, IrBuilderTest, testing::ValuesIn(all_isas), [](const auto& info) { return std::string(info.param.name); });

class CompileTest : public IrBuilderTest {};

TEST_P(CompileTest, LoadsUnloadsAndUsesEqualNamesAtOnce) {
  std::vector<std::shared_ptr<Code>> codes;
  const std::vector<std::string> names = {"same_name"};
  for (int round = 0; round < 3; ++round) {
    codes.clear();
    for (int k = 0; k < 5; ++k) {
      IrBuilder b(vt::detail::cpu::make_target(GetParam().isa));
      b.begin_function("same_name", {Param::ptr()});
      b.store(b.arg(0), b.integer(vt::i32, 10 * round + k));
      b.end_function();
      const vt::Vec<char> object = vt::detail::cpu::compile_object(b, {.level = k % 3, .passes = k % 2 == 0});
      codes.push_back(k < 3 ? std::make_shared<Code>(object, names) : std::make_shared<Code>(object, names, Linker::llvm));
    }
    for (int k = 0; k < 5; ++k) {
      std::int32_t out = -1;
      codes[static_cast<std::size_t>(k)]->function<void(void*)>()(&out);
      EXPECT_EQ(out, 10 * round + k);
    }
  }
}

TEST_P(CompileTest, CompilesOnManyThreads) {
  std::vector<std::thread> threads;
  std::vector<int> results(8, -1);
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([&, k] {
      IrBuilder b(vt::detail::cpu::make_target(GetParam().isa));
      b.begin_function("f", {Param::ptr()});
      b.store(b.arg(0), b.integer(vt::i32, k));
      b.end_function();
      const std::vector<std::string> names = {"f"};
      vt::detail::cpu::compile_and_load(b, names)->function<void(void*)>()(&results[static_cast<std::size_t>(k)]);
    });
  for (auto& t : threads) t.join();
  for (int k = 0; k < 8; ++k) EXPECT_EQ(results[static_cast<std::size_t>(k)], k);
}

TEST_P(CompileTest, RefusesBadObjectsAndUnknownNames) {
  const vt::Vec<char> garbage(100, 'x');
  const std::vector<std::string> names = {"f"};
  for (Linker linker : {Linker::vt, Linker::llvm}) try {
      Code code(garbage, names, linker);
      ADD_FAILURE() << "garbage was loaded";
    } catch (const vt::Error& e) {
      EXPECT_EQ(e.kind(), vt::ErrorKind::backend);
      EXPECT_NE(std::string(e.what()).find("could not be loaded"), std::string::npos) << e.what();
    }
  IrBuilder b(vt::detail::cpu::make_target(GetParam().isa));
  b.begin_function("g", {});
  b.end_function();
  const vt::Vec<char> object = vt::detail::cpu::compile_object(b);
  for (Linker linker : {Linker::vt, Linker::llvm}) try {
      Code code(object, names, linker);
      ADD_FAILURE() << "a name that is not there was found";
    } catch (const vt::Error& e) {
      EXPECT_NE(std::string(e.what()).find("f"), std::string::npos) << e.what();
    }
  const std::vector<std::string> right = {"g"};
  for (Linker linker : {Linker::vt, Linker::llvm}) Code(object, right, linker).function<void()>()();
}

TEST_P(CompileTest, MismatchedOperandsAreNamed) {
  IrBuilder b(vt::detail::cpu::make_target(GetParam().isa));
  b.begin_function("f", {});
  try {
    b.add(b.integer(vt::i32, 1), b.real(vt::f32, 1, 4));
    ADD_FAILURE() << "mixed operands were added";
  } catch (const vt::Error& e) {
    EXPECT_NE(std::string(e.what()).find("add of i32 and f32x4"), std::string::npos) << e.what();
  }
  b.end_function();
}

TEST_P(CompileTest, DumpsTextAndAssembly) {
  Kernels kernels(GetParam().isa);
  kernels.map("twice", {vt::f32}, 4, [](IrBuilder& b, const vt::Vec<Value>& x) { return b.add(x[0], x[0]); });
  EXPECT_NE(kernels.builder.text().find("fadd <4 x float>"), std::string::npos);
  EXPECT_NE(vt::detail::cpu::compile_assembly(kernels.builder).find("twice:"), std::string::npos);
  kernels.compile();  // the dump left the module usable
  float in[] = {1, 2, 3}, out[3];
  kernels.run("twice", {in, out}, 3);
  EXPECT_EQ(out[2], 6.0f);
}

INSTANTIATE_TEST_SUITE_P(Host, CompileTest, testing::Values(all_isas[0]), [](const auto& info) { return std::string(info.param.name); });

// Whatever the bytes are, the loader reads inside them and either refuses or links; run under AddressSanitizer too.
TEST(ObjectLoader, SurvivesDamagedObjects) {
  if (!vt::detail::cpu::can_load_objects()) GTEST_SKIP() << "LLVM links here";
  if (const std::string& why = vt::detail::cpu::llvm_unavailable_reason(); !why.empty()) GTEST_SKIP() << why;
  IrBuilder b;
  b.begin_function("f", {Param::ptr(), Param::of(DType::i64)});
  b.store(b.arg(0), b.call_runtime("fmax", vt::f64, {b.load(b.arg(0), vt::f64), b.real(vt::f64, 0)}));
  b.store(b.arg(0), b.mul(b.load(b.arg(0), vt::f64, 8), b.iota(vt::f64, 8)));
  b.zero_bytes(b.arg(0), b.arg(1));
  b.end_function();
  const vt::Vec<char> good = vt::detail::cpu::compile_object(b);
  const auto resolve = [](std::string_view name) -> void* {
    for (const auto& s : vt::detail::cpu::runtime_symbols())
      if (name == s.name) return s.address;
    return nullptr;
  };
  {
    vt::detail::cpu::LoadedObject object;
    ASSERT_EQ(object.load(good, resolve), "");
    EXPECT_NE(object.find("f"), nullptr);
    EXPECT_EQ(object.find("g"), nullptr);
    EXPECT_NE(vt::detail::cpu::LoadedObject().load(good, [](std::string_view) -> void* { return nullptr; }).find("unknown function"),
              std::string::npos);
  }
  for (std::size_t length = 0; length < good.size(); length += 7) {
    vt::detail::cpu::LoadedObject object;
    const vt::Vec<char> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));  // its own allocation
    EXPECT_NE(object.load(cut, resolve), "") << length;
  }
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) {
    vt::Vec<char> bad = good;
    for (int k = 0; k < 1 + round % 4; ++k) bad[random() % bad.size()] = static_cast<char>(random());
    vt::detail::cpu::LoadedObject object;
    (void)object.load(bad, resolve);
  }
}

TEST(LlvmLibrary, SaysWhyALibraryDoesNotFit) {
  using vt::detail::cpu::llvm_try_library;
  EXPECT_NE(llvm_try_library("/no/such/libLLVM.so").find("/no/such/libLLVM.so"), std::string::npos);
  EXPECT_EQ(vt::detail::cpu::llvm_missing_reason(), vt::detail::cpu::llvm_unavailable_reason());
  EXPECT_NE(llvm_try_library("libm.so.6").find("no LLVMGetVersion"), std::string::npos);
}

}  // namespace

#endif
