// Special functions against MPFR and Boost.Math: units in the last place over ranges, special
// values, derivatives, lanes, narrow dtypes.
#include <gtest/gtest.h>
#include <mpfr.h>

#include <boost/math/special_functions.hpp>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>
#include <vt/vt.hpp>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;

// One result of two, and one order of many.
Tensor fresnel_sin(vt::Operand x) { return vt::special::fresnel(std::move(x)).first; }
Tensor fresnel_cos(vt::Operand x) { return vt::special::fresnel(std::move(x)).second; }
Tensor trigamma(vt::Operand x) { return vt::polygamma(1.0, std::move(x)); }
namespace sp = vt::special;
constexpr double inf = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

// --- references ----------------------------------------------------------------------------------

/// x87 numbers hold 11 bits more than a double: Boost computes in them, and its own errors are
/// small beside a double's last place.
using Wide = long double;
namespace bm = boost::math;
using Policy = bm::policies::policy<bm::policies::promote_double<false>,
                                    bm::policies::overflow_error<bm::policies::ignore_error>,
                                    bm::policies::domain_error<bm::policies::ignore_error>,
                                    bm::policies::pole_error<bm::policies::ignore_error>>;
constexpr Policy quiet{};

using MpfrFunction = std::function<void(mpfr_ptr out, mpfr_srcptr x)>;
/// Of a function of one number, to 160 bits, as what a long double holds.
std::function<Wide(const std::vector<double>&)> mpfr(const MpfrFunction& f) {
  return [f](const std::vector<double>& x) {
    mpfr_t in, out;
    mpfr_init2(in, 53);
    mpfr_init2(out, 160);
    mpfr_set_d(in, x[0], MPFR_RNDN);
    f(out, in);
    const Wide r = mpfr_get_ld(out, MPFR_RNDN);
    mpfr_clears(in, out, nullptr);
    return r;
  };
}
template <class F>
std::function<Wide(const std::vector<double>&)> one(F f) {
  return [f](const std::vector<double>& x) { return f(static_cast<Wide>(x[0])); };
}
template <class F>
std::function<Wide(const std::vector<double>&)> two(F f) {
  return [f](const std::vector<double>& x) {
    return f(static_cast<Wide>(x[0]), static_cast<Wide>(x[1]));
  };
}

/// exp(x²)·erfc(x) by MPFR, whose erfc does not underflow.
void erfcx(mpfr_ptr out, mpfr_srcptr x) {
  mpfr_t square;
  mpfr_init2(square, 400);
  mpfr_set_prec(out, 400);
  mpfr_sqr(square, x, MPFR_RNDN);
  mpfr_exp(square, square, MPFR_RNDN);
  mpfr_erfc(out, x, MPFR_RNDN);
  mpfr_mul(out, out, square, MPFR_RNDN);
  mpfr_clear(square);
}
void normal_tail(mpfr_ptr out, mpfr_srcptr x) {  // Φ(x) = erfc(−x/√2)/2
  mpfr_t root;
  mpfr_init2(root, 200);
  mpfr_set_prec(out, 200);
  mpfr_set_ui(root, 2, MPFR_RNDN);
  mpfr_sqrt(root, root, MPFR_RNDN);
  mpfr_div(root, x, root, MPFR_RNDN);
  mpfr_neg(root, root, MPFR_RNDN);
  mpfr_erfc(out, root, MPFR_RNDN);
  mpfr_div_ui(out, out, 2, MPFR_RNDN);
  mpfr_clear(root);
}
void log_normal_tail(mpfr_ptr out, mpfr_srcptr x) {
  if (mpfr_sgn(x) <= 0) {
    normal_tail(out, x);
    mpfr_log(out, out, MPFR_RNDN);
    return;
  }
  mpfr_t mirrored;
  mpfr_init2(mirrored, 53);
  mpfr_neg(mirrored, x, MPFR_RNDN);
  normal_tail(out, mirrored);
  mpfr_neg(out, out, MPFR_RNDN);
  mpfr_log1p(out, out, MPFR_RNDN);
  mpfr_clear(mirrored);
}
// Li₂(1 − x), of whose complex values for x < 0 nothing is asked
void spence(mpfr_ptr out, mpfr_srcptr x) {
  mpfr_t u;
  mpfr_init2(u, 400);
  mpfr_set_prec(out, 400);
  mpfr_ui_sub(u, 1, x, MPFR_RNDN);
  mpfr_li2(out, u, MPFR_RNDN);
  mpfr_clear(u);
}

/// Γ(numerator) / Γ(d) … of numbers that are sums of doubles.
Wide gamma_quotient(const std::vector<double>& numerator,
                    const std::vector<std::vector<double>>& denominators) {
  mpfr_t x, y, result;
  mpfr_inits2(400, x, y, result, nullptr);
  const auto gamma = [&](mpfr_ptr out, const std::vector<double>& sum) {
    mpfr_set_zero(x, 1);
    for (double term : sum) mpfr_add_d(x, x, term, MPFR_RNDN);
    mpfr_gamma(out, x, MPFR_RNDN);
  };
  gamma(result, numerator);
  for (const std::vector<double>& d : denominators) {
    gamma(y, d);
    mpfr_div(result, result, y, MPFR_RNDN);
  }
  const Wide r = mpfr_get_ld(result, MPFR_RNDN);
  mpfr_clears(x, y, result, nullptr);
  return r;
}
/// Si and Ci by their series, with digits enough for what cancels.
void trigonometric_integral(mpfr_ptr out, mpfr_srcptr x, bool sine) {
  mpfr_t term, part, square;
  mpfr_inits2(700, term, part, square, nullptr);
  mpfr_set_prec(out, 700);
  mpfr_sqr(square, x, MPFR_RNDN);
  mpfr_set(term, x, MPFR_RNDN);  // x^k / k!
  if (sine) {
    mpfr_set(out, x, MPFR_RNDN);
  } else {
    mpfr_abs(part, x, MPFR_RNDN);
    mpfr_log(out, part, MPFR_RNDN);
    mpfr_const_euler(part, MPFR_RNDN);
    mpfr_add(out, out, part, MPFR_RNDN);
    mpfr_set_ui(term, 1, MPFR_RNDN);
  }
  for (unsigned long k = sine ? 1 : 0; k < 700; k += 2) {
    mpfr_mul(term, term, square, MPFR_RNDN);
    mpfr_div_ui(term, term, (k + 1) * (k + 2), MPFR_RNDN);
    mpfr_neg(term, term, MPFR_RNDN);
    mpfr_div_ui(part, term, k + 2, MPFR_RNDN);
    mpfr_add(out, out, part, MPFR_RNDN);
  }
  mpfr_clears(term, part, square, nullptr);
}

// --- the table -----------------------------------------------------------------------------------

