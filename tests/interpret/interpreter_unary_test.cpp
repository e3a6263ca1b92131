// The interpreter's ops of one operand against the C library's long double functions (64-bit
// significands), integers by brute force, conversions against the compiler's own _Float16 and
// against nearest-neighbour search.
#include <bit>
#include <cmath>
#include <limits>

#include "src/trace/base/convert.hpp"
#include "support/run_op.hpp"

namespace {

using vt::DType;
using vt::Tensor;
using vt_test::make_tensor;
using vt_test::run_op;
using namespace vt::detail;

const double inf = std::numeric_limits<double>::infinity(),
             nan = std::numeric_limits<double>::quiet_NaN();

/// Zeros, ends of the range, and numbers on both sides of where functions change their form.
std::vector<double> special_values(DType dtype) {
  const bool f16 = dtype == vt::f16, f64 = dtype == vt::f64;
  const double most = f16                 ? 65504
                      : f64               ? std::numeric_limits<double>::max()
                      : dtype == vt::bf16 ? 0x1.fep127
                                          : std::numeric_limits<float>::max();
  const double least = vt_test::ulp_of(0, dtype), normal = f16   ? 0x1p-14
                                                           : f64 ? 0x1p-1022
                                                                 : 0x1p-126;
  std::vector<double> values = {nan};
  for (double x :
       {0.0,  1.0,  0.5,  0.25,  0.75,   0.9375, 1.5,  2.0,   2.5,    3.0,  3.140625, 7.0,
        10.0, 20.0, 88.0, 100.0, 1000.0, 3e-3,   1e-4, least, normal, most, inf})
    for (double signed_x : {x, -x}) values.push_back(signed_x);
  // rounded to the dtype
  return make_tensor(dtype, {static_cast<std::int64_t>(values.size())}, values).to_vector<double>();
}

double rounded(double x, DType dtype) { return make_tensor(dtype, {}, {x}).to_vector<double>()[0]; }

/// |actual − expected| in ulps of the dtype; infinite when one of them is NaN or infinite and the
/// other is not the same.
double ulps_off(double actual, long double expected, DType dtype) {
  const double nearest = rounded(static_cast<double>(expected), dtype);
  if (std::isnan(actual) || std::isnan(nearest))
    return std::isnan(actual) && std::isnan(nearest) ? 0 : inf;
  if (std::isinf(actual) || std::isinf(nearest)) return actual == nearest ? 0 : inf;
  return static_cast<double>(std::fabs(actual - expected) / vt_test::ulp_of(nearest, dtype));
}

struct Function {
  Op op;
  long double (*reference)(long double);
  /// what the double function may be off; MPFR bounds it more closely elsewhere
  double f64_ulps = 2.0;
};

const Function functions[] = {
    {Op::neg, [](long double x) { return -x; }, 0},
    {Op::abs, [](long double x) { return fabsl(x); }, 0},
    {Op::sign, [](long double x) { return std::isnan(x) || x == 0 ? x : copysignl(1, x); }, 0},
    {Op::floor, [](long double x) { return floorl(x); }, 0},
    {Op::ceil, [](long double x) { return ceill(x); }, 0},
    {Op::round, [](long double x) { return rintl(x); }, 0},
    {Op::trunc, [](long double x) { return truncl(x); }, 0},
    {Op::exp, [](long double x) { return expl(x); }},
    {Op::exp2, [](long double x) { return exp2l(x); }},
    {Op::expm1, [](long double x) { return expm1l(x); }},
    {Op::log, [](long double x) { return logl(x); }},
    {Op::log1p, [](long double x) { return log1pl(x); }},
    {Op::log2, [](long double x) { return log2l(x); }},
    {Op::sqrt, [](long double x) { return sqrtl(x); }, 0.5005},
    {Op::rsqrt, [](long double x) { return 1 / sqrtl(x); }, 2},
    {Op::cbrt, [](long double x) { return cbrtl(x); }},
    {Op::sin, [](long double x) { return sinl(x); }},
    {Op::cos, [](long double x) { return cosl(x); }},
    {Op::tan, [](long double x) { return tanl(x); }},
    {Op::asin, [](long double x) { return asinl(x); }},
    {Op::acos, [](long double x) { return acosl(x); }},
    {Op::atan, [](long double x) { return atanl(x); }},
    {Op::sinh, [](long double x) { return sinhl(x); }, 2},
    {Op::cosh, [](long double x) { return coshl(x); }, 2},
    {Op::tanh, [](long double x) { return tanhl(x); }, 2},
    {Op::asinh, [](long double x) { return asinhl(x); }, 2},
    {Op::acosh, [](long double x) { return acoshl(x); }, 2},
    {Op::atanh, [](long double x) { return atanhl(x); }, 2},
    {Op::sigmoid, [](long double x) { return 1 / (1 + expl(-x)); }, 2},
    {Op::erf, [](long double x) { return erfl(x); }},
    {Op::erfc, [](long double x) { return erfcl(x); }, 3},
};

TEST(InterpreterUnary, FloatFunctionsAreTheRoundedRealOnes) {
  for (const Function& f : functions)
    for (DType dtype : vt_test::float_dtypes) {
      // Below f64 the double result is rounded once: half an ulp, and a hair for the double's own
      // error.
      const double allowed = dtype == vt::f64 ? f.f64_ulps : std::min(f.f64_ulps, 0.5001);
      std::vector<Tensor> operands = {make_tensor(
          dtype, {static_cast<std::int64_t>(special_values(dtype).size())}, special_values(dtype))};
      for (std::int64_t size : vt_test::edge_sizes)
        operands.push_back(vt_test::random_tensor(dtype, {size}, -4, 4, 7));
      operands.push_back(vt_test::random_tensor(dtype, {3, 17}, 0, 1, 8));
      operands.push_back(vt_test::random_tensor(dtype, {1, 3, 0}, 0, 1, 8));
      operands.push_back(vt_test::random_tensor(dtype, {2000}, -30, 30, 9));
      operands.push_back(vt_test::random_tensor(dtype, {}, 0.5, 1, 10));
      for (const Tensor& x : operands) {
        const Tensor y = run_op(f.op, {x});
        ASSERT_EQ(y.dtype(), dtype);
        ASSERT_EQ(y.shape(), x.shape());
        const auto in = x.to_vector<double>(), out = y.to_vector<double>();
        for (std::size_t i = 0; i < in.size(); ++i) {
          const long double expected = f.reference(in[i]);
          ASSERT_LE(ulps_off(out[i], expected, dtype), allowed)
              << name_of(f.op) << " " << vt::name_of(dtype) << " of " << in[i] << " gave " << out[i]
              << ", expected " << expected;
          if (expected == 0) {
            ASSERT_EQ(std::signbit(out[i]), std::signbit(expected))
                << name_of(f.op) << " of " << in[i];
          }
        }
      }
    }
}

TEST(InterpreterUnary, Classification) {
  for (DType dtype : vt_test::float_dtypes) {
    const Tensor x = make_tensor(dtype, {6}, {0, -1, inf, -inf, nan, vt_test::ulp_of(0, dtype)});
    EXPECT_EQ(run_op(Op::is_finite, {x}).to_vector<bool>(),
              (std::vector<bool>{true, true, false, false, false, true}));
    EXPECT_EQ(run_op(Op::is_inf, {x}).to_vector<bool>(),
              (std::vector<bool>{false, false, true, true, false, false}));
    EXPECT_EQ(run_op(Op::is_nan, {x}).to_vector<bool>(),
              (std::vector<bool>{false, false, false, false, true, false}));
    EXPECT_EQ(run_op(Op::is_nan, {make_tensor(dtype, {0, 2}, {})}).size(), 0);
  }
}

/// Runs an op on integers that all fit in i64 but wrap in the dtype.
template <class F>
void check_integers(Op op, F&& expected) {
  for (DType dtype : vt_test::int_dtypes)
    with_type(dtype, [&](auto tag) {
      using T = decltype(tag);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        using Limits = std::numeric_limits<T>;
        const std::vector<T> in = {0,
                                   1,
                                   2,
                                   7,
                                   T(-1),
                                   T(-2),
                                   Limits::max(),
                                   Limits::min(),
                                   T(Limits::max() - 1),
                                   T(Limits::min() + 1),
                                   T(Limits::max() / 3)};
        const auto out = run_op(op, {vt::tensor(in)}).template to_vector<T>();
        for (std::size_t i = 0; i < in.size(); ++i)
          EXPECT_EQ(out[i], static_cast<T>(expected(in[i]))) << name_of(op) << " of " << +in[i];
      }
    });
}

