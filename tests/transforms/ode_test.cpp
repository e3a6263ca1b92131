// odeint: the coefficients by their order conditions and by how errors fall; known orbits and stiff
// problems; rows, events, lanes, trees, derivatives in both modes; how it ends, and messages.
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/transforms/solvers/ode_tableaus.hpp"
#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::OdeMethod;
using vt::OdeOptions;
using vt::StopReason;
using vt::Tensor;
using vt_test::expect_close;
using vt_test::expect_error;
using vt_test::Tolerance;

constexpr OdeMethod adaptive[] = {OdeMethod::dopri5, OdeMethod::tsit5, OdeMethod::rodas5p};
constexpr OdeMethod all_methods[] = {OdeMethod::rk4, OdeMethod::dopri5, OdeMethod::tsit5,
                                     OdeMethod::rodas5p};
std::string name(OdeMethod m) {
  return std::array{"rk4", "dopri5", "tsit5", "rodas5p"}[static_cast<int>(m)];
}
template <class Y>
StopReason reason(const vt::OdeSolution<Y>& s) {
  return static_cast<StopReason>(s.reason.template item<int>());
}
double worst(const Tensor& a, const Tensor& b) {
  return vt::max(vt::abs(a - b) / vt::abs(b)).item<double>();
}
Tensor numbers(std::initializer_list<double> x) { return vt::tensor(std::vector<double>(x)); }

// --- coefficients --------------------------------------------------------------------------------

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;
Vector operator*(const Vector& a, const Vector& b) {
  Vector out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] * b[i];
  return out;
}
Vector operator*(const Matrix& a, const Vector& x) {
  Vector out(a.size(), 0.0);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].size(); ++j) out[i] += a[i][j] * x[j];
  return out;
}
/// The elementary weights of all trees of up to five nodes, each with its order and density.
struct Tree {
  int order;
  double density;
  Vector weights;
};
std::vector<Tree> trees(const Matrix& a, const Vector& c) {
  const Vector one(c.size(), 1.0), ac = a * c, acc = a * (c * c), aac = a * ac;
  return {{1, 1, one},           {2, 2, c},
          {3, 3, c * c},         {3, 6, ac},
          {4, 4, c * c * c},     {4, 8, c * ac},
          {4, 12, acc},          {4, 24, aac},
          {5, 5, c * c * c * c}, {5, 10, c * c * ac},
          {5, 15, c * acc},      {5, 30, c * aac},
          {5, 20, ac * ac},      {5, 20, a * (c * c * c)},
          {5, 40, a * (c * ac)}, {5, 60, a * acc},
          {5, 120, a * aac}};
}
double sum(const Vector& a, const Vector& b) {
  double s = 0;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) s += a[i] * b[i];
  return s;
}
/// The first order at which weights b give not h^order / density; their sum is at θ h.
int order_of(const Vector& b, const std::vector<Tree>& all, double theta = 1) {
  int order = 5;
  for (const Tree& t : all)
    if (std::abs(sum(b, t.weights) - std::pow(theta, t.order) / t.density) > 2e-14)
      order = std::min(order, t.order - 1);
  return order;
}

struct Tableau {
  const char* name;
  const vt::detail::ode::RungeKutta& method;
  int order, error_order, between_order;
};
TEST(Ode, ExplicitMethodsFulfilTheirOrderConditions) {
  using namespace vt::detail::ode;
  for (const Tableau& t :
       {Tableau{"rk4", classical(), 4, 0, 3}, Tableau{"dopri5", dormand_prince(), 5, 4, 4},
        Tableau{"tsit5", tsitouras(), 5, 4, 4}}) {
    SCOPED_TRACE(t.name);
    const Matrix& a = t.method.a;
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(sum(a[i], Vector(a.size(), 1.0)), t.method.c[i], 2e-15) << "row " << i;
    const std::vector<Tree> all = trees(a, t.method.c);
    Vector b = a.back();
    b.push_back(0);
    EXPECT_EQ(order_of(b, all), t.order);
    if (t.error_order > 0) {
      Vector other(b.size());
      for (std::size_t i = 0; i < b.size(); ++i) other[i] = b[i] - t.method.error[i];
      EXPECT_EQ(order_of(other, all), t.error_order);
    }
    for (const double theta : {0.25, 0.5, 0.9}) {
      // y + θ Δ + θ (1 − θ) ((1 − θ) (h k₀ − Δ) + θ (Δ − h kₛ)) + θ² (1 − θ)² m
      Vector at(b.size(), 0.0);
      const double u = 1 - theta;
      for (std::size_t i = 0; i < b.size(); ++i) {
        const double first = i == 0, last = i + 1 == b.size();
        at[i] = theta * b[i] + theta * u * (u * (first - b[i]) + theta * (b[i] - last));
        if (!t.method.between.empty()) at[i] += theta * theta * u * u * t.method.between[i];
      }
      EXPECT_EQ(order_of(at, all, theta), t.between_order) << theta;
    }
  }
}