struct Range {
  double low, high;
  bool logarithmic = false;
};
struct Row {
  const char* name;
  std::function<Tensor(const std::vector<Tensor>&)> function;
  std::function<Wide(const std::vector<double>&)> reference;
  std::vector<std::vector<Range>> ranges;  ///< each: one range per operand
  double ulps = 8;
  /// the error is measured by the larger of the result and the smaller of 1 and √(2/πx)
  bool oscillates = false;
  /// of f32: rounded from f64, but for those with a kernel of their own, which are as good as exp
  /// and the like
  double f32_ulps = 1;
};

std::function<Tensor(const std::vector<Tensor>&)> of(Tensor (*f)(vt::Operand)) {
  return [f](const std::vector<Tensor>& x) { return f(x[0]); };
}
std::function<Tensor(const std::vector<Tensor>&)> of(Tensor (*f)(vt::Operand, vt::Operand)) {
  return [f](const std::vector<Tensor>& x) { return f(x[0], x[1]); };
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"gamma",
       of(vt::special::gamma),
       mpfr([](mpfr_ptr r, mpfr_srcptr x) { mpfr_gamma(r, x, MPFR_RNDN); }),
       {{{-20, 20}}, {{0, 2}}, {{1e-300, 1, true}}, {{5, 171.6}}, {{-183, -20}}}},
      {"lgamma",
       of(vt::lgamma),
       mpfr([](mpfr_ptr r, mpfr_srcptr x) {
         int sign = 0;
         mpfr_lgamma(r, &sign, x, MPFR_RNDN);
       }),
       {{{0, 5}}, {{5, 1e4}}, {{1e-300, 1e300, true}}}},
      {"digamma",
       of(vt::digamma),
       mpfr([](mpfr_ptr r, mpfr_srcptr x) { mpfr_digamma(r, x, MPFR_RNDN); }),
       {{{0, 5}}, {{5, 1e4}}, {{1e-300, 1e300, true}}}},
      {"erf_inv",
       of(vt::erf_inv),
       one([](Wide x) { return bm::erf_inv(x, quiet); }),
       {{{-1, 1}}, {{-1e-5, 1e-5}}},
       8,
       false,
       2},
      {"erfc_inv",
       of(vt::special::erfcinv),
       one([](Wide x) { return bm::erfc_inv(x, quiet); }),
       {{{0, 2}}, {{1e-300, 0.1, true}}}},
      {"erfcx",
       of(vt::special::erfcx),
       mpfr(erfcx),
       {{{-5, 5}}, {{-26, 0}}, {{0, 50}}, {{0, 1e4}}}},
      {"ndtr", of(vt::special::ndtr), mpfr(normal_tail), {{{-5, 5}}, {{-37, 8}}}, 8, false, 2},
      {"log_ndtr",
       of(vt::special::log_ndtr),
       mpfr(log_normal_tail),
       {{{-5, 5}}, {{-1000, 0}}, {{0, 37}}}},
      {"ndtri",
       of(vt::special::ndtri),
       one([](Wide p) { return -std::sqrt(2.0L) * bm::erfc_inv(2 * p, quiet); }),
       {{{0, 1}}, {{1e-300, 0.1, true}}}},
      {"bessel_j0",
       of(vt::special::j0),
       mpfr([](mpfr_ptr r, mpfr_srcptr x) { mpfr_j0(r, x, MPFR_RNDN); }),
       {{{-6, 6}}, {{0, 100}}, {{0, 1e6}}},
       8,
       true},
      {"bessel_j1",
       of(vt::special::j1),
       mpfr([](mpfr_ptr r, mpfr_srcptr x) { mpfr_j1(r, x, MPFR_RNDN); }),
       {{{-6, 6}}, {{0, 100}}, {{0, 1e6}}},
       8,
       true},
      {"bessel_y0",
       of(vt::special::y0),
       mpfr([](mpfr_ptr r, mpfr_srcptr x) { mpfr_y0(r, x, MPFR_RNDN); }),
       {{{0, 6}}, {{0, 100}}, {{1e-300, 1e6, true}}},
       8,
       true},
      {"bessel_y1",
       of(vt::special::y1),
       mpfr([](mpfr_ptr r, mpfr_srcptr x) { mpfr_y1(r, x, MPFR_RNDN); }),
       {{{0, 6}}, {{0, 100}}, {{1e-300, 1e6, true}}},
       8,
       true},
      {"bessel_i0",
       of(vt::special::i0),
       one([](Wide x) { return bm::cyl_bessel_i(0, x, quiet); }),
       {{{-10, 10}}, {{10, 700}}}},
      {"bessel_i1",
       of(vt::special::i1),
       one([](Wide x) { return bm::cyl_bessel_i(1, x, quiet); }),
       {{{-10, 10}}, {{10, 700}}}},
      {"bessel_i0e",
       of(vt::bessel_i0e),
       one([](Wide x) { return bm::cyl_bessel_i(0, x, quiet) * std::exp(-std::fabs(x)); }),
       {{{-10, 10}}, {{10, 1000}}},
       8,
       false,
       2},
      {"bessel_i1e",
       of(vt::bessel_i1e),
       one([](Wide x) { return bm::cyl_bessel_i(1, x, quiet) * std::exp(-std::fabs(x)); }),
       {{{-10, 10}}, {{10, 1000}}},
       8,
       false,
       2},
      {"bessel_k0",
       of(vt::special::k0),
       one([](Wide x) { return bm::cyl_bessel_k(0, x, quiet); }),
       {{{0, 5}}, {{5, 700}}, {{1e-300, 1, true}}}},
      {"bessel_k1",
       of(vt::special::k1),
       one([](Wide x) { return bm::cyl_bessel_k(1, x, quiet); }),
       {{{0, 5}}, {{5, 700}}, {{1e-300, 1, true}}}},
      {"bessel_k0e",
       of(vt::special::k0e),
       one([](Wide x) { return bm::cyl_bessel_k(0, x, quiet) * std::exp(x); }),
       {{{0, 5}}, {{5, 1000}}}},
      {"bessel_k1e",
       of(vt::special::k1e),
       one([](Wide x) { return bm::cyl_bessel_k(1, x, quiet) * std::exp(x); }),
       {{{0, 5}}, {{5, 1000}}}},
      {"expi",
       of(vt::special::expi),
       mpfr([](mpfr_ptr r, mpfr_srcptr x) { mpfr_eint(r, x, MPFR_RNDN); }),
       {{{0, 1}}, {{0, 12}}, {{10, 715}}, {{-700, 0}}, {{1e-300, 1, true}}}},
      {"exp1",
       of(vt::special::exp1),
       one([](Wide x) { return bm::expint(1, x, quiet); }),
       {{{0, 3}}, {{1, 700}}}},
      {"expn",
       of(vt::special::expn),
       [](const std::vector<double>& x) {
         return bm::expint(static_cast<unsigned>(x[0]), static_cast<Wide>(x[1]), quiet);
       },
       {{{1, 1}, {0, 5}}, {{2, 2}, {0, 5}}, {{3, 3}, {1, 600}}, {{7, 7}, {0, 30}}},
       16},
      {"spence",
       of(vt::special::spence),
       mpfr(spence),
       {{{0, 3}}, {{0, 100}}, {{1e-300, 1e300, true}}}},
      {"riemann_zeta",
       [](const std::vector<Tensor>& x) { return vt::special::zeta(x[0]); },
       mpfr([](mpfr_ptr r, mpfr_srcptr x) { mpfr_zeta(r, x, MPFR_RNDN); }),
       {{{-1, 1}}, {{-20, -1}}, {{-260, -20}}, {{1, 60}}},
       16},
      {"zeta",
       [](const std::vector<Tensor>& x) { return vt::zeta(x[0], x[1]); },
       two([](Wide s, Wide) { return bm::zeta(s, quiet); }),
       {{{1.001, 60}, {1, 1}}}},
      {"polygamma",
       of(vt::polygamma),
       [](const std::vector<double>& x) {
         return bm::polygamma(static_cast<int>(x[0]), static_cast<Wide>(x[1]), quiet);
       },
       {{{1, 1}, {0.1, 30}}, {{2, 2}, {0.1, 30}}, {{5, 5}, {0.1, 30}}}},
      {"trigamma", of(trigamma), one([](Wide x) { return bm::trigamma(x, quiet); }), {{{0, 30}}}},
      {"beta",
       of(vt::special::beta),
       two([](Wide a, Wide b) { return bm::beta(a, b, quiet); }),
       {{{0.01, 20}, {0.01, 20}}, {{0.1, 300}, {0.1, 300}}, {{1e-3, 8, true}, {100, 1e6, true}}}},
      {"betaln",
       of(vt::special::betaln),
       two([](Wide a, Wide b) { return std::log(bm::beta(a, b, quiet)); }),
       {{{2, 20}, {2, 20}}, {{10, 300}, {10, 300}}}},
      // Near a mean far from 0 the exponents' rounding shows; further out in the tails it grows
      // with them.
      {"igamma",
       of(vt::igamma),
       two([](Wide a, Wide x) { return bm::gamma_p(a, x, quiet); }),
       {{{1e-3, 1, true}, {1e-3, 3, true}}, {{0.1, 20}, {0, 30}}, {{20, 100}, {10, 200}}},
       16},
      {"igammac",
       of(vt::igammac),
       two([](Wide a, Wide x) { return bm::gamma_q(a, x, quiet); }),
       {{{1e-3, 1, true}, {1e-3, 3, true}}, {{0.1, 20}, {0, 30}}, {{20, 100}, {10, 200}}},
       16},
      {"betainc",
       [](const std::vector<Tensor>& x) { return vt::betainc(x[0], x[1], x[2]); },
       [](const std::vector<double>& x) {
         return bm::ibeta(static_cast<Wide>(x[0]), static_cast<Wide>(x[1]), static_cast<Wide>(x[2]),
                          quiet);
       },
       {{{0.1, 10}, {0.1, 10}, {0, 1}},
        {{1, 40}, {1, 40}, {0, 1}},
        {{200, 220}, {200, 220}, {0.45, 0.55}}},
       16},
      {"entr", of(vt::special::entr), one([](Wide x) { return -x * std::log(x); }), {{{0, 5}}}},
      {"rel_entr",
       of(vt::special::rel_entr),
       two([](Wide x, Wide y) { return x * std::log(x / y); }),
       {{{0, 1}, {0, 1}}, {{1e-200, 1e200, true}, {1e-200, 1e200, true}}}},
      {"sinc",
       of(vt::sinc),
       one([](Wide x) { return bm::sin_pi(x) / (bm::constants::pi<Wide>() * x); }),
       {{{-0.5, 0.5}}, {{-30, 30}}}},
      {"poch",
       of(vt::special::poch),
       [](const std::vector<double>& x) { return gamma_quotient({x[0], x[1]}, {{x[0]}}); },
       {{{0.01, 20}, {0.01, 20}}, {{20, 1e4}, {0, 12}}, {{5, 60}, {-4.9, 0}}},
       16},
      {"binom",
       of(vt::special::binom),
       [](const std::vector<double>&
              x) { return gamma_quotient({x[0], 1.0}, {{x[1], 1.0}, {x[0], -x[1], 1.0}}); },
       {{{10, 30}, {0, 10}}, {{100, 900}, {0, 90}}},
       24},
      {"sine_integral",
       [](const std::vector<Tensor>& x) { return vt::special::sici(x[0]).first; },
       mpfr([](mpfr_ptr r, mpfr_srcptr x) { trigonometric_integral(r, x, true); }),
       {{{-6, 6}}, {{0, 60}}, {{1e-300, 1, true}}}},
      {"cosine_integral",
       [](const std::vector<Tensor>& x) { return vt::special::sici(x[0]).second; },
       mpfr([](mpfr_ptr r, mpfr_srcptr x) { trigonometric_integral(r, x, false); }),
       {{{0, 6}}, {{0, 60}}, {{1e-300, 1, true}}},
       16,
       true},
      {"factorial",
       of(vt::special::factorial),
       one([](Wide x) { return bm::tgamma(x + 1, quiet); }),
       {{{0, 150}}}},
  };
  return all;
}

