// Complex functions over a grid of parts from zero and the smallest numbers to infinities and NaN,
// interpreted and compiled: special values and signs of zeros as in C99's Annex G, other values
// within a few ulps of the result's length.
#include <limits>

#include "support/property.hpp"

namespace {

using namespace vt;
using C = std::complex<double>;
using CF = std::complex<float>;
using Long = std::complex<long double>;

const double inf = std::numeric_limits<double>::infinity(),
             nan = std::numeric_limits<double>::quiet_NaN();

/// Both signs of each.
template <class T>
std::vector<T> both_signs(std::initializer_list<double> sizes) {
  std::vector<T> parts;
  for (double x : sizes)
    for (double sign : {1.0, -1.0}) parts.push_back(static_cast<T>(sign * x));
  return parts;
}
template <class T>
std::vector<T> parts() {
  using Limits = std::numeric_limits<T>;
  const double most = Limits::max(), least = Limits::min(), eps = Limits::epsilon(),
               root = std::sqrt(most);
  const double overflows = std::log(most);  // exp of a little more
  return both_signs<T>({0,
                        Limits::denorm_min(),
                        least,
                        std::sqrt(least),
                        1e-20,
                        eps / 8,
                        1e-4,
                        0.3,
                        1 - eps / 2,
                        1,
                        1 + eps,
                        1.5707963267949,
                        2,
                        10,
                        overflows + 0.01,
                        100,
                        160,
                        overflows * 1.5,
                        745,
                        overflows * 2.05,
                        1e5,
                        root / 2,
                        root,
                        root * 2,
                        most / 4,
                        most,
                        inf,
                        nan});
}
template <class T>
std::vector<std::complex<T>> plane(const std::vector<T>& parts) {
  std::vector<std::complex<T>> points;
  for (T re : parts)
    for (T im : parts) points.emplace_back(re, im);
  return points;
}

enum class Kind { finite, infinite, nan };
template <class T>
Kind kind_of(T x) {
  return std::isnan(x) ? Kind::nan : std::isinf(x) ? Kind::infinite : Kind::finite;
}

/// Whether `got` is `expected` rounded: each part of the same kind, infinities and zeros of the
/// same sign (that of an exact zero), and finite ones within `ulps` of the length. At the edge of
/// overflow either side will do.
template <class T>
bool is_rounded(std::complex<T> got, Long expected, double ulps) {
  const T length = static_cast<T>(std::hypot(expected.real(), expected.imag()));
  const T most = std::numeric_limits<T>::max(),
          edge = most * (1 - 16 * std::numeric_limits<T>::epsilon());
  for (const auto& [value, exact] :
       {std::pair(got.real(), expected.real()), std::pair(got.imag(), expected.imag())}) {
    const T wanted = static_cast<T>(exact);
    if (std::fabs(value) >= edge && std::fabs(wanted) >= edge &&
        std::signbit(value) == std::signbit(wanted))
      continue;
    if (kind_of(value) != kind_of(wanted)) return false;
    if (kind_of(wanted) == Kind::nan) continue;
    if (kind_of(wanted) == Kind::infinite || exact == 0) {
      if (value != wanted || std::signbit(value) != std::signbit(wanted)) return false;
      continue;
    }
    // Beside an infinity or NaN a part stands alone.
    const T scale = std::isfinite(length) ? length
                    : std::isfinite(expected.real()) && std::isfinite(expected.imag())
                        ? most
                        : std::fabs(wanted);
    const double ulp = vt_test::ulp_of(scale, sizeof(T) == 4 ? f32 : f64);
    if (std::fabs(static_cast<long double>(value) - exact) > static_cast<long double>(ulps * ulp))
      return false;
  }
  return true;
}

template <class F>
void check(const char* name, const F& f, const std::vector<Tensor>& operands, const auto& expected,
           const auto& ulps) {
  const auto compiled = jit([&](std::vector<Tensor> x) { return f(x); });
  for (const bool with_jit : {false, true}) {
    const Tensor got = (with_jit ? compiled(operands) : f(operands)).eval();
    vt_test::with_storage(got.dtype(), [&](auto tag) {
      using Z = decltype(tag);
      if constexpr (!std::is_arithmetic_v<Z> && requires(Z z) { z.imag(); }) {
        const std::vector<Z> values = got.to_vector<Z>();
        int shown = 0;
        for (std::size_t i = 0; i < values.size() && shown < 5; ++i) {
          if (is_rounded(values[i], expected(i), ulps(i))) continue;
          ++shown;
          std::ostringstream at;
          for (const Tensor& x : operands)
            at << x[static_cast<std::int64_t>(i)].template item<C>() << " ";
          ADD_FAILURE() << name << " of " << at.str() << name_of(got.dtype())
                        << (with_jit ? " compiled" : "") << ": " << values[i] << ", not "
                        << expected(i);
        }
      }
    });
  }
}

struct Unary {
  const char* name;
  Tensor (*ours)(Operand);
  C (*narrow)(C);      ///< of what a c64 result is rounded
  Long (*wide)(Long);  ///< of what a c128 result is
};
#define VT_C_FUNCTION(name)                                                                \
  Unary {                                                                                  \
    #name, vt::name, [](C z) { return std::name(z); }, [](Long z) { return std::name(z); } \
  }
const Unary functions[] = {
    VT_C_FUNCTION(exp),   VT_C_FUNCTION(log),   VT_C_FUNCTION(sqrt),  VT_C_FUNCTION(sin),
    VT_C_FUNCTION(cos),   VT_C_FUNCTION(tan),   VT_C_FUNCTION(asin),  VT_C_FUNCTION(acos),
    VT_C_FUNCTION(atan),  VT_C_FUNCTION(sinh),  VT_C_FUNCTION(cosh),  VT_C_FUNCTION(tanh),
    VT_C_FUNCTION(asinh), VT_C_FUNCTION(acosh), VT_C_FUNCTION(atanh), VT_C_FUNCTION(log10)};
#undef VT_C_FUNCTION

template <class T>
void check_unary(const Unary& f) {
  const std::vector<std::complex<T>> points = plane(parts<T>());
  check(
      f.name, [&](const std::vector<Tensor>& z) { return f.ours(z[0]); }, {tensor(points)},
      [&](std::size_t i) {
        return sizeof(T) == 4 ? Long(f.narrow(C(points[i]))) : f.wide(Long(points[i]));
      },
      [](std::size_t) { return 6.0; });
}

TEST(ComplexSpecial, FunctionsOfAnnexG) {
  for (const Unary& f : functions) {
    check_unary<float>(f);
    check_unary<double>(f);
  }
}

// The rows of the first report, as they stand in the standard.
TEST(ComplexSpecial, KnownPoints) {
  const double pi = std::acos(-1.0);
  struct Row {
    Tensor (*f)(Operand);
    C at, value;
  };
  const Row rows[] = {{vt::atan, {1e-20, 1}, {pi / 4, 23.372181378}},
                      {vt::atan, {2e38, 1}, {pi / 2, 0}},
                      {vt::atan, {inf, 0}, {pi / 2, 0}},
                      {vt::atan, {1, 2e38}, {pi / 2, 0}},
                      {vt::asin, {inf, 1}, {pi / 2, inf}},
                      {vt::acos, {inf, inf}, {pi / 4, -inf}},
                      {vt::atanh, {0, inf}, {0, pi / 2}},
                      {vt::sinh, {710.4, 0}, {1.66636e308, 0}}};
  for (const Row& r : rows)
    for (DType d : {c64, c128}) {
      if (d == c64 && r.at.real() == 710.4) continue;
      const Tensor z = tensor({r.at}, d);
      const C values[] = {r.f(z)[0].item<C>(),
                          jit([&](Tensor x) { return r.f(x); })(z)[0].item<C>()};
      for (const C& v : values) {
        EXPECT_TRUE(v.real() == r.value.real() ||
                    std::fabs(v.real() - r.value.real()) <= 1e-4 * std::fabs(r.value.real()))
            << r.at << v;
        EXPECT_TRUE(v.imag() == r.value.imag() ||
                    std::fabs(v.imag() - r.value.imag()) <= 1e-4 * std::fabs(r.value.imag()) ||
                    (r.value.imag() == 0 && std::fabs(v.imag()) < 1e-30))
            << r.at << v;
      }
    }
  const C e = jit([](Tensor z) { return vt::exp(z); })(tensor({C(inf, inf)}))[0].item<C>();
  EXPECT_TRUE(std::isinf(e.real()) && std::isnan(e.imag())) << e;
}

// --- functions that C lacks ----------------------------------------------------------------------

Long long_log1p(Long z) {
  const long double x = z.real(), y = z.imag(), excess = x * (2 + x) + y * y;
  if (std::fabs(excess) < 0.5L) return {std::log1p(excess) / 2, std::atan2(y, 1 + x)};
  return std::log(Long(1 + x, y));
}
Long long_expm1(Long z) {
  if (z.imag() == 0) return {std::expm1(z.real()), z.imag()};
  const Long e = std::exp(z);
  if (!std::isfinite(z.imag()) || !(std::fabs(z.real()) < 1)) return {e.real() - 1, e.imag()};
  const long double half = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half, e.imag()};
}
/// |b| is far from the ends of a long double's range.
Long long_quotient(Long a, Long b) {
  const long double square = b.real() * b.real() + b.imag() * b.imag();
  return {(a.real() * b.real() + a.imag() * b.imag()) / square,
          (a.imag() * b.real() - a.real() * b.imag()) / square};
}
Long long_sign(Long z) {
  const long double length = std::hypot(z.real(), z.imag());
  return length == 0 ? z : Long(z.real() / length, z.imag() / length);
}