/// Steps of one size: tolerances that accept all, and no step longer than that.
OdeOptions steps_of(OdeMethod m, double h, double t1) {
  return {.method = m, .t1 = t1, .rtol = 1e9, .atol = 1e9, .first_step = h, .h_max = h};
}
TEST(Ode, ErrorsFallWithTheOrderOfTheMethod) {
  // y₁' = −y₁² cos t has y₁ = 1 / (1 + sin t); the other depends on both.
  const auto f = [](Tensor t, Tensor y) {
    return vt::stack({-y[0] * y[0] * vt::cos(t), y[0] * y[1] * vt::cos(t) - y[1]});
  };
  const auto exact = [](double t) {
    return numbers({1 / (1 + std::sin(t)), (1 + std::sin(t)) * std::exp(-t)});
  };
  for (const OdeMethod m : all_methods) {
    SCOPED_TRACE(name(m));
    const double order = m == OdeMethod::rk4 ? 4 : 5;
    double before = 0, between_before = 0;
    for (const double h : {1.0 / 16, 1.0 / 32}) {
      OdeOptions o = steps_of(m, h, 1.5);
      o.save_at = numbers({0.4 * h, 0.5 + 0.6 * h, 1 + 0.3 * h});
      const auto s = vt::odeint(f, numbers({1.0, 1.0}), o);
      EXPECT_EQ(s.iterations.item<int>(), 1.5 / h);
      const double error = vt::max(vt::abs(s.y - exact(1.5))).item<double>();
      double between = 0;
      for (int i = 0; i < 3; ++i)
        between = std::max(
            between, vt::max(vt::abs(s.ys[i] - exact(o.save_at[i].item<double>()))).item<double>());
      if (before > 0) {
        EXPECT_GT(std::log2(before / error), order - 0.3);
        EXPECT_LT(std::log2(before / error), order + 1);
        EXPECT_GT(std::log2(between_before / between), 3.6);
      }
      before = error;
      between_before = between;
    }
  }
}

// --- known solutions -----------------------------------------------------------------------------

// Hairer, Nørsett and Wanner II.0: three bodies, one without mass; it comes back to where it began.
TEST(Ode, ArenstorfsOrbitCloses) {
  const auto f = [](Tensor, Tensor y) {
    const double mu = 0.012277471, other = 1 - mu;
    const Tensor x = y[0], z = y[1], dx = y[2], dz = y[3];
    const Tensor a = vt::pow(vt::square(x + mu) + vt::square(z), 1.5),
                 b = vt::pow(vt::square(x - other) + vt::square(z), 1.5);
    return vt::stack({dx, dz, x + 2.0 * dz - other * (x + mu) / a - mu * (x - other) / b,
                      z - 2.0 * dx - other * z / a - mu * z / b});
  };
  const Tensor y0 = numbers({0.994, 0, 0, -2.00158510637908252240537862224});
  for (const OdeMethod m : {OdeMethod::dopri5, OdeMethod::tsit5}) {
    const auto s = vt::odeint(
        f, y0, {.method = m, .t1 = 17.0652165601579625588917206249, .rtol = 1e-12, .atol = 1e-12});
    EXPECT_EQ(reason(s), StopReason::end);
    EXPECT_LT(vt::max(vt::abs(s.y - y0)).item<double>(), 1e-6) << name(m);
  }
}

Tensor lorenz(Tensor, Tensor y) {
  const Tensor a = y[0], b = y[1], c = y[2];
  return vt::stack({10.0 * (b - a), 28.0 * a - b - a * c, a * b - (8.0 / 3) * c});
}
TEST(Ode, MethodsAgreeOnLorenzSystem) {
  const Tensor y0 = numbers({1, 2, 3});
  Tensor reference;
  for (const OdeMethod m : all_methods) {
    const auto s = vt::odeint(lorenz, y0,
                              {.method = m,
                               .t1 = 5,
                               .rtol = 1e-12,
                               .atol = 1e-12,
                               .first_step = m == OdeMethod::rk4 ? 2e-4 : 0});
    if (!reference.defined()) reference = s.y;
    expect_close(s.y, reference, {.relative = 2e-8}, name(m));
  }
}

/// Stiff problems of Hairer and Wanner IV.10, with the end values of the Bari test set; how far the
/// error may exceed the relative tolerance.
struct Stiff {
  const char* name;
  std::function<Tensor(Tensor, Tensor)> f;
  Tensor y0;
  double t1;
  Tensor end;
  double atol, factor;
};
const std::vector<Stiff>& stiff_problems() {
  static const std::vector<Stiff> all{
      {"Robertson",
       [](Tensor, Tensor y) {
         const Tensor slow = 0.04 * y[0], back = 1e4 * y[1] * y[2], fast = 3e7 * y[1] * y[1];
         return vt::stack({back - slow, slow - back - fast, fast});
       },
       numbers({1, 0, 0}), 1e11,
       numbers({0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050}), 1e-8, 200},
      {"van der Pol",
       [](Tensor, Tensor y) {
         return vt::stack({y[1], ((1.0 - y[0] * y[0]) * y[1] - y[0]) * 1e6});
       },
       numbers({2, 0}), 2, numbers({0.1706167732170483e1, -0.8928097010247975}), 1, 2},
      {"HIRES",
       [](Tensor, Tensor y) {
         const Tensor q = 280.0 * y[5] * y[7];
         return vt::stack({-1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
                           1.71 * y[0] - 8.75 * y[1], -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
                           8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
                           -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
                           -q + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
                           q - 1.81 * y[6], -q + 1.81 * y[6]});
       },
       numbers({1, 0, 0, 0, 0, 0, 0, 0.0057}), 321.8122,
       numbers({0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4,
                0.1175651343283149e-2, 0.2386356198831331e-2, 0.6238968252742796e-2,
                0.2849998395185769e-2, 0.2850001604814231e-2}),
       1e-4, 2},
      {"Oregonator",
       [](Tensor, Tensor y) {
         return vt::stack({77.27 * (y[1] + y[0] * (1.0 - 8.375e-6 * y[0] - y[1])),
                           (y[2] - (1.0 + y[0]) * y[1]) / 77.27, 0.161 * (y[0] - y[2])});
       },
       numbers({1, 2, 3}), 360,
       numbers({0.1000814870318523e1, 0.1228178521549917e4, 0.1320554942846706e3}), 1e-2, 2}};
  return all;
}
TEST(Ode, StiffProblemsEndWhereTheyMust) {
  for (const Stiff& p : stiff_problems())
    for (const double tolerance : {1e-5, 1e-8}) {
      SCOPED_TRACE(p.name);
      const auto s = vt::odeint(p.f, p.y0,
                                {.method = OdeMethod::rodas5p,
                                 .t1 = p.t1,
                                 .rtol = tolerance,
                                 .atol = tolerance * p.atol});
      EXPECT_EQ(reason(s), StopReason::end);
      EXPECT_LT(worst(s.y, p.end), p.factor * tolerance) << tolerance;
      EXPECT_LT(s.iterations.item<int>() + s.rejected.item<int>(), 6000);
    }
}

