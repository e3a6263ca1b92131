// Where a length is 0 all its derivatives are 0: norms, hypot, |z|, deviations; elsewhere they are
// those of the differences, also where single elements are 0, are equal, or nearly so.
#include <complex>
#include <functional>
#include <string>
#include <vector>

#include "support/property.hpp"

namespace {

using vt::Shape;
using vt::Tensor;
using vt_test::expect_close;
using Function = std::function<Tensor(Tensor)>;
constexpr double inf = std::numeric_limits<double>::infinity();

struct Row {
  std::string name;
  Function f;  ///< of a matrix, to one length or several
  bool takes_complex = true;
  bool of_equals = false;  ///< is 0 where all elements are equal
};

std::vector<Row> rows() {
  namespace la = vt::linalg;
  std::vector<Row> all = {
      {"abs", [](Tensor x) { return vt::abs(x); }},
      {"hypot", [](Tensor x) { return vt::hypot(x[0], x[1]); }, false},
      {"hypot of one twice", [](Tensor x) { return vt::hypot(x, x); }, false},
      {"hypot of three", [](Tensor x) { return vt::hypot(vt::hypot(x[0], x[1]), x[2]); }, false},
      {"std", [](Tensor x) { return vt::std(x); }, true, true},
      {"std of rows", [](Tensor x) { return vt::std(x, 1, 1, true); }, true, true},
      {"norm of all", [](Tensor x) { return vt::norm(x); }},
      {"vector norm of all", [](Tensor x) { return la::vector_norm(x); }},
      {"root of a norm's square",
       [](Tensor x) { return vt::norm(vt::expand_dims(vt::norm(x, 2, 0), 0), 2, 1); }},
      {"distances",
       [](Tensor x) { return vt::norm(vt::expand_dims(x, 0) - vt::expand_dims(x, 1), 2, -1); },
       true, true},
      {"Frobenius", [](Tensor x) { return la::norm(x, "fro"); }},
      {"nuclear", [](Tensor x) { return la::norm(x, "nuc"); }},
      {"spectral", [](Tensor x) { return la::norm(x, 2); }},
      {"least singular value", [](Tensor x) { return la::norm(x, -2, {0, 1}, true); }},
      {"columns", [](Tensor x) { return la::norm(x, 1); }},
      {"least column", [](Tensor x) { return la::norm(x, -1); }},
      {"rows", [](Tensor x) { return la::norm(x, inf); }},
      {"least row", [](Tensor x) { return la::norm(x, -inf); }},
  };
  for (const double p : {0.5, 1.0, 1.5, 2.0, 3.0, 3.5, 4.0, 6.0, inf, -inf})
    all.push_back({"norm " + std::to_string(p), [p](Tensor x) { return vt::norm(x, p, 1); }});
  return all;
}

Tensor weights(const Shape& shape) { return vt_test::random_tensor(vt::f64, shape, 0.5, 1.5, 3); }

TEST(Lengths, DerivativesAreZeroAtZero) {
  for (const Row& row : rows())
    for (const vt::DType d : {vt::f32, vt::f64, vt::c64, vt::c128}) {
      if (vt::is_complex(d) && !row.takes_complex) continue;
      // compiling takes longer
      if (vt_test::forced_backend() == "cpu" && vt::real_dtype(d) == vt::f32) continue;
      SCOPED_TRACE(row.name + " " + vt::name_of(d));
      const Shape shape{3, 4};
      const Tensor zero = vt::zeros(shape, d), along = vt_test::random_tensor(d, shape, -1, 1, 5);
      const auto total = [&](Tensor x) {
        return vt::sum(row.f(x) * weights(row.f(x).shape()).astype(vt::real_dtype(d)));
      };
      const auto gradient = [&](Tensor x) { return vt::grad(total)(x); };
      const auto slope = [&](Tensor x) {
        return vt::jvp(row.f, std::tuple(x), std::tuple(along)).second;
      };
      const auto bent = [&](Tensor x) {
        return vt::jvp(gradient, std::tuple(x), std::tuple(along)).second;
      };
      const auto third = [&](Tensor x) {
        return vt::jvp(bent, std::tuple(x), std::tuple(along)).second;
      };
      for (const Tensor& at :
           row.of_equals ? std::vector<Tensor>{zero, zero + 2.0} : std::vector<Tensor>{zero}) {
        expect_close(row.f(at), vt::zeros_like(row.f(at)));
        for (const Function& g : {Function(gradient), Function(bent), Function(third)}) {
          expect_close(g(at), zero);
          expect_close(vt::jit(g)(at), zero);
        }
        expect_close(slope(at), vt::zeros_like(row.f(at)));
        // A lane at 0 among others.
        const Tensor other = vt_test::random_tensor(d, shape, 0.25, 1, 7),
                     lanes = vt::stack({other, at, 2.0 * other});
        for (const Tensor& g : {vt::vmap(gradient)(lanes), vt::jit(vt::vmap(gradient))(lanes)}) {
          expect_close(g[1], zero);
          expect_close(g[0], gradient(other), {.relative = 1e-4, .absolute = 1e-5});
          expect_close(g[2], gradient(2.0 * other), {.relative = 1e-4, .absolute = 1e-5});
        }
      }
    }
}

// The kink of one element is not that of the length: where others are not 0, it is smooth
// for p = 2, 4 …, and hypot is.
TEST(Lengths, ElementsThatAreZeroOrEqual) {
  const Tensor x =
      vt::tensor({{1.0, 0.0, 0.0, 2.0}, {0.0, 1.5, 0.0, 2.0}, {0.25, -0.25, 3.0, -3.0}});
  const auto expect_smooth = [&](const char* name, const Function& f, const Tensor& at) {
    SCOPED_TRACE(name);
    const auto total = [&](Tensor y) { return vt::sum(f(y) * weights(f(y).shape())); };
    expect_close(vt::grad(total)(at), vt_test::numeric_gradient(total, at, 1e-4),
                 {.absolute = 1e-7});
    expect_close(vt::hessian(total)(at), vt_test::numeric_jacobian(vt::grad(total), at, 1e-4),
                 {.absolute = 1e-6});
    const auto bent = [&](Tensor y) {
      return vt::jvp(vt::grad(total), std::tuple(y), std::tuple(vt::cos(at))).second;
    };
    expect_close(vt::jacobian(bent)(at), vt_test::numeric_jacobian(bent, at, 1e-4),
                 {.absolute = 1e-5});
    expect_close(vt::jit(vt::hessian(total))(at), vt::hessian(total)(at), {.absolute = 1e-13});
  };
  for (const double p : {2.0, 4.0, 6.0})
    expect_smooth("norm", [p](Tensor y) { return vt::norm(y, p, 1); }, x);
  expect_smooth("std", [](Tensor y) { return vt::std(y, 1); }, x);
  const Tensor pairs =
      vt::tensor({{1.0, 0.0, 2.0, -2.0, 2.0, 3.0, 1e-3}, {0.0, -1.5, 2.0, 2.0, -2.0, 4.0, 1.0}});
  expect_smooth("hypot", [](Tensor y) { return vt::hypot(y[0], y[1]); }, pairs);
  expect_smooth("abs of complex", [](Tensor y) { return vt::abs(vt::complex(y[0], y[1])); }, pairs);
  // The fourth derivative of (x⁴ + 1)^(1/4) at 0.
  const auto quartic = [](Tensor y) { return vt::norm(vt::stack({y, vt::ones_like(y)}), 4.0); };
  EXPECT_NEAR(vt::grad(vt::grad(vt::grad(vt::grad(quartic))))(vt::tensor(0.0)).item<double>(), 6,
              1e-12);
  // Elsewhere the kink of an element has derivative 0, too, however steep.
  for (const double p : {0.5, 1.0, 1.5, -1.0, -2.0}) {
    const auto f = [p](Tensor y) { return vt::norm(y, p); };
    EXPECT_EQ(vt::grad(f)(vt::tensor({0.0, 2.0}))[0].item<double>(), 0) << p;
    EXPECT_TRUE(vt::all(vt::isfinite(vt::hessian(f)(vt::tensor({0.0, 2.0})))).item<bool>()) << p;
  }
}

// Of a matrix of rank 1 all singular values but one are 0, and so are their derivatives, whichever
// vectors stand beside them.
TEST(Lengths, SingularValuesThatAreZero) {
  const Tensor u = vt::tensor({0.6, 0.0, 0.8}), v = vt::tensor({0.28, -0.96}),
               one = 3.0 * vt::outer(u, v);
  const auto nuclear = [](Tensor x) { return vt::linalg::norm(x, "nuc"); };
  for (const Tensor& g : {vt::grad(nuclear)(one), vt::jit(vt::grad(nuclear))(one),
                          vt::vmap(vt::grad(nuclear))(vt::stack({one, 0.0 * one}))[0]})
    expect_close(g, vt::outer(u, v), {.absolute = 1e-14});
}

TEST(Lengths, ValuesAtTheEdges) {
  expect_close(vt::norm(vt::tensor({0.0, 3.0}), -1.0), vt::tensor(0.0));
  expect_close(vt::norm(vt::tensor({0.5, 0.25}), -1.0), vt::tensor(1.0 / 6.0), {.ulps = 2});
  expect_close(vt::norm(vt::tensor({inf, 3.0}), 4.0), vt::tensor(inf));
  EXPECT_TRUE(std::isnan(vt::norm(vt::tensor({0.0, std::nan("")})).item<double>()));
  EXPECT_TRUE(std::isnan(vt::norm(vt::tensor({0.0, std::nan("")}), 3.0).item<double>()));
  EXPECT_TRUE(
      std::isnan(vt::linalg::norm(vt::tensor({{0.0, std::nan("")}}), "nuc").item<double>()));
  for (const double x : {0.0, -0.0, 1.0, -2.0, inf, -inf, std::nan("")})
    for (const double y : {0.0, -0.0, 1.0, -2.0, inf, -inf, std::nan("")})
      expect_close(vt::hypot(vt::tensor(x), vt::tensor(y)), vt::tensor(std::hypot(x, y)),
                   {.ulps = 1});
}

}  // namespace
