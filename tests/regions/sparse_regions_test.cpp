// Jacobians and Hessians that are mostly zeros: functions that compute the rest, alone and for many
// lanes. Their values are the interpreter's and those of central differences.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/compare_executors.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;
using In = std::span<const Tensor>;

/// Each element depends on three neighbours, by sums, products, quotients and shared factors.
Tensor chain(const Tensor& x) {
  const int n = static_cast<int>(x.shape()[0]);
  std::vector<Tensor> y;
  for (int i = 0; i < n; ++i) {
    const Tensor a = x[i], b = x[(i + 1) % n], c = x[(i + 2) % n];
    y.push_back(vt::sin(a) * b - c / (2.0 + a * a));
  }
  for (int i = 0; i + 1 < n; i += 2) y[i] = y[i] - y[i + 1] * 0.5;
  return vt::stack(y);
}

/// Turned and turned back by small matrices, some of whose entries are 0.
Tensor turned(const Tensor& x) {
  const Tensor place = vt::tensor({{1.0, 0.0, 0.0}, {0.0, 0.0, -1.0}, {0.0, 1.0, 0.0}});
  std::vector<Tensor> all;
  Tensor at = vt::tensor({0.5, -1.0, 2.0});
  for (int i = 0; i < 5; ++i) {
    const Tensor c = vt::cos(x[i]), s = vt::sin(x[i]), o = vt::zeros({}, vt::f64);
    const Tensor turn = vt::matmul(place, vt::stack({vt::stack({c, -s, o}), vt::stack({s, c, o}),
                                                     vt::stack({o, o, o + 1.0})}));
    at = vt::matmul(turn, at) + vt::pad(vt::reshape(x[i + 5], {1}), {{1, 1}});
    all.push_back(at);
  }
  return vt::concatenate(all);
}

/// A table of which elements are written, and read by number.
Tensor written(const Tensor& x) {
  Tensor t = vt::zeros({6}, vt::f64);
  for (int i = 0; i < 6; ++i) t = vt::index_update(t, {i}, x[i] * x[(i + 1) % 6]);
  return vt::take(t, vt::tensor({5, 0, 3, 3})) * x[vt::slice(0, 4)];
}

Tensor start(int n, double by = 1) {
  std::vector<double> x;
  for (int i = 0; i < n; ++i) x.push_back(by * std::sin(1.0 + i * 1.3));
  return vt::tensor(x, {n}).eval();
}

