// The builder's arithmetic, run: every conversion pair, integer edge cases, division, 16-bit
// floats, unary functions.
#include <gtest/gtest.h>

#include "cpu_kernels.hpp"

#if VT_HAS_LLVM_HEADERS

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>

#include <vt/error.hpp>

namespace {

using namespace vt_test;
using vt::BFloat16;
using vt::Float16;
using vt::detail::with_type;
using vt::detail::cpu::Compare;

// ---- the reference: plain C++ on single values --------------------------------------------------

/// The 16-bit float nearest to x, found among the neighbours of its f32 rounding by exact distance;
/// ties go to even bits.
template <class H>
H nearest_half(long double x) {
  const H guess(static_cast<float>(x));
  if (!std::isfinite(x) || std::isnan(static_cast<float>(guess))) return guess;
  // An infinity takes part as the number that would follow the largest finite one.
  const auto value = [](H h) {
    const auto f = static_cast<float>(h);
    const float largest = static_cast<float>(
        std::is_same_v<H, Float16> ? H(65504.0f) : std::bit_cast<H>(std::uint16_t{0x7f7f}));
    const long double step = std::is_same_v<H, Float16> ? 32.0L : std::ldexp(1.0L, 120);
    return std::isinf(f) ? std::copysign(static_cast<long double>(largest) + step,
                                         static_cast<long double>(f))
                         : static_cast<long double>(f);
  };
  H best = guess;
  for (int step : {-1, 1}) {
    H other;
    other.bits = static_cast<std::uint16_t>(guess.bits + step);
    if (((guess.bits ^ other.bits) & 0x8000u) != 0 || std::isnan(static_cast<float>(other)))
      continue;
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
    if (t < static_cast<long double>(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
    if (t > static_cast<long double>(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
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
      const double x = std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random),
                                  std::uniform_int_distribution<int>(-30, 66)(random));
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
std::string shown(T x) {
  if constexpr (is_floating_v<T>) return std::to_string(static_cast<double>(x));
  else return std::to_string(+x);
}

class IrArithTest : public IsaTest {};

TEST_P(IrArithTest, ConvertsEveryPairOfDtypes) {
  Kernels kernels(GetParam().isa);
  const auto name = [](DType from, DType to, int lanes) {
    return std::string(vt::name_of(from)) + "_" + vt::name_of(to) + "_" + std::to_string(lanes);
  };
  for (DType from : every_dtype)
    for (DType to : every_dtype)
      for (int lanes : {1, 16})
        kernels.map(name(from, to, lanes), {from}, lanes,
                    [&](IrBuilder& b, const vt::Vec<Value>& x) { return b.convert(x[0], to); });
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
              EXPECT_TRUE(same(got, want))
                  << name(from, to, lanes) << " of " << shown(element<decltype(f)>(in, i)) << ": "
                  << shown(got) << ", not " << shown(want);
            }
          });
        });
      }
  }
}

TEST_P(IrArithTest, ComparingF16CallsNothingForEachLane) {
  // LLVM narrows comparisons of widened numbers with constants, and x86 without AVX512-FP16 then
  // takes the lanes one by one.
  const auto size = [&](DType from) {
    Kernels kernels(GetParam().isa);
    kernels.map("cut", {from}, 16, [&](IrBuilder& b, const vt::Vec<Value>& x) {
      return b.convert(b.convert(x[0], DType::f32), DType::i8);
    });
    const std::string text = vt::detail::cpu::compile_assembly(kernels.builder);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_LT(size(DType::f16),
            size(DType::f32) * (GetParam().isa == vt::detail::cpu::Isa::sse2 ? 3 : 2));
}

// ---- binary operations --------------------------------------------------------------------------

enum class Binary {
  add,
  sub,
  mul,
  div,
  rem,
  max,
  min,
  bit_and,
  bit_or,
  bit_xor,
  shl,
  shr,
  sar,
  eq,
  ne,
  lt,
  le,
  gt,
  ge
};
constexpr const char* binary_names[] = {"add", "sub", "mul", "div", "rem", "max", "min",
                                        "and", "or",  "xor", "shl", "shr", "sar", "eq",
                                        "ne",  "lt",  "le",  "gt",  "ge"};
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
    default:
      return b.compare(static_cast<Compare>(static_cast<int>(op) - static_cast<int>(Binary::eq)), x,
                       y);
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
    case Binary::shr:
      return within ? static_cast<T>(static_cast<U>(static_cast<U>(x) >> static_cast<U>(y))) : T(0);
    default: {
      using S = std::make_signed_t<T>;
      return static_cast<T>(static_cast<S>(
          static_cast<S>(x) >> (within ? static_cast<U>(y) : static_cast<U>(width - 1))));
    }
  }
}