// --- rows ----------------------------------------------------------------------------------------

Tensor turn(Tensor, Tensor y) { return vt::stack({y[1], -y[0]}); }
TEST(Ode, RowsLieOnTheSolution) {
  for (const OdeMethod m : all_methods)
    for (const int rows : {0, 1, 10, 1000, 10000}) {
      SCOPED_TRACE(name(m) + ", rows: " + std::to_string(rows));
      const Tensor times = vt::linspace(Tensor(0.0), Tensor(6.0), rows).astype(vt::f64);
      const auto solve = [&](Tensor y0) {
        return vt::odeint(turn, y0,
                          {.method = m,
                           .t1 = 6,
                           .save_at = times,
                           .rtol = 1e-9,
                           .atol = 1e-9,
                           .first_step = m == OdeMethod::rk4 ? 0.01 : 0});
      };
      const auto s = vt::jit(solve)(numbers({0, 1}));
      EXPECT_EQ(s.saved.item<int>(), rows);
      EXPECT_EQ(s.ys.shape(), (vt::Shape{rows, 2}));
      expect_close(s.ys, vt::stack({vt::sin(times), vt::cos(times)}, 1), {.absolute = 1e-7});
      expect_close(s.y, numbers({std::sin(6.0), std::cos(6.0)}), {.absolute = 1e-7});
      const auto lanes = vt::vmap(solve)(vt::stack({numbers({0, 1}), numbers({0, 2})}));
      expect_close(lanes.ys[1], 2.0 * s.ys, {.absolute = 3e-7});
    }
}
TEST(Ode, TimeRunsBackward) {
  for (const OdeMethod m : all_methods) {
    SCOPED_TRACE(name(m));
    const Tensor times = numbers({3, 2.5, 1, 0.25});
    const auto s = vt::odeint([](Tensor t, Tensor y) { return y * vt::cos(t); }, 1.0,
                              {.method = m,
                               .t0 = 3,
                               .t1 = 0.25,
                               .save_at = times,
                               .rtol = 1e-10,
                               .atol = 1e-12,
                               .first_step = m == OdeMethod::rk4 ? 0.001 : 0});
    expect_close(s.ys, vt::exp(vt::sin(times) - std::sin(3.0)), {.relative = 1e-8});
    EXPECT_EQ(s.t.item<double>(), 0.25);
    EXPECT_EQ(s.ys[0].item<double>(), 1);
    expect_close(s.ys[3], s.y, {.ulps = 2});
  }
}
TEST(Ode, RowsBehindAnEarlyEndAreNan) {
  const auto s = vt::odeint([](Tensor, Tensor y) { return y * y; }, 1.0,
                            {.t1 = 2, .save_at = numbers({0, 0.5, 0.75, 1.5, 2})});
  EXPECT_EQ(reason(s), StopReason::small_step);
  EXPECT_FALSE(s.converged.item<bool>());
  EXPECT_NEAR(s.t.item<double>(), 1, 1e-4);
  EXPECT_EQ(s.saved.item<int>(), 3);
  expect_close(s.ys, numbers({1, 2, 4, NAN, NAN}), {.relative = 1e-4});
  // Times that are known only when the program runs may lie anywhere.
  const auto at = [](Tensor times) {
    const auto r = vt::odeint([](Tensor, Tensor y) { return -y; }, 1.0, {.save_at = times});
    return std::pair(r.ys, r.saved);
  };
  const auto [rows, saved] = vt::vmap(at)(vt::tensor({{-1.0, 0.0, 0.5}, {0.5, 1.0, 1.5}}));
  expect_close(rows,
               vt::tensor({{NAN, 1.0, std::exp(-0.5)}, {std::exp(-0.5), std::exp(-1.0), NAN}}),
               {.relative = 1e-5});
  expect_close(saved, vt::tensor(std::vector<std::int64_t>{2, 2}));
  // … but in their order: behind a later one there is no row.
  const auto [turned, found] = vt::vmap(at)(vt::tensor({{0.5, 0.2, 1.0}, {0.2, 0.2, NAN}}));
  expect_close(
      turned,
      vt::tensor({{std::exp(-0.5), NAN, std::exp(-1.0)}, {std::exp(-0.2), std::exp(-0.2), NAN}}),
      {.relative = 1e-5});
  expect_close(found, vt::tensor(std::vector<std::int64_t>{2, 2}));
}