class SpecialFunctions : public testing::TestWithParam<std::size_t> {};

double error_in_ulps(double got, Wide want, Wide size, int digits, int least_exponent) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : inf;
  if (!std::isfinite(want)) return static_cast<Wide>(got) == want ? 0 : inf;
  int e = 0;
  std::frexp(size, &e);
  const Wide unit = std::ldexp(1.0L, std::max(e, least_exponent) - digits);
  const double off = static_cast<double>(std::fabs(got - want) / unit);
  return std::isnan(off) ? inf : off;
}

TEST_P(SpecialFunctions, AgainstReferences) {
  const Row& row = rows()[GetParam()];
  std::mt19937_64 engine(GetParam() + 1);
  // The interpreter runs the same formulas one element after the other; sanitizers look at how, not
  // at how well.
  const bool few = vt_test::forced_backend() == "interpreter" || std::getenv("VT_MATH_SAMPLES");
  // MPFR takes as long for a number of these as for a hundred of others.
  const std::string name = row.name;
  const bool slow = name == "riemann_zeta" || name == "erfcx";
  const std::int64_t count = few || slow ? 400 : 1500;
  for (const vt::DType dtype : {vt::f64, vt::f32}) {
    for (const std::vector<Range>& ranges : row.ranges) {
      std::vector<std::vector<double>> points;
      std::vector<Tensor> operands;
      for (const Range& r : ranges) {
        std::vector<double> x;
        for (std::int64_t i = 0; i < count; ++i) {
          const double u = static_cast<double>(engine() >> 11) * 0x1p-53;
          double v = r.logarithmic
                         ? std::exp(std::log(r.low) + u * (std::log(r.high) - std::log(r.low)))
                         : r.low + u * (r.high - r.low);
          if (dtype == vt::f32) v = static_cast<double>(static_cast<float>(v));
          x.push_back(v);
        }
        operands.push_back(vt::tensor(x, {count}).astype(dtype));
        points.push_back(x);
      }
      const Tensor result = row.function(operands);
      ASSERT_EQ(result.dtype(), dtype);
      const auto got = result.to_vector<double>();
      double worst = 0;
      std::vector<double> at;
      Wide wanted = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        std::vector<double> x;
        for (const auto& p : points) x.push_back(p[i]);
        const Wide want = row.reference(x);
        if (dtype == vt::f32 && (!(std::fabs(want) < 3e38L) || std::fabs(want) < 1.2e-38L))
          continue;
        if (dtype == vt::f64 && (!(std::fabs(want) < 1e308L) || std::fabs(want) < 1e-307L))
          continue;
        Wide size = std::fabs(want);
        if (row.oscillates)
          size =
              std::max(size, std::min(1.0L, std::sqrt(2 / (3.14159265358979324L *
                                                           std::fabs(static_cast<Wide>(x[0]))))));
        const double off = dtype == vt::f64 ? error_in_ulps(got[i], want, size, 53, -1021)
                                            : error_in_ulps(got[i], want, size, 24, -125);
        if (off > worst) worst = off, at = x, wanted = want;
      }
      EXPECT_LE(worst, dtype == vt::f64 ? row.ulps : row.f32_ulps)
          << row.name << " of " << vt::name_of(dtype) << " at " << testing::PrintToString(at)
          << " is " << static_cast<double>(wanted);
      RecordProperty(std::string(row.name) + "_" + vt::name_of(dtype), std::to_string(worst));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, SpecialFunctions, testing::Range<std::size_t>(0, rows().size()),
                         [](const auto& info) { return std::string(rows()[info.param].name); });

// --- special values ------------------------------------------------------------------------------

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

TEST(SpecialValues, OfOneOperand) {
  struct Case {
    const char* name;
    Tensor (*f)(vt::Operand);
    std::vector<std::pair<double, double>> values;  ///< argument, result
  };
  const Case cases[] = {
      {"gamma",
       vt::special::gamma,
       {{0.0, inf},
        {-0.0, -inf},
        {-1, nan},
        {-7, nan},
        {inf, inf},
        {-inf, nan},
        {1, 1},
        {2, 1},
        {172, inf},
        {nan, nan}}},
      {"erfcx", vt::special::erfcx, {{0.0, 1}, {inf, 0}, {-inf, inf}, {-30, inf}, {nan, nan}}},
      {"erfc_inv",
       vt::special::erfcinv,
       {{0, inf}, {2, -inf}, {1, 0}, {-0.1, nan}, {2.1, nan}, {nan, nan}}},
      {"ndtr", vt::special::ndtr, {{0, 0.5}, {inf, 1}, {-inf, 0}, {-1e9, 0}, {nan, nan}}},
      {"log_ndtr", vt::special::log_ndtr, {{-inf, -inf}, {-1e200, -inf}, {nan, nan}}},
      {"zeta",
       vt::special::zeta,
       {{0, -0.5}, {1, inf}, {-2, 0}, {-1000, 0}, {-1e300, 0}, {-inf, nan}, {inf, 1}, {nan, nan}}},
      {"ndtri", vt::special::ndtri, {{0, -inf}, {1, inf}, {-0.1, nan}, {1.1, nan}}},
      {"dawsn", vt::special::dawsn, {{0.0, 0.0}, {-0.0, -0.0}, {inf, 0}, {-inf, -0.0}, {nan, nan}}},
      {"i0", sp::i0, {{0, 1}, {inf, inf}, {-inf, inf}, {800, inf}, {nan, nan}}},
      {"i1", sp::i1, {{0.0, 0.0}, {-0.0, -0.0}, {inf, inf}, {-inf, -inf}, {nan, nan}}},
      {"i0e", sp::i0e, {{0, 1}, {inf, 0}, {-inf, 0}, {nan, nan}}},
      {"i1e", sp::i1e, {{0.0, 0.0}, {-0.0, -0.0}, {inf, 0}, {-inf, -0.0}, {nan, nan}}},
      {"k0", sp::k0, {{0, inf}, {inf, 0}, {-1, nan}, {nan, nan}}},
      {"k1", sp::k1, {{0, inf}, {inf, 0}, {-1, nan}, {nan, nan}}},
      {"k0e", sp::k0e, {{0, inf}, {inf, 0}, {-1, nan}, {nan, nan}}},
      {"k1e", sp::k1e, {{0, inf}, {inf, 0}, {-1, nan}, {nan, nan}}},
      {"j0", sp::j0, {{0, 1}, {inf, 0}, {-inf, 0}, {nan, nan}}},
      {"j1", sp::j1, {{0.0, 0.0}, {-0.0, -0.0}, {inf, 0}, {-inf, -0.0}, {nan, nan}}},
      {"y0", sp::y0, {{0, -inf}, {inf, 0}, {-1, nan}, {nan, nan}}},
      {"y1", sp::y1, {{0, -inf}, {inf, 0}, {-1, nan}, {nan, nan}}},
      {"expi", vt::special::expi, {{0, -inf}, {-0.0, -inf}, {inf, inf}, {-inf, -0.0}, {nan, nan}}},
      {"exp1", vt::special::exp1, {{0, inf}, {inf, 0}, {-1, nan}, {nan, nan}}},
      {"fresnel_sin",
       fresnel_sin,
       {{0.0, 0.0}, {-0.0, -0.0}, {inf, 0.5}, {-inf, -0.5}, {nan, nan}}},
      {"fresnel_cos",
       fresnel_cos,
       {{0.0, 0.0}, {-0.0, -0.0}, {inf, 0.5}, {-inf, -0.5}, {nan, nan}}},
      {"spence", vt::special::spence, {{1, 0}, {inf, -inf}, {-1, nan}, {nan, nan}}},
      {"entr", vt::special::entr, {{0, 0}, {1, -0.0}, {-1, -inf}, {inf, -inf}, {nan, nan}}},
      {"sinc", vt::sinc, {{0, 1}, {inf, nan}, {-inf, nan}, {nan, nan}}},
      {"factorial",
       vt::special::factorial,
       {{0, 1},
        {1, 1},
        {5, 120},
        {17, 355687428096000.0},
        {-1, 0},
        {-2.5, 0},
        {171, inf},
        {nan, nan}}},
  };
  for (const Case& c : cases)
    for (vt::DType d : {vt::f64, vt::f32})
      for (const auto& [x, want] : c.values) {
        if (d == vt::f32 && (std::fabs(x) > 1e30 && std::isfinite(x))) continue;
        const double got = c.f(vt::tensor(x).astype(d)).to_vector<double>()[0];
        const double expected = d == vt::f32 ? static_cast<double>(static_cast<float>(want)) : want;
        // A zero's sign matters where the function is odd; elsewhere ±0 will do.
        EXPECT_TRUE(same(got, expected) || (got == 0 && want == 0 && x != 0))
            << c.name << "(" << x << ") in " << vt::name_of(d) << " is " << got;
      }
  EXPECT_NEAR(vt::special::spence(vt::tensor(0.0)).item<double>(), 1.6449340668482264, 1e-15);
}

TEST(SpecialValues, OfTwoAndThreeOperands) {
  struct Case {
    const char* name;
    Tensor (*f)(vt::Operand, vt::Operand);
    double a, b, want;
  };
  const Case cases[] = {
      {"zeta", vt::zeta, 1, 2, inf},
      {"zeta", vt::zeta, 0.5, 1, nan},
      {"zeta", vt::zeta, 2, 0, inf},
      {"zeta", vt::zeta, 2, -3, inf},
      {"zeta", vt::zeta, 2.5, -0.5, nan},
      {"zeta", vt::zeta, 2, inf, 0},
      {"zeta", vt::zeta, inf, 1, 1},
      {"zeta", vt::zeta, inf, 2, 0},
      {"polygamma", vt::polygamma, 1, 0, inf},
      {"polygamma", vt::polygamma, -1, 2, nan},
      {"polygamma", vt::polygamma, 1.5, 2, nan},
      {"igamma", vt::igamma, 0, 1, 1},
      {"igamma", vt::igamma, 2, 0, 0},
      {"igamma", vt::igamma, 2, inf, 1},
      {"igamma", vt::igamma, inf, 2, 0},
      {"igamma", vt::igamma, 1e300, 1e300, 0.5},
      {"igamma", vt::igamma, 1e308, 1e308, 0.5},
      {"igamma", vt::igamma, 1e308, 1.1e308, 1},
      {"igamma", vt::igamma, 1e30, 2, 0},
      {"igammac", vt::igammac, 1e20, 0.9999e20, 1},
      {"igamma", vt::igamma, -1, 2, nan},
      {"igamma", vt::igamma, 2, -1, nan},
      {"igamma", vt::igamma, 0, 0, nan},
      {"igamma", vt::igamma, nan, 1, nan},
      {"igamma", vt::igamma, 1, nan, nan},
      {"igammac", vt::igammac, 0, 1, 0},
      {"igammac", vt::igammac, 2, 0, 1},
      {"igammac", vt::igammac, 2, inf, 0},
      {"igammac", vt::igammac, inf, 2, 1},
      {"igammac", vt::igammac, -1, 2, nan},
      {"igammac", vt::igammac, 1, nan, nan},
      {"random_gamma_grad", vt::random_gamma_grad, 2, 0, 0},
      {"beta", vt::special::beta, 0, 1, inf},
      {"beta", vt::special::beta, nan, 1, nan},
      {"expn", vt::special::expn, 0, 0, inf},
      {"expn", vt::special::expn, 1, 0, inf},
      {"expn", vt::special::expn, 3, 0, 0.5},
      {"expn", vt::special::expn, 2, inf, 0},
      {"expn", vt::special::expn, 1.5, 1, nan},
      {"expn", vt::special::expn, 2, -1, nan},
      {"rel_entr", vt::special::rel_entr, 0, 0, 0},
      {"rel_entr", vt::special::rel_entr, 0, 2, 0},
      {"rel_entr", vt::special::rel_entr, 1, 0, inf},
      {"rel_entr", vt::special::rel_entr, -1, 1, inf},
      {"rel_entr", vt::special::rel_entr, nan, 1, nan},
      {"kl_div", vt::special::kl_div, 0, 2, 2},
      {"kl_div", vt::special::kl_div, 1, 0, inf},
      {"kl_div", vt::special::kl_div, 2, 2, 0},
      {"xlogy", vt::special::xlogy, 0, 0, 0},
      {"xlog1py", vt::special::xlog1py, 0, -1, 0},
  };
  for (const Case& c : cases) {
    const double got = c.f(c.a, c.b).to_vector<double>()[0];
    EXPECT_TRUE(same(got, c.want) || (got == 0 && c.want == 0))
        << c.name << "(" << c.a << ", " << c.b << ") is " << got;
  }
  const double edges[][4] = {
      {2, 3, 0, 0},      {2, 3, 1, 1},     {0, 3, 0.5, 1},    {3, 0, 0.5, 0},     {0, 0, 0.5, nan},
      {2, 3, -0.1, nan}, {2, 3, 1.1, nan}, {-1, 2, 0.5, nan}, {nan, 2, 0.5, nan}, {2, 2, nan, nan}};
  for (const auto& e : edges)
    EXPECT_TRUE(same(vt::betainc(e[0], e[1], e[2]).item<double>(), e[3]))
        << e[0] << " " << e[1] << " " << e[2];
}

// Small parameters and arguments, where a + m − 1 forgets a, and x s/a − 1 forgets x.
TEST(SpecialValues, IncompleteBetaOfSmallParametersAndArguments) {
  for (double a : {1e-12, 1e-10, 1e-6, 1e-3})
    for (double x : {1e-10, 0.1, 0.2})  // I_x(a, 2) = xᵃ (1 + a (1 − x))
      EXPECT_NEAR(vt::betainc(a, 2.0, x).item<double>(),
                  std::exp(a * std::log(x)) * (1 + a * (1 - x)), 1e-15)
          << a << " " << x;
  for (double a : {9.0, 10.0, 15.0})
    for (double b : {150.0, 250.0, 2000.0})
      for (double x : {1e-12, 1e-10, 1e-6, 1e-3}) {
        const auto want = static_cast<double>(
            bm::ibeta(static_cast<Wide>(a), static_cast<Wide>(b), static_cast<Wide>(x), quiet));
        EXPECT_NEAR(vt::betainc(a, b, x).item<double>() / want, 1.0, 2e-13)
            << a << " " << b << " " << x;
      }
}

// --- identities ----------------------------------------------------------------------------------

TEST(SpecialIdentities, ZetaOfAnyQ) {
  const Tensor s = vt_test::random_tensor(vt::f64, {300}, 1.1, 12, 5),
               q = vt_test::random_tensor(vt::f64, {300}, 0.2, 30, 6);
  // Multiplication: Σ ζ(s, (q + k)/3) = 3ˢ ζ(s, q), and the step by 1.
  const Tensor thirds =
      vt::zeta(s, q / 3.0) + vt::zeta(s, (q + 1.0) / 3.0) + vt::zeta(s, (q + 2.0) / 3.0);
  vt_test::expect_close(thirds, vt::pow(3.0, s) * vt::zeta(s, q), {.ulps = 24});
  vt_test::expect_close(vt::zeta(s, q), vt::zeta(s, q + 1.0) + vt::pow(q, -s), {.ulps = 16});
  EXPECT_DOUBLE_EQ(vt::special::zeta(2.0).item<double>(), 1.6449340668482264);
  // Below 0, for integer s: the terms by hand.
  for (double x : {-0.5, -3.25, -20.125}) {
    double sum = 0;
    for (int k = 40; k >= 0; --k) sum += std::pow(x + k, -3);
    EXPECT_NEAR(vt::zeta(3.0, x).item<double>(), sum + vt::zeta(3.0, x + 41).item<double>(),
                1e-13 * std::fabs(sum))
        << x;
  }
}

TEST(SpecialIdentities, Composed) {
  const Tensor a = vt_test::random_tensor(vt::f64, {200}, 2, 9, 7);
  vt_test::expect_close(vt::special::multigammaln(a, 3),
                        vt::lgamma(a) + vt::lgamma(a - 0.5) + vt::lgamma(a - 1.0) +
                            1.5 * std::log(3.14159265358979324),
                        {.ulps = 8});
  vt_test::expect_close(vt::igamma(a, a * 0.7) + vt::igammac(a, a * 0.7), vt::ones_like(a),
                        {.ulps = 16});
  const Tensor x = vt_test::random_tensor(vt::f64, {200}, 0.05, 0.95, 8);
  vt_test::expect_close(vt::betainc(a, a + 1.0, x) + vt::betainc(a + 1.0, a, 1.0 - x),
                        vt::ones_like(a), {.ulps = 32});
  vt_test::expect_close(sp::gammainc(a, x), vt::igamma(a, x), {.ulps = 8});
  vt_test::expect_close(sp::expit(x), vt::sigmoid(x), {.ulps = 8});
}

// --- derivatives, lanes, dtypes ------------------------------------------------------------------

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

/// The derivative of f along `direction`, and that of it, against differences; and both modes
/// against each other.
void check_derivatives(const char* name, const Function& f, const std::vector<Tensor>& x,
                       double tolerance) {
  SCOPED_TRACE(name);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto along = [&](const Tensor& t) {
      std::vector<Tensor> all = x;
      all[i] = t;
      return f(all);
    };
    const auto first = [&](const Tensor& t) {
      return vt::jvp(along, std::tuple(t), std::tuple(vt::ones_like(t))).second;
    };
    const auto reverse = [&](const Tensor& t) {
      return vt::grad([&](Tensor u) { return vt::sum(along(u)); })(t);
    };
    const auto second = [&](const Tensor& t) {
      return vt::grad([&](Tensor u) { return vt::sum(reverse(u)); })(t);
    };
    const std::vector<Tensor> at = {x[i]}, one = {vt::ones_like(x[i])};
    const Tensor slope = first(x[i]), curve = second(x[i]);
    vt_test::expect_close(
        slope,
        vt_test::difference(
            [&](const std::vector<Tensor>& t) { return std::vector<Tensor>{along(t[0])}; }, at,
            one)[0],
        {.relative = tolerance, .absolute = tolerance},
        "first derivative by operand " + std::to_string(i));
    vt_test::expect_close(reverse(x[i]), slope, {.relative = 1e-12, .absolute = 1e-13},
                          "reverse mode by operand " + std::to_string(i));
    vt_test::expect_close(
        curve,
        vt_test::difference(
            [&](const std::vector<Tensor>& t) { return std::vector<Tensor>{first(t[0])}; }, at,
            one)[0],
        {.relative = 10 * tolerance, .absolute = 10 * tolerance},
        "second derivative by operand " + std::to_string(i));
  }
}