TEST(InterpreterUnary, Integers) {
  check_integers(Op::neg, [](auto x) { return -static_cast<__int128>(x); });
  check_integers(
      Op::abs, [](auto x) { return x < 0 ? -static_cast<__int128>(x) : static_cast<__int128>(x); });
  check_integers(Op::sign, [](auto x) { return x == 0 ? 0 : x < 0 ? -1 : 1; });
  check_integers(Op::not_, [](auto x) { return -static_cast<__int128>(x) - 1; });
  check_integers(Op::popcount, [](auto x) {
    int count = 0;
    for (unsigned bit = 0; bit < sizeof x * 8; ++bit) count += static_cast<int>((x >> bit) & 1);
    return count;
  });
  check_integers(Op::clz, [](auto x) {
    int count = 0;
    for (int bit = static_cast<int>(sizeof x * 8) - 1; bit >= 0 && !((x >> bit) & 1); --bit)
      ++count;
    return count;
  });
  EXPECT_EQ(run_op(Op::not_, {vt::tensor({true, false})}).to_vector<bool>(),
            (std::vector<bool>{false, true}));
}

TEST(InterpreterUnary, IntegerPow) {
  for (int exponent : {0, 1, 2, 3, 7, 31, -1, -2, -3}) {
    const IntegerPowParams params{exponent};
    for (DType dtype : vt_test::float_dtypes) {
      for (double x : special_values(dtype)) {
        const double y =
            run_op(Op::integer_pow, params, {make_tensor(dtype, {1}, {x})}).item<double>();
        EXPECT_LE(ulps_off(y, powl(x, exponent), dtype), dtype == vt::f64 ? 1.0 : 0.5001)
            << x << "^" << exponent << " " << vt::name_of(dtype);
      }
    }
    for (std::int64_t base : {0, 1, -1, 2, -2, 3, -7, 100}) {
      __int128 expected = 1;
      for (int i = 0; i < exponent; ++i) expected = static_cast<std::int64_t>(expected * base);
      if (exponent < 0) expected = base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
      EXPECT_EQ(run_op(Op::integer_pow, params, {vt::tensor({base})}).item<std::int64_t>(),
                static_cast<std::int64_t>(expected))
          << base << "^" << exponent;
      EXPECT_EQ(run_op(Op::integer_pow, params, {vt::tensor({static_cast<std::int8_t>(base)})})
                    .item<std::int8_t>(),
                static_cast<std::int8_t>(expected));
      if (base < 0) continue;
      EXPECT_EQ(run_op(Op::integer_pow, params, {vt::tensor({static_cast<std::uint16_t>(base)})})
                    .item<std::uint16_t>(),
                static_cast<std::uint16_t>(expected));
    }
  }
}

