// Accuracy in double of the functions that vt computes itself, measured against MPFR at 200 bits.
#include <mpfr.h>

#include <cmath>
#include <limits>

#include "src/trace/numerics/special_functions.hpp"
#include "support/run_op.hpp"

namespace {

using vt::detail::Op;

class Mpfr {
 public:
  explicit Mpfr(double x = 0) {
    mpfr_init2(value_, 200);
    mpfr_set_d(value_, x, MPFR_RNDN);
  }
  ~Mpfr() { mpfr_clear(value_); }
  Mpfr(const Mpfr&) = delete;
  Mpfr& operator=(const Mpfr&) = delete;
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

/// |actual − expected| in ulps of double.
double ulps_off(double actual, Mpfr& expected) {
  const double nearest = mpfr_get_d(expected.get(), MPFR_RNDN);
  Mpfr difference;
  mpfr_sub_d(difference.get(), expected.get(), actual, MPFR_RNDN);
  return std::fabs(mpfr_get_d(difference.get(), MPFR_RNDN)) / vt_test::ulp_of(nearest, vt::f64);
}

double digamma_error(double x) {
  Mpfr e(x);
  mpfr_digamma(e.get(), e.get(), MPFR_RNDN);
  return ulps_off(vt::detail::special::digamma(x), e);
}

/// erf_inv by Newton's method on erf (erfc in the tails) at 200 bits, from the double result.
double erf_inv_error(double x) {
  const double y = vt::detail::special::erf_inv(x);
  Mpfr root(y), f, slope, target(x);
  for (int step = 0; step < 4; ++step) {
    mpfr_erf(f.get(), root.get(), MPFR_RNDN);
    mpfr_sub(f.get(), f.get(), target.get(), MPFR_RNDN);
    mpfr_sqr(slope.get(), root.get(), MPFR_RNDN);
    mpfr_exp(slope.get(), slope.get(), MPFR_RNDN);
    mpfr_mul(f.get(), f.get(), slope.get(), MPFR_RNDN);
    mpfr_const_pi(slope.get(), MPFR_RNDN);
    mpfr_sqrt(slope.get(), slope.get(), MPFR_RNDN);
    mpfr_div_ui(slope.get(), slope.get(), 2, MPFR_RNDN);
    mpfr_mul(f.get(), f.get(), slope.get(), MPFR_RNDN);
    mpfr_sub(root.get(), root.get(), f.get(), MPFR_RNDN);
  }
  return ulps_off(y, root);
}

TEST(Accuracy, Digamma) {
  std::mt19937_64 engine(1);
  auto unit = [&] { return static_cast<double>(engine() >> 11) * 0x1p-53; };
  double worst = 0, at = 0;
  auto check = [&](double x) {
    const double e = digamma_error(x);
    if (e > worst) worst = e, at = x;
  };
  const double root = 1.4616321449683623;
  for (int i = 0; i < 1500; ++i) {
    check(unit());
    check(unit() * 12);
    check(1 + unit());
    check(std::ldexp(1 + unit(), static_cast<int>(engine() % 200) - 100));
    check(root + std::ldexp(unit() - 0.5, -static_cast<int>(engine() % 45)));
    check(8 + (unit() - 0.5) * 1e-3);
    // between 0 and the first negative root
    check(-std::ldexp(unit(), -static_cast<int>(engine() % 40)) * 0.4);
  }
  for (double x : {1.0, 2.0, 3.0, 7.5, 8.0, root, 1e300, 1e-300, std::nextafter(root, 0),
                   std::nextafter(root, 2)})
    check(x);
  EXPECT_LE(worst, 4.0) << "at " << at;

  // Negative numbers between the poles: ψ crosses zero there and the reflection formula cancels, so
  // the bound is on what is subtracted.
  for (int i = 0; i < 1500; ++i) {
    const double x = -unit() * 30;
    Mpfr e(x);
    mpfr_digamma(e.get(), e.get(), MPFR_RNDN);
    const double expected = mpfr_get_d(e.get(), MPFR_RNDN);
    EXPECT_NEAR(vt::detail::special::digamma(x), expected, 8e-16 * (4 + std::fabs(expected))) << x;
  }
}

TEST(Accuracy, DigammaSpecialValues) {
  const double inf = std::numeric_limits<double>::infinity();
  auto digamma = [](double x) { return vt::detail::special::digamma(x); };
  EXPECT_EQ(digamma(inf), inf);
  EXPECT_EQ(digamma(0.0), -inf);
  EXPECT_EQ(digamma(-0.0), inf);
  EXPECT_EQ(digamma(5e-324), -inf);  // overflows
  for (double x : {-1.0, -2.0, -170.0, -0x1p60, -inf, std::nan("")})
    EXPECT_TRUE(std::isnan(digamma(x))) << x;
}

TEST(Accuracy, ErfInv) {
  std::mt19937_64 engine(2);
  auto unit = [&] { return static_cast<double>(engine() >> 11) * 0x1p-53; };
  double worst = 0, at = 0;
  auto check = [&](double x) {
    const double e = erf_inv_error(x);
    if (e > worst) worst = e, at = x;
  };
  for (int i = 0; i < 1200; ++i) {
    check(unit() * 2 - 1);
    check(1 - std::ldexp(1 + unit(), -static_cast<int>(engine() % 50) - 2));
    check(std::ldexp(unit(), -static_cast<int>(engine() % 60)));
    check(0.5 + (unit() - 0.5) * 1e-3);
    check(1e-5 * (1 + (unit() - 0.5) * 1e-2));
  }
  for (double x : {1 - 0x1p-53, -1 + 0x1p-53, 0.5, 1e-300, 5e-324}) check(x);
  EXPECT_LE(worst, 4.0) << "at " << at;
  const double inf = std::numeric_limits<double>::infinity();
  auto erf_inv = [](double x) { return vt::detail::special::erf_inv(x); };
  EXPECT_EQ(erf_inv(1), inf);
  EXPECT_EQ(erf_inv(-1), -inf);
  EXPECT_EQ(erf_inv(0), 0);
  EXPECT_TRUE(std::signbit(erf_inv(-0.0)));
  for (double x : {1.0000001, -2.0, inf, -inf, std::nan("")})
    EXPECT_TRUE(std::isnan(erf_inv(x))) << x;
}

TEST(Accuracy, SigmoidAndRsqrt) {
  std::mt19937_64 engine(3);
  double worst = 0;
  for (int i = 0; i < 20000; ++i) {
    const double x = (static_cast<double>(engine() >> 11) * 0x1p-53 - 0.5) * 1400;
    Mpfr e(-x);
    mpfr_exp(e.get(), e.get(), MPFR_RNDN);
    mpfr_add_ui(e.get(), e.get(), 1, MPFR_RNDN);
    mpfr_ui_div(e.get(), 1, e.get(), MPFR_RNDN);
    worst = std::max(worst, ulps_off(vt::detail::special::sigmoid(x), e));
  }
  EXPECT_LE(worst, 2.5);
}

/// The other functions as the ops give them, f64, over the range where they are finite.
TEST(Accuracy, LibraryFunctions) {
  struct Row {
    Op op;
    int (*reference)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
    double low, high;
  };
  const auto lgamma = [](mpfr_ptr out, mpfr_srcptr in, mpfr_rnd_t round) {
    int sign = 0;
    return mpfr_lgamma(out, &sign, in, round);
  };
  const Row rows[] = {{Op::exp, mpfr_exp, -700, 700},     {Op::exp2, mpfr_exp2, -1000, 1000},
                      {Op::expm1, mpfr_expm1, -3, 3},     {Op::log, mpfr_log, 0, 100},
                      {Op::log1p, mpfr_log1p, -1, 3},     {Op::log2, mpfr_log2, 0, 100},
                      {Op::sin, mpfr_sin, -1e6, 1e6},     {Op::cos, mpfr_cos, -1e6, 1e6},
                      {Op::tan, mpfr_tan, -100, 100},     {Op::asin, mpfr_asin, -1, 1},
                      {Op::acos, mpfr_acos, -1, 1},       {Op::atan, mpfr_atan, -50, 50},
                      {Op::sinh, mpfr_sinh, -20, 20},     {Op::cosh, mpfr_cosh, -20, 20},
                      {Op::tanh, mpfr_tanh, -5, 5},       {Op::asinh, mpfr_asinh, -50, 50},
                      {Op::acosh, mpfr_acosh, 1, 50},     {Op::atanh, mpfr_atanh, -1, 1},
                      {Op::erf, mpfr_erf, -5, 5},         {Op::erfc, mpfr_erfc, -5, 25},
                      {Op::cbrt, mpfr_cbrt, -1e9, 1e9},   {Op::rsqrt, mpfr_rec_sqrt, 0, 1e9},
                      {Op::digamma, mpfr_digamma, 0, 40}, {Op::lgamma, lgamma, 3, 200}};
  for (const Row& row : rows) {
    const vt::Tensor x = vt_test::random_tensor(vt::f64, {2000}, row.low, row.high, 21);
    const auto in = x.to_vector<double>(), out = vt_test::run_op(row.op, {x}).to_vector<double>();
    double worst = 0, at = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      Mpfr e(in[i]);
      row.reference(e.get(), e.get(), MPFR_RNDN);
      const double off = ulps_off(out[i], e);
      if (off > worst) worst = off, at = in[i];
    }
    EXPECT_LE(worst, 4.0) << name_of(row.op) << " at " << at;
  }
}

/// Below f64 the special functions, too, are rounded once: half an ulp but for the rarest ties.
TEST(Accuracy, SpecialFunctionsOfNarrowFloats) {
  for (vt::DType dtype : {vt::f16, vt::bf16, vt::f32}) {
    const vt::Tensor x = vt_test::random_tensor(dtype, {17, 30}, 0.05, 0.95, 5);
    const auto in = x.to_vector<double>();
    const auto psi = vt_test::run_op(Op::digamma, {x}).to_vector<double>();
    const auto inverse = vt_test::run_op(Op::erf_inv, {x}).to_vector<double>();
    const auto gamma = vt_test::run_op(Op::lgamma, {x}).to_vector<double>();
    for (std::size_t i = 0; i < in.size(); ++i) {
      Mpfr e(in[i]), g(in[i]), back(in[i]);
      mpfr_digamma(e.get(), e.get(), MPFR_RNDN);
      int sign = 0;
      mpfr_lgamma(g.get(), &sign, g.get(), MPFR_RNDN);
      const double p = mpfr_get_d(e.get(), MPFR_RNDN), l = mpfr_get_d(g.get(), MPFR_RNDN);
      EXPECT_LE(std::fabs(psi[i] - p), 0.5001 * vt_test::ulp_of(p, dtype)) << in[i];
      EXPECT_LE(std::fabs(gamma[i] - l), 0.5001 * vt_test::ulp_of(l, dtype)) << in[i];
      // erf of the result's neighbouring midpoints must enclose x.
      const double half = 0.5001 * vt_test::ulp_of(inverse[i], dtype);
      EXPECT_LE(std::erf(inverse[i] - half), in[i]);
      EXPECT_GE(std::erf(inverse[i] + half), in[i]);
    }
  }
}

}  // namespace