// Where time does not pass: y(t1; t0) has the derivative f by t1 and −f by t0, and so have rows at
// t0 by their times and by t0.
TEST(Ode, DerivativesWhereNoTimePasses) {
  for (const OdeMethod m : all_methods) {
    SCOPED_TRACE(name(m));
    const auto at = [&](Tensor ends) {
      const auto s = vt::odeint([](Tensor t, Tensor y) { return (1.0 + t) * y; }, 3.0,
                                {.method = m,
                                 .t0 = ends[0],
                                 .t1 = ends[1],
                                 .save_at = ends[vt::slice(2, 3)],
                                 .first_step = 0.1});
      return vt::concatenate({vt::stack({s.y, s.t}), s.ys});
    };
    const Tensor wanted = vt::tensor({{-9.0, 9.0, 0.0}, {0.0, 1.0, 0.0}, {-9.0, 0.0, 9.0}});
    for (const double end : {2.0, 2.5}) {
      const Tensor ends = numbers({2.0, end, 2.0});
      const auto rows = [&](const Tensor& j) { return end == 2.0 ? j : j[vt::slice(2, 3)]; };
      expect_close(rows(vt::jacfwd(at)(ends)), rows(wanted), {.absolute = 1e-12});
      expect_close(rows(vt::jacrev(at)(ends)), rows(wanted), {.absolute = 1e-12});
      const Tensor lanes = vt::stack({ends, ends + 1.0});
      expect_close(rows(vt::vmap(vt::jacrev(at))(lanes)[0]), rows(wanted), {.absolute = 1e-12});
    }
  }
}

TEST(Ode, TimesThatRoundingMovedBeyondTheEndsCount) {
  const auto rate = [](Tensor, Tensor y) { return -y; };
  // In f32 1.7 is more than 1.7.
  const Tensor times = vt::linspace(0.1, 1.7, 5);
  ASSERT_EQ(times.dtype(), vt::f32);
  const auto s = vt::odeint(rate, 1.0, {.t0 = 0.1, .t1 = 1.7, .save_at = times});
  EXPECT_EQ(s.saved.item<int>(), 5);
  EXPECT_EQ(s.ys[0].item<double>(), 1);
  expect_close(s.ys[4], s.y, {.ulps = 2});
  const auto last = [&](Tensor t1) {
    return vt::odeint(rate, 1.0, {.t1 = t1, .save_at = t1 * numbers({1.0 / 3, 1}) * 3.0 / 3.0})
        .saved;
  };
  const Tensor ends = vt_test::random_tensor(vt::f64, {50}, 0.1, 3.0, 7);
  expect_close(vt::vmap(last)(ends), vt::tensor(std::vector<std::int64_t>(50, 2)));
}

// --- how it ends ---------------------------------------------------------------------------------

TEST(Ode, ReasonsSayHowItEnded) {
  const auto rate = [](Tensor, Tensor y) { return -y; };
  const auto capped = vt::odeint(rate, 1.0, {.t1 = 1e6, .max_steps = 7});
  EXPECT_EQ(reason(capped), StopReason::max_iterations);
  EXPECT_EQ(capped.iterations.item<int>() + capped.rejected.item<int>(), 7);
  EXPECT_GT(capped.t.item<double>(), 0);
  for (const OdeMethod m : all_methods) {
    SCOPED_TRACE(name(m));
    const double step = m == OdeMethod::rk4 ? 0.1 : 0;
    const auto nan = vt::odeint([](Tensor, Tensor y) { return vt::log(-y); }, 1.0,
                                {.method = m, .save_at = numbers({0, 1}), .first_step = step});
    EXPECT_EQ(reason(nan), StopReason::not_finite);
    EXPECT_EQ(nan.saved.item<int>(), 0);
    EXPECT_EQ(nan.iterations.item<int>(), 0);
    EXPECT_EQ(nan.y.item<double>(), 1);
    const auto still = vt::odeint(
        rate, 1.0, {.method = m, .t0 = 1, .t1 = 1, .save_at = numbers({1, 1}), .first_step = step});
    EXPECT_EQ(reason(still), StopReason::end);
    EXPECT_EQ(still.iterations.item<int>(), 0);
    expect_close(still.ys, numbers({1, 1}));
    // f is NaN beyond y = 1, which the solution comes near to: such trials are rejected.
    const auto edge = vt::odeint([](Tensor, Tensor y) { return vt::sqrt(1.0 - y); }, 0.0,
                                 {.method = m, .t1 = 1.9, .first_step = 1.85});
    if (m == OdeMethod::rk4) {
      EXPECT_EQ(reason(edge), StopReason::small_step);
    } else {
      EXPECT_EQ(reason(edge), StopReason::end);
      EXPECT_GT(edge.rejected.item<int>(), 0);
      EXPECT_NEAR(edge.y.item<double>(), 1 - 0.05 * 0.05, 1e-5);
    }
  }
  const auto coarse =
      vt::odeint(lorenz, numbers({1, 2, 3}), {.t1 = 1, .rtol = 1e-10, .h_min = 0.1});
  EXPECT_EQ(reason(coarse), StopReason::small_step);
}
TEST(Ode, StepsKeepTheirBounds) {
  const auto s = vt::odeint([](Tensor, Tensor y) { return 0.0 * y; }, 1.0,
                            {.t1 = 1, .first_step = 0.1, .h_max = 0.1});
  EXPECT_EQ(s.iterations.item<int>(), 10);
  const auto free = vt::odeint([](Tensor, Tensor y) { return 0.0 * y; }, 1.0, {.t1 = 1e6});
  EXPECT_LT(free.iterations.item<int>(), 20);
  EXPECT_EQ(s.evaluations.item<int>(), 1 + 6 * 10);
}

// --- lanes and trees -----------------------------------------------------------------------------