TEST(SpecialDerivatives, AgainstDifferences) {
  const auto points = [](double low, double high, std::uint64_t seed) {
    return vt_test::random_tensor(vt::f64, {6}, low, high, seed);
  };
  const Tensor positive = points(0.4, 4, 1), any = points(-3, 3, 2), part = points(0.1, 0.9, 3);
  const std::pair<const char*, Tensor (*)(vt::Operand)> of_any[] = {
      {"erfcx", vt::special::erfcx},
      {"ndtr", vt::special::ndtr},
      {"log_ndtr", vt::special::log_ndtr},
      {"dawsn", vt::special::dawsn},
      {"i0", sp::i0},
      {"i1", sp::i1},
      {"j0", sp::j0},
      {"j1", sp::j1},
      {"sinc", vt::sinc},
      {"fresnel_sin", fresnel_sin}};
  for (const auto& [name, f] : of_any) check_derivatives(name, of(f), {any}, 1e-8);
  const std::pair<const char*, Tensor (*)(vt::Operand)> of_positive[] = {
      {"gamma", vt::special::gamma},
      {"k0", sp::k0},
      {"k1", sp::k1},
      {"y0", sp::y0},
      {"y1", sp::y1},
      {"expi", vt::special::expi},
      {"exp1", vt::special::exp1},
      {"spence", vt::special::spence},
      {"entr", vt::special::entr},
      {"polygamma 1", trigamma},
      {"factorial", vt::special::factorial}};
  for (const auto& [name, f] : of_positive) check_derivatives(name, of(f), {positive}, 1e-7);
  check_derivatives("ndtri", of(vt::special::ndtri), {part}, 1e-7);
  const std::pair<const char*, Tensor (*)(vt::Operand, vt::Operand)> of_two[] = {
      {"beta", vt::special::beta},
      {"betaln", vt::special::betaln},
      {"igamma", vt::igamma},
      {"igammac", vt::igammac},
      {"random_gamma_grad", vt::random_gamma_grad},
      {"rel_entr", vt::special::rel_entr},
      {"kl_div", vt::special::kl_div},
      {"poch", vt::special::poch}};
  check_derivatives("poch below", of(vt::special::poch), {points(5, 9, 5), points(-4, -1, 6)},
                    1e-6);
  check_derivatives("binom", of(vt::special::binom), {points(5, 9, 5), points(0.3, 4.5, 6)}, 1e-5);
  for (const bool sine : {true, false})
    check_derivatives(
        "sici",
        [sine](const std::vector<Tensor>& x) {
          return sine ? sp::sici(x[0]).first : sp::sici(x[0]).second;
        },
        {positive * 2.5}, 1e-7);
  check_derivatives(
      "expn", [](const std::vector<Tensor>& x) { return vt::special::expn(3.0, x[0]); }, {positive},
      1e-7);
  for (const auto& [name, f] : of_two)
    check_derivatives(name, of(f), {positive, points(0.5, 5, 4)}, 1e-7);
  check_derivatives(
      "zeta", [](const std::vector<Tensor>& x) { return vt::zeta(x[0], x[1]); },
      {positive + 1.0, points(0.5, 5, 4)}, 1e-7);
  check_derivatives(
      "zeta of one operand", [](const std::vector<Tensor>& x) { return vt::special::zeta(x[0]); },
      {points(-6, 0.8, 9)}, 1e-7);
  check_derivatives(
      "betainc", [](const std::vector<Tensor>& x) { return vt::betainc(x[0], x[1], x[2]); },
      {positive, points(0.5, 5, 4), part}, 1e-7);
}