/// Zeros whose sign nobody fixes: a little more than zero is as good.
Long lifted(Long z) {
  const auto part = [](long double x) { return x == 0 ? 1e-4940L : x; };
  return {part(z.real()), part(z.imag())};
}

template <class T>
void check_others() {
  std::vector<std::complex<T>> points;
  for (const std::complex<T>& z : plane(parts<T>()))
    if (std::isfinite(z.real()) && std::isfinite(z.imag())) points.push_back(z);
  const auto each = [&](const char* name, Tensor (*ours)(Operand), Long (*reference)(Long),
                        const auto& ulps) {
    check(
        name, [&](const std::vector<Tensor>& z) { return ours(z[0]); }, {tensor(points)},
        [&](std::size_t i) { return lifted(reference(Long(points[i]))); },
        [&](std::size_t i) { return ulps(points[i]); });
  };
  const auto few = [](auto) { return 6.0; };
  each("log1p", vt::log1p, long_log1p, few);
  each("expm1", vt::expm1, long_expm1, few);
  each("sign", vt::sign, long_sign, few);
  // Angles that are products of an imaginary part have its rounding error.
  const auto by_angle = [](auto z) { return 6.0 + std::fabs(static_cast<double>(z.imag())); };
  std::vector<std::complex<T>> all;
  all.swap(points);
  for (const std::complex<T>& z : all)
    if (std::fabs(z.imag()) < 1e6) points.push_back(z);
  each(
      "exp2", vt::exp2,
      [](Long z) {
        const Long e = std::exp(z * 0.693147180559945309417232121458176568L);
        return z.imag() == 0 ? Long(e.real(), z.imag()) : e;
      },
      by_angle);
}