TEST(Ode, LanesTakeTheStepsThatTheyTakeAlone) {
  const std::int64_t n = 64;
  const Tensor y0 = vt_test::random_tensor(vt::f64, {n, 3}, 1.0, 10.0, 1),
               t1 = vt_test::random_tensor(vt::f64, {n}, 0.1, 3.0, 2);
  for (const OdeMethod m : adaptive)
    for (const bool rows : {false, true}) {
      SCOPED_TRACE(name(m) + (rows ? ", with rows" : ""));
      const auto solve = [=](Tensor y, Tensor end) {
        return vt::odeint(lorenz, y,
                          {.method = m,
                           .t1 = end,
                           .save_at = rows ? end * numbers({0.1, 0.5, 1}) : Tensor(),
                           .rtol = 1e-7,
                           .atol = 1e-7});
      };
      const auto all = vt::jit(vt::vmap(solve))(y0, t1);
      for (const int few : {1, 2, 7, 8, 9, 33}) {
        SCOPED_TRACE(std::to_string(few) + " lanes");
        const auto some = vt::jit(vt::vmap(solve))(y0(vt::slice(few)), t1(vt::slice(few)));
        expect_close(some.iterations, all.iterations(vt::slice(few)));
        expect_close(some.rejected, all.rejected(vt::slice(few)));
        expect_close(some.y, all.y(vt::slice(few)));
        expect_close(some.ys, all.ys(vt::slice(few)));
      }
      const auto alone = vt::jit(solve)(y0[3], t1[3]);
      expect_close(alone.iterations, all.iterations[3]);
      expect_close(alone.y, all.y[3], {.relative = 1e-9});
    }
}

// Some lanes end with an event, some with a failure, one begins at its end.
TEST(Ode, LanesThatEndInOtherWaysEqualTheLoop) {
  const Tensor rates = numbers({0.5, 1, -1, 3, 0.25, NAN, 1}),
               ends = numbers({4, 4, 4, 1, -2, 1, 0});
  for (const OdeMethod m : all_methods) {
    SCOPED_TRACE(name(m));
    const auto solve = [=](Tensor rate, Tensor t1) {
      const auto f = [=](Tensor, Tensor y) { return rate * y * y; };
      const auto s = vt::odeint(f, 1.0,
                                {.method = m,
                                 .t1 = t1,
                                 .save_at = t1 * numbers({0, 0.2, 0.4, 0.6, 1}),
                                 .rtol = 1e-8,
                                 .first_step = m == OdeMethod::rk4 ? 0.01 : 0,
                                 .max_steps = 2000,
                                 .event = {.stop_at = 1}},
                                [](Tensor, Tensor y) { return y - 0.3; });
      return std::tuple(s.y, s.t, s.ys, s.event_t, s.events, s.saved, s.reason);
    };
    const auto all = vt::jit(vt::vmap(solve))(rates, ends);
    for (std::int64_t i = 0; i < rates.size(); ++i) {
      const auto one = vt::jit(solve)(rates[i], ends[i]);
      const auto leaves = vt::tree_leaves(all), alone = vt::tree_leaves(one);
      for (std::size_t k = 0; k < leaves.size(); ++k)
        expect_close(leaves[k][i], alone[k], {.relative = 1e-7}, std::to_string(k));
    }
    EXPECT_EQ(std::get<6>(all)[2].item<int>(), static_cast<int>(StopReason::event));
    EXPECT_EQ(std::get<6>(all)[5].item<int>(), static_cast<int>(StopReason::not_finite));
    EXPECT_EQ(std::get<6>(all)[6].item<int>(), static_cast<int>(StopReason::end));
    expect_close(std::get<1>(all)[2], vt::tensor(1 / 0.3 - 1), {.relative = 1e-7});
  }
}
TEST(Ode, SolutionsWithinASlope) {
  // z(y) = y e^(1/2) of an equation of its own; y' = z.
  const auto f = [](Tensor, Tensor y) {
    return vt::odeint([](Tensor, Tensor z) { return z; }, y, {.t1 = 0.5, .rtol = 1e-10}).y;
  };
  const auto end = [&](Tensor y0) { return vt::odeint(f, y0, {.rtol = 1e-9}).y; };
  const double rate = std::exp(std::exp(0.5));
  expect_close(end(vt::tensor(2.0)), vt::tensor(2 * rate), {.relative = 1e-7});
  expect_close(vt::grad(end)(vt::tensor(2.0)), vt::tensor(rate), {.relative = 1e-7});
}