TEST_P(IrArithTest, IntegerOperationsAtTheEdges) {
  Kernels kernels(GetParam().isa);
  const auto name = [](DType d, int op, int lanes) {
    return std::string(vt::name_of(d)) + "_" + binary_names[op] + "_" + std::to_string(lanes);
  };
  for (DType d : every_dtype)
    if (vt::is_int(d))
      for (int op = 0; op < binary_count; ++op)
        for (int lanes : {1, 8})
          kernels.map(name(d, op, lanes), {d, d}, lanes,
                      [&](IrBuilder& b, const vt::Vec<Value>& x) {
                        return emit(b, static_cast<Binary>(op), x[0], x[1]);
                      });
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
              kernels.run(name(d, op, lanes), {xs.data(), ys.data(), out.data()},
                          static_cast<std::int64_t>(xs.size()));
              for (std::size_t i = 0; i < xs.size(); ++i)
                ASSERT_EQ(+element<O>(out, i), +reference(xs[i], ys[i]))
                    << name(d, op, lanes) << " of " << +xs[i] << ", " << +ys[i];
            };
            const auto o = static_cast<Binary>(op);
            if (o >= Binary::eq)
              check(bool{}, [&](T x, T y) { return reference_compare(o, x, y); });
            else check(T{}, [&](T x, T y) { return reference_integer(o, x, y); });
          }
      }
    });
  }
}

TEST_P(IrArithTest, DivisionByConstants) {
  Kernels kernels(GetParam().isa);
  const std::vector<std::int32_t> divisors = {0, 1, -1, 2, -3, 7, 10, 641, INT32_MAX, INT32_MIN};
  for (std::int32_t c : divisors)
    for (bool remainder : {false, true})
      kernels.map("k" + std::to_string(c) + (remainder ? "r" : "q"), {vt::i32}, 16,
                  [&](IrBuilder& b, const vt::Vec<Value>& x) {
                    const Value y = b.integer(vt::i32, c, 16);
                    return remainder ? b.rem(x[0], y) : b.div(x[0], y);
                  });
  kernels.compile();
  std::vector<std::int32_t> in = interesting<std::int32_t>(), out(in.size());
  for (std::int32_t c : divisors)
    for (bool remainder : {false, true}) {
      kernels.run("k" + std::to_string(c) + (remainder ? "r" : "q"), {in.data(), out.data()},
                  static_cast<std::int64_t>(in.size()));
      for (std::size_t i = 0; i < in.size(); ++i)
        EXPECT_EQ(out[i], reference_integer(remainder ? Binary::rem : Binary::div, in[i], c))
            << in[i] << " by " << c;
    }
}

TEST_P(IrArithTest, FloatArithmeticIsStrictAndHalfRoundsEachResult) {
  Kernels kernels(GetParam().isa);
  const DType floats[] = {vt::f16, vt::bf16, vt::f32, vt::f64};
  const Binary ops[] = {Binary::add, Binary::sub, Binary::mul, Binary::div,
                        Binary::max, Binary::min, Binary::eq,  Binary::ne,
                        Binary::lt,  Binary::le,  Binary::gt,  Binary::ge};
  const auto name = [](DType d, Binary op, int lanes) {
    return std::string(vt::name_of(d)) + "_" + binary_names[static_cast<int>(op)] + "_" +
           std::to_string(lanes);
  };
  for (DType d : floats)
    for (Binary op : ops)
      for (int lanes : {1, 16})
        kernels.map(name(d, op, lanes), {d, d}, lanes,
                    [&](IrBuilder& b, const vt::Vec<Value>& x) { return emit(b, op, x[0], x[1]); });
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
            kernels.run(name(d, op, lanes), {xs.data(), ys.data(), out.data()},
                        static_cast<std::int64_t>(xs.size()));
            for (std::size_t i = 0; i < xs.size(); ++i) {
              const C x = static_cast<C>(xs[i]), y = static_cast<C>(ys[i]);
              const auto where = [&] {
                return name(d, op, lanes) + " of " + std::to_string(x) + ", " + std::to_string(y);
              };
              if (compares) {
                ASSERT_EQ(element<bool>(out, i), reference_compare(op, x, y)) << where();
                continue;
              }
              C want = op == Binary::add   ? x + y
                       : op == Binary::sub ? x - y
                       : op == Binary::mul ? x * y
                                           : x / y;
              if (op == Binary::max || op == Binary::min) {
                want = std::isnan(x) || std::isnan(y) ? static_cast<C>(NAN)
                       : op == Binary::max            ? (x < y ? y : x)
                                                      : (y < x ? y : x);
              }
              ASSERT_TRUE(same(element<T>(out, i), T(want)))
                  << where() << ": " << shown(element<T>(out, i));
            }
          }
      }
    });
}