TEST(ComplexSpecial, OtherFunctionsOfFiniteNumbers) {
  check_others<float>();
  check_others<double>();
}

// Zeros, infinities and NaN of the functions that no standard tells: compiled as interpreted.
TEST(ComplexSpecial, OtherFunctionsAsInterpreted) {
  const std::pair<const char*, Tensor (*)(Operand)> others[] = {
      {"log1p", vt::log1p}, {"expm1", vt::expm1},          {"exp2", vt::exp2},
      {"log2", vt::log2},   {"sigmoid", vt::sigmoid},      {"rsqrt", vt::rsqrt},
      {"sign", vt::sign},   {"reciprocal", vt::reciprocal}};
  const std::vector<double> some = both_signs<double>({0, 1e-30, 0.5, 1, 50, inf, nan});
  for (DType d : {c64, c128})
    for (const auto& [name, f] : others) {
      const Tensor z = tensor(plane(some)).astype(d);
      const std::vector<C> eager = f(z).to_vector<C>(),
                           compiled = jit([f = f](Tensor x) { return f(x); })(z).to_vector<C>();
      for (std::size_t i = 0; i < eager.size(); ++i)
        EXPECT_TRUE((d == c64 ? is_rounded(CF(compiled[i]), lifted(eager[i]), 16)
                              : is_rounded(compiled[i], lifted(eager[i]), 16)))
            << name << " of " << z[static_cast<std::int64_t>(i)].item<C>() << ": " << compiled[i]
            << " compiled, " << eager[i] << " interpreted";
    }
}

template <class T>
void check_quotients() {
  using Limits = std::numeric_limits<T>;
  const double most = Limits::max(), least = Limits::denorm_min(), root = std::sqrt(most);
  const std::vector<T> sizes =
      both_signs<T>({0, least, 3 * least, 1 / root, 0.7, 1, root, most / 2, most});
  const std::vector<std::complex<T>> points = plane(sizes);
  std::vector<std::complex<T>> a, b;
  for (const std::complex<T>& x : points)
    for (const std::complex<T>& y : points)
      if (y != std::complex<T>(0)) {
        a.push_back(x);
        b.push_back(y);
      }
  const auto expected = [&](std::size_t i) {
    return lifted(long_quotient(Long(a[i]), Long(b[i])));
  };
  check(
      "quotient", [](const std::vector<Tensor>& x) { return x[0] / x[1]; }, {tensor(a), tensor(b)},
      expected, [](std::size_t) { return 6.0; });
}

TEST(ComplexSpecial, QuotientsNeitherOverflowNorVanishOnTheWay) {
  check_quotients<float>();
  check_quotients<double>();
}