struct Body {
  Tensor place, speed;
};
TEST(Ode, TreesKeepTheirParts) {
  const auto f = [](Tensor, const Body& b) {
    return Body{b.speed.astype(vt::f64), -b.place.astype(vt::f32)};
  };
  const Body start{numbers({1, 0}), vt::tensor({0.0f, 1.0f})};
  const auto s = vt::odeint(f, start, {.t1 = 1.5, .save_at = numbers({0.5, 1.5}), .rtol = 1e-9});
  EXPECT_EQ(s.y.speed.dtype(), vt::f32);
  EXPECT_EQ(s.ys.place.shape(), (vt::Shape{2, 2}));
  expect_close(s.y.place, numbers({std::cos(1.5), std::sin(1.5)}), {.absolute = 1e-6});
  expect_close(s.ys.place[1], s.y.place, {.ulps = 4});

  using Map = std::map<std::string, Tensor>;
  const auto m = vt::odeint(
      [](Tensor t, const Map& y) { return Map{{"a", -y.at("a")}, {"m", 0.0 * y.at("m") + t}}; },
      Map{{"a", 1.0}, {"m", vt::zeros({2, 3}, vt::f64)}}, {.t1 = 2, .rtol = {1e-8, 1e-10}});
  expect_close(m.y.at("a"), vt::tensor(std::exp(-2.0)), {.relative = 1e-7});
  expect_close(m.y.at("m"), vt::full({2, 3}, 2.0, vt::f64), {.relative = 1e-9});
}
TEST(Ode, EmptyTensorsStayEmpty) {
  for (const OdeMethod m : {OdeMethod::tsit5, OdeMethod::dopri5}) {
    const auto s = vt::odeint([](Tensor, Tensor y) { return -y; }, vt::zeros({0, 2}, vt::f64),
                              {.method = m, .save_at = numbers({0.5, 1})});
    EXPECT_EQ(reason(s), StopReason::end);
    EXPECT_EQ(s.ys.shape(), (vt::Shape{2, 0, 2}));
  }
}
TEST(Ode, TolerancesOfElements) {
  const auto solve = [](vt::OdeTolerance atol) {
    return vt::odeint(lorenz, numbers({1, 2, 3}), {.t1 = 1, .rtol = 0, .atol = atol});
  };
  const auto one = solve(1e-6), three = solve(numbers({1e-6, 1e-6, 1e-6})),
             loose = solve(numbers({1, 1, 1e-6}));
  expect_close(one.y, three.y);
  EXPECT_LT(loose.iterations.item<int>(), one.iterations.item<int>());
}
TEST(Ode, ElementsThatStayZeroNeedNoAbsoluteTolerance) {
  for (const OdeMethod m : adaptive) {
    const auto s = vt::odeint([](Tensor, Tensor y) { return -y; }, numbers({1, 0}),
                              {.method = m, .rtol = 1e-8, .atol = 0});
    EXPECT_EQ(reason(s), StopReason::end);
    expect_close(s.y, numbers({std::exp(-1.0), 0}), {.relative = 1e-7}, name(m));
  }
}
TEST(Ode, HalfPrecisionIsComputedInSingle) {
  for (const vt::DType d : {vt::f16, vt::bf16}) {
    const auto s = vt::odeint([](Tensor, Tensor y) { return -y; }, vt::ones({2}, d),
                              {.save_at = numbers({0.5, 1})});
    EXPECT_EQ(s.y.dtype(), d);
    EXPECT_EQ(s.t.dtype(), vt::f32);
    expect_close(s.ys[1].astype(vt::f64), vt::full({2}, std::exp(-1.0), vt::f64),
                 {.absolute = 3e-3});
  }
}
TEST(Ode, SinglePrecisionStaysSingle) {
  for (const OdeMethod m : adaptive) {
    const auto s = vt::odeint([](Tensor t, Tensor y) { return -2.0 * t * y; }, vt::tensor({1.0f}),
                              {.method = m, .t1 = 1.5, .save_at = numbers({0.5})});
    EXPECT_EQ(s.y.dtype(), vt::f32);
    EXPECT_EQ(s.t.dtype(), vt::f32);
    EXPECT_EQ(reason(s), StopReason::end);
    expect_close(s.y, vt::tensor({std::exp(-2.25f)}), {.relative = 1e-3}, name(m));
    expect_close(s.ys[0], vt::tensor({std::exp(-0.25f)}), {.relative = 1e-3}, name(m));
  }
}

// --- derivatives ---------------------------------------------------------------------------------

/// A function of six numbers: two rates, y0, t0 and t1.
std::function<Tensor(Tensor)> parameters(OdeMethod m, bool rows, double step) {
  return [=](Tensor p) {
    const auto f = [=](Tensor t, Tensor y) {
      return vt::stack({p[0] * y[0] * (1.0 - y[1]), p[1] * y[1] * (y[0] - 1.0) + vt::sin(t)});
    };
    const Tensor t0 = p[4], t1 = p[5];
    OdeOptions o =
        step > 0 ? steps_of(m, step, 0) : OdeOptions{.method = m, .rtol = 1e-9, .atol = 1e-9};
    o.t0 = t0;
    o.t1 = t1;
    if (rows) o.save_at = t0 + (t1 - t0) * numbers({0, 0.3, 0.35, 0.9, 1});
    const auto s = vt::odeint(f, vt::stack({p[2], p[3]}), o);
    return rows ? vt::concatenate({vt::sum(s.ys, 0), s.y}) : s.y;
  };
}
const Tensor& six_numbers() {
  static const Tensor all = numbers({1.1, 0.7, 0.8, 1.3, 0.2, 1.9});
  return all;
}
TEST(Ode, DerivativesInBothModes) {
  const Tensor p = six_numbers();
  for (const OdeMethod m : all_methods)
    for (const bool rows : {false, true}) {
      SCOPED_TRACE(name(m) + (rows ? ", with rows" : ""));
      const auto f = parameters(m, rows, 0.03);
      const Tensor forward = vt::jacfwd(f)(p), reverse = vt::jacrev(f)(p);
      constexpr Tolerance same{.relative = 1e-12, .absolute = 1e-12};
      expect_close(reverse, forward, same);
      // Rows that move over the end of a step go on by another polynomial.
      expect_close(forward, vt_test::numeric_jacobian(f, p), {.relative = 1e-8, .absolute = 1e-8});
      if (!rows) continue;
      expect_close(vt::jit(vt::jacrev(f))(p), forward, same);
      const Tensor lanes = vt::stack({p, p * 1.1, p * 0.9});
      expect_close(vt::vmap(vt::jacrev(f))(lanes)[0], forward, same);
    }
}
// The ways there and back run steps again, which rounding may make a little longer: the error of
// rodas5p's steps is the small difference of large numbers.
TEST(Ode, DerivativesOfStepsThatAreChosen) {
  const Tensor p = six_numbers();
  const Tensor exact = vt::jacfwd(parameters(OdeMethod::rk4, true, 0.001))(p);
  for (const OdeMethod m : adaptive) {
    SCOPED_TRACE(name(m));
    const auto f = parameters(m, true, 0);
    const double near = m == OdeMethod::rodas5p ? 1e-7 : 1e-12;
    const Tensor forward = vt::jacfwd(f)(p);
    expect_close(vt::jacrev(f)(p), forward, {.relative = near, .absolute = near});
    expect_close(forward, exact, {.relative = 1e-6, .absolute = 1e-6});
  }
}
TEST(Ode, SecondDerivatives) {
  const Tensor p = six_numbers();
  for (const OdeMethod m : {OdeMethod::tsit5, OdeMethod::rodas5p})
    for (const bool rows : {false, true}) {
      SCOPED_TRACE(name(m) + (rows ? ", with rows" : ""));
      const auto f = parameters(m, rows, 0.11);
      const auto square = [&](Tensor x) { return vt::sum(vt::square(f(x))); };
      const Tensor hessian = vt::hessian(square)(p);
      expect_close(vt::jacrev(vt::grad(square))(p), hessian,
                   {.relative = 1e-11, .absolute = 1e-11});
      if (!rows)
        expect_close(hessian, vt_test::numeric_jacobian(vt::grad(square), p),
                     {.relative = 1e-9, .absolute = 1e-9});
    }
}
TEST(Ode, RejectedStepsLeaveDerivativesAlone) {
  for (const OdeMethod m : adaptive) {
    const auto end = [=](Tensor a) {
      return vt::odeint([=](Tensor, Tensor y) { return -a * vt::sqrt(y); }, 1.0,
                        {.method = m, .t1 = 1.9, .rtol = 1e-9, .first_step = 1.85})
          .y;
    };
    // y = (1 − a t / 2)²
    for (const Tensor& slope : {vt::grad(end)(vt::tensor(1.0)), vt::jacfwd(end)(vt::tensor(1.0)),
                                vt::vmap(vt::grad(end))(numbers({1.0, 0.5}))[0]})
      expect_close(slope, vt::tensor(-0.05 * 1.9), {.relative = 1e-6}, name(m));
    for (const Tensor& bend :
         {vt::hessian(end)(vt::tensor(1.0)), vt::jacrev(vt::grad(end))(vt::tensor(1.0))})
      expect_close(bend, vt::tensor(1.9 * 1.9 / 2), {.relative = 1e-5}, name(m));
  }
}