TEST(SpecialValues, SineAndCosineIntegral) {
  const Tensor x = vt::tensor({0.0, inf, -inf, nan, -2.0, 1e9});
  const auto [si, ci] = sp::sici(x);
  const double half = 1.57079632679489662, large = 1e9;
  const std::vector<double> s = si.to_vector<double>(), c = ci.to_vector<double>();
  EXPECT_EQ(s[0], 0.0);
  EXPECT_DOUBLE_EQ(s[1], half);
  EXPECT_DOUBLE_EQ(s[2], -half);
  EXPECT_TRUE(std::isnan(s[3]) && std::isnan(c[3]));
  EXPECT_DOUBLE_EQ(s[4], -1.60541297680269481);
  EXPECT_NEAR(s[5], half - std::cos(large) / large, 1e-15);
  EXPECT_EQ(c[0], -inf);
  EXPECT_EQ(c[1], 0.0);
  EXPECT_NEAR(c[4], 0.42298082877486500, 1e-15);
  EXPECT_NEAR(c[5], std::sin(large) / large, 1e-18);
  EXPECT_EQ(sp::sici(vt::ones({2}, vt::f16)).first.dtype(), vt::f16);
  EXPECT_EQ(vt::grad([](Tensor t) { return sp::sici(t).first; })(vt::tensor(0.0)).item<double>(),
            1.0);
}