TEST(InterpreterUnary, ReducePrecision) {
  auto reduced = [](double x, int exponent, int mantissa, DType dtype) {
    return run_op(Op::reduce_precision, PrecisionParams{exponent, mantissa},
                  {make_tensor(dtype, {1}, {x})})
        .item<double>();
  };
  // f32 to the bits of f16: as the conversion, but for subnormal results, which become zeros.
  for (double x : vt_test::random_tensor(vt::f32, {4000}, -70000, 70000, 3).to_vector<double>()) {
    const double narrow = static_cast<float>(vt::Float16(static_cast<float>(x)));
    EXPECT_EQ(reduced(x, 5, 10, vt::f32), std::fabs(narrow) < 0x1p-14 ? 0 : narrow) << x;
  }
  EXPECT_EQ(reduced(65519, 5, 10, vt::f32), 65504);
  EXPECT_EQ(reduced(65520, 5, 10, vt::f32), inf);
  EXPECT_EQ(reduced(-1e30, 5, 10, vt::f64), -inf);
  EXPECT_EQ(reduced(0x1p-14, 5, 10, vt::f32), 0x1p-14);
  EXPECT_EQ(reduced(0x1p-15, 5, 10, vt::f32), 0);
  EXPECT_TRUE(std::signbit(reduced(-0x1p-15, 5, 10, vt::f32)));
  EXPECT_EQ(reduced(1.0 + 0x1p-24, 11, 23, vt::f64), 1.0);  // halfway: to even
  EXPECT_EQ(reduced(1.0 + 3 * 0x1p-24, 11, 23, vt::f64), 1 + 0x1p-22);
  // no mantissa bit left: the exponent's last bit is the even one
  EXPECT_EQ(reduced(3.0, 8, 0, vt::f32), 2.0);
  EXPECT_EQ(reduced(1.5, 8, 0, vt::bf16), 2.0);
  EXPECT_EQ(reduced(5e-324, 11, 52, vt::f64), 5e-324);  // its own format: unchanged, subnormals too
  EXPECT_EQ(reduced(0x1p-24, 8, 23, vt::f16), 0x1p-24);
  for (DType dtype : vt_test::float_dtypes) {
    EXPECT_TRUE(std::isnan(reduced(nan, 3, 0, dtype)));
    EXPECT_EQ(reduced(-inf, 3, 2, dtype), -inf);
  }
}