// --- events --------------------------------------------------------------------------------------

TEST(Ode, EventsAreFoundOnce) {
  const auto zero = [](Tensor, Tensor y) { return y[0]; };
  const auto count = [&](int direction, std::int64_t stop_at) {
    return vt::odeint(turn, numbers({0, 1}),
                      {.t1 = 20,
                       .save_at = numbers({1, 4, 12}),
                       .rtol = 1e-10,
                       .atol = 1e-12,
                       .event = {.direction = direction, .stop_at = stop_at}},
                      zero);
  };
  EXPECT_EQ(count(0, 0).events.item<int>(), 6);  // π … 6 π; not the start
  EXPECT_EQ(count(1, 0).events.item<int>(), 3);
  EXPECT_EQ(count(-1, 0).events.item<int>(), 3);
  expect_close(count(-1, 0).event_t, vt::tensor(5 * M_PI), {.relative = 1e-9});
  EXPECT_EQ(reason(count(0, 0)), StopReason::end);
  const auto stopped = count(0, 3);
  EXPECT_EQ(reason(stopped), StopReason::event);
  EXPECT_TRUE(stopped.converged.item<bool>());
  expect_close(stopped.t, vt::tensor(3 * M_PI), {.relative = 1e-9});
  expect_close(stopped.y, numbers({0, -1}), {.absolute = 1e-8});
  EXPECT_LT(std::abs(stopped.y[0].item<double>()), 1e-14);
  EXPECT_EQ(stopped.saved.item<int>(), 2);
  EXPECT_EQ(reason(count(0, 7)), StopReason::end);

  // At the very end of each step of 1/4: the value there is 0, and belongs to the step before it.
  const auto ramp = [](Tensor, Tensor y) { return 0.0 * y + 1.0; };
  const auto third = [](Tensor, Tensor y) { return (y - 0.5) * (y - 1.25) * (y - 1.6); };
  const auto s = vt::odeint(
      ramp, 0.0, {.method = OdeMethod::rk4, .t1 = 2, .first_step = 0.25, .event = {.stop_at = 0}},
      third);
  EXPECT_EQ(s.events.item<int>(), 3);
  EXPECT_NEAR(s.event_t.item<double>(), 1.6, 1e-14);
}
TEST(Ode, EventTimesHaveDerivatives) {
  for (const OdeMethod m : all_methods) {
    SCOPED_TRACE(name(m));
    // The time of a fall from h: √(2 h / g); where there is a wall at w, too.
    const auto fall = [=](Tensor p) {
      const auto f = [=](Tensor, Tensor y) { return vt::stack({y[1], -p[1], y[3], 0.0 * y[3]}); };
      const auto s = vt::odeint(f, vt::stack({p[0], Tensor(0.0), Tensor(0.0), p[2]}),
                                {.method = m,
                                 .t1 = 10,
                                 .rtol = 1e-10,
                                 .atol = 1e-10,
                                 .first_step = m == OdeMethod::rk4 ? 0.3 : 0},
                                [](Tensor, Tensor y) { return y[0]; });
      return vt::stack({s.t, s.y[1], s.y[2], s.event_t, s.event_y[1]});
    };
    const auto plain = [](Tensor p) {
      const Tensor t = vt::sqrt(2.0 * p[0] / p[1]);
      return vt::stack({t, -p[1] * t, p[2] * t, t, -p[1] * t});
    };
    const Tensor p = numbers({10, 9.81, 3});
    constexpr Tolerance near{.relative = 1e-9, .absolute = 1e-9};
    expect_close(fall(p), plain(p), near);
    expect_close(vt::jacfwd(fall)(p), vt::jacfwd(plain)(p), near, "forward");
    expect_close(vt::jacrev(fall)(p), vt::jacfwd(plain)(p), near, "reverse");
    if (m == OdeMethod::rk4 || m == OdeMethod::dopri5) continue;  // as tsit5
    const auto time = [&](auto f) { return [f](Tensor x) { return f(x)[0] * f(x)[2]; }; };
    expect_close(vt::hessian(time(fall))(p), vt::hessian(time(plain))(p), near, "second");
    const Tensor lanes = vt::stack({p, p * 2.0, numbers({1e4, 1, 1})});
    const Tensor slopes = vt::vmap(vt::jacrev(fall))(lanes);
    expect_close(slopes[1], vt::jacfwd(plain)(lanes[1]), near, "lanes");
    EXPECT_TRUE(std::isnan(vt::vmap(fall)(lanes)[2][3].item<double>()));
  }
}

