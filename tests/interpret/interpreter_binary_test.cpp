// The interpreter's ops of two operands and select: integers against 128-bit arithmetic, floats
// against long double, i8 and u8 for every pair of values, f16 neighbours for every number.
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

double rounded(double x, DType dtype) { return make_tensor(dtype, {}, {x}).to_vector<double>()[0]; }

std::vector<double> special_values(DType dtype) {
  const double most = dtype == vt::f16    ? 65504
                      : dtype == vt::f64  ? std::numeric_limits<double>::max()
                      : dtype == vt::bf16 ? 0x1.fep127
                                          : std::numeric_limits<float>::max();
  std::vector<double> values;
  for (double x :
       {0.0, 1.0, 0.5, 1.5, 2.0, 3.0, 7.0, 255.0, 0.01, most, vt_test::ulp_of(0, dtype), inf, nan})
    for (double s : {x, -x}) values.push_back(rounded(s, dtype));
  return values;
}

struct Pairs {
  std::vector<double> a, b;
};
/// Every special value with every other, and random ones.
Pairs pairs_of(DType dtype) {
  Pairs p;
  for (double x : special_values(dtype))
    for (double y : special_values(dtype)) p.a.push_back(x), p.b.push_back(y);
  for (double limit : {1.0, 100.0, 60000.0}) {
    const auto x = vt_test::random_tensor(dtype, {500}, -limit, limit, 31).to_vector<double>();
    const auto y = vt_test::random_tensor(dtype, {500}, -limit, limit, 32).to_vector<double>();
    p.a.insert(p.a.end(), x.begin(), x.end());
    p.b.insert(p.b.end(), y.begin(), y.end());
  }
  return p;
}

TEST(InterpreterBinary, FloatsAreTheRoundedRealResults) {
  struct Row {
    Op op;
    long double (*reference)(long double, long double);
    double f64_ulps;
  };
  const Row rows[] = {
      {Op::add, [](long double a, long double b) { return a + b; }, 0.5005},
      {Op::sub, [](long double a, long double b) { return a - b; }, 0.5005},
      {Op::mul, [](long double a, long double b) { return a * b; }, 0.5005},
      {Op::div, [](long double a, long double b) { return a / b; }, 0.5005},
      {Op::rem, [](long double a, long double b) { return fmodl(a, b); }, 0},
      {Op::pow, [](long double a, long double b) { return powl(a, b); }, 1},
      {Op::atan2, [](long double a, long double b) { return atan2l(a, b); }, 1},
      {Op::max,
       [](long double a, long double b) {
         return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
       },
       0},
      {Op::min,
       [](long double a, long double b) {
         return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
       },
       0},
  };
  for (const Row& row : rows)
    for (DType dtype : vt_test::float_dtypes) {
      const Pairs p = pairs_of(dtype);
      const vt::Shape shape{p.a.size()};
      const auto out =
          run_op(row.op, {make_tensor(dtype, shape, p.a), make_tensor(dtype, shape, p.b)})
              .to_vector<double>();
      const double allowed = dtype == vt::f64 ? row.f64_ulps : std::min(row.f64_ulps, 0.5001);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const long double expected = row.reference(p.a[i], p.b[i]);
        const double nearest = rounded(static_cast<double>(expected), dtype);
        const bool fine = std::isnan(nearest)   ? std::isnan(out[i])
                          : std::isinf(nearest) ? out[i] == nearest
                                                : std::fabs(out[i] - expected) <=
                                                      allowed * vt_test::ulp_of(nearest, dtype);
        ASSERT_TRUE(fine) << name_of(row.op) << " " << vt::name_of(dtype) << " of " << p.a[i]
                          << ", " << p.b[i] << " gave " << out[i] << ", expected " << expected;
      }
    }
}