struct Case {
  std::string name;
  Tensor (*f)(const Tensor&);
  int inputs;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class SparseRegions : public ::testing::TestWithParam<Case> {};

// On numbers that the executors see as arguments: rows, columns and both.
TEST_P(SparseRegions, EqualTheInterpreter) {
  const Case& c = GetParam();
  const auto total = [f = c.f](const Tensor& x) { return vt::sum(vt::square(f(x))); };
  const vt_test::Tolerance close{.relative = 1e-12, .absolute = 1e-12};
  vt_test::expect_same(
      [&](In a) -> Tensors {
        return {vt::jacrev(c.f)(a[0]), vt::jacfwd(c.f)(a[0]), vt::hessian(total)(a[0])};
      },
      {start(c.inputs)}, close, c.name);
  for (const int lanes : {3, 8, 13, 64, 100, 300}) {
    std::vector<Tensor> rows;
    for (int l = 0; l < lanes; ++l) rows.push_back(start(c.inputs, 1 + 0.01 * l));
    const Tensor x = vt::stack(rows).eval();
    vt_test::expect_same([&](In a) -> Tensors { return {vt::vmap(vt::jacobian(c.f))(a[0])}; }, {x},
                         close, c.name + " over " + std::to_string(lanes));
    vt_test::expect_same(
        [&](In a) -> Tensors { return {vt::vmap(vt::hessian(total), {.in_axes = {1}})(a[0])}; },
        {vt::transpose(x).eval()}, close, c.name + ", Hessians over " + std::to_string(lanes));
  }
}

TEST_P(SparseRegions, EqualDifferences) {
  const Case& c = GetParam();
  const Tensor x = start(c.inputs);
  const auto f = vt::jit(c.f);
  const Tensor j = vt::jit(vt::jacobian(c.f))(x),
               all = vt::jit(vt::vmap(vt::jacobian(c.f)))(vt::stack(std::vector<Tensor>(70, x)));
  for (int i = 0; i < c.inputs; ++i) {
    const double h = 1e-5;
    const Tensor way = vt::jit(
        [i, h, n = c.inputs](Tensor x) { return x + h * (vt::arange(n) == i).astype(vt::f64); })(x);
    const Tensor slope = (f(way) - f(2.0 * x - way)) / (2 * h);
    const Tensor column = vt::take(j, vt::tensor(i), 1);
    EXPECT_LT(vt::max(vt::abs(column - slope)).item<double>(), 1e-8) << c.name << " " << i;
    EXPECT_EQ(vt::max(vt::abs(vt::take(all, vt::tensor(i), 2) - column)).item<double>() > 1e-12,
              false);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SparseRegions,
                         ::testing::Values(Case{"chain", chain, 14}, Case{"turned", turned, 10},
                                           Case{"written", written, 6}),
                         [](const auto& info) { return info.param.name; });

std::string explained(const auto& f, const Tensor& x) { return vt::explain_steps(vt::jit(f))(x); }

TEST(SparseRegionsForm, AreOneFunction) {
  const std::string one = explained(vt::jacobian(chain), start(14));
  if (one.rfind("interpreter", 0) == 0) GTEST_SKIP() << "no compiler here";
  EXPECT_NE(one.find("form_sparse_regions"), std::string::npos) << one;
  EXPECT_EQ(one.find("step 1:"), std::string::npos) << one;
  const Tensor many = vt::stack(std::vector<Tensor>(100, start(14))).eval();
  const std::string lanes = explained(
      vt::vmap(vt::hessian([](const Tensor& x) { return vt::sum(vt::square(chain(x))); })), many);
  EXPECT_NE(lanes.find("100 lanes side by side"), std::string::npos) << lanes;
  EXPECT_EQ(lanes.find("step 1:"), std::string::npos) << lanes;
}

// A Jacobian of so many rows is computed in parts, and what one knows of zeros the next knows.
TEST(SparseRegionsForm, LongOnesInParts) {
  const auto f = [](Tensor x) {
    for (int k = 0; k < 6; ++k) x = chain(x);
    return x;
  };
  const Tensor x = start(30);
  const Tensor by_rows = vt::jit(vt::jacrev(f))(x), by_columns = vt::jit(vt::jacfwd(f))(x);
  EXPECT_LT(vt::max(vt::abs(by_rows - by_columns)).item<double>(), 1e-12);
}

// What an input does not reach stays 0 beside infinite slopes; what it reaches is infinite or NaN
// as ever. Products that the user writes are IEEE's.
TEST(SparseRegionsZeros, OnlyOfDerivatives) {
  const auto f = [](const Tensor& x) {
    return vt::stack(
        {vt::sqrt(x[0]) * x[1], x[1] * x[2], vt::sqrt(x[3]), x[3] + x[2], x[0] * 2.0, x[1] - x[3]});
  };
  const Tensor j = vt::jit(vt::jacobian(f))(vt::tensor({0.0, 2.0, 3.0, 0.0}));
  const std::vector<double> got = j.to_vector<double>();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(got[0], inf);
  EXPECT_EQ(got[1], 0);
  EXPECT_EQ(got[4 * 2 + 3], inf);
  EXPECT_EQ(got[4 * 1 + 1], 3);
  EXPECT_EQ(got[4 * 5 + 3], -1);
  const auto g = [](const Tensor& x) { return vt::eye(3, vt::f64) * x; };
  const std::vector<double> own = vt::jit(g)(vt::tensor({inf, 1.0, 2.0})).to_vector<double>();
  EXPECT_EQ(own[0], inf);
  EXPECT_TRUE(std::isnan(own[3]));
  const auto scaled = [](const Tensor& x) {
    return vt::jacobian([](const Tensor& x) { return x * x; })(x) / vt::zeros({3}, vt::f64);
  };
  const std::vector<double> quotients =
      vt::jit(scaled)(vt::tensor({1.0, 2.0, 3.0})).to_vector<double>();
  EXPECT_EQ(quotients[0], inf);
  EXPECT_TRUE(std::isnan(quotients[1]));
}

// ---- captured arrays ----------------------------------------------------------------------------

TEST(CapturedNumbers, OtherValuesGiveOtherResults) {
  const Tensor x = start(5);
  for (int k = 0; k < 4; ++k) {
    const Tensor w = vt::tensor({1.0 * k, 2.0, 0.0, -1.0, 0.5}).eval();
    const auto f = vt::jit([w](const Tensor& x) { return vt::sum(w * x * x); });
    const auto slope = vt::jit(vt::grad([w](const Tensor& x) { return vt::sum(w * x * x); }));
    double expected = 0;
    for (int i = 0; i < 5; ++i)
      expected += w.to_vector<double>()[i] * std::pow(x.to_vector<double>()[i], 2);
    EXPECT_NEAR(f(x).item<double>(), expected, 1e-12) << k;
    for (int i = 0; i < 5; ++i)
      EXPECT_NEAR(slope(x).to_vector<double>()[i],
                  2 * w.to_vector<double>()[i] * x.to_vector<double>()[i], 1e-12);
  }
}

TEST(CapturedNumbers, MemoryOfTheCallersIsReadAnew) {
  std::vector<double> memory{1, 2, 3};
  const Tensor w = vt::borrow(std::span<const double>(memory), {3});
  const auto f = vt::jit([w](const Tensor& x) { return vt::sum(w * x); });
  const Tensor x = vt::ones({3}, vt::f64).eval();
  EXPECT_EQ(f(x).item<double>(), 6);
  memory[0] = 10;
  EXPECT_EQ(f(x).item<double>(), 15);
}

TEST(CapturedNumbers, WhatWasGivenAwayIsKept) {
  Tensor w = vt::tensor({1.0, 2.0, 3.0}).eval();
  const auto f = vt::jit([w](const Tensor& x) { return w * x; });
  const Tensor x = vt::ones({3}, vt::f64).eval();
  EXPECT_EQ(f(x).to_vector<double>(), (std::vector<double>{1, 2, 3}));
  std::vector<double> out(3);
  for (int k = 0; k < 3; ++k) f.into(out)(x);
  EXPECT_EQ(out, (std::vector<double>{1, 2, 3}));
}

TEST(CapturedNumbers, OfAllDtypesAndInManyLanes) {
  for (const vt::DType d : {vt::f16, vt::bf16, vt::f32, vt::f64, vt::i8, vt::u8, vt::i32, vt::i64,
                            vt::c64, vt::bool_}) {
    const Tensor w = vt::arange(12).astype(d).eval(), x = (vt::arange(12) % 5).astype(d).eval();
    const auto f = [w](const Tensor& x) { return vt::where(w == x, w, x) + w; };
    const Tensor expected = f(x).eval();
    EXPECT_TRUE(vt::all(vt::jit(f)(x) == expected).item<bool>()) << vt::name_of(d);
    const Tensor many = vt::stack(std::vector<Tensor>(70, x)).eval();
    EXPECT_TRUE(vt::all(vt::jit(vt::vmap(f))(many) == expected).item<bool>()) << vt::name_of(d);
  }
}

}  // namespace