// --- conversions ---------------------------------------------------------------------------------

template <class To, class From>
To converted(From x) {
  const Tensor y =
      run_op(Op::convert, ConvertParams{vt::dtype_of<To>()}, {vt::tensor(std::vector<From>{x})});
  return y.data<To>()[0];
}

TEST(Convert, EveryPairKeepsSmallNumbers) {
  for (DType from : vt_test::all_dtypes)
    for (DType to : vt_test::all_dtypes)
      for (std::int64_t size : {0, 1, 3, 17, 1100}) {  // the last goes through in several pieces
        const Tensor x = vt_test::random_tensor(from, {size}, 0, 100, 5);
        const Tensor y = run_op(Op::convert, ConvertParams{to}, {x});
        ASSERT_EQ(y.dtype(), to);
        const auto in = x.to_vector<double>(), out = y.to_vector<double>();
        for (std::size_t i = 0; i < in.size(); ++i) {
          const double expected = vt::is_bool(to)    ? in[i] != 0
                                  : vt::is_float(to) ? rounded(in[i], to)
                                                     : std::trunc(in[i]);
          EXPECT_EQ(out[i], expected) << vt::name_of(from) << " to " << vt::name_of(to);
        }
      }
}

TEST(Convert, FloatToIntegerTruncatesAndSaturates) {
  EXPECT_EQ(converted<std::int8_t>(-1.9f), -1);
  EXPECT_EQ(converted<std::int8_t>(300.0), 127);
  EXPECT_EQ(converted<std::int8_t>(-300.0f), -128);
  EXPECT_EQ(converted<std::int8_t>(127.9), 127);
  EXPECT_EQ(converted<std::uint8_t>(-0.9), 0);
  EXPECT_EQ(converted<std::uint8_t>(-5.0f), 0);
  EXPECT_EQ(converted<std::uint8_t>(inf), 255);
  EXPECT_EQ(converted<std::int32_t>(2147483647.5), 2147483647);
  EXPECT_EQ(converted<std::int32_t>(2147483648.0f), 2147483647);
  EXPECT_EQ(converted<std::int32_t>(-2147483648.0f), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(converted<std::int64_t>(0x1p63), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(converted<std::int64_t>(-0x1p63), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(converted<std::int64_t>(0x1p62), std::int64_t{1} << 62);
  EXPECT_EQ(converted<std::uint64_t>(0x1p64f), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(converted<std::uint64_t>(0x1.8p63), std::uint64_t{3} << 62);
  EXPECT_EQ(converted<std::int32_t>(nan), 0);
  EXPECT_EQ(converted<std::uint64_t>(std::numeric_limits<float>::quiet_NaN()), 0u);
  EXPECT_EQ(converted<std::int16_t>(vt::Float16(65504.0f)), 32767);
  EXPECT_EQ(converted<std::uint32_t>(vt::BFloat16(-2.0f)), 0u);
  EXPECT_EQ(converted<std::int16_t>(-inf), -32768);
  EXPECT_TRUE(converted<bool>(nan));
  EXPECT_TRUE(converted<bool>(1e-300));
  EXPECT_FALSE(converted<bool>(-0.0f));
  EXPECT_TRUE(converted<bool>(std::uint64_t{1} << 40));
}

TEST(Convert, IntegerToIntegerWraps) {
  EXPECT_EQ(converted<std::int8_t>(std::int32_t{300}), 44);
  EXPECT_EQ(converted<std::uint8_t>(std::int32_t{-1}), 255);
  EXPECT_EQ(converted<std::int64_t>(std::uint64_t{0xffffffffffffffff}), -1);
  EXPECT_EQ(converted<std::uint64_t>(std::int8_t{-1}), 0xffffffffffffffffu);
}

#if defined(__FLT16_MAX__)
TEST(Convert, F16RoundsOnceFromEverything) {
  auto expected = [](auto x) { return static_cast<double>(static_cast<_Float16>(x)); };
  auto check = [&](double x) {
    for (double y : {x, std::nextafter(x, inf), std::nextafter(x, -inf)}) {
      ASSERT_EQ(static_cast<double>(static_cast<float>(converted<vt::Float16>(y))), expected(y))
          << y;
      const auto f = static_cast<float>(y);
      ASSERT_EQ(static_cast<double>(static_cast<float>(converted<vt::Float16>(f))), expected(f))
          << f;
    }
  };
  // Every number of the format and every midpoint between two, with their neighbours in double.
  for (unsigned bits = 0; bits < 0x7bff; bits += 1) {
    const auto low = static_cast<double>(float_from_f16_bits(static_cast<std::uint16_t>(bits)));
    const auto high =
        static_cast<double>(float_from_f16_bits(static_cast<std::uint16_t>(bits + 1)));
    if (bits % 17 == 0 || bits < 1100) {
      check((low + high) / 2);
      check(-low);
    }
  }
  check(65519.99);
  check(65520);
  check(1e10);
  EXPECT_TRUE(std::isnan(static_cast<float>(converted<vt::Float16>(nan))));
  for (std::int64_t x : {0, 2049, 2051, -4098, 65519, 65520, 100000})
    EXPECT_EQ(static_cast<double>(static_cast<float>(converted<vt::Float16>(x))), expected(x));
}
#endif

/// The bfloat16 nearest to x, ties to even, by bisection among all of them with exact distances.
double nearest_bf16(long double x) {
  auto value = [](unsigned bits) {
    return static_cast<long double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
  };
  const long double size = fabsl(x);
  // the first: not above; 0x7f80 stands for 2^128, where rounding gives infinity
  unsigned low = 0, high = 0x7f80;
  auto magnitude = [&](unsigned bits) { return bits == 0x7f80 ? 0x1p128L : value(bits); };
  if (size >= 0x1p128L) return std::copysign(inf, static_cast<double>(x));
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    (magnitude(middle) <= size ? low : high) = middle;
  }
  const long double below = size - magnitude(low), above = magnitude(high) - size;
  const unsigned chosen = below < above || (below == above && low % 2 == 0) ? low : high;
  return std::copysign(chosen == 0x7f80 ? inf : static_cast<double>(value(chosen)),
                       static_cast<double>(x));
}

TEST(Convert, Bf16RoundsOnceFromEverything) {
  std::mt19937_64 engine(11);
  for (int i = 0; i < 5000; ++i) {
    const auto bits = static_cast<std::uint16_t>(engine() % 0x7f80);
    const auto low =
        static_cast<double>(float_from_f16_bits(0)) +
        static_cast<float>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
    const double high = std::bit_cast<float>((static_cast<std::uint32_t>(bits) + 1) << 16);
    const double middle = std::isinf(high) ? 0x1.ffp127 : (low + high) / 2;
    for (double x :
         {low, middle, std::nextafter(middle, inf), std::nextafter(middle, -inf), -middle})
      ASSERT_EQ(static_cast<double>(static_cast<float>(converted<vt::BFloat16>(x))),
                nearest_bf16(x))
          << x;
    const auto integer = static_cast<std::int64_t>(engine()) >> (engine() % 60);
    ASSERT_EQ(static_cast<double>(static_cast<float>(converted<vt::BFloat16>(integer))),
              nearest_bf16(integer))
        << integer;
    const std::uint64_t natural = engine() >> (engine() % 60);
    ASSERT_EQ(static_cast<double>(static_cast<float>(converted<vt::BFloat16>(natural))),
              nearest_bf16(natural))
        << natural;
  }
  // Just above a tie, by less than a double can tell: rounding through double would go to even.
  const std::int64_t above_tie = (std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1;
  EXPECT_EQ(static_cast<double>(static_cast<float>(converted<vt::BFloat16>(above_tie))),
            0x1p62 + 0x1p55);
  EXPECT_EQ(static_cast<double>(static_cast<float>(converted<vt::BFloat16>(-above_tie))),
            -(0x1p62 + 0x1p55));
}

TEST(Convert, SixtyFourBitIntegersRoundOnce) {
  // a hair above a tie of f32
  const std::int64_t x = (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1;
  EXPECT_EQ(converted<float>(x), 0x1p60f + 0x1p37f);
  EXPECT_EQ(converted<double>(std::int64_t{9007199254740993}), 9007199254740992.0);
  EXPECT_EQ(converted<float>(std::numeric_limits<std::uint64_t>::max()), 0x1p64f);
}

TEST(Convert, Scalars) {
  EXPECT_EQ(Scalar(3.7).converted(vt::i32).integer, 3);
  EXPECT_EQ(Scalar(-3.7).converted(vt::u8).natural, 0u);
  EXPECT_EQ(Scalar(0.1).converted(vt::f32).real, static_cast<double>(0.1f));
  EXPECT_EQ(Scalar(0.1).converted(vt::f16).real,
            static_cast<double>(static_cast<float>(vt::Float16(0.1f))));
  EXPECT_EQ(Scalar(1e10).converted(vt::i32).integer, 2147483647);
  EXPECT_EQ(Scalar(std::uint64_t{0xffffffffffffffff}).converted(vt::i64).integer, -1);
  EXPECT_EQ(Scalar(-1).converted(vt::u16).natural, 65535u);
  EXPECT_EQ(Scalar(2.5f).converted(vt::bool_).integer, 1);
  EXPECT_EQ(Scalar(true).converted(vt::f64).real, 1.0);
  EXPECT_EQ(Scalar(true).converted(vt::bool_), Scalar(true));
}

TEST(InterpreterUnary, BitcastAndStopGradientShareTheBuffer) {
  const Tensor x = vt::tensor({1.0f, -2.0f, 0.0f});
  const Tensor y = run_op(Op::bitcast, ConvertParams{vt::u32}, {x});
  EXPECT_EQ(y.to_vector<std::uint32_t>(),
            (std::vector<std::uint32_t>{0x3f800000u, 0xc0000000u, 0u}));
  EXPECT_EQ(y.data<std::uint32_t>().data(), static_cast<const void*>(x.data<float>().data()));
  vt_test::expect_close(run_op(Op::stop_gradient, {x}), x);
  vt_test::expect_close(run_op(Op::bitcast, ConvertParams{vt::f32}, {y}), x);
}

}  // namespace