TEST(SpecialValues, PochhammerAndBinomial) {
  const auto poch = [](double a, double m) {
    return sp::poch(a, m).astype(vt::f64).item<double>();
  };
  EXPECT_EQ(poch(3, 0), 1.0);
  EXPECT_DOUBLE_EQ(poch(1, 5), 120.0);
  EXPECT_DOUBLE_EQ(poch(-3, 2), 6.0);  // (−3)(−2)
  EXPECT_EQ(poch(-3, 5), 0.0);         // passes 0
  EXPECT_NEAR(poch(-2.5, 2), 3.75, 1e-14);
  EXPECT_NEAR(poch(0.5, -2), 4.0 / 3, 1e-14);  // 1 / ((−½)(−3/2))
  EXPECT_EQ(poch(2, -2), inf);
  EXPECT_EQ(poch(0, 2), 0.0);
  EXPECT_TRUE(std::isnan(poch(nan, 0)));
  const auto binom = [](double n, double k) {
    return sp::binom(n, k).astype(vt::f64).item<double>();
  };
  for (int n = 0; n < 40; ++n) {
    double exact = 1;
    for (int k = 0; k <= n; ++k) {
      EXPECT_EQ(binom(n, k), exact) << n << " over " << k;
      exact = exact * (n - k) / (k + 1);
    }
  }
  EXPECT_EQ(binom(5, -1), 0.0);
  EXPECT_EQ(binom(5, 6), 0.0);
  EXPECT_TRUE(std::isnan(binom(-2, 1)));
  EXPECT_NEAR(binom(-1.5, 2), 1.875, 1e-14);
  EXPECT_NEAR(binom(0.5, 3), 0.0625, 1e-15);
  const std::vector<double> signs =
      sp::gammasgn(vt::tensor({2.0, -0.5, -1.5, -1.0, 0.0})).to_vector<double>();
  EXPECT_EQ(signs[0], 1.0);
  EXPECT_EQ(signs[1], -1.0);
  EXPECT_EQ(signs[2], 1.0);
  EXPECT_TRUE(std::isnan(signs[3]));
  EXPECT_EQ(signs[4], 1.0);
}