TEST(InterpreterBinary, Comparisons) {
  for (DType dtype : vt_test::float_dtypes) {
    const Pairs p = pairs_of(dtype);
    const vt::Shape shape{p.a.size()};
    const Tensor a = make_tensor(dtype, shape, p.a), b = make_tensor(dtype, shape, p.b);
    auto check = [&](Op op, auto&& f) {
      const auto out = run_op(op, {a, b}).to_vector<bool>();
      for (std::size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(out[i], f(p.a[i], p.b[i])) << name_of(op) << " of " << p.a[i] << ", " << p.b[i];
    };
    check(Op::eq, [](double x, double y) { return x == y; });
    check(Op::ne, [](double x, double y) { return !(x == y); });
    check(Op::lt, [](double x, double y) { return x < y; });
    check(Op::le, [](double x, double y) { return x <= y; });
    check(Op::gt, [](double x, double y) { return x > y; });
    check(Op::ge, [](double x, double y) { return x >= y; });
  }
  const Tensor f = vt::tensor({false, false, true, true}),
               g = vt::tensor({false, true, false, true});
  EXPECT_EQ(run_op(Op::lt, {f, g}).to_vector<bool>(),
            (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(run_op(Op::eq, {f, g}).to_vector<bool>(),
            (std::vector<bool>{true, false, false, true}));
  EXPECT_EQ(run_op(Op::max, {f, g}).to_vector<bool>(),
            (std::vector<bool>{false, true, true, true}));
  EXPECT_EQ(run_op(Op::min, {f, g}).to_vector<bool>(),
            (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(run_op(Op::xor_, {f, g}).to_vector<bool>(),
            (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(run_op(Op::and_, {f, g}).to_vector<bool>(),
            (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(run_op(Op::or_, {f, g}).to_vector<bool>(),
            (std::vector<bool>{false, true, true, true}));
}

__int128 power(__int128 base, __int128 exponent, int bits) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  const unsigned __int128 mask = (static_cast<unsigned __int128>(1) << bits) - 1;
  unsigned __int128 result = 1, factor = static_cast<unsigned __int128>(base) & mask;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2) result = result * factor & mask;
    factor = factor * factor & mask;
  }
  return static_cast<__int128>(result);
}

/// What each op means for integers of `bits` bits, as numbers before they wrap.
__int128 integer_result(Op op, __int128 a, __int128 b, int bits, bool is_signed) {
  const __int128 width = bits;
  const bool far = b < 0 || b >= width;
  const __int128 mask = (static_cast<__int128>(1) << bits) - 1;
  switch (op) {
    case Op::add: return a + b;
    case Op::sub: return a - b;
    case Op::mul:
      return static_cast<__int128>(static_cast<unsigned __int128>(a) *
                                   static_cast<unsigned __int128>(b));
    case Op::div: return b == 0 ? 0 : a / b;
    case Op::rem: return b == 0 ? 0 : a % b;
    case Op::pow: return power(a, b, bits);
    case Op::max: return a > b ? a : b;
    case Op::min: return a < b ? a : b;
    case Op::and_: return a & b;
    case Op::or_: return a | b;
    case Op::xor_: return a ^ b;
    case Op::shift_left:
      return far ? 0 : static_cast<__int128>(static_cast<unsigned __int128>(a) << b);
    case Op::shift_right_logical: return far ? 0 : (a & mask) >> b;
    case Op::shift_right_arithmetic: {
      // unsigned: the top bit counts as a sign
      const __int128 value = is_signed || !((a >> (bits - 1)) & 1) ? a : a - mask - 1;
      return far ? (value < 0 ? -1 : 0) : value >> b;
    }
    default: return 0;
  }
}

TEST(InterpreterBinary, Integers) {
  const Op ops[] = {Op::add,
                    Op::sub,
                    Op::mul,
                    Op::div,
                    Op::rem,
                    Op::pow,
                    Op::max,
                    Op::min,
                    Op::and_,
                    Op::or_,
                    Op::xor_,
                    Op::shift_left,
                    Op::shift_right_logical,
                    Op::shift_right_arithmetic};
  for (DType dtype : vt_test::int_dtypes)
    with_type(dtype, [&](auto tag) {
      using T = decltype(tag);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        using Limits = std::numeric_limits<T>;
        std::vector<T> values;
        if (sizeof(T) == 1)
          for (int i = Limits::min(); i <= static_cast<int>(Limits::max()); ++i)
            values.push_back(static_cast<T>(i));
        else
          values = {0,
                    1,
                    2,
                    3,
                    5,
                    7,
                    15,
                    16,
                    31,
                    32,
                    63,
                    64,
                    T(1000),
                    Limits::max(),
                    Limits::min(),
                    T(Limits::max() / 2),
                    T(Limits::max() / 3),
                    T(-1),
                    T(-2),
                    T(-3),
                    T(-16),
                    T(-1000)};
        std::vector<T> a, b;
        for (T x : values)
          for (T y : values) a.push_back(x), b.push_back(y);
        const Tensor ta = vt::tensor(a), tb = vt::tensor(b);
        for (Op op : ops) {
          const auto out = run_op(op, {ta, tb}).template to_vector<T>();
          for (std::size_t i = 0; i < a.size(); ++i)
            ASSERT_EQ(out[i],
                      static_cast<T>(integer_result(op, a[i], b[i], static_cast<int>(sizeof(T) * 8),
                                                    std::is_signed_v<T>)))
                << name_of(op) << " " << vt::name_of(dtype) << " of " << +a[i] << ", " << +b[i];
        }
        auto compare = [&](Op op, auto&& f) {
          const auto out = run_op(op, {ta, tb}).template to_vector<bool>();
          for (std::size_t i = 0; i < a.size(); ++i)
            ASSERT_EQ(out[i], f(static_cast<__int128>(a[i]), static_cast<__int128>(b[i])));
        };
        compare(Op::eq, [](auto x, auto y) { return x == y; });
        compare(Op::ne, [](auto x, auto y) { return x != y; });
        compare(Op::lt, [](auto x, auto y) { return x < y; });
        compare(Op::le, [](auto x, auto y) { return x <= y; });
        compare(Op::gt, [](auto x, auto y) { return x > y; });
        compare(Op::ge, [](auto x, auto y) { return x >= y; });
      }
    });
}

/// Every binary op on every dtype that it takes: a scalar on either side stands for all elements.
TEST(InterpreterBinary, ScalarsStandForAllElements) {
  for (int o = static_cast<int>(Op::add); o <= static_cast<int>(Op::shift_right_arithmetic); ++o)
    for (DType dtype : vt_test::all_dtypes) {
      const auto op = static_cast<Op>(o);
      const Tensor scalar = make_tensor(dtype, {}, {1});
      try {
        run_op(op, {scalar, scalar});
      } catch (const vt::Error& error) {
        // refused, but then always
        EXPECT_EQ(error.kind(), vt::ErrorKind::dtype) << name_of(op) << " " << vt::name_of(dtype);
        EXPECT_THROW(run_op(op, {make_tensor(dtype, {0}, {}), scalar}), vt::Error);
        continue;
      }
      for (const vt::Shape& shape : {vt::Shape{0}, {1}, {3}, {17}, {2, 0}, {3, 5}, {1, 1, 1}}) {
        const Tensor x = vt_test::random_tensor(dtype, shape, 1, 6, 4),
                     s = vt_test::random_tensor(dtype, {}, 1, 6, 5);
        const Tensor filled = make_tensor(
            dtype, shape,
            std::vector<double>(static_cast<std::size_t>(shape.elements()), s.item<double>()));
        vt_test::expect_close(run_op(op, {x, s}), run_op(op, {x, filled}), vt_test::exact,
                              std::string(name_of(op)));
        vt_test::expect_close(run_op(op, {s, x}), run_op(op, {filled, x}), vt_test::exact,
                              std::string(name_of(op)));
        EXPECT_EQ(run_op(op, {x, s}).shape(), shape);
      }
    }
}

TEST(InterpreterBinary, NextAfterOfEveryF16) {
  // All finite numbers in increasing order; their neighbours are the next entries.
  std::vector<double> ordered;
  for (unsigned bits = 0xfbff; bits > 0x8000; --bits)
    ordered.push_back(float_from_f16_bits(static_cast<std::uint16_t>(bits)));
  for (unsigned bits = 0; bits <= 0x7bff; ++bits)
    ordered.push_back(float_from_f16_bits(static_cast<std::uint16_t>(bits)));
  const vt::Shape shape{ordered.size()};
  const Tensor x = make_tensor(vt::f16, shape, ordered);
  const auto up = run_op(Op::nextafter, {x, make_tensor(vt::f16, {}, {inf})}).to_vector<double>();
  const auto down =
      run_op(Op::nextafter, {x, make_tensor(vt::f16, {}, {-inf})}).to_vector<double>();
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    EXPECT_EQ(up[i], i + 1 < ordered.size() ? ordered[i + 1] : inf);
    EXPECT_EQ(down[i], i > 0 ? ordered[i - 1] : -inf);
  }
}

TEST(InterpreterBinary, NextAfterSpecialValues) {
  auto next = [](double a, double b, DType dtype) {
    return run_op(Op::nextafter, {make_tensor(dtype, {1}, {a}), make_tensor(dtype, {1}, {b})})
        .item<double>();
  };
  for (DType dtype : vt_test::float_dtypes) {
    EXPECT_EQ(next(1, 1, dtype), 1);
    EXPECT_EQ(next(1, 2, dtype), 1 + vt_test::ulp_of(1, dtype));
    EXPECT_EQ(next(1, 0, dtype), 1 - vt_test::ulp_of(1, dtype) / 2);
    EXPECT_EQ(next(0, 1, dtype), vt_test::ulp_of(0, dtype));
    EXPECT_EQ(next(0, -1, dtype), -vt_test::ulp_of(0, dtype));
    EXPECT_EQ(next(vt_test::ulp_of(0, dtype), 0, dtype), 0);
    EXPECT_TRUE(std::isnan(next(nan, 1, dtype)));
    EXPECT_TRUE(std::isnan(next(1, nan, dtype)));
    EXPECT_LT(next(inf, 0, dtype), inf);
    EXPECT_TRUE(std::signbit(next(0.0, -0.0, dtype)));
  }
}

TEST(InterpreterSelect, EveryDtypeAndForm) {
  for (DType dtype : vt_test::all_dtypes)
    for (const vt::Shape& shape : {vt::Shape{}, {0}, {1}, {3}, {17}, {2, 3}}) {
      const auto n = static_cast<std::size_t>(shape.elements());
      const Tensor pick = vt_test::random_tensor(vt::bool_, shape, 0, 1, 1);
      const Tensor a = vt_test::random_tensor(dtype, shape, 0, 9, 2),
                   b = vt_test::random_tensor(dtype, shape, 10, 20, 3);
      const Tensor sa = vt_test::random_tensor(dtype, {}, 0, 9, 4),
                   sb = vt_test::random_tensor(dtype, {}, 10, 20, 5);
      for (const Tensor& x : {a, sa})
        for (const Tensor& y : {b, sb})
          for (const Tensor& p : {pick, vt::tensor(true), vt::tensor(false)}) {
            const Tensor out = run_op(Op::select, {p, x, y});
            const auto vp = p.to_vector<bool>();
            const auto vx = x.to_vector<double>(), vy = y.to_vector<double>(),
                       vo = out.to_vector<double>();
            EXPECT_EQ(out.dtype(), dtype);
            const bool scalars = p.rank() == 0 && x.rank() == 0 && y.rank() == 0;
            ASSERT_EQ(vo.size(), scalars ? 1 : n);
            for (std::size_t i = 0; i < vo.size(); ++i) {
              const bool chosen = vp[p.rank() == 0 ? 0 : i];
              EXPECT_EQ(vo[i], chosen ? vx[x.rank() == 0 ? 0 : i] : vy[y.rank() == 0 ? 0 : i]);
            }
          }
    }
  const Tensor nans = vt::tensor({std::nan(""), 1.0}), fine = vt::tensor({2.0, std::nan("")});
  EXPECT_EQ(run_op(Op::select, {vt::tensor({false, true}), nans, fine}).to_vector<double>(),
            (std::vector<double>{2.0, 1.0}));
}

}  // namespace
