// Calls of a jitted function that differ in their number of rows: one program where rows do not
// meet, and right results everywhere.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "../../src/jit/passes/any_rows.hpp"
#include "../../src/trace/record/scope.hpp"

namespace {

using vt::Tensor;

Tensor random_of(const vt::Shape& shape, int seed) {
  return vt::random::normal(vt::random::key(static_cast<std::uint64_t>(seed)), shape, vt::f32)
      .eval();
}

struct Case {
  const char* name;
  bool apart;  ///< do rows not meet?
  std::function<Tensor(const Tensor& x, const Tensor& w)> f;
};

const Tensor& vector_of_4() {
  static const Tensor v = random_of({4}, 9);
  return v;
}

// x: [rows, 4]; w: [4, 4], the same in all calls.
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"layer", true, [](auto& x, auto& w) { return vt::tanh(vt::matmul(x, w) + vector_of_4()); }},
      {"number", true, [](auto& x, auto&) { return vt::exp(x * 0.5f) - 1.0f; }},
      {"softmax", true, [](auto& x, auto&) { return vt::softmax(x, -1); }},
      {"sum of a row", true, [](auto& x, auto&) { return vt::sum(x * x, -1); }},
      {"best of a row", true, [](auto& x, auto&) { return vt::argmax(x, 1); }},
      {"sorted row", true, [](auto& x, auto&) { return vt::sort(x, -1); }},
      {"running sum of a row", true, [](auto& x, auto&) { return vt::cumsum(x, 1); }},
      {"columns", true,
       [](auto& x, auto&) {
         return vt::concatenate({vt::slice(x, {0, 0}, {x.dim(0), 2}), vt::flip(x, {1})}, 1);
       }},
      {"with zeros", true, [](auto& x, auto&) { return x + vt::zeros({x.dim(0), 4}); }},
      {"columns counted", true,
       [](auto& x, auto&) {
         return x + vt::broadcast_to(vt::arange(4).astype(vt::f32), {x.dim(0), 4});
       }},
      {"there and back", true,
       [](auto& x, auto& w) { return vt::transpose(vt::matmul(w, vt::transpose(x))); }},
      {"outer products of rows", true,
       [](auto& x, auto&) {
         return vt::reshape(x, {x.dim(0), 4, 1}) * vt::reshape(x, {x.dim(0), 1, 4});
       }},
      {"vmap of a gradient", true,
       [](auto& x, auto& w) {
         return vt::vmap(
             vt::grad([&](Tensor row) { return vt::sum(vt::sin(vt::matmul(row, w)) * row); }))(x);
       }},
      {"mean of all rows", false, [](auto& x, auto&) { return x - vt::mean(x, 0); }},
      {"number of rows", false, [](auto& x, auto&) { return x / static_cast<float>(x.dim(0)); }},
      {"number of rows in zeros", false,
       [](auto& x, auto&) { return x + vt::full({x.dim(0), 4}, 1.0f * float(x.dim(0))); }},
      {"running sum of rows", false, [](auto& x, auto&) { return vt::cumsum(x, 0); }},
      {"rows turned around", false, [](auto& x, auto&) { return vt::flip(x, {0}); }},
      {"rows sorted", false, [](auto& x, auto&) { return vt::sort(x, 0); }},
      {"rows counted", false,
       [](auto& x, auto&) {
         return x + vt::reshape(vt::arange(x.dim(0)).astype(vt::f32), {x.dim(0), 1});
       }},
      {"products of rows", false,
       [](auto& x, auto&) { return vt::matmul(x, vt::matmul(vt::transpose(x), x)); }},
      {"softmax over rows", false, [](auto& x, auto&) { return vt::softmax(x, 0); }},
      {"transposed", false, [](auto& x, auto&) { return vt::transpose(x); }},
      {"all in one", false, [](auto& x, auto&) { return vt::reshape(x, {x.dim(0) * 4}); }},
      {"first row", false, [](auto& x, auto&) { return x - x[0]; }},
      {"rows moved", false, [](auto& x, auto&) { return vt::roll(x, 1, 0); }},
      {"sum of all", false, [](auto& x, auto&) { return vt::sum(x); }},
      {"random of rows", false,
       [](auto& x, auto&) { return x + vt::random::normal(vt::random::key(3), {x.dim(0), 4}); }},
  };
  return all;
}

void expect_equal(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  const auto a = got.to_vector<double>(), b = wanted.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 1e-5 * (1 + std::abs(b[i]))) << what << " element " << i;
}

TEST(AnyRows, ResultsAreThoseOfTheFunctionForEverySize) {
  const Tensor w = random_of({4, 4}, 2);
  for (const Case& c : cases()) {
    const auto fast = vt::jit(c.f);
    // 4 rows as there are columns, one row, more than a block
    for (int rows : {2, 3, 5, 4, 7, 1, 16, 6, 3, 4, 3000}) {
      const Tensor x = random_of({rows, 4}, rows);
      expect_equal(fast(x, w), c.f(x, w), std::string(c.name) + ", rows " + std::to_string(rows));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(AnyRows, TheProgramIsSharedWhereRowsDoNotMeet) {
  const Tensor w = random_of({4, 4}, 2);
  for (const Case& c : cases()) {
    const auto fast = vt::jit(c.f);
    for (int rows : {2, 3, 5, 7, 11}) fast(random_of({rows, 4}, 1), w).eval();
    const std::string plan = fast.explain_steps(random_of({11, 4}, 1), w);
    if (plan.rfind("interpreter", 0) == 0) GTEST_SKIP() << "no compiler";
    EXPECT_EQ(plan.find("any number of them") != std::string::npos, c.apart) << c.name << "\n"
                                                                             << plan;
  }
}

// Two arguments with rows, one without; another number of rows for one of them is an error as ever.
TEST(AnyRows, SeveralArguments) {
  const auto f = [](const Tensor& x, const Tensor& y, const Tensor& s) {
    return std::pair{x * s + y, vt::sum(y, -1)};
  };
  const auto fast = vt::jit(f);
  const Tensor s = random_of({3}, 4);
  for (int rows : {2, 4, 5, 6, 9, 12, 3}) {
    const Tensor x = random_of({rows, 3}, rows), y = random_of({rows, 3}, 2 * rows);
    const auto [a, b] = fast(x, y, s);
    const auto [c, d] = f(x, y, s);
    expect_equal(a, c, "first");
    expect_equal(b, d, "second");
  }
  EXPECT_THROW(fast(random_of({8, 3}, 1), random_of({7, 3}, 2), s), vt::Error);
  // Rows of the one alone: a family of its own, where the other is stretched.
  for (int rows : {2, 4, 5, 6, 9}) {
    const Tensor x = random_of({rows, 3}, rows), y = random_of({1, 3}, 5);
    expect_equal(fast(x, y, s).first, f(x, y, s).first, "stretched");
  }
}

TEST(AnyRows, NoRowsAndNoElements) {
  const auto fast = vt::jit([](const Tensor& x) { return vt::exp(x); });
  for (int rows : {2, 3, 4, 5, 0, 6, 0}) EXPECT_EQ(fast(vt::ones({rows, 2})).dim(0), rows);
  const auto empty = vt::jit([](const Tensor& x) { return vt::exp(x); });
  for (int rows : {2, 3, 4, 5, 6}) EXPECT_EQ(empty(vt::ones({rows, 0})).dim(0), rows);
}

}  // namespace