// --- messages ------------------------------------------------------------------------------------

TEST(Ode, ErrorsSayWhatIsWrong) {
  const auto f = [](Tensor, Tensor y) { return -y; };
  const Tensor y0 = numbers({1, 2});
  const auto refuse = [&](const OdeOptions& o, ErrorKind kind, std::vector<std::string> parts) {
    parts.push_back("vt::odeint");
    parts.push_back("ode_test.cpp:");
    expect_error([&] { static_cast<void>(vt::odeint(f, y0, o)); }, kind, parts);
  };
  refuse({.method = OdeMethod::rk4}, ErrorKind::value, {"rk4", ".first_step = 0.01"});
  refuse({.t1 = y0}, ErrorKind::shape, {"t1 is f64[2]", "scalar"});
  refuse({.t0 = Tensor()}, ErrorKind::value, {"t0 is an empty Tensor"});
  refuse({.save_at = 1.0}, ErrorKind::shape, {"save_at is f64[]", "[m]"});
  refuse({.save_at = numbers({0.5, 0.25})}, ErrorKind::value,
         {"not in order", "0.25 comes behind"});
  refuse({.save_at = numbers({0.5, NAN})}, ErrorKind::value, {"not in order"});
  refuse({.save_at = numbers({0.5, 1.5})}, ErrorKind::value, {"1.5", "between t0 = 0 and t1 = 1"});
  refuse({.t0 = 1, .t1 = 0, .save_at = numbers({0.25, 0.5})}, ErrorKind::value, {"backward"});
  refuse({.rtol = -1.0}, ErrorKind::value, {"rtol is -1"});
  refuse({.atol = {1e-3, 1e-3}}, ErrorKind::value, {"atol has 2 parts", "1 Tensors"});
  refuse({.atol = numbers({1, 1, 1})}, ErrorKind::shape, {"atol f64[3]", "f64[2]"});
  refuse({.first_step = -1.0}, ErrorKind::value, {"first_step is -1"});
  refuse({.h_min = -1.0}, ErrorKind::value, {"h_min is -1"});
  refuse({.h_min = 1, .h_max = 0.5}, ErrorKind::value, {"h_max is 0.5"});
  refuse({.max_steps = 0}, ErrorKind::value, {"max_steps is 0"});
  refuse({.event = {.direction = 2}}, ErrorKind::value, {"event.direction is 2"});
  refuse({.event = {.stop_at = -1}}, ErrorKind::value, {"event.stop_at is -1"});
  const auto wrong = [&](auto g, Tensor y, ErrorKind kind, std::vector<std::string> parts) {
    parts.push_back("vt::odeint");
    expect_error([&] { static_cast<void>(vt::odeint(g, y)); }, kind, parts);
  };
  wrong([](Tensor, Tensor y) { return y[0]; }, y0, ErrorKind::shape,
        {"gives f64[] as dy/dt where y is f64[2]"});
  wrong([](Tensor, Tensor y) { return y.astype(vt::f64); }, vt::tensor({1.0f}), ErrorKind::dtype,
        {"gives f64[1] as dy/dt where y is f32[1]"});
  wrong(f, vt::tensor({1, 2}), ErrorKind::dtype,
        {"y0 must be real floats, not i32[2]: write 1.0, not 1"});
  wrong(f, vt::complex(y0, y0), ErrorKind::dtype,
        {"y0 must be real floats, not c128[2]: give vt::real and vt::imag of it"});
  wrong(f, Tensor(), ErrorKind::value, {"y0 is an empty Tensor"});
  const std::vector<Tensor> two{y0, y0};
  expect_error(
      [&] {
        static_cast<void>(vt::odeint(
            [](Tensor, std::vector<Tensor> y) { return std::vector<Tensor>{y[0]}; }, two));
      },
      ErrorKind::tree,
      {"vt::odeint: the function must give a tree like y0, but the result differs in its size",
       "1 Tensor in all, not 2"});
  expect_error(
      [&] {
        static_cast<void>(vt::odeint([](Tensor, std::pair<Tensor, Tensor> y) { return y; },
                                     std::pair(y0, vt::tensor({1}))));
      },
      ErrorKind::dtype, {"y0 [1] must be real floats, not i32[1]"});
  expect_error(
      [&] { static_cast<void>(vt::odeint(f, y0, {}, [](Tensor, Tensor y) { return y; })); },
      ErrorKind::shape, {"the event gives f64[2]"});
}

}  // namespace