TEST_P(IrArithTest, UnaryOperations) {
  Kernels kernels(GetParam().isa);
  struct Unary {
    const char* name;
    Value (*emit)(IrBuilder&, Value);
    double (*reference)(double);
  };
  const Unary unary[] = {
      {"neg", [](IrBuilder& b, Value x) { return b.neg(x); }, [](double x) { return -x; }},
      {"abs", [](IrBuilder& b, Value x) { return b.abs(x); },
       [](double x) { return std::fabs(x); }},
      {"sign", [](IrBuilder& b, Value x) { return b.sign(x); },
       [](double x) { return x > 0   ? 1.0
                             : x < 0 ? -1.0
                                     : x; }},
      {"sqrt", [](IrBuilder& b, Value x) { return b.sqrt(x); },
       [](double x) { return std::sqrt(x); }},
      {"floor", [](IrBuilder& b, Value x) { return b.floor(x); },
       [](double x) { return std::floor(x); }},
      {"ceil", [](IrBuilder& b, Value x) { return b.ceil(x); },
       [](double x) { return std::ceil(x); }},
      {"trunc", [](IrBuilder& b, Value x) { return b.trunc(x); },
       [](double x) { return std::trunc(x); }},
      {"round_even", [](IrBuilder& b, Value x) { return b.round_even(x); },
       [](double x) { return std::nearbyint(x); }},
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
            kernels.run(std::string(u.name) + vt::name_of(d) + std::to_string(lanes),
                        {in.data(), out.data()}, static_cast<std::int64_t>(in.size()));
            for (std::size_t i = 0; i < in.size(); ++i) {
              // Exact in double for all but sqrt, whose double result rounds to f32 without a
              // double-rounding error.
              const double want = u.reference(static_cast<double>(in[i]));
              EXPECT_TRUE(same(out[i], reference_convert<T>(want)))
                  << u.name << " " << vt::name_of(d) << " of " << shown(in[i]) << ": "
                  << shown(out[i]);
            }
          }
    });
}

TEST_P(IrArithTest, IntegerUnaryOperationsAndBool) {
  Kernels kernels(GetParam().isa);
  kernels.map("abs", {vt::i8}, 16,
              [](IrBuilder& b, const vt::Vec<Value>& x) { return b.abs(x[0]); });
  kernels.map("sign", {vt::i8}, 16,
              [](IrBuilder& b, const vt::Vec<Value>& x) { return b.sign(x[0]); });
  kernels.map("popcount", {vt::u16}, 16,
              [](IrBuilder& b, const vt::Vec<Value>& x) { return b.popcount(x[0]); });
  kernels.map("clz", {vt::u16}, 16,
              [](IrBuilder& b, const vt::Vec<Value>& x) { return b.clz(x[0]); });
  kernels.map("not", {vt::u16}, 16,
              [](IrBuilder& b, const vt::Vec<Value>& x) { return b.bit_not(x[0]); });
  for (const char* op : {"add", "mul", "sub", "div", "shl"})
    kernels.map(std::string("bool_") + op, {vt::bool_, vt::bool_}, 16,
                [&](IrBuilder& b, const vt::Vec<Value>& x) {
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
  const std::map<std::string, std::vector<int>> want = {{"bool_add", {0, 1, 1, 1}},
                                                        {"bool_mul", {0, 0, 0, 1}},
                                                        {"bool_sub", {0, 1, 1, 0}},
                                                        {"bool_div", {0, 0, 0, 1}},
                                                        {"bool_shl", {0, 0, 1, 0}}};
  for (const auto& [name, values] : want) {
    kernels.run(name, {p, q, s}, 4);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(s[i], values[i]) << name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(AllIsas, IrArithTest, testing::ValuesIn(all_isas),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace

#endif