TEST(SpecialDerivatives, AtZero) {
  // Where a quotient stands for the derivative, the limit does.
  const auto first = [](auto f) { return vt::grad(f)(vt::tensor(0.0)).template item<double>(); };
  const auto second = [](auto f) {
    return vt::grad(vt::grad(f))(vt::tensor(0.0)).template item<double>();
  };
  EXPECT_DOUBLE_EQ(first([](Tensor x) { return sp::i1(x); }), 0.5);
  EXPECT_DOUBLE_EQ(first([](Tensor x) { return sp::j1(x); }), 0.5);
  EXPECT_DOUBLE_EQ(second([](Tensor x) { return sp::i0(x); }), 0.5);
  EXPECT_DOUBLE_EQ(second([](Tensor x) { return sp::j0(x); }), -0.5);
  EXPECT_NEAR(second([](Tensor x) { return vt::sinc(x); }), -3.28986813369645287, 1e-14);
  EXPECT_DOUBLE_EQ(
      vt::grad([](Tensor x) { return vt::special::spence(x); })(vt::tensor(1.0)).item<double>(),
      -1);
}

TEST(SpecialLanes, AsAlone) {
  const Tensor a = vt_test::random_tensor(vt::f64, {3, 4}, 0.3, 30, 1),
               x = vt_test::random_tensor(vt::f64, {3, 4}, 0.1, 40, 2);
  const auto f = [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{vt::igamma(t[0], t[1]), vt::betainc(t[0], t[1], 0.3)};
  };
  const auto loop = vt_test::stack_loop(f, {a, x}, {1, 1});
  const auto lanes =
      vt::vmap([&](Tensor p, Tensor q) { return f({p, q}); }, {.in_axes = {1, 1}})(a, x);
  for (std::size_t i = 0; i < loop.size(); ++i)
    vt_test::expect_close(lanes[i], loop[i], {.ulps = 8});
  const auto deep = vt::jit(
      vt::vmap(vt::vmap(vt::grad([](Tensor p, Tensor q) { return vt::igamma(p, q); }))))(a, x);
  for (std::int64_t i = 0; i < 3; ++i) {
    const Tensor alone =
        vt::grad([](Tensor p, Tensor q) { return vt::igamma(p, q); })(a[i][1], x[i][1]);
    vt_test::expect_close(Tensor(deep[i][1]), alone, {.relative = 1e-13});
  }
  EXPECT_EQ(vt::igamma(vt::zeros({0, 3}), vt::ones({3})).shape(), (vt::Shape{0, 3}));
}