TEST(ComplexSpecial, ProductsOfOneAreThatOne) {
  const std::vector<double> some = both_signs<double>({0, 1e-30, 1.125, inf, nan});
  for (DType d : {c64, c128}) {
    const std::vector<C> points = plane(some);
    for (const C& z : points) {
      const Tensor one = tensor({z}, d);
      const auto same = [&](Tensor (*f)(Tensor), const char* what) {
        for (const Tensor& got : {f(one), jit([f](Tensor x) { return f(x); })(one),
                                  vmap([f](Tensor x) { return f(x); })(one.reshape({1, 1}))[0]}) {
          const C p = got.reshape({1})[0].item<C>(), exact = one[0].item<C>();
          EXPECT_TRUE(is_rounded(p, Long(exact), 0))
              << what << " of " << exact << " " << name_of(d) << " is " << p;
        }
      };
      same([](Tensor x) { return prod(x); }, "prod");
      same([](Tensor x) { return cumprod(x, 0); }, "cumprod");
      same([](Tensor x) { return pow(x, 1); }, "pow");
    }
    // One element of each row, whatever lies across.
    const Tensor rows = tensor(points).astype(d).reshape({-1, 1}), columns = rows.reshape({1, -1});
    const std::vector<C> exact = rows.to_vector<C>();
    for (const Tensor& got :
         {prod(rows, 1), prod(columns, 0), jit([](Tensor x) { return prod(x, 1); })(rows),
          jit([](Tensor x) { return prod(x, 0); })(columns)}) {
      const std::vector<C> p = got.to_vector<C>();
      for (std::size_t i = 0; i < p.size(); ++i)
        EXPECT_TRUE(is_rounded(p[i], Long(exact[i]), 0)) << exact[i] << " is " << p[i];
    }
  }
}

/// Equal, both NaN, or zeros of the same sign, in both parts.
bool alike(C a, C b) {
  const auto same = [](double x, double y) {
    return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
  };
  return same(a.real(), b.real()) && same(a.imag(), b.imag());
}

// Whatever begins with a neutral element, or combines few: of each pair the same interpreted as
// compiled.
TEST(ComplexSpecial, ReductionsAndProductsOfFew) {
  using Tensors = std::vector<Tensor>;
  const std::pair<const char*, Tensor (*)(const Tensors&)> rows[] = {
      {"prod", [](const Tensors& x) { return prod(x[0]); }},
      {"prod of rows", [](const Tensors& x) { return prod(stack({x[0], x[0]}), 1); }},
      {"prod of columns", [](const Tensors& x) { return prod(stack({x[0], x[0]}, 1), 0); }},
      {"cumprod", [](const Tensors& x) { return cumprod(x[0], 0); }},
      {"segment_prod", [](const Tensors& x) { return segment_prod(x[0], tensor({0, 0}), 2); }},
      {"sum", [](const Tensors& x) { return sum(x[0]); }},
      {"cumsum", [](const Tensors& x) { return cumsum(x[0], 0); }},
      {"dot", [](const Tensors& x) { return dot(x[1], x[2]); }},
      {"matmul",
       [](const Tensors& x) { return matmul(x[1].reshape({1, 1}), x[2].reshape({1, 1})); }},
      {"outer", [](const Tensors& x) { return outer(x[0], x[0]); }},
      {"cube", [](const Tensors& x) { return integer_pow(x[0], 3); }},
      {"inverse", [](const Tensors& x) { return integer_pow(x[0], -1); }},
      {"product", [](const Tensors& x) { return x[1] * x[2]; }},
      {"quotient", [](const Tensors& x) { return x[1] / x[2]; }},
  };
  const C points[] = {{inf, -1.125}, {2, 3}, {-0.0, -0.0}, {1, -inf}, {1, 0}, {0.5, -0.0}};
  for (const auto& [name, f] : rows) {
    const auto compiled = jit([f = f](Tensors x) { return f(x); });
    for (DType d : {c64, c128})
      for (const C& a : points)
        for (const C& b : points) {
          const Tensors x{tensor({a, b}).astype(d).eval(), tensor({a}).astype(d).eval(),
                          tensor({b}).astype(d).eval()};
          const std::vector<C> got = compiled(x).to_vector<C>(), expected = f(x).to_vector<C>();
          for (std::size_t i = 0; i < got.size(); ++i)
            EXPECT_TRUE(alike(got[i], expected[i]))
                << name << " of " << a << b << name_of(d) << ": " << got[i] << " compiled, "
                << expected[i];
        }
  }
  for (DType d : {c64, c128}) {
    const Tensor z = tensor({C(inf, -1.125), C(2, 3)}).astype(d);
    for (const Tensor& p : {prod(z), jit([](Tensor x) { return prod(x); })(z)})
      EXPECT_TRUE(alike(p.item<C>(), C(inf, inf))) << p.item<C>();
  }
}

}  // namespace