// Where the distribution is nearly 1 its logarithm's derivatives are the density's: φ, −xφ
// and (x² − 1)φ, up to terms of φ².
TEST(SpecialDerivatives, LogNdtrOnTheRight) {
  const auto slope = [](const auto& f) {
    return [f](Tensor x) { return vt::jvp(f, std::tuple(x), std::tuple(vt::ones_like(x))).second; };
  };
  const auto first = slope([](Tensor x) { return vt::special::log_ndtr(x); });
  const auto second = slope(first);
  const auto third = slope(second);
  const auto reverse =
      vt::vmap(vt::grad(vt::grad([](Tensor x) { return vt::special::log_ndtr(x); })));
  for (vt::DType d : {vt::f32, vt::f64}) {
    const Tensor x = d == vt::f64 ? vt::tensor({10.0, 20.0, 26.5, 30.0, 36.0, 50.0, 1e3, 1e200})
                                  : vt::tensor({8.0f, 10.0f, 12.0f, 50.0f, 1e3f, 1e30f});
    const Tensor density = vt::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    // x² in the exponent is rounded, and what is below the least normal number is not as exact.
    const vt_test::Tolerance near = {.relative = d == vt::f64 ? 1e-13 : 2e-5,
                                     .absolute = d == vt::f64 ? 1e-300 : 1e-35};
    vt_test::expect_close(first(x), density, near);
    vt_test::expect_close(second(x), -x * density, near);
    vt_test::expect_close(vt::jit(second)(x), -x * density, near);
    vt_test::expect_close(reverse(x), -x * density, near);
    const Tensor bounded = x[vt::slice(0, 5)];
    vt_test::expect_close(third(bounded), (bounded * bounded - 1.0) * density[vt::slice(0, 5)],
                          near);
  }
  // On both sides of 0 the two forms meet.
  const Tensor middle = vt::tensor({-1e-9, 0.0, 1e-9});
  vt_test::expect_close(second(middle), vt::full({3}, -2 / std::numbers::pi, vt::f64),
                        {.relative = 1e-8});
}

// erfcx = 1 / (√π (x + r)) with r = ½ / (x + s) and s = 1 / (x + (3/2) / (x + 2 / (x + …))): its
// derivatives are −2r·erfcx and 2s·erfcx / (x + s).
TEST(SpecialDerivatives, ErfcxAndDawsonFarOut) {
  const auto slope = [](const auto& f) {
    return [f](Tensor x) { return vt::jvp(f, std::tuple(x), std::tuple(vt::ones_like(x))).second; };
  };
  const auto first = slope([](Tensor x) { return vt::special::erfcx(x); });
  const auto second = slope(first);
  const auto reverse = vt::vmap(vt::grad(vt::grad([](Tensor x) { return vt::special::erfcx(x); })));
  const Tensor x = vt::tensor({4.0, 7.5, 8.0, 8.5, 20.0, 200.0, 1e4, 1e6, 1e8});
  std::vector<double> slopes, curves;
  for (const double at : x.to_vector<double>()) {
    long double s = 0;
    for (int k = 200; k > 1; --k) s = k / 2.0L / (at + s);
    const long double r = 0.5L / (at + s),
                      value = std::numbers::inv_sqrtpi_v<long double> / (at + r);
    slopes.push_back(static_cast<double>(-2 * r * value));
    curves.push_back(static_cast<double>(2 * s * value / (at + s)));
  }
  const auto check = [&](vt::DType d, const vt_test::Tolerance& near) {
    const Tensor at = x.astype(d), want = vt::tensor(slopes, {9}).astype(d),
                 bent = vt::tensor(curves, {9}).astype(d);
    vt_test::expect_close(first(at), want, near);
    vt_test::expect_close(second(at), bent, near);
    vt_test::expect_close(vt::jit(second)(at), bent, near);
    vt_test::expect_close(reverse(at), bent, near);
  };
  check(vt::f64, {.relative = 2e-12});
  check(vt::f32, {.relative = 1e-3});
  const Tensor far = vt::tensor({-1e5, -10.0, 10.0, 1e3, 1e5});
  const Tensor dawson = vt::tensor({-5.00000000075e-11, -5.0769437519706e-3, -5.0769437519706e-3,
                                    -5.00000750001875e-7, -5.00000000075e-11});
  const auto of_dawson = slope([](Tensor t) { return vt::special::dawsn(t); });
  vt_test::expect_close(of_dawson(far), dawson, {.relative = 1e-12});
  vt_test::expect_close(vt::vmap(vt::grad([](Tensor t) { return vt::special::dawsn(t); }))(far),
                        dawson, {.relative = 1e-12});
  vt_test::expect_close(of_dawson(far.astype(vt::f32)), dawson.astype(vt::f32), {.relative = 1e-6});
  // The second derivative of log_ndtr, far on the left, is made of erfcx's.
  const Tensor left = vt::tensor({-200.0f, -1e3f, -1e5f});
  vt_test::expect_close(slope(slope([](Tensor t) { return vt::special::log_ndtr(t); }))(left),
                        vt::tensor({-0.999975f, -0.999999f, -1.0f}), {.relative = 1e-6});
}

TEST(SpecialDtypes, NarrowFloatsAndIntegers) {
  for (vt::DType d : {vt::f16, vt::bf16}) {
    const Tensor x = vt_test::random_tensor(d, {50}, 0.3, 4, 3), wide = x.astype(vt::f64);
    for (Tensor (*f)(vt::Operand) :
         {vt::special::gamma, vt::special::log_ndtr, sp::i0, sp::k1, sp::j0, vt::special::exp1})
      vt_test::expect_close(f(x).astype(vt::f64), f(wide).astype(d).astype(vt::f64),
                            {.relative = vt::size_of(d) == 2 && d == vt::bf16 ? 0.008 : 0.001});
    EXPECT_EQ(vt::igamma(x, x).dtype(), d);
  }
  EXPECT_EQ(vt::special::gamma(vt::tensor({3, 4})).dtype(), vt::f32);
  EXPECT_EQ(vt::polygamma(2, vt::tensor({0.5f, 2.0f})).dtype(), vt::f32);
  EXPECT_EQ(vt::betainc(vt::tensor({1, 2}), 2.0, 0.5).dtype(), vt::f32);
}

TEST(SpecialErrors, NameTheFunctionAndTheLine) {
  const auto says = [](const std::function<void()>& f, const std::string& part) {
    const std::string text = vt_test::message(f);
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("special_functions_test.cpp:"), std::string::npos) << text;
  };
  says([] { (void)vt::igamma(vt::ones({2}), vt::ones({3})); }, "vt::igamma: ");
  says([] { (void)vt::betainc(vt::ones({2}), 1.0, vt::ones({3})); }, "vt::betainc: ");
  says([] { (void)vt::zeta(vt::ones({2}), vt::ones({3})); }, "vt::zeta: ");
  says([] { (void)vt::special::multigammaln(vt::ones({2}), 0); }, "vt::special::multigammaln: ");
  says([] { (void)vt::special::gamma(Tensor()); }, "vt::special::gamma: ");
}

}  // namespace
